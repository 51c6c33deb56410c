"""A tokenizer for the captions of rendered scenes: one token per word.

open_clip's own tokenizer has 49,408 entries, a hundred times the weights of the
small models. Captions here hold a few dozen words.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from conceptnb.embeddings.shapes3d.captions import VOCABULARY

CONTEXT_LENGTH = 14
"""Tokens of the longest caption: twelve words, a start and an end."""


class CaptionTokenizer:
    """Turn captions into rows of tokens, as open_clip's tokenizers do.

    A row is the start token, one token per word, the end token, and zeros. The end
    token is the largest number, which is where open_clip reads the text's
    embedding.
    """

    def __init__(self) -> None:
        self._token = {word: k + 2 for k, word in enumerate(VOCABULARY)}
        self.start = 1
        self.end = len(VOCABULARY) + 2
        self.vocab_size = self.end + 1

    def __call__(self, texts: str | Sequence[str]) -> torch.Tensor:
        """Tokens (n, 14) of captions.

        Raises
        ------
        ValueError
            If a caption holds a word that the models were not trained on, or is too long.
        """
        rows = [texts] if isinstance(texts, str) else list(texts)
        tokens = torch.zeros(len(rows), CONTEXT_LENGTH, dtype=torch.long)
        for row, text in zip(tokens, rows, strict=True):
            words = text.split()
            unknown = [word for word in words if word not in self._token]
            if unknown:
                raise ValueError(
                    f"{text!r} holds {unknown[0]!r}, which the small models never read; "
                    "build captions with conceptnb.embeddings.shapes3d.captions"
                )
            if len(words) > CONTEXT_LENGTH - 2:
                raise ValueError(f"{text!r} has more than {CONTEXT_LENGTH - 2} words")
            ids = [self.start, *(self._token[word] for word in words), self.end]
            row[: len(ids)] = torch.tensor(ids)
        return tokens
