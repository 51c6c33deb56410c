"""Which tokens of a text are its answer, for any tokenizer (Table 6's multiple choice).

Text is tokenized once; tokens that end after the prompt's last character are the answer's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedTokenizerBase

from conceptnb.steering.questions import PromptStyle, Question


@dataclass(frozen=True)
class Encoded:
    """Tokens of a prompt followed by an answer; ``ids[start:]`` is the answer."""

    ids: tuple[int, ...]
    start: int


def encode_questions(
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    preface: str = "",
    style: PromptStyle = "paper",
) -> list[list[Encoded]]:
    """Return every question's prompt with each of its answers, as tokens.

    Preface and style are as in `Question.prompt`. In the style of lm-evaluation-harness an answer
    begins, as there, after as many tokens as the prompt alone has. With ``"chat"``, preface and
    question are what the user says in the tokenizer's chat template, and the answer the reply.

    Raises
    ------
    ValueError
        If the tokenizer keeps no character offsets or has no chat template, an answer has no token,
        or a text holds one of the tokenizer's special tokens.
    """
    if not tokenizer.is_fast:
        raise ValueError(
            f"tokenizer {type(tokenizer).__name__} keeps no character offsets; "
            "load it with use_fast=True"
        )
    _refuse_special_tokens(tokenizer, questions)
    if style != "chat":
        return [_encode(tokenizer, q, q.prompt(preface, style), style) for q in questions]
    if not tokenizer.chat_template:
        raise ValueError("tokenizer has no chat template: give the prompt 'paper'")
    said = [[{"role": "user", "content": preface + q.text}] for q in questions]
    prompts = tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True)
    return [_encode(tokenizer, q, p, style) for q, p in zip(questions, prompts, strict=True)]


def _refuse_special_tokens(
    tokenizer: PreTrainedTokenizerBase, questions: Sequence[Question]
) -> None:
    special = [token for token in tokenizer.all_special_tokens if token.strip()]
    for question in questions:
        for text in (question.text, *question.answers):
            if found := [token for token in special if token in text]:
                raise ValueError(
                    f"question {question.id!r}: {text!r} holds {found[0]!r}, a special token of "
                    "this model, which does not read it as text: write it differently"
                )


def _encode(
    tokenizer: PreTrainedTokenizerBase, question: Question, prompt: str, style: PromptStyle
) -> list[Encoded]:
    """Tokenize `prompt` and each answer as one text and find the answer's tokens."""
    chat = style == "chat"  # whose template writes spaces and special tokens itself
    texts = [f"{prompt}{'' if chat else ' '}{answer}" for answer in question.answers]
    found = tokenizer(texts, return_offsets_mapping=True, add_special_tokens=not chat)
    counted = len(tokenizer(prompt)["input_ids"]) if style == "lm-eval" else 0
    encoded = []
    for k, ids in enumerate(found["input_ids"]):
        ends = [end for _, end in found["offset_mapping"][k]]
        inside = [i for i, end in enumerate(ends) if end > len(prompt) and i >= counted]
        if not inside:
            raise ValueError(
                f"answer {question.answers[k]!r} to question {question.id!r} has no token of its "
                "own; leave it out"
            )
        # Tokenizers that close a text with a special token give it the empty span (0, 0).
        encoded.append(Encoded(tuple(ids[: inside[-1] + 1]), inside[0]))
    return encoded


def pad(rows: Sequence[Sequence[int]], side: str) -> tuple[Tensor, Tensor]:
    """Return rows of tokens as one tensor, and the attention mask, both (rows, longest row).

    The padding, on the ``"left"`` or ``"right"``, is token 0; any will do, as the mask hides it.
    """
    if side not in ("left", "right"):
        raise ValueError(f"side is {side!r}; give 'left' or 'right'")
    tokens = [torch.tensor(row, dtype=torch.long) for row in rows]
    ids = pad_sequence(tokens, batch_first=True, padding_side=side)
    ones = [torch.ones_like(row) for row in tokens]
    return ids, pad_sequence(ones, batch_first=True, padding_side=side)
