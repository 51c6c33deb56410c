"""Sentence embeddings λ of a question, which weigh a steering matrix (Appendix E.3).

The paper uses Sentence-BERT; the book's default is TF-IDF, which needs no download.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.common.sentence_bert import unit_rows
from conceptnb.steering.attention import input_device
from conceptnb.steering.spans import pad

Embedding = Callable[[Sequence[str]], np.ndarray]
"""λ: texts to an array of shape (texts, dimension)."""


class TfidfEmbedding:
    """TF-IDF of words, fitted on the training questions, unit length."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._vectorizer = TfidfVectorizer(dtype=np.float32).fit(texts)

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings (texts, words); zero for a text that shares no word with the fitted ones."""
        return self._vectorizer.transform(texts).toarray()


class StateEmbedding:
    """The language model's own middle hidden states: their mean over a text, unit length."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._layer = (model.config.get_text_config().num_hidden_layers + 1) // 2

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings (texts, hidden size)."""
        blocks, device = [], input_device(self._model)
        for start in range(0, len(texts), 64):
            rows = [self._tokenizer(text)["input_ids"] for text in texts[start : start + 64]]
            ids, mask = (part.to(device) for part in pad(rows, "right"))
            with torch.no_grad():
                found = self._model(
                    input_ids=ids, attention_mask=mask, output_hidden_states=True, logits_to_keep=1
                )
            states = found.hidden_states[self._layer].float() * mask[..., None]
            blocks.append((states.sum(1) / mask.sum(1, keepdim=True)).cpu().numpy())
        return unit_rows(np.concatenate(blocks))


class CategoryEmbedding:
    """One-hot category of a question, which a real method is not told.

    `category_of` has the category of every question text; others get all in equal parts.
    """

    def __init__(self, category_of: Mapping[str, str]) -> None:
        names, place = np.unique(list(category_of.values()), return_inverse=True)
        one_hot = np.eye(len(names), dtype=np.float32)[place]
        self._rows = dict(zip(category_of, one_hot, strict=True))
        self._other = np.full(len(names), len(names) ** -0.5, dtype=np.float32)

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings (texts, categories)."""
        return np.stack([self._rows.get(text, self._other) for text in texts])


class CentredEmbedding:
    """Another embedding minus its mean over the training questions (centred λ).

    With `constant` it has one more dimension, which is 1 for every text.
    """

    def __init__(self, embedding: Embedding, texts: Sequence[str], constant: bool = False) -> None:
        self._embedding, self._constant = embedding, constant
        self._mean = embedding(texts).mean(0)

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings (texts, dimension, or one more with the constant)."""
        centred = self._embedding(texts) - self._mean
        if not self._constant:
            return centred
        return np.pad(centred, ((0, 0), (0, 1)), constant_values=1.0)
