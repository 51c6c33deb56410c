"""``conceptnb reproduce synthetic``: Tables 1 and 7, every seed of every setting (Section 6)."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from conceptnb.core.problems import (
    PAPER_SAMPLES,
    PAPER_SEEDS,
    TABLE_1,
    TABLE_7,
    Problem,
    Setting,
    draw_problem,
)
from conceptnb.core.scores import mcc
from conceptnb.core.validation import Array
from conceptnb.learning.baselines.networks import Budget
from conceptnb.learning.baselines.supervised import Supervised
from conceptnb.learning.fitting import ConceptFit, fit
from conceptnb.learning.problem_scores import Learner
from conceptnb.learning.recipes import AUTHORS, BEST, CLUSTER_WHITENED
from conceptnb.studies.reflections import with_true_signs
from conceptnb.studies.runner import Plan, Sample, Study, Task
from conceptnb.studies.scored_fits import fit_and_score
from conceptnb.studies.summarise import grouped, summary

__all__ = ["STUDY", "table_row"]

Row = dict[str, Any]
_TABLES = {"1": TABLE_1, "7": TABLE_7, "all": TABLE_1 + TABLE_7}
_RECIPES = {"faithful": AUTHORS, "best": BEST, "clustered": CLUSTER_WHITENED}
_SCORES = ("r2", "mcc", "r2_fresh", "mcc_fresh")


def table_row(
    setting: Setting,
    estimator: str = "faithful",
    *,
    seeds: Sequence[int] = PAPER_SEEDS,
    samples: int = PAPER_SAMPLES,
) -> Row:
    """Compute one row of Table 1 or 7.

    R² and MCC are taken on the first 5000 base samples, which the fit has seen (as in
    the paper), and on as many fresh ones.

    Parameters
    ----------
    setting : Setting
    estimator : {"faithful", "best", "clustered", "supervised"}
        The authors' protocol, the book's best recipe, that for bases which fall into clusters
        (nonlinear mixing), or regression on the truth, a ceiling.
    seeds : sequence of int
        One problem each.
    samples : int
        Samples of each concept conditional environment.

    Returns
    -------
    dict
        Plain JSON values; means and standard deviations (of the population, as numpy's
        ``std``) are over seeds. ``mcc_sides`` is the fresh MCC after
        :func:`~conceptnb.studies.reflections.with_true_signs`; ``cpu_seconds`` is the fit's share
        per problem.

    Raises
    ------
    ValueError
        If there is no such estimator.
    """
    sizes = [setting.mixing, setting.n, setting.d_z, setting.d_x]
    return _rows(_fit_setting(sizes, estimator, list(seeds), samples=samples))[0]


def _fit_setting(
    setting: list[Any],
    estimator: str,
    seeds: list[int],
    *,
    samples: int = PAPER_SAMPLES,
    epochs: int | None = None,
    wrong: str | None = None,
) -> list[Row]:
    """Fit every problem of a setting and score it; return one row per seed."""
    if estimator not in (*_RECIPES, "supervised"):
        raise ValueError(f"estimator must be one of {(*_RECIPES, 'supervised')}, got {estimator!r}")
    problems = [draw_problem(Setting(*setting), seed, samples=samples) for seed in seeds]

    def learn(seen: Sequence[Problem]) -> Learner:
        if estimator == "supervised":
            return _supervised(seen, epochs)
        recipe = _RECIPES[estimator]
        training = replace(recipe.training, epochs=epochs or recipe.training.epochs)
        return fit(seen, replace(recipe, training=training))

    def signs(learned: Learner, p: Problem, Z: Array, h: Array) -> Mapping[str, float]:
        if wrong or not isinstance(learned, ConceptFit):
            return {}
        turned = with_true_signs(p, learned, problems.index(p), Z, h)
        return {"mcc_sides": mcc(p.valuations(Z), turned)}

    # The tables' scores are those of samples that the fit has seen.
    names = {"r2": "r2_fresh", "mcc": "mcc_fresh", "r2_seen": "r2", "mcc_seen": "mcc"}
    return [
        {"estimator": estimator} | {names.get(key, key): value for key, value in row.items()}
        for row in fit_and_score(problems, learn, measure=signs, wrong=wrong)
    ]


def _supervised(problems: Sequence[Problem], epochs: int | None) -> Supervised:
    linear = problems[0].setting.mixing == "linear"
    budget = Budget(epochs) if epochs else None
    return Supervised("linear" if linear else "mlp", budget=budget).fit(
        np.stack([p.X for p in problems]),
        problems[0].environment,
        np.stack([p.valuations() for p in problems]),
    )


def _rows(runs: list[Row]) -> list[Row]:
    """Return a row per setting."""
    by = ("mixing", "n", "dz", "dx", "estimator")
    columns = [*_SCORES, *(["mcc_sides"] if "mcc_sides" in runs[0] else [])]
    rows = summary(runs, by, columns)
    for row, own in zip(rows, grouped(runs, by).values(), strict=True):
        row["seeds"] = [run["seed"] for run in own]
        row["cpu_seconds"] = own[0]["cpu_seconds"]
    return rows


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--table", choices=tuple(_TABLES), default="all", help="the paper's")
    parser.add_argument(
        "--estimator",
        choices=(*_RECIPES, "supervised"),
        default="faithful",
        help="the authors' protocol, the book's best, that for clustered bases (nonlinear rows), "
        "or regression on the truth as a bound",
    )
    parser.add_argument("--seeds", type=int, default=len(PAPER_SEEDS), help="problems per row")
    parser.add_argument(
        "--first-seed", type=int, default=PAPER_SEEDS[0], help="of consecutive seeds"
    )


def _plans(args: argparse.Namespace) -> list[Plan]:
    if args.seeds < 1 or args.first_seed < 0:
        raise ValueError("--seeds must be at least 1 and --first-seed at least 0")
    seeds = list(range(args.first_seed, args.first_seed + args.seeds))
    tasks = [
        Task(
            _fit_setting,
            {"setting": [s.mixing, s.n, s.d_z, s.d_x], "estimator": args.estimator, "seeds": seeds},
        )
        for s in _TABLES[args.table]
        if args.estimator != "clustered" or s.mixing == "nonlinear"
    ]
    suffix = "" if args.table == "all" else f"_table{args.table}"
    return [
        Plan(
            file=f"synthetic_{args.estimator}{suffix}",
            tasks=tasks,
            summarise=_rows,
            seeds=seeds,
            notes={
                "paper_table": "table1_table7",
                "data": "synthetic, drawn as in Appendix G by the exact sampler",
                "losses": "on held-out rows, in nats per row",
                "problems": len(tasks) * len(seeds),
            },
            sample=_sample(args.estimator, tasks),
        )
    ]


def _sample(estimator: str, tasks: Sequence[Task]) -> Sample:
    """Return the smallest row that the estimator is for, and ways to compute it wrongly."""
    first = tasks[0 if estimator == "faithful" else min(1, len(tasks) - 1)]
    task = Task(_fit_setting, first.arguments | {"seeds": first.arguments["seeds"][:5]})

    def but(**changes: Any) -> Task:
        return Task(_fit_setting, task.arguments | changes)

    wrong = {}
    columns: tuple[str, ...] = _SCORES
    if estimator in ("faithful", "supervised"):
        wrong["a tenth of the epochs"] = but(epochs=10 if estimator == "faithful" else 3)
    if estimator != "supervised":
        wrong |= {"labels shuffled": but(wrong="labels"), "targets exchanged": but(wrong="targets")}
        columns += ("held_out_loss", "excess_loss")
    return Sample(task, columns, wrong)


STUDY = Study(_add_options, _plans)
