"""The small CLIP models as encoders: stand-ins trained here, and controls with random weights."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from open_clip.constants import OPENAI_DATASET_MEAN, OPENAI_DATASET_STD

from conceptnb.embeddings.clip.small_clip import (
    CONTEXT_LENGTH,
    SMALL_KINDS,
    SMALL_SIZE,
    WEIGHTS,
    CaptionTokenizer,
    clip_input,
    create_small_model,
)
from conceptnb.embeddings.encoders.encoder import Encoder, Pictures, as_pillow
from conceptnb.embeddings.encoders.open_clip_encoders import OpenClipEncoder
from conceptnb.embeddings.encoders.state_dicts import read_weights

SMALL_NAMES = tuple(f"small-{kind}" for kind in SMALL_KINDS)
_SMALL_BATCH = 256


def small_clip_encoder(name: str, path: Path, architecture: str | None) -> Encoder | None:
    """Return a small CLIP model by its name, or of a file and its architecture; None for others."""
    for kind, small in zip(SMALL_KINDS, SMALL_NAMES, strict=True):
        if architecture == small:
            read_weights(path)  # says what is wrong with a file
            return _small(path.stem, kind, path, f"the local checkpoint {path.name}")
        if name == small:
            return _small(name, kind, WEIGHTS[kind], "a small CLIP model trained here")
        if name == f"{small}-untrained":
            return _small(name, kind, None, "a small CLIP model with random weights")
    return None


def _small(name: str, kind: str, weights: Path | None, source: str) -> Encoder:
    try:
        model = create_small_model(kind, weights=weights)
    except RuntimeError as error:
        said = " ".join(str(error).split())[:120]
        raise ValueError(f"{weights} holds no weights of small-{kind} ({said})") from None
    return as_encoder(name, source, model)


def as_encoder(name: str, source: str, model: Any) -> Encoder:
    """Return one of the small models as an encoder: images of 32 pixels, captions word by word."""
    about = {
        "activation": "GELU" if hasattr(model.visual, "transformer") else "ReLU",
        "pixels": SMALL_SIZE,
        "mean": OPENAI_DATASET_MEAN,
        "std": OPENAI_DATASET_STD,
        "interpolation": "area",
        "resizing": "squash",
        "context": CONTEXT_LENGTH,
        "tokenizer": "a word each",
    }
    return OpenClipEncoder(
        name, source, model, _prepare, CaptionTokenizer(), about, batch=_SMALL_BATCH
    )


def _prepare(images: Pictures) -> torch.Tensor:
    """Return the input of an array of images, or of images of any sizes and modes."""
    if isinstance(images, np.ndarray):
        return clip_input(images)
    arrays = [np.asarray(image.convert("RGB")) for image in as_pillow(images)]
    return torch.cat([clip_input(array[None]) for array in arrays])
