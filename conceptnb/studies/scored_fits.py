"""Problems of one setting, fitted together and scored one by one; and ways to do it wrongly."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.problems import Problem
from conceptnb.core.validation import Array
from conceptnb.learning.problem_scores import Learner, evaluate

__all__ = ["fit_and_score"]

Row = dict[str, Any]


def fit_and_score(
    problems: Sequence[Problem],
    learn: Callable[[Sequence[Problem]], Learner],
    *,
    measure: Callable[[Any, Problem, Array, Array], Mapping[str, Any]] | None = None,
    observations: Sequence[Array] | None = None,
    wrong: str | None = None,
) -> list[Row]:
    """Fit problems of one setting and score each of them.

    Parameters
    ----------
    problems : sequence of Problem
    learn : callable
        Fits a learner to problems.
    measure : callable, optional
        What else to compute, see :func:`~conceptnb.learning.evaluate`; what was learned comes
        before its arguments.
    observations : sequence of arrays, optional
        Of the fresh samples, see :func:`~conceptnb.learning.evaluate`.
    wrong : {"labels", "targets"}, optional
        Spoil what the learner sees: shuffle which environment a row belongs to, or exchange the
        targets of the environments. For the tests, which have to notice.

    Returns
    -------
    list of dict
        What `evaluate` returns, with the setting and the share of a problem in the CPU seconds of
        the fit; floats have six digits.
    """
    seen = [_spoilt(problem, wrong) for problem in problems] if wrong else problems
    started = time.process_time()
    learner = learn(seen)
    seconds = round((time.process_time() - started) / len(problems), 3)
    s = problems[0].setting
    setting = {"mixing": s.mixing, "n": s.n, "dz": s.d_z, "dx": s.d_x}
    more = partial(measure, learner) if measure else None
    rows = evaluate(problems, learner, measure=more, observations=observations)
    return [
        setting
        | {k: round(v, 6) if isinstance(v, float) else v for k, v in row.items()}
        | {"cpu_seconds": seconds}
        for row in rows
    ]


def _spoilt(problem: Problem, wrong: str) -> Problem:
    if wrong == "labels":
        order = np.random.default_rng(problem.seed).permutation(len(problem.Z))
        rows: dict[str, Array] = {
            name: value[order]
            for name, value in vars(problem).items()
            if name in ("Z", "observations")
        }
        return replace(problem, **rows)  # type: ignore[arg-type]  # of the subclass of limits
    if wrong == "targets":
        design = problem.design
        subsets, valuations = (
            [*parts[-1:], *parts[:-1]] for parts in (design.subsets, design.valuations)
        )
        return replace(problem, design=EnvironmentDesign(subsets, valuations, design.variance))
    raise ValueError(f"wrong must be 'labels' or 'targets', got {wrong!r}")
