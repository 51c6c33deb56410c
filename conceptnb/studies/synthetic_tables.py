"""Tables 1 and 7: fit every seed of a setting and score it against the truth (Section 6)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from conceptnb.core import scores as metrics
from conceptnb.core.problems import PAPER_SAMPLES, PAPER_SEEDS, Problem, Setting, draw_problem
from conceptnb.core.validation import Array
from conceptnb.learning.best import fit_best
from conceptnb.learning.cluster_whitening import fit_clustered
from conceptnb.learning.fitting import ConceptFit, fit_concepts, oracle_loss
from conceptnb.studies.reflections import true_sides

__all__ = ["Estimator", "fit_problems", "reproduce_row", "score"]

Estimator = Literal["faithful", "best", "clustered"]
SCORED_SAMPLES = 5000
"""Base samples that R² and MCC are taken on, as in the authors' code."""


def fit_problems(
    problems: Sequence[Problem],
    estimator: Estimator = "faithful",
    *,
    checkpoint: Path | None = None,
    progress: bool = True,
) -> ConceptFit:
    """Fit problems of one setting together, with the targets of the environments known.

    Parameters
    ----------
    problems : sequence of Problem
        Of one setting and design; the estimator sees their observations and
        environments, and which atoms an environment conditions on.
    estimator : {"faithful", "best", "clustered"}
        The authors' protocol with one start, the book's best
        (:func:`~conceptnb.learning.fit_best`), or, for nonlinear mixing, the one that
        also knows that the base is three clusters which are alike
        (:func:`~conceptnb.learning.fit_clustered`).
    checkpoint : Path, optional
        See :meth:`~conceptnb.learning.Trainer.run`; of the faithful protocol.
    progress : bool
    """
    observations = [problem.X for problem in problems]
    first = problems[0]
    targets = first.design.M > 0
    linear = first.setting.mixing == "linear"
    if estimator == "faithful":
        return fit_concepts(
            observations,
            first.environment,
            targets=targets,
            encoder="linear" if linear else "mlp",
            skip=False,
            whiten=False,
            starts=1,
            seeds=[problem.seed for problem in problems],
            checkpoint=checkpoint,
            progress=progress,
        )
    seeds = [problem.seed for problem in problems]
    if estimator == "best":
        return fit_best(
            observations, first.environment, targets, linear=linear, seeds=seeds, progress=progress
        )
    if estimator == "clustered":
        return fit_clustered(
            observations, first.environment, targets, seeds=seeds, progress=progress
        )
    raise ValueError(f"estimator must be 'faithful', 'best' or 'clustered', got {estimator!r}")


def score(problem: Problem, valuations: Array, Z: Array) -> tuple[float, float]:
    """Return R² and MCC of learned valuations against the true ones at latents `Z`."""
    truth = problem.valuations(Z)
    return metrics.r2(truth, valuations), metrics.mcc(truth, valuations)


def reproduce_row(
    setting: Setting,
    estimator: Estimator = "faithful",
    *,
    seeds: Sequence[int] = PAPER_SEEDS,
    samples: int = PAPER_SAMPLES,
    checkpoint: Path | None = None,
    progress: bool = True,
) -> dict[str, Any]:
    """Compute one row of Table 1 or 7.

    R² and MCC are taken on the first 5000 base samples, which the fit has seen (as in
    the paper), and on as many fresh ones.

    Parameters
    ----------
    setting : Setting
    estimator : {"faithful", "best", "clustered"}
    seeds : sequence of int
        One problem each.
    samples : int
        Samples of each concept conditional environment.
    checkpoint : Path, optional
    progress : bool

    Returns
    -------
    dict
        Plain JSON values. Means and standard deviations (of the population, as numpy's
        ``std``) are over seeds; lists have one entry a seed. Losses are held-out, in
        nats; ``oracle_loss`` is that of the true log-odds on the same rows.
        ``mcc_sides`` is the fresh MCC after :func:`~conceptnb.studies.reflections.true_sides`.
        ``cpu_seconds`` is the fit's share a problem.
    """
    problems = [draw_problem(setting, seed, samples=samples) for seed in seeds]
    started = time.process_time()
    fit = fit_problems(problems, estimator, checkpoint=checkpoint, progress=progress)
    cpu_seconds = (time.process_time() - started) / len(problems)
    seen = [p.Z[:SCORED_SAMPLES] for p in problems]
    fresh = [p.fresh(SCORED_SAMPLES) for p in problems]
    scores = {}
    for suffix, latents in (("", seen), ("_fresh", fresh)):
        learned = fit.valuations([p.mixing(Z) for p, Z in zip(problems, latents, strict=True)])
        pairs = [score(p, h, Z) for p, h, Z in zip(problems, learned, latents, strict=True)]
        scores[f"r2{suffix}"], scores[f"mcc{suffix}"] = zip(*pairs, strict=True)
    # `learned` and `latents` are those of the fresh samples now.
    scores["mcc_sides"] = tuple(
        score(p, true_sides(p, fit, i, Z, h), Z)[1]
        for i, (p, h, Z) in enumerate(zip(problems, learned, latents, strict=True))
    )
    oracle = oracle_loss([p.log_odds() for p in problems], problems[0].environment, kind=fit.kind)
    row: dict[str, Any] = {
        "mixing": setting.mixing,
        "n": setting.n,
        "dz": setting.d_z,
        "dx": setting.d_x,
        "estimator": estimator,
    }
    for name, values in scores.items():
        row[f"{name}_mean"] = round(float(np.mean(values)), 4)
        row[f"{name}_std"] = round(float(np.std(values)), 4)
    row["seeds"] = list(seeds)
    row["cpu_seconds"] = round(cpu_seconds, 3)
    row |= {name: np.round(values, 4).tolist() for name, values in scores.items()}
    row["held_out_loss"] = np.round(fit.held_out_loss.min(axis=1), 5).tolist()
    row["oracle_loss"] = np.round(oracle, 5).tolist()
    return row
