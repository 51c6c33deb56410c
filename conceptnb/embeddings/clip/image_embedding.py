"""Embeddings of many images: in shards, resumable, in one memory-mapped array."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from tqdm.auto import tqdm

from conceptnb.common.files import write_text
from conceptnb.common.validation import as_count
from conceptnb.embeddings.clip.clip_models import SMALL_NAMES
from conceptnb.embeddings.clip.loading import load_encoder
from conceptnb.embeddings.clip.small_clip import SMALL_SIZE
from conceptnb.embeddings.encoders.encoder import Encoder, Pictures
from conceptnb.embeddings.shapes3d.factors import (
    FACTORS,
    N_IMAGES,
    held_out_combinations,
    index_to_factors,
)
from conceptnb.embeddings.shapes3d.images import RenderedShapes


class ImageSource(Protocol):
    """Many images, of which some are read at a time."""

    source: str
    """Where they are from; embeddings of another source are not taken from a cache."""

    def images(self, index: ArrayLike, /) -> Pictures:
        """Return the images at the given positions."""


def embed_images(
    model: Encoder,
    shapes: ImageSource,
    index: ArrayLike,
    *,
    cache: str | os.PathLike[str] | None = None,
    shard_size: int | None = None,
    batch: int | None = None,
    progress: bool = False,
) -> NDArray[np.float32]:
    """Embed the images at the given positions (Appendix D.1).

    Shards are shared out by `joblib.Parallel`, on whose backend and workers the caller decides
    (``joblib.parallel_config``). With `cache` they fill one array in a file there, and a run that
    was interrupted goes on where it stopped. Device and precision are those of the encoder.

    Parameters
    ----------
    model : Encoder
        As from `load_encoder`.
    shapes : ImageSource
        Reads images, such as `RenderedShapes` or `ImageFolder`.
    index : array-like of shape (n,)
        Positions of images.
    cache : path, optional
        Folder for the embeddings; None keeps them in memory only.
    shard_size : int, optional
        Images between two records of what is finished, by default eight batches.
    batch : int, optional
        Images that go through the model together, by default 32, or 256 for the small models.
    progress : bool
        Say before the run how long it will take, from its first batch, and show how much is left.

    Returns
    -------
    ndarray of shape (n, dimension)
        Not normalised; memory-mapped and read-only with `cache`.

    Raises
    ------
    ValueError
        If `index` is empty, the disk has too little room, or the cache holds embeddings of other
        weights or settings under this name.
    """
    positions = np.asarray(index, dtype=np.int64)
    if positions.ndim != 1 or not positions.size:
        raise ValueError(f"index must list at least one position; got shape {positions.shape}")
    together = as_count(model.batch if batch is None else batch, "batch")
    shard_size = as_count(8 * together if shard_size is None else shard_size, "shard_size")
    shape = (len(positions), model.dimension)
    path, done = None, set[int]()
    if cache is not None:
        settings = _settings(model, shapes, positions, shard_size)
        name = re.sub(r"[^\w.-]+", "-", model.name).strip("-.")
        path = Path(cache) / f"{name}-{settings['positions'][:12]}.npy"
        done = _open(path, shape, settings)
    missing = [start for start in range(0, len(positions), shard_size) if start not in done]
    if progress and missing:
        left = sum(len(positions[start : start + shard_size]) for start in missing)
        seconds = estimate_seconds(model, shapes, positions[missing[0] :], left, batch=together)
        print(f"{left:,} images by {model.name}: about {seconds:,.0f} CPU seconds", file=sys.stderr)
    whole = np.empty(shape if path is None else 0, dtype=np.float32)
    with tqdm(total=len(positions), unit="image", disable=not progress) as bar:
        bar.update(sum(len(positions[start : start + shard_size]) for start in done))
        for start, rows, count in Parallel(return_as="generator_unordered")(
            delayed(_embed_shard)(model, shapes, positions[s : s + shard_size], path, s, together)
            for s in missing
        ):
            bar.update(count)
            if path is None:
                whole[start : start + len(rows)] = rows
            else:
                done.add(start)
                _write_state(path, settings, done)
    return whole if path is None else np.load(path, mmap_mode="r")


def estimate_seconds(
    model: Encoder,
    shapes: ImageSource,
    index: ArrayLike,
    n: int | None = None,
    *,
    batch: int | None = None,
) -> float:
    """CPU seconds that reading and embedding `n` images will take, from the first at `index`.

    One image is embedded to warm up and a batch to be timed; `n` is the length of `index`
    unless given.
    """
    positions = np.asarray(index, dtype=np.int64)
    together = as_count(model.batch if batch is None else batch, "batch")
    first = positions[:together]
    model.embed_images(shapes.images(first[:1]))  # what is loaded or compiled once
    started = time.process_time()
    model.embed_images(shapes.images(first))
    spent = time.process_time() - started
    return spent / len(first) * (len(positions) if n is None else n)


def _embed_shard(
    model: Encoder,
    shapes: ImageSource,
    positions: NDArray[np.int64],
    path: Path | None,
    start: int,
    batch: int,
) -> tuple[int, NDArray[np.float32], int]:
    """Embed a shard; with `path` write it to its rows of the array there and return none."""
    rows = np.concatenate(
        [
            model.embed_images(shapes.images(positions[b : b + batch]))
            for b in range(0, len(positions), batch)
        ]
    )
    if path is None:
        return start, rows, len(rows)
    out = np.lib.format.open_memmap(path, mode="r+")
    out[start : start + len(rows)] = rows
    out.flush()
    return start, rows[:0], len(rows)


def _open(path: Path, shape: tuple[int, int], settings: dict[str, Any]) -> set[int]:
    """Return the shards that the array at `path` has, which is made if there is none."""
    if path.exists():
        try:
            state = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
            kept, done = dict(state["settings"]), {int(start) for start in state["done"]}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}: no readable record ({error}); delete both files") from None
        changed = [key for key in settings if kept.get(key) != settings[key]]
        if changed or np.load(path, mmap_mode="r").shape != shape:
            raise ValueError(
                f"{path} holds embeddings of other {', '.join(changed) or 'size'}: delete it with "
                f"{path.with_suffix('.json').name}, or name another cache"
            )
        return done
    path.parent.mkdir(parents=True, exist_ok=True)
    needed, free = 4 * shape[0] * shape[1], shutil.disk_usage(path.parent).free
    if needed > free:
        raise ValueError(
            f"the embeddings need {needed / 1e6:,.0f} MB, and cache={str(path.parent)!r} has "
            f"{free / 1e6:,.0f} MB left: name another folder, or fewer images"
        )
    _write_state(path, settings, set())
    fresh = path.with_suffix(f".{os.getpid()}")
    np.lib.format.open_memmap(fresh, mode="w+", dtype=np.float32, shape=shape).flush()
    with contextlib.suppress(FileExistsError):  # of another run; both fill in the same rows
        os.link(fresh, path)
    fresh.unlink()
    return set()


def _write_state(path: Path, settings: dict[str, Any], done: set[int]) -> None:
    state = {"settings": settings, "done": sorted(done)}
    write_text(path.with_suffix(".json"), json.dumps(state))


def _settings(
    model: Encoder, shapes: ImageSource, positions: NDArray[np.int64], shard_size: int
) -> dict[str, Any]:
    """Return what embeddings depend on, weights and positions as hashes."""
    images = f"{shapes.source}, {np.asarray(shapes.images(positions[:1])[0]).shape[0]} pixels"
    return {
        "weights": model.weights,
        "configuration": {key: str(value) for key, value in model.about.items()},
        "precision": model.precision,
        "images": images,
        "positions": hashlib.sha256(images.encode() + positions.tobytes()).hexdigest(),
        "shard_size": shard_size,
    }


@dataclass(frozen=True)
class _EmbeddedImages:
    """The same images in the eyes of several CLIP models."""

    shapes: RenderedShapes
    index: NDArray[np.intp]
    """Positions (n,) of the images."""
    factors: NDArray[np.intp]
    """Places (n, 6) of their values on the grid."""
    models: dict[str, Encoder]
    embeddings: dict[str, NDArray[np.float32]]
    """By model (n, dimension); not normalised."""

    @property
    def labels(self) -> dict[str, NDArray[np.intp]]:
        """Values (n,) of each factor, by name."""
        return dict(zip(FACTORS, self.factors.T, strict=True))

    @property
    def held_out(self) -> NDArray[np.bool_]:
        """Images (n,) whose combination of factors the small models never saw."""
        return held_out_combinations(self.factors)


def embed_rendered(
    n: int, rng: np.random.Generator, names: Sequence[str] = SMALL_NAMES
) -> _EmbeddedImages:
    """Embed n random images at the small models' size, by encoders of `load_encoder`."""
    shapes = RenderedShapes(SMALL_SIZE)
    index = np.sort(rng.choice(N_IMAGES, n, replace=False))
    models = {name: load_encoder(name) for name in names}
    embeddings = {name: embed_images(model, shapes, index) for name, model in models.items()}
    return _EmbeddedImages(shapes, index, index_to_factors(index), models, embeddings)
