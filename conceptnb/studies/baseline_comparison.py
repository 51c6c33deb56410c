"""``conceptnb reproduce baselines``: every method on the same problems, scored alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, FastICA

from conceptnb.common.validation import Array
from conceptnb.core import scores as metrics
from conceptnb.core.disentanglement import cross_fitted_mcc, cross_fitted_r2
from conceptnb.core.problems import TABLE_1, Problem, Setting
from conceptnb.learning.baselines.baseline import Baseline, EachProblem, RandomProjection
from conceptnb.learning.baselines.ivae import IVAE
from conceptnb.learning.baselines.networks import Budget, EnvironmentClassifier
from conceptnb.learning.baselines.supervised import Supervised
from conceptnb.learning.fitting import fit
from conceptnb.learning.problem_scores import Learner
from conceptnb.learning.recipes import BEST, INTERVENTIONAL
from conceptnb.results.runner import Plan, Row, Sample, Task
from conceptnb.results.show import Table, means
from conceptnb.results.summarise import summary
from conceptnb.studies.scored_fits import (
    consecutive_seeds,
    draw_problems,
    fit_and_score,
    shortened,
    spoilt_tasks,
)

__all__ = ["METHODS", "comparison_table", "fit_method", "mcc_within", "plans"]

_SCORES = ("r2", "mcc", "mcc_within", "r2_cross", "mcc_cross")
_BY = ("method", "mixing", "n", "dz", "dx", "dimensions")
_BASELINES: dict[str, Callable[[Setting, int], Baseline]] = {
    "random projection": lambda s, seed: RandomProjection(s.n, seed=seed),
    "random, 32 dimensions": lambda s, seed: RandomProjection(32, seed=seed),
    "PCA": lambda s, seed: EachProblem(PCA(s.d_z, whiten=True, svd_solver="full")),
    "FastICA": lambda s, seed: EachProblem(
        FastICA(s.d_z, whiten="unit-variance", random_state=seed, max_iter=500)
    ),
    "classifier": lambda s, seed: EnvironmentClassifier(seed=seed),
    "iVAE": lambda s, seed: IVAE(s.d_z, seed=seed),
    "supervised": lambda s, seed: Supervised(
        "linear" if s.mixing == "linear" else "mlp", seed=seed
    ),
}
_RECIPES = {"interventional": INTERVENTIONAL, "concepts": BEST}
METHODS = (*list(_BASELINES)[:-1], *_RECIPES, "supervised")
"""From floor to ceiling; "concepts" is the book's best recipe."""


def fit_method(name: str, problems: Sequence[Problem], epochs: int | None = None) -> Learner:
    """Fit a method, told what it may know, to problems of one setting.

    All know n and d_z. Methods that look for the latents (PCA, FastICA, iVAE) get d_z
    dimensions; the classifier has 32, and so has a second random projection, its floor.
    Contrastive methods and the ceiling know whether the mixing is linear, and the
    contrastive ones which atom each environment conditions on, as in the paper's protocol.
    """
    if name not in METHODS:
        raise ValueError(f"name must be one of {', '.join(METHODS)}, got {name!r}")
    first = problems[0]
    if name in _RECIPES:
        return fit(problems, shortened(_RECIPES[name], epochs))
    method = _BASELINES[name](first.setting, first.seed)
    if epochs is not None and hasattr(method, "budget"):
        method.set_params(budget=Budget(epochs=epochs))
    truth = np.stack([p.valuations() for p in problems]) if name == "supervised" else None
    return method.fit(np.stack([p.X for p in problems]), first.environment, truth)


def mcc_within(problem: Problem, Z: Array, learned: Array) -> float:
    """Return the MCC in each component of the base by itself, averaged over components."""
    component = problem.base.component_log_density(Z).argmax(axis=1)
    truth = problem.valuations(Z)
    found, counts = np.unique(component, return_counts=True)
    inside = [
        metrics.mcc(truth[component == k], learned[component == k]) for k in found[counts > 1]
    ]
    return float(np.mean(inside))


def comparison_table(rows: Sequence[Row]) -> Table:
    """Return the scores of every method for display, mean ± std over seeds."""
    columns = {
        "R²": "r2",
        "MCC": "mcc",
        "within components": "mcc_within",
        "R² cross-fitted": "r2_cross",
        "MCC cross-fitted": "mcc_cross",
    }
    return Table(
        [
            {
                "mixing": row["mixing"],
                "(n, d_z, d_x)": f"({row['n']}, {row['dz']}, {row['dx']})",
                "method": row["method"],
                "dimensions": row["dimensions"],
            }
            | means(row, columns)
            for row in rows
        ],
        ".2f",
    )


def _compare(
    setting: list[Any],
    method: str,
    seeds: list[int],
    samples: int,
    epochs: int | None = None,
    wrong: str | None = None,
) -> list[Row]:
    """Fit one method to a setting's problems and score its representation of fresh base samples."""
    problems = draw_problems(setting, seeds, samples)
    rows = fit_and_score(
        problems, lambda seen: fit_method(method, seen, epochs), measure=_measure, wrong=wrong
    )
    kept = ("mixing", "n", "dz", "dx", "seed", "dimensions", *_SCORES, "cpu_seconds")
    return [{"method": method} | {name: row[name] for name in kept} for row in rows]


def _measure(learner: Learner, problem: Problem, Z: Array, learned: Array) -> Mapping[str, Any]:
    truth, halves = problem.valuations(Z), np.random.default_rng((problem.seed, 2))
    return {
        "dimensions": learned.shape[1],
        "mcc_within": mcc_within(problem, Z, learned),
        "r2_cross": cross_fitted_r2(truth, learned, halves),
        "mcc_cross": cross_fitted_mcc(truth, learned, halves),
    }


def _rows(runs: list[Row]) -> list[Row]:
    return summary(runs, _BY, _SCORES, ["cpu_seconds"])


def plans(args: SimpleNamespace) -> list[Plan]:
    """Return the results files that the options ask for."""
    seeds = consecutive_seeds(args.seeds)
    common = {"seeds": seeds, "samples": args.samples}
    tasks = [
        Task(_compare, {"setting": list(astuple(s)), "method": method, **common})
        for s in TABLE_1[: args.rows]
        for method in (METHODS if args.method == "all" else (args.method,))
    ]
    task = next((t for t in tasks if t.arguments["method"] == "concepts"), tasks[0])
    return [
        Plan(
            file="synthetic_baselines",
            tasks=tasks,
            summarise=_rows,
            seeds=seeds,
            notes={
                "samples": args.samples,
                "budget": asdict(Budget()),
                "data": "synthetic, drawn as in Appendix G; the authors' environments",
                "scores": "on 5000 fresh base samples",
            },
            sample=Sample(task, _SCORES, spoilt_tasks(task), by=_BY),
        )
    ]
