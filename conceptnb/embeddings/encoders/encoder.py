"""`Encoder`: a model that gives one vector per image, and perhaps one per text."""

from __future__ import annotations

import contextlib
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

Pictures = NDArray[np.uint8] | Sequence[Image.Image] | Sequence[NDArray[np.uint8]]
"""One array (n, height, width, 3) of bytes, or a list of images of any sizes."""

PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
"""What is computed in: float32 as it is, others by autocast. Embeddings are always float32."""

_TEXTS = 2048  # that go through a model together


@dataclass(eq=False)
class Encoder(ABC):
    """An image encoder, with its text encoder if it comes with one, as its authors configured it.

    Made by `load_encoder`. Subclasses say how inputs become vectors.
    """

    name: str
    source: str
    """Where the weights are from, to be said wherever its numbers appear."""
    model: Any  # in evaluation mode; mypy knows attributes of modules as tensors
    prepare: Callable[[Pictures], Any]
    """Images to the model's input, as its own pipeline does it."""
    tokenize: Callable[[Sequence[str]], Any] | None = None
    """Texts to the model's input; None for models of images alone."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What the configuration says: activation, preprocessing, tokenizer."""
    notes: Sequence[str] = ()
    """What the configuration does not say and was taken to be so: for a report's warnings."""
    device: str = "cpu"
    precision: str = "float32"
    batch: int = 32
    """Images that go through the model together, unless a caller says otherwise."""

    @abstractmethod
    def image_features(self, inputs: Any) -> torch.Tensor:
        """Vectors (n, dimension) of what `prepare` returns."""

    @abstractmethod
    def text_features(self, inputs: Any) -> torch.Tensor:
        """Vectors (n, dimension) of what `tokenize` returns."""

    @cached_property
    def weights(self) -> str:
        """SHA-256 over names and values of all weights: two encoders with one are the same."""
        digest = hashlib.sha256()
        for key, value in self.model.state_dict().items():
            digest.update(key.encode())
            digest.update(_bytes(value))
        return digest.hexdigest()

    @cached_property
    def dimension(self) -> int:
        """Width of the embeddings, as a grey image of 64 pixels shows it."""
        return self.embed_images(np.full((1, 64, 64, 3), 128, dtype=np.uint8)).shape[1]

    def to(self, device: str, precision: str = "float32") -> Self:
        """Compute on a device of torch, such as ``"cpu"`` or ``"cuda"``, in one of `PRECISIONS`.

        Raises
        ------
        ValueError
            If this machine has no such device, or the precision is none of `PRECISIONS`.
        """
        if precision not in PRECISIONS:
            raise ValueError(f"precision={precision!r} must be one of {', '.join(PRECISIONS)}")
        try:
            self.model.to(device)
        except (RuntimeError, AssertionError) as error:
            said = str(error).splitlines()[0]
            raise ValueError(
                f"device={device!r} cannot be used on this machine ({said}): cpu always can"
            ) from None
        self.device, self.precision = device, precision
        return self

    def embed_images(self, images: Pictures) -> NDArray[np.float32]:
        """Embeddings (n, dimension) of images, not normalised (Appendix D.1).

        Parameters
        ----------
        images : uint8 ndarray of shape (n, height, width, 3), or list of images
            A list may hold PIL images and uint8 arrays (height, width, 3) of any sizes. Each goes
            through the resizing, cropping and normalisation of the model's own configuration.

        Raises
        ------
        ValueError
            If an array has another shape or type, or an image more than 8 bits a pixel.
        """
        _check(images)
        return self._embed(self.image_features, self.prepare(images))

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeddings (n, dimension) of texts, not normalised.

        Raises
        ------
        ValueError
            If the model has no text encoder, or `texts` is empty.
        """
        if self.tokenize is None:
            raise ValueError(
                f"{self.name} embeds images alone: words need an encoder of images and texts, such "
                "as CLIP or SigLIP"
            )
        if isinstance(texts, str) or not len(texts):
            raise ValueError("texts must be a list with at least one text")
        parts = [list(texts[i : i + _TEXTS]) for i in range(0, len(texts), _TEXTS)]
        return np.concatenate(
            [self._embed(self.text_features, self.tokenize(part)) for part in parts]
        )

    @torch.inference_mode()
    def _embed(self, features: Callable[[Any], torch.Tensor], inputs: Any) -> NDArray[np.float32]:
        lower = PRECISIONS[self.precision]
        cast = contextlib.nullcontext()
        if lower is not None:
            cast = torch.autocast(torch.device(self.device).type, lower)  # type: ignore[assignment]
        with cast:
            found = features(inputs.to(self.device))
        return found.float().cpu().numpy()


def _bytes(value: torch.Tensor) -> bytes:
    return value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def _check(images: Pictures) -> None:
    if isinstance(images, np.ndarray):
        if images.ndim != 4 or images.shape[-1] != 3 or images.dtype != np.uint8:
            raise ValueError(f"images are uint8 (n, h, w, 3), not {images.dtype} {images.shape}")
        return
    image: Any
    for i, image in enumerate(images):
        if isinstance(image, Image.Image):
            if image.mode.startswith(("I", "F")):
                raise ValueError(
                    f"images[{i}] has mode {image.mode}, of more than 8 bits, which models would "
                    "see as white or black: scale it to 8 bits before"
                )
            continue
        if image.ndim != 3 or image.shape[-1] != 3 or image.dtype != np.uint8:
            raise ValueError(
                f"images[{i}] is an image of PIL or uint8 (h, w, 3), not {image.dtype} "
                f"{image.shape}"
            )


def as_pillow(images: Pictures) -> list[Image.Image]:
    """Return images as PIL has them, which is what pipelines of models take."""
    return [image if isinstance(image, Image.Image) else Image.fromarray(image) for image in images]
