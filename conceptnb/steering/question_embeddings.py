"""Sentence embeddings λ of a question, which weigh a steering matrix (Appendix E.3).

The paper uses Sentence-BERT. What matters is only that similar questions get
similar embeddings, so the book's default is TF-IDF, which needs no download.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.core.sentence_bert import unit_rows
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
    """The language model's own hidden states: their mean over a text, unit length.

    Parameters
    ----------
    model, tokenizer
        The language model.
    layer : int, optional
        Which hidden state; by default the middle one.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        layer: int | None = None,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        layers = model.config.get_text_config().num_hidden_layers
        self.layer = (layers + 1) // 2 if layer is None else layer
        if not 0 <= self.layer <= layers:
            raise ValueError(f"layer is {layer}; the model has hidden states 0 to {layers}")

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings (texts, hidden size)."""
        blocks, device = [], input_device(self.model)
        for start in range(0, len(texts), 64):
            rows = [self.tokenizer(text)["input_ids"] for text in texts[start : start + 64]]
            ids, mask = (part.to(device) for part in pad(rows, "right"))
            with torch.no_grad():
                found = self.model(
                    input_ids=ids,
                    attention_mask=mask,
                    output_hidden_states=True,
                    logits_to_keep=1,
                )
            states = found.hidden_states[self.layer].float() * mask[..., None]
            blocks.append((states.sum(1) / mask.sum(1, keepdim=True)).cpu().numpy())
        return unit_rows(np.concatenate(blocks))


class CategoryEmbedding:
    """One-hot category of a question, which a real method is not told.

    Parameters
    ----------
    category_of : mapping of str to str
        Category of every question text. Any other text, such as a neutral one,
        gets all categories in equal parts.
    """

    def __init__(self, category_of: Mapping[str, str]) -> None:
        self._names = sorted(set(category_of.values()))
        self._category_of = dict(category_of)

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings (texts, categories)."""
        out = np.zeros((len(texts), len(self._names)), dtype=np.float32)
        for i, text in enumerate(texts):
            if text in self._category_of:
                out[i, self._names.index(self._category_of[text])] = 1.0
            else:
                out[i] = 1 / np.sqrt(len(self._names))
        return out


class CentredEmbedding:
    """Another embedding minus its mean over the training questions (centred λ).

    Parameters
    ----------
    embedding : callable
    texts : sequence of str
        Training questions, over which the mean is taken.
    constant : bool
        Add one more dimension that is 1 for every text.
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
