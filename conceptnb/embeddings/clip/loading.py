"""`load_encoder`: one way to any encoder, by name, folder or file."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conceptnb.embeddings.encoders.encoder import Encoder

PAPER_ENCODERS = ("ViT-B-32/openai", "RN101/openai")
"""The two models of Appendix D: open_clip's architectures with OpenAI's weights."""

_HUB = "hf-hub:"


def load_encoder(
    name: str | os.PathLike[str],
    *,
    architecture: str | None = None,
    device: str = "cpu",
    precision: str = "float32",
    weights: str | None = None,
) -> Encoder:
    """Load an encoder of images, and of texts where it has one, as its authors configured it.

    Activation, normalisation, interpolation, crop, context length and tokenizer come from the
    model's own configuration or tag, never from the name of a file.

    Parameters
    ----------
    name : str or path
        * ``ARCHITECTURE/TAG`` of open_clip, such as ``ViT-L-14/openai``; ``ViT-B-32/untrained``
          has random weights;
        * ``hf-hub:OWNER/NAME``, a repository with an ``open_clip_config.json``;
        * ``OWNER/NAME``, a model of transformers (CLIP, SigLIP, SigLIP 2, DINOv2 and others that
          give one vector per image);
        * a folder with an ``open_clip_config.json``, or one that transformers saved;
        * a file of weights, with `architecture`: safetensors, a checkpoint of torch, or an archive
          of TorchScript such as OpenAI's, none of whose code is run;
        * ``small-vit`` or ``small-resnet``, trained here, and ``-untrained`` for random weights.
    architecture : str, optional
        Of a file of weights: an architecture of open_clip, such as ``ViT-B-32`` (GELU) or
        ``ViT-B-32-quickgelu``; ``ARCHITECTURE/TAG`` for weights trained as those of a tag were; or
        ``small-vit``, ``small-resnet``. OpenAI's own files need none.
    device, precision : str
        Where and in what to compute; see `Encoder.to`.
    weights : str, optional
        Checksum that the loaded weights must have, as `Encoder.weights` gives it.

    Raises
    ------
    FileNotFoundError, OSError, ValueError
        If a file is not there; if something cannot be fetched; if the name is unknown, something
        about it is not known, or the weights are damaged or others.

    Examples
    --------
    >>> encoder = load_encoder("small-vit")
    >>> encoder.embed_texts(["tiny red cube on red floor by red wall seen from +0°"]).shape
    (1, 64)
    """
    found = _find(str(name), architecture)
    if weights is not None and found.weights != weights:
        raise ValueError(
            f"name={str(name)!r} holds other weights than are meant (SHA-256 {found.weights[:12]}…"
            f", not {weights[:12]}…): what was learned with those does not hold for these"
        )
    for note in found.notes:
        warnings.warn(note, stacklevel=2)
    return found.to(device, precision)


def _find(name: str, architecture: str | None) -> Encoder:
    from conceptnb.embeddings.clip import clip_models  # noqa: PLC0415 - brings torch

    path = Path(name).expanduser()
    if architecture is not None and not path.is_file():
        if path.is_dir() or "." not in path.name:
            raise ValueError(
                f"architecture={architecture!r} is for a file of weights, and {name!r} is none"
            )
        raise FileNotFoundError(f"name={name!r}: there is no such file of weights")
    if small := clip_models.small_clip_encoder(name, path, architecture):
        return small
    if path.is_dir():
        return _from_folder(path)
    from conceptnb.embeddings.encoders import open_clip_encoders as of  # noqa: PLC0415

    if path.is_file():
        return of.from_file(path, architecture)
    if name.startswith(_HUB):
        return of.from_hub(name.removeprefix(_HUB))
    first, slash, rest = name.partition("/")
    if of.is_architecture(first):
        if slash:
            return of.by_tag(first, rest)
        tags = ", ".join(f"{first}/{tag}" for tag in of.tags_of(first)[:4])
        raise ValueError(
            f"name={name!r} is an architecture and does not say whose weights: give "
            f"{tags or 'a file of weights with architecture='}, or {first}/{of.UNTRAINED}"
        )
    owner_and_name = bool(slash) and "/" not in rest and bool(first.strip(".~")) and bool(rest)
    looks_like_file = path.suffix in (".safetensors", ".pt", ".pth", ".bin", ".ckpt", ".npz")
    if looks_like_file or name.startswith(("/", "./", "../", "~")):
        raise FileNotFoundError(f"name={name!r}: there is no such checkpoint or folder")
    if not owner_and_name:
        small_names = ", ".join(clip_models.SMALL_NAMES)
        raise ValueError(
            f"name={name!r} {of.unknown(name)}; give ARCHITECTURE/TAG such as "
            f"{PAPER_ENCODERS[0]}, hf-hub:OWNER/NAME, OWNER/NAME of transformers, a folder, a file "
            f"of weights, or one of {small_names}"
        )
    from conceptnb.embeddings.encoders import transformers_encoders  # noqa: PLC0415

    return transformers_encoders.from_transformers(name, f"the hub's {name}")


def _from_folder(folder: Path) -> Encoder:
    if (folder / "open_clip_config.json").is_file():
        from conceptnb.embeddings.encoders import open_clip_encoders  # noqa: PLC0415

        return open_clip_encoders.from_folder(folder)
    if (folder / "config.json").is_file():
        from conceptnb.embeddings.encoders import transformers_encoders  # noqa: PLC0415

        return transformers_encoders.from_transformers(str(folder), f"the folder {folder.name}")
    raise ValueError(
        f"{folder} is no model: it has neither open_clip_config.json nor config.json. A file of "
        "weights alone is loaded with architecture= (--architecture)"
    )
