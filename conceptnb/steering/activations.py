"""Activations of question-answer pairs, which stay paired with their question (App. E.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.steering.attention import input_device, record_heads
from conceptnb.steering.calls import taken
from conceptnb.steering.questions import PromptStyle, Question, check_questions
from conceptnb.steering.spans import encode_questions, pad


@dataclass(frozen=True)
class Activations:
    """Head activations at the last token of question-answer pairs.

    Parameters
    ----------
    ids : ndarray of str
        Question id of each row, shape (rows,), by which its rows are found; so sorting or
        filtering the questions cannot give one question another one's activations.
    true : ndarray of bool
        Whether the row's answer is true, shape (rows,).
    heads : ndarray
        Activations, shape (rows, layers, heads, width).
    """

    ids: np.ndarray
    true: np.ndarray
    heads: np.ndarray

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.true) == len(self.heads):
            raise ValueError(
                f"ids, true and heads have {len(self.ids)}, {len(self.true)} and "
                f"{len(self.heads)} rows; they must have the same"
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        """(layers, heads, width)."""
        layers, heads, width = self.heads.shape[1:]
        return layers, heads, width

    def select(self, questions: Iterable[Question | str]) -> Activations:
        """Rows of the given questions (or ids), question by question, in the order given.

        Raises ValueError if a question has no activations here.
        """
        where: dict[str, list[int]] = {}
        for row, name in enumerate(self.ids):
            where.setdefault(str(name), []).append(row)
        names = [q.id if isinstance(q, Question) else q for q in questions]
        missing = [name for name in names if name not in where]
        if missing:
            raise ValueError(
                f"no activations of {len(missing)} questions, the first being {missing[0]!r}; "
                "collect them first"
            )
        rows = np.array([row for name in names for row in where[name]], dtype=np.int64)
        return Activations(self.ids[rows], self.true[rows], self.heads[rows])

    def shuffled(self, rng: np.random.Generator) -> Activations:
        """Return them with labels exchanged within each question, as a control."""
        true = self.true.copy()
        for name in dict.fromkeys(self.ids):
            rows = np.flatnonzero(self.ids == name)
            true[rows] = rng.permutation(true[rows])
        return replace(self, true=true)

    def differences(self, questions: Sequence[Question]) -> np.ndarray:
        """Return h(c_T) − h(c_F) of each question, shape (questions, layers, heads, width).

        Mean over its true answers minus mean over its false ones, in the order of ``questions``.
        """
        out = np.empty((len(questions), *self.shape), dtype=np.float32)
        index = {question.id: i for i, question in enumerate(questions)}
        mine = self.select(questions)
        row_of = np.array([index[str(name)] for name in mine.ids])
        for i in range(len(questions)):
            rows = row_of == i
            true, false = mine.heads[rows & mine.true], mine.heads[rows & ~mine.true]
            out[i] = true.mean(0) - false.mean(0)
        return out

    def covariance(self) -> np.ndarray:
        """Return the covariance of every head's activations, (layers, heads, width, width)."""
        centred = self.heads - self.heads.mean(0)
        return np.einsum("rlhi,rlhj->lhij", centred, centred) / len(centred)


def category_differences(activations: Activations, questions: Sequence[Question]) -> np.ndarray:
    """Return the mean of h(c_T) − h(c_F) in every category, over all heads side by side (E.2).

    Of shape (categories, layers · heads · width), categories in the order of their first question.
    """
    rows = activations.differences(questions).reshape(len(questions), -1)
    own = np.array([question.category for question in questions])
    return np.array([rows[own == name].mean(axis=0) for name in dict.fromkeys(own)])


@torch.no_grad()
def collect_activations(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    batch_size: int = 64,
    of: Literal["heads", "states"] = "heads",
    prompt: PromptStyle = "paper",
) -> Activations:
    """Return activations at the last token of ``Q: {question} A: {answer}``, for every answer.

    Parameters
    ----------
    model, tokenizer
        The language model, not steered.
    batch_size : int
        Pairs per forward pass.
    of : str
        ``"heads"``, which the paper reads and steers; or ``"states"``, the residual stream: the
        embedding, then what each layer hands on. A head that carries nothing may belong to a
        model that knows; the states tell the two cases apart.
    prompt : str
        Another style of prompt: see `encode_questions`.

    Returns
    -------
    Activations
        Of heads, or in their place of states, of shape (rows, layers + 1, 1, hidden size).

    Raises
    ------
    ValueError
        If there is no question, two share an id, or `of` is neither.
    """
    check_questions(list(questions))
    if of not in ("heads", "states"):
        raise ValueError(f"of is {of!r}; give 'heads' or 'states'")
    read = _heads_at_end if of == "heads" else _states_at_end
    encoded = encode_questions(tokenizer, questions, style=prompt)
    pairs = [pair.ids for answers in encoded for pair in answers]
    blocks = [
        read(model, *pad(pairs[start : start + batch_size], "right")).numpy()
        for start in range(0, len(pairs), batch_size)
    ]
    return Activations(
        np.array([q.id for q in questions for _ in q.answers]),
        np.array([true for q in questions for true in q.true]),
        np.concatenate(blocks),
    )


def _heads_at_end(model: PreTrainedModel, ids: Tensor, mask: Tensor) -> Tensor:
    with record_heads(model, torch.arange(len(ids)), mask.sum(1) - 1) as record:
        forward(model, ids, mask)
    return record


def _states_at_end(model: PreTrainedModel, ids: Tensor, mask: Tensor) -> Tensor:
    rows, last = torch.arange(len(ids)), mask.sum(1) - 1
    states = forward(model, ids, mask, output_hidden_states=True).hidden_states
    return torch.stack([state[rows, last].float().cpu() for state in states], 1)[:, :, None]


def forward(model: PreTrainedModel, ids: Tensor, mask: Tensor, **options: bool) -> Any:
    """Run a model on tokens and their mask; logits are those of the last position, if it can."""
    device = input_device(model)
    given = taken(model, attention_mask=mask.to(device), logits_to_keep=1, **options)
    return model(input_ids=ids.to(device), **given)
