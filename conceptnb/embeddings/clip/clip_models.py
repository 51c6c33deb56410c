"""CLIP models behind one small interface: images and captions in, embeddings out.

Stand-ins trained here, controls with random weights, OpenAI's (Appendix D), or local checkpoints.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import torch
from numpy.typing import NDArray
from PIL import Image

from conceptnb.embeddings.clip.small_clip import (
    SMALL_KINDS,
    WEIGHTS,
    CaptionTokenizer,
    clip_input,
    create_small_model,
)

REAL_NAMES = ("ViT-B-32", "RN101")
"""The two models of Appendix D, by their names in open_clip."""

SMALL_NAMES = tuple(f"small-{kind}" for kind in SMALL_KINDS)

SOURCES = (
    dict.fromkeys(REAL_NAMES, "OpenAI's weights")
    | dict.fromkeys(SMALL_NAMES, "a small CLIP model trained here")
    | {f"{name}-untrained": "a small CLIP model with random weights" for name in SMALL_NAMES}
)
"""Where the weights of models that load by name are from."""


@dataclass
class ClipModel:
    """A CLIP model, its image encoder and its text encoder, with its own preprocessing."""

    name: str
    source: str
    """Where the weights are from, to be said wherever its numbers appear."""
    model: Any  # an open_clip.CLIP in evaluation mode; mypy knows its attributes as tensors
    preprocess: Callable[[NDArray[np.uint8]], torch.Tensor]
    """Images (n, height, width, 3) of bytes to the model's input (n, 3, size, size)."""
    tokenize: Callable[[Sequence[str]], torch.Tensor]

    @property
    def dimension(self) -> int:
        """Width of the embeddings."""
        return int(self.model.text_projection.shape[1])

    @torch.inference_mode()
    def embed_images(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Embeddings (n, dimension) of images (n, h, w, 3), not normalised (Appendix D.1)."""
        if images.ndim != 4 or images.shape[-1] != 3 or images.dtype != np.uint8:
            raise ValueError(f"images are uint8 (n, h, w, 3), not {images.dtype} {images.shape}")
        return self.model.encode_image(self.preprocess(images)).float().numpy()

    @torch.inference_mode()
    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeddings (n, dimension) of captions, not normalised."""
        return self.model.encode_text(self.tokenize(texts)).float().numpy()


def load_clip(name: str | os.PathLike[str]) -> ClipModel:
    """Load a CLIP model by name or from a local checkpoint.

    Parameters
    ----------
    name : str or path
        ``small-vit``, ``small-resnet`` (with ``-untrained`` for random weights), ``ViT-B-32`` or
        ``RN101`` (OpenAI's weights, which open_clip fetches once), or a path whose file name
        contains one of the architectures ``ViT-B-32``, ``RN101``, ``shapes-vit``,
        ``shapes-resnet``: safetensors, or a checkpoint that torch loads with ``weights_only``.

    Raises
    ------
    FileNotFoundError, ValueError
        If a path does not exist; if the name is unknown or does not say its architecture.
    """
    text = str(name)
    if text in REAL_NAMES:
        return _real_clip(text, "openai", SOURCES[text])
    for kind in SMALL_KINDS:
        if text in (f"small-{kind}", f"small-{kind}-untrained"):
            weights = None if text.endswith("-untrained") else WEIGHTS[kind]
            return _small_clip(text, kind, weights, SOURCES[text])
    return _clip_from_path(Path(text))


def _clip_from_path(path: Path) -> ClipModel:
    if path.suffix not in (".safetensors", ".pt", ".pth", ".bin"):
        raise ValueError(
            f"name={str(path)!r} is neither a model ({', '.join((*SMALL_NAMES, *REAL_NAMES))}) "
            "nor the path of a checkpoint (.safetensors or .pt)"
        )
    if not path.exists():
        raise FileNotFoundError(f"name={str(path)!r}: there is no such checkpoint")
    source = f"the local checkpoint {path.name}"
    for kind in SMALL_KINDS:
        if f"shapes-{kind}" in path.name:
            return _small_clip(path.stem, kind, path, source)
    for architecture in REAL_NAMES:
        if architecture.lower() in path.name.lower():
            return _real_clip(architecture, str(path), source, name=path.stem)
    known = [*REAL_NAMES, *(f"shapes-{kind}" for kind in SMALL_KINDS)]
    raise ValueError(f"the name of {path.name!r} has to say its architecture: one of {known}")


def _small_clip(name: str, kind: str, weights: Path | None, source: str) -> ClipModel:
    model = create_small_model(kind, weights=weights)
    return ClipModel(name, source, model, clip_input, CaptionTokenizer())


def _real_clip(architecture: str, pretrained: str, source: str, name: str = "") -> ClipModel:
    """Load a model of Appendix D: QuickGELU as OpenAI trained it, and CLIP's preprocessing."""
    model, _, transform = open_clip.create_model_and_transforms(
        architecture, pretrained=pretrained, force_quick_gelu=True
    )

    def preprocess(images: NDArray[np.uint8]) -> torch.Tensor:
        return torch.stack([transform(Image.fromarray(image)) for image in images])

    tokenize = open_clip.get_tokenizer(architecture)
    return ClipModel(name or architecture, source, model.eval(), preprocess, tokenize)
