"""``conceptnb reproduce references``: what scores of Tables 1 and 7 are read against (Section 6).

For each row chance, random projections, and regression on the truth for more and more epochs, until
its scores no longer grow. And BEST with the starts and the decay of CLUSTER_WHITENED, so that the
two recipes differ in their coordinates and in how a start is chosen, and in nothing else.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import astuple, replace
from typing import Any

import numpy as np

from conceptnb.core.problems import PAPER_SAMPLES, PAPER_SEEDS, TABLE_1, TABLE_7, Problem
from conceptnb.core.validation import Array
from conceptnb.learning.baselines.baseline import RandomProjection
from conceptnb.learning.baselines.networks import Budget
from conceptnb.learning.baselines.supervised import Supervised
from conceptnb.learning.fitting import fit
from conceptnb.learning.problem_scores import Learner
from conceptnb.learning.recipes import BEST, CLUSTER_WHITENED
from conceptnb.studies.runner import Plan, Row, Sample, Study, Task
from conceptnb.studies.scored_fits import (
    consecutive_seeds,
    draw_problems,
    fit_and_score,
    shortened,
    spoilt_tasks,
)
from conceptnb.studies.summarise import summary

_MATCHED = replace(
    BEST,
    starts=CLUSTER_WHITENED.starts,
    training=replace(BEST.training, decay=CLUSTER_WHITENED.training.decay),
)
_EPOCHS = (30, 100, 300)
_CHANCE, _PROJECTION, _TOLD = "independent codes", "random projection", "supervised, {} epochs"
_SETTINGS = TABLE_1 + TABLE_7
_SCORES = ("r2", "mcc", "r2_seen", "mcc_seen")


class _Noise:
    """Codes that know nothing of what they encode."""

    def __init__(self, n: int, seed: int) -> None:
        self.n, self.seed = n, seed

    def transform(self, X: Array) -> Array:
        return np.random.default_rng(self.seed).normal(size=(*X.shape[:2], self.n))


def _score(
    setting: Sequence[Any],
    reference: str,
    seeds: Sequence[int],
    samples: int = PAPER_SAMPLES,
    epochs: int | None = None,
    wrong: str | None = None,
) -> list[Row]:
    """Score a reference, or the matched recipe, on problems of a setting."""
    problems = draw_problems(setting, seeds, samples)
    n = problems[0].setting.n

    def learn(seen: Sequence[Problem]) -> Learner:
        if reference == _CHANCE:
            return _Noise(n, seeds[0])
        if reference == "matched":
            return fit(seen, shortened(_MATCHED, epochs))
        X, environment = np.stack([p.X for p in seen]), seen[0].environment
        if reference == _PROJECTION:
            return RandomProjection(n, seed=seeds[0]).fit(X, environment)
        budget = Budget(epochs or 0, BEST.training.batch_size, BEST.training.encoder_rate)
        told = Supervised("mlp", budget=budget)
        return told.fit(X, environment, np.stack([p.valuations() for p in seen]))

    return [{"reference": reference} | row for row in fit_and_score(problems, learn, wrong=wrong)]


def _rows(runs: list[Row]) -> list[Row]:
    by = ("reference", "mixing", "n", "dz", "dx")
    return summary(runs, by, list(_SCORES), ["cpu_seconds"])


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=20, help="problems per row, matched starts")
    parser.add_argument("--first-seed", type=int, default=200, help="of consecutive seeds")


def _plans(args: argparse.Namespace) -> list[Plan]:
    rows = [list(astuple(setting)) for setting in _SETTINGS]
    nonlinear = [row for row in rows if row[0] == "nonlinear"]
    paper = {"seeds": list(PAPER_SEEDS)}
    told = [
        Task(_score, {"setting": row, "reference": _TOLD.format(k), "epochs": k} | paper)
        for row in nonlinear
        for k in _EPOCHS
    ]
    rest = [
        Task(_score, {"setting": row, "reference": reference} | paper)
        for row in rows
        for reference in (_CHANCE, _PROJECTION)
    ]
    seeds = consecutive_seeds(args.seeds, args.first_seed)
    matched = [
        Task(_score, {"setting": row, "reference": "matched", "seeds": seeds}) for row in nonlinear
    ]
    first = matched[1].but(seeds=seeds[:5])
    notes = {"data": "synthetic, drawn as in Appendix G by the exact sampler"}
    said = {"recipe": "BEST with the starts and the decay of CLUSTER_WHITENED"}
    less = {"a tenth of the epochs": told[0].but(epochs=3)}
    by = ("reference", "mixing", "dz")
    losses = ("held_out_loss", "excess_loss")
    return [
        Plan("synthetic_references", [*told, *rest], _rows, list(PAPER_SEEDS), notes,
             Sample(told[0], _SCORES, less, by=by)),
        Plan("synthetic_matched", matched, _rows, seeds, notes | said,
             Sample(first, (*_SCORES, *losses), spoilt_tasks(first), by=by)),
    ]  # fmt: skip


STUDY = Study(_add_options, _plans)
