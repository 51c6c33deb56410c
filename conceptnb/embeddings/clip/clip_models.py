"""The small CLIP models as encoders: stand-ins trained here, and controls with random weights."""

from pathlib import Path

from conceptnb.embeddings.clip.small_clip import (
    SMALL_KINDS,
    WEIGHTS,
    CaptionTokenizer,
    clip_input,
    create_small_model,
)
from conceptnb.embeddings.encoders.encoder import Encoder
from conceptnb.embeddings.encoders.open_clip_encoders import OpenClipEncoder
from conceptnb.embeddings.encoders.state_dicts import read_weights

SMALL_NAMES = tuple(f"small-{kind}" for kind in SMALL_KINDS)


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
    return OpenClipEncoder(name, source, model, clip_input, CaptionTokenizer())
