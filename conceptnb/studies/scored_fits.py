"""What the studies of synthetic problems share: how they are drawn, fitted, spoilt and scored."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, replace
from functools import partial
from typing import Any

import numpy as np

from conceptnb.common.validation import Array
from conceptnb.core.problems import PAPER_SEEDS, Problem, Setting, draw_problem
from conceptnb.learning.problem_scores import Learner, evaluate
from conceptnb.learning.recipes import Recipe
from conceptnb.results.runner import Row, Task

__all__ = [
    "consecutive_seeds",
    "draw_problems",
    "fit_and_score",
    "setting_columns",
    "shortened",
    "spoilt_tasks",
]


def consecutive_seeds(count: int, first: int = PAPER_SEEDS[0]) -> list[int]:
    """Return the seeds that the option ``--seeds`` asks for."""
    if count < 1 or first < 0:
        raise ValueError("--seeds must be at least 1 and --first-seed at least 0")
    return list(range(first, first + count))


def draw_problems(setting: Sequence[Any], seeds: Sequence[int], samples: int) -> list[Problem]:
    """Draw the problems of a task, whose setting is given as a list of JSON values."""
    return [draw_problem(Setting(*setting), seed, samples=samples) for seed in seeds]


def setting_columns(setting: Setting) -> Row:
    """Return the columns of a table's row that name the setting."""
    return dict(zip(("mixing", "n", "dz", "dx"), astuple(setting), strict=True))


def shortened(recipe: Recipe, epochs: int | None) -> Recipe:
    """Return a recipe with other epochs, if any are given."""
    training = replace(recipe.training, epochs=epochs or recipe.training.epochs)
    return replace(recipe, training=training)


def fit_and_score(
    problems: Sequence[Problem],
    learn: Callable[[Sequence[Problem]], Learner],
    *,
    measure: Callable[[Any, Problem, Array, Array], Mapping[str, Any]] | None = None,
    observations: Sequence[Array] | None = None,
    wrong: str | None = None,
) -> list[Row]:
    """Fit problems of one setting and score each of them: the rows of `evaluate`, and more.

    `measure` is given the learner first. Tests have to notice what is `wrong`: "labels" shuffles
    which environment a row belongs to, "targets" exchanges the targets of the environments.
    """
    seen = [_spoilt(problem, wrong) for problem in problems] if wrong else problems
    started = time.process_time()
    learner = learn(seen)
    seconds = round((time.process_time() - started) / len(problems), 3)
    more = partial(measure, learner) if measure else None
    return [
        setting_columns(problems[0].setting)
        | {k: round(v, 6) if isinstance(v, float) else v for k, v in row.items()}
        | {"cpu_seconds": seconds}
        for row in evaluate(problems, learner, measure=more, observations=observations)
    ]


def spoilt_tasks(task: Task) -> dict[str, Task]:
    """Return a task done in the wrong ways of `fit_and_score`."""
    return {
        "labels shuffled": task.but(wrong="labels"),
        "targets exchanged": task.but(wrong="targets"),
    }


def _spoilt(problem: Problem, wrong: str) -> Problem:
    if wrong == "labels":
        order = np.random.default_rng(problem.seed).permutation(len(problem.Z))
        rows: dict[str, Any] = {
            name: value[order]
            for name, value in vars(problem).items()
            if name in ("Z", "observations")  # the second of problems with noise
        }
        return replace(problem, **rows)
    if wrong == "targets":
        design = problem.design
        subsets, valuations = (
            [*parts[-1:], *parts[:-1]] for parts in (design.subsets, design.valuations)
        )
        return replace(problem, design=replace(design, subsets=subsets, valuations=valuations))
    raise ValueError(f"wrong must be 'labels' or 'targets', got {wrong!r}")
