"""Which tokens of a text are its answer, for any tokenizer (Table 6's multiple choice).

A fixed count of leading tokens is right for one tokenizer only. Here the whole
text is tokenized once, and a token belongs to the answer when it ends after the
last character of the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedTokenizerBase

from conceptnb.steering.questions import Question


@dataclass(frozen=True)
class Encoded:
    """Tokens of a prompt followed by an answer; ``ids[start:]`` is the answer."""

    ids: tuple[int, ...]
    start: int


def encode_questions(
    tokenizer: PreTrainedTokenizerBase, questions: Sequence[Question], preface: str = ""
) -> list[list[Encoded]]:
    """Return every question's prompt with each of its answers, as tokens.

    Raises
    ------
    ValueError
        If the tokenizer keeps no character offsets, or an answer has no token.
    """
    if not tokenizer.is_fast:
        raise ValueError(
            f"tokenizer {type(tokenizer).__name__} keeps no character offsets; "
            "load it with use_fast=True"
        )
    return [[_encode(tokenizer, q.prompt(preface), a) for a in q.answers] for q in questions]


def _encode(tokenizer: PreTrainedTokenizerBase, prompt: str, answer: str) -> Encoded:
    """Tokenize `prompt` and `answer` as one text and find the answer's tokens."""
    found = tokenizer(f"{prompt} {answer}", return_offsets_mapping=True)
    ids, offsets = found["input_ids"], found["offset_mapping"]
    inside = [i for i, (_, end) in enumerate(offsets) if end > len(prompt)]
    if not inside:
        raise ValueError(f"answer {answer!r} has no token of its own")
    # Tokenizers that close a text with a special token give it the empty span (0, 0).
    return Encoded(tuple(ids[: inside[-1] + 1]), inside[0])


def pad(rows: Sequence[Sequence[int]], side: str) -> tuple[Tensor, Tensor]:
    """Return rows of tokens as one tensor, and the attention mask, both (rows, longest row).

    Parameters
    ----------
    rows : sequence of sequences of int
        Token ids. They are padded with token 0; any will do, as the mask hides it.
    side : str
        ``"left"`` or ``"right"``: where the padding goes.
    """
    if side not in ("left", "right"):
        raise ValueError(f"side is {side!r}; give 'left' or 'right'")
    tokens = [torch.tensor(row, dtype=torch.long) for row in rows]
    ids = pad_sequence(tokens, batch_first=True, padding_side=side)
    ones = [torch.ones_like(row) for row in tokens]
    return ids, pad_sequence(ones, batch_first=True, padding_side=side)
