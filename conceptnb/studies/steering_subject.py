"""What studies of steering share: a model with its questions, and the scores of a fold."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformers import AutoConfig, PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.common.files import tracked_files
from conceptnb.results.runner import Row
from conceptnb.steering.activations import Activations, collect_activations
from conceptnb.steering.comparison import Fold
from conceptnb.steering.divergence import NeutralTexts
from conceptnb.steering.intervention import Steering
from conceptnb.steering.questions import Question
from conceptnb.steering.scoring import choice_scores
from conceptnb.steering.steer import MatrixIntervention

KL_MEANING = (
    "KL(original ‖ steered), nats per token, on neutral text; kl_asked: the same under the edits "
    "that answer the tested questions"
)
STRINGS_MEANING = (
    "tested: one character per question, 1 where it is in the tested fold; right: one character "
    "per tested question, 1 where the best answer was the most probable"
)


@dataclass(frozen=True, eq=False)
class Subject:
    """A language model, what it is asked, its activations, and its view of neutral texts."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    questions: Sequence[Question]
    activations: Activations
    neutral: NeutralTexts


def subject_of(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    texts: Sequence[str],
    batch_size: int,
) -> Subject:
    """Collect the activations of the questions, and the predictions on neutral texts."""
    activations = collect_activations(model, tokenizer, questions, batch_size)
    neutral = NeutralTexts(model, tokenizer, texts, batch_size=batch_size)
    return Subject(model, tokenizer, questions, activations, neutral)


def fold_scores(
    subject: Subject,
    part: Fold,
    heads: int,
    alpha: float,
    steerings: Sequence[tuple[float, Steering | None]],
) -> Row:
    """Score a technique's interventions on a fold: its scores at the chosen α, and its curve."""
    points = {strength: _point(subject, part, steering) for strength, steering in steerings}
    curve = [{"alpha": strength, **point} for strength, (point, _) in points.items()]
    inside = {question.id for question in part.test}
    tested = "".join("01"[question.id in inside] for question in subject.questions)
    chosen = points[alpha][1]
    return {"heads": heads, "alpha": alpha} | chosen | {"tested": tested, "curve": curve}


def _point(subject: Subject, fold: Fold, steering: Steering | None) -> tuple[Row, Row]:
    """Return a point of the curve, and the scores of a run that chooses it."""
    order = {question.id: i for i, question in enumerate(subject.questions)}
    test = sorted(fold.test, key=lambda question: order[question.id])
    scores = choice_scores(test, fold.scorer.score(steering))
    moved = asked = subject.neutral.measure(steering)
    if isinstance(steering, MatrixIntervention):  # a vector edits every text alike
        asked = subject.neutral.measure(steering, [question.text for question in fold.test])
    of_texts = {"ce": moved[0], "kl": moved[1], "kl_asked": asked[1]}
    distance = {key: round(float(each.mean()), 5) for key, each in of_texts.items()}
    means = {key: round(float(getattr(scores, key).mean()), 5) for key in ("mc1", "mc2", "mc3")}
    right = "".join(str(int(x)) for x in scores.mc1)
    return {**distance, "mc2": means["mc2"], "right": right}, {**means, **distance}


def fingerprint_of(model: str, questions: Sequence[Question]) -> str:
    """Return a hash of a model's files (of one on the hub, of its commit) and of questions."""
    total = hashlib.sha256(repr(list(questions)).encode())
    folder = Path(model)
    if not folder.is_dir():
        total.update(str(AutoConfig.from_pretrained(model)._commit_hash).encode())
        return total.hexdigest()
    for path in tracked_files(folder):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        total.update(f"{path.relative_to(folder)} {content}".encode())
    return total.hexdigest()
