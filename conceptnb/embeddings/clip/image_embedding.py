"""Embeddings of many images: streamed, resumable, kept in a memory-mapped array."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tqdm.auto import tqdm

from conceptnb.embeddings.clip.image_encoders import Tower
from conceptnb.embeddings.shapes3d.images import ShapesImages


def embed(
    tower: Tower,
    shapes: ShapesImages,
    index: ArrayLike,
    *,
    cache: str | os.PathLike[str] | None = None,
    batch_size: int = 256,
    progress: bool = True,
) -> NDArray[np.float32]:
    """Embed the images at the given positions (Appendix D.1).

    With `cache` the embeddings grow in a file there. A run that was interrupted
    goes on where it stopped, and a later one with the same tower, images and
    positions reads the file without embedding anything.

    Parameters
    ----------
    tower : the model
    shapes : the source of images
    index : (n,) positions of images
    cache : folder for the embeddings; None keeps them in memory only
    batch_size : images at a time
    progress : show a progress bar

    Returns
    -------
    (n, dimension) embeddings, not normalised; memory-mapped and read-only with `cache`.

    Raises
    ------
    ValueError
        If `index` is empty or `batch_size` is below 1.
    """
    positions = np.asarray(index, dtype=np.int64)
    if positions.ndim != 1 or not positions.size:
        raise ValueError(f"index must list at least one position; got shape {positions.shape}")
    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size} must be at least 1")
    shape = (len(positions), tower.dimension)
    if cache is None:
        out = np.empty(shape, dtype=np.float32)
        _fill(out, tower, shapes, positions, 0, batch_size, progress, None)
        return out
    folder = Path(cache)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{tower.name}-{_fingerprint(tower, shapes, positions)}.npy"
    state = path.with_suffix(".json")
    done = json.loads(state.read_text())["done"] if path.exists() and state.exists() else 0
    if done < len(positions):
        mode = "r+" if done else "w+"
        out = np.lib.format.open_memmap(path, mode=mode, dtype=np.float32, shape=shape)
        _fill(out, tower, shapes, positions, done, batch_size, progress, state)
        del out
    return np.load(path, mmap_mode="r")


def _fill(
    out: NDArray[np.float32],
    tower: Tower,
    shapes: ShapesImages,
    positions: NDArray[np.int64],
    done: int,
    batch_size: int,
    progress: bool,
    state: Path | None,
) -> None:
    """Embed what is missing, and note after each batch how far the file is good."""
    with tqdm(
        total=len(positions), initial=done, desc=f"embed {tower.name}", disable=not progress
    ) as bar:
        for start in range(done, len(positions), batch_size):
            batch = positions[start : start + batch_size]
            out[start : start + len(batch)] = tower.embed_images(shapes.images(batch))
            if state is not None:
                out.flush()  # type: ignore[attr-defined]
                partial = state.with_suffix(".part")
                partial.write_text(json.dumps({"done": start + len(batch)}))
                partial.replace(state)
            bar.update(len(batch))


def _fingerprint(tower: Tower, shapes: ShapesImages, positions: NDArray[np.int64]) -> str:
    """Name embeddings by what they depend on: weights, source of images, positions."""
    digest = hashlib.sha256()
    for key, value in tower.model.state_dict().items():
        digest.update(key.encode())
        digest.update(value.detach().cpu().numpy().tobytes())
    digest.update(shapes.source.encode())
    digest.update(str(shapes.images(positions[:1]).shape).encode())
    digest.update(positions.tobytes())
    return digest.hexdigest()[:16]
