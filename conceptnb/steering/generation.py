"""Text before and after steering."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.steering.attention import input_device
from conceptnb.steering.intervention import Steering
from conceptnb.steering.questions import Question
from conceptnb.steering.scoring import AnswerScorer, choice_scores
from conceptnb.steering.spans import pad
from conceptnb.steering.toy_corpora import CATEGORIES, ToyCorpus


def generate_answers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    steering: Steering | None = None,
    max_new_tokens: int = 4,
) -> list[str]:
    """Return greedy answers, in one batch; steering edits the last prompt token and new ones."""
    ids, mask = pad([tokenizer(q.prompt())["input_ids"] for q in questions], "left")
    steered: AbstractContextManager[None] = nullcontext()
    if steering is not None:
        steered = steering.for_texts([q.text for q in questions]).apply(model, "last")
    with steered, torch.no_grad():
        found = model.generate(  # type: ignore[operator]
            ids.to(input_device(model)),
            attention_mask=mask.to(input_device(model)),
            max_new_tokens=max_new_tokens,
            do_sample=False,
            pad_token_id=tokenizer.pad_token_id,
        )
    return tokenizer.batch_decode(found[:, ids.shape[1] :], skip_special_tokens=True)


def accuracy_by_source(
    corpus: ToyCorpus, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> dict[str, list[float]]:
    """Return MC1 by category when a source is named before the question, and when none is."""
    out = {}
    for source in ("", *(persona.name for persona in corpus.kind.personas)):
        preface = f"from {source}: " if source else ""
        scores = AnswerScorer(model, tokenizer, corpus.questions(), preface).score()
        by_category: dict[str, list[float]] = {form.name: [] for form in CATEGORIES}
        for question in corpus.questions():
            by_category[question.category].append(choice_scores([question], scores).mc1[0])
        out[source or "no source named"] = [
            sum(right) / len(right) for right in by_category.values()
        ]
    return out
