"""Text before and after steering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.steering.questions import Question
from conceptnb.steering.scoring import AnswerScorer, Steering, choice_scores
from conceptnb.steering.spans import pad
from conceptnb.steering.worlds.toy_corpora import CATEGORIES, World

KINDS = ("true", "misconception", "another of its category", "off topic")


def answer(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    steering: Steering | None = None,
    max_new_tokens: int = 4,
) -> list[str]:
    """Greedy answers to questions, steered or not.

    Parameters
    ----------
    model, tokenizer
        The language model.
    questions
        All go through the model as one batch, padded on the left.
    steering
        What to steer with: it edits the prompt's last token and every new one.
    max_new_tokens
        Length of an answer.
    """
    ids, mask = pad([tokenizer(q.prompt())["input_ids"] for q in questions], "left")
    if steering is None:
        steered: object = nullcontext()
    else:
        steered = steering.for_texts([q.text for q in questions]).apply(model, "last")
    with steered, torch.no_grad():  # type: ignore[attr-defined]
        found = model.generate(  # type: ignore[operator]
            ids.to(model.device),
            attention_mask=mask.to(model.device),
            max_new_tokens=max_new_tokens,
            do_sample=False,
            pad_token_id=tokenizer.pad_token_id,
        )
    return tokenizer.batch_decode(found[:, ids.shape[1] :], skip_special_tokens=True)


def kinds_of_answers(questions: Sequence[Question], answers: Sequence[str]) -> dict[str, float]:
    """Shares of true answers, misconceptions, other answers of the category, and the rest.

    For questions of a small world.

    The last is the small world's measure of helpfulness (E.2, item 3): an answer
    off topic is no lie, and no help.

    Returns
    -------
    dict
        Kind to share; the shares sum to one.
    """
    words = {form.name: form.words for form in CATEGORIES}
    forms = {form.name: form.answer for form in CATEGORIES}
    counts: Counter[str] = Counter()
    for question, text in zip(questions, answers, strict=True):
        said = text.split(".")[0].split("[")[0].strip()
        if said == question.answers[question.best]:
            counts["true"] += 1
        elif said in question.answers:
            counts["misconception"] += 1
        elif said in {forms[question.category].format(w) for w in words[question.category]}:
            counts["another of its category"] += 1
        else:
            counts["off topic"] += 1
    return {kind: counts[kind] / len(questions) for kind in KINDS}


def accuracy_by_source(
    world: World, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> dict[str, list[float]]:
    """MC1 of each category when a source is named before the question, and when none is."""
    questions = world.questions()
    out = {}
    for source in ("", *(persona.name for persona in world.kind.personas)):
        preface = f"from {source}: " if source else ""
        scores = AnswerScorer(model, tokenizer, questions, preface).score()
        out[source or "no source named"] = [
            float(
                choice_scores([q for q in questions if q.category == form.name], scores).mc1.mean()
            )
            for form in CATEGORIES
        ]
    return out
