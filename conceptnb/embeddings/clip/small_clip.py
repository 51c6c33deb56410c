"""The two small CLIP models: their architectures, input, tokens and weights.

Stand-ins for CLIP, trained here on rendered images (`conceptnb train-clip`): a vision transformer
and a ResNet of open_clip's own classes, each with a small text transformer.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import open_clip
import torch
from numpy.typing import NDArray
from open_clip.constants import OPENAI_DATASET_MEAN, OPENAI_DATASET_STD

from conceptnb.embeddings.shapes3d.captions import VOCABULARY

SMALL_KINDS = ("vit", "resnet")
SMALL_SIZE = 32
"""Width and height of the input in pixels."""

_CONFIGS = Path(__file__).parent / "configs"
WEIGHTS = {
    kind: Path(__file__).parent / "weights" / f"shapes-{kind}.safetensors" for kind in SMALL_KINDS
}
"""The shipped weights; a JSON file of the same name says how they were trained."""

CONTEXT_LENGTH = 14
"""Tokens of the longest caption: twelve words, a start and an end."""


class CaptionTokenizer:
    """Turn captions into rows of tokens, one per word, as open_clip's tokenizers do.

    A row is the start token, the words, the end token, and zeros. The end token is the largest
    number, which is where open_clip reads the text's embedding.
    """

    def __init__(self) -> None:
        self._token = {word: k + 2 for k, word in enumerate(VOCABULARY)}
        self.start = 1
        self.end = len(VOCABULARY) + 2
        self.vocab_size = self.end + 1

    def __call__(self, texts: str | Sequence[str]) -> torch.Tensor:
        """Tokens (n, 14) of captions; raises ValueError for an unknown word or a long caption."""
        rows = [texts] if isinstance(texts, str) else list(texts)
        tokens = torch.zeros(len(rows), CONTEXT_LENGTH, dtype=torch.long)
        for row, text in zip(tokens, rows, strict=True):
            words = text.split()
            if unknown := [word for word in words if word not in self._token]:
                raise ValueError(f"{text!r}: {unknown[0]!r} is no word of shapes3d.captions")
            if len(words) > CONTEXT_LENGTH - 2:
                raise ValueError(f"{text!r} has more than {CONTEXT_LENGTH - 2} words")
            ids = [self.start, *(self._token[word] for word in words), self.end]
            row[: len(ids)] = torch.tensor(ids)
        return tokens


def create_small_model(
    kind: str, *, weights: str | os.PathLike[str] | None = None, seed: int = 0
) -> open_clip.CLIP:
    """Build a small CLIP model of `SMALL_KINDS`, with weights of a safetensors file or untrained.

    `seed` is that of the initial weights; the global generator is left as it was.
    """
    if kind not in SMALL_KINDS:
        raise ValueError(f"kind={kind!r} must be one of {', '.join(SMALL_KINDS)}")
    name = f"shapes-{kind}"
    if name not in open_clip.list_models():
        open_clip.add_model_config(_CONFIGS)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = open_clip.create_model(name, pretrained=None if weights is None else str(weights))
    return model.eval()


def clip_input(images: NDArray[np.uint8]) -> torch.Tensor:
    """Turn images (n, h, w, 3) into normalised input (n, 3, 32, 32), larger ones by averaging."""
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float().div_(255)
    if pixels.shape[-2:] != (SMALL_SIZE, SMALL_SIZE):
        pixels = torch.nn.functional.interpolate(pixels, size=SMALL_SIZE, mode="area")
    mean = torch.tensor(OPENAI_DATASET_MEAN).view(3, 1, 1)
    std = torch.tensor(OPENAI_DATASET_STD).view(3, 1, 1)
    return pixels.sub_(mean).div_(std).contiguous()
