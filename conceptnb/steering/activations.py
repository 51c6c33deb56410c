"""Activations of question-answer pairs, which stay paired with their question (App. E.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.steering.attention import record_heads
from conceptnb.steering.questions import Question, check_questions
from conceptnb.steering.spans import encode_pair, pad


@dataclass(frozen=True)
class Activations:
    """Head activations at the last token of question-answer pairs.

    Attributes
    ----------
    ids
        Question id of each row, shape (rows,). A row is always found by its
        question's id, never by where it happens to be: sorting or filtering the
        questions cannot give one question another one's activations.
    true
        Whether the row's answer is true, shape (rows,).
    heads
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

        Raises
        ------
        ValueError
            If a question has no activations here.
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

    def differences(self, questions: Sequence[Question]) -> np.ndarray:
        """Mean true minus mean false activation of each question: h(c_T) − h(c_F).

        Returns
        -------
        ndarray
            Shape (questions, layers, heads, width), in the order of ``questions``.
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


def collect_activations(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    batch_size: int = 64,
    progress: bool = False,
) -> Activations:
    """Head activations at the last token of ``Q: {question} A: {answer}``, for every answer.

    Parameters
    ----------
    model, tokenizer
        The language model, not steered.
    questions
        Questions with unique ids.
    batch_size
        Pairs a forward pass.
    progress
        Show a progress bar.
    """

    def heads(ids: Tensor, mask: Tensor) -> Tensor:
        with record_heads(model, torch.arange(len(ids)), mask.sum(1) - 1) as record:
            model(
                input_ids=ids.to(model.device),
                attention_mask=mask.to(model.device),
                logits_to_keep=1,
            )
        return record

    return _of_pairs(heads, tokenizer, questions, batch_size, progress)


def collect_states(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    batch_size: int = 64,
) -> Activations:
    """Residual stream at the last token of ``Q: {question} A: {answer}``, for every answer.

    The paper steers and reads head activations only. A head that carries nothing may
    belong to a model that knows; this is the comparison that tells the two cases apart.

    Parameters
    ----------
    model, tokenizer, questions, batch_size
        As in :func:`collect_activations`.

    Returns
    -------
    Activations
        In the place of heads, shape (rows, layers + 1, 1, hidden size): the embedding,
        then what each layer hands on. Probes take it as they take head activations.
    """

    def states(ids: Tensor, mask: Tensor) -> Tensor:
        found = model(
            input_ids=ids.to(model.device),
            attention_mask=mask.to(model.device),
            output_hidden_states=True,
            logits_to_keep=1,
        ).hidden_states
        rows, last = torch.arange(len(ids)), mask.sum(1) - 1
        return torch.stack([state[rows, last].float().cpu() for state in found], 1)[:, :, None]

    return _of_pairs(states, tokenizer, questions, batch_size)


def _of_pairs(
    read: Callable[[Tensor, Tensor], Tensor],
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    batch_size: int,
    progress: bool = False,
) -> Activations:
    """Collect what ``read`` finds in every pair, from token ids and mask padded on the right."""
    check_questions(list(questions))
    pairs = [
        (q.id, true, encode_pair(tokenizer, q.prompt(), answer).ids)
        for q in questions
        for answer, true in zip(q.answers, q.true, strict=True)
    ]
    blocks = []
    starts = range(0, len(pairs), batch_size)
    for start in tqdm(starts, disable=not progress, desc="activations"):
        with torch.no_grad():
            found = read(*pad([ids for _, _, ids in pairs[start : start + batch_size]], "right"))
        blocks.append(found.numpy())
    return Activations(
        np.array([name for name, _, _ in pairs]),
        np.array([true for _, true, _ in pairs]),
        np.concatenate(blocks),
    )
