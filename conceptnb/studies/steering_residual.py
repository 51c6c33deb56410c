"""``conceptnb reproduce steering-residual``: offsets of the residual stream (ours), toy corpora.

A concept is fitted to the states at the last token of right and wrong answers. Its offset v, by
`conceptnb.steering.residual.offset_of`, is compared with the reversed one, a step along A and a
random offset, all of v's Mahalanobis norm, behind the third of four layers. Each half of the
questions is answered with what the other half taught, by the models of the package. Layer and
strength, the step between the planes, were not chosen by results; the study was written after a
first run of the same comparison had been seen.
"""

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np

from conceptnb.common.intervals import interval_over_models
from conceptnb.common.validation import Array
from conceptnb.embeddings.directions.estimator import ConceptDirections
from conceptnb.results.runner import Plan, Row, Sample, Task
from conceptnb.results.show import Table
from conceptnb.results.summarise import grouped
from conceptnb.steering.activations import Activations
from conceptnb.steering.probes import split_questions
from conceptnb.steering.residual import ResidualIntervention, collect_residual, offset_of
from conceptnb.steering.scoring import AnswerScorer, choice_scores
from conceptnb.steering.small_models import load_small_model

__all__ = ["plans", "residual_table"]

_CORPORA, _MODELS = ("alike", "by-category", "no-source"), (0, 1, 2)
_LAYER, _SHRINKAGE = 2, 0.1
_UNSTEERED, _OURS, _REVERSED = "not steered", "offset v", "reversed"


def _offsets(states: Array, true: np.ndarray, rng: np.random.Generator) -> dict[str, Array]:
    """Return offsets (hidden size,) by name, of states (rows, hidden size) of answers."""
    fitted = ConceptDirections(shrinkage=_SHRINKAGE, standardise=False).fit(states, true)
    concept, covariance = fitted.concept(True), np.cov(states.T)
    delta = concept.b - fitted.concept(False).b
    root = np.linalg.cholesky(covariance)
    v = offset_of(delta, concept, covariance)

    def as_long_as_v(u: Array) -> Array:
        """Return u with the Mahalanobis norm of v."""
        lengths = [np.linalg.norm(np.linalg.solve(root, each)) for each in (v, u)]
        return u * lengths[0] / lengths[1]

    others = {"along A": delta @ concept.A, "random": root @ rng.normal(size=len(v))}
    return {_OURS: v, _REVERSED: -v} | {name: as_long_as_v(u) for name, u in others.items()}


def _runs(corpus: str, model_seed: int, layer: int, wrong: str = "") -> list[Row]:
    """Answer all questions of a corpus unsteered and with every offset; a row for each.

    Tests have to notice "labels", which shuffles what is true.
    """
    facts, model, tokenizer = load_small_model(corpus, model_seed)
    questions, rng = facts.questions(), np.random.default_rng(model_seed)
    read: Activations = collect_residual(model, tokenizer, questions)
    if wrong == "labels":
        read = read.shuffled(np.random.default_rng(0))
    halves = split_questions(questions, 0.5, rng)
    answered: dict[str, dict] = {}
    for train, test in (halves, halves[::-1]):
        taught, scorer = read.select(train), AnswerScorer(model, tokenizer, test)
        answered.setdefault(_UNSTEERED, {}).update(scorer.score())
        for name, v in _offsets(taught.heads[:, layer, 0], taught.true, rng).items():
            edit = ResidualIntervention.after(model, layer, v)
            answered.setdefault(name, {}).update(scorer.score(edit))
    rows = []
    for name, found in answered.items():
        scores = choice_scores(questions, found)
        row = {"corpus": corpus, "model_seed": model_seed, "seed": model_seed, "offset": name}
        row |= {"mc1": float(scores.mc1.mean()), "mc2": float(scores.mc2.mean())}
        rows.append(row | {"right": "".join(str(int(x)) for x in scores.mc1)})
    return rows


def _rows(runs: list[Row]) -> list[Row]:
    """Return MC1 by corpus and offset, minus the unsteered one and that of the reversed offset.

    Intervals are over models and questions, and hold for the four offsets of a corpus together.
    """
    rows = []
    for (corpus,), own in grouped(runs, ["corpus"]).items():
        right = {name: _right(each) for (name,), each in grouped(own, ["offset"]).items()}
        for name, found in right.items():
            row: Row = {"corpus": corpus, "offset": name, "mc1": round(float(found.mean()), 4)}
            gains = {"gain": _UNSTEERED, "minus_reversed": _REVERSED if name == _OURS else name}
            for column, other in gains.items():
                three = interval_over_models(found - right[other], together=len(right) - 1)
                row[column] = None if name == other else [round(x, 4) for x in three]
            rows.append(row)
    return rows


def residual_table(rows: Sequence[Row]) -> Table:
    """Return the comparison as a page shows it."""

    def written(three: Sequence[float] | None) -> str:
        return "{:+.3f} [{:+.3f}, {:+.3f}]".format(*three) if three else ""

    return Table(
        [
            {"corpus": row["corpus"], "offset": row["offset"], "MC1": f"{row['mc1']:.3f}"}
            | {"MC1 gained": written(row["gain"])}
            | {"minus reversed": written(row["minus_reversed"])}
            for row in rows
        ]
    )


def _right(runs: Sequence[Row]) -> Array:
    """Return which questions were answered truly, (models, questions)."""
    return np.array([[float(digit) for digit in run["right"]] for run in runs])


def plans(_: SimpleNamespace) -> list[Plan]:
    """Return the results files that the options ask for."""
    tasks = [
        Task(_runs, {"corpus": corpus, "model_seed": seed, "layer": _LAYER})
        for corpus in _CORPORA
        for seed in _MODELS
    ]
    wrong = {
        "labels shuffled": tasks[0].but(wrong="labels"),
        "another layer": tasks[0].but(layer=0),
    }
    notes = {
        "model": "small Llamas trained on toy corpora, not LLaMA-7B",
        "data": "invented questions, not TruthfulQA",
        "right": "one character per question, 1 where it was answered truly",
        "gain": "mean and interval, over models and questions, for four offsets together",
    }
    sample = Sample(tasks[0], ("mc1", "mc2"), wrong, by=("offset",))
    return [Plan("steering_residual", tasks, _rows, [*_MODELS], notes, sample)]
