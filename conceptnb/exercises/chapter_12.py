"""Exercises of chapter 12: when it fails."""

from __future__ import annotations

import numpy as np

from conceptnb.core.design import EnvironmentDesign
from conceptnb.exercises.exercise import choice, construction, value

_TOGETHER = ((0, 1), (0, 1), (0, 1))


@value(
    right="They share all their environments. Atoms 1 and 2 share one, but 1 is once without 2.",
    mistakes={
        "Atom 2 is in the third environment without the others: it has a contrast of its own.": [
            1,
            2,
        ],
        "Counted from 0, as in the code.": [2, 3],
    },
    entries="the two atoms in increasing order",
)
def ex_twins() -> list[int]:
    """Return the atoms that always occur together in [[0, 1], [0, 1, 2], [2]]: Assumption 5."""
    columns = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]]).T.tolist()
    return [i for i, column in enumerate(columns) if columns.count(column) > 1]


@value(
    right="The standard error of a mean falls like one over the root of the number of samples.",
    mistakes={
        "Twice the samples shrink the standard error by √2 only.": 2,
        "The other way round: to halve the error takes more than √2 as many.": 2**0.5,
        "That would be for a quarter of the shift.": 16,
    },
)
def ex_power() -> float:
    """Return how many times the samples are needed to detect half the shift."""
    return (1 / 0.5) ** 2


@choice(
    right="The second model's base is *defined* as the distribution of Φ(Z), whatever Φ does to "
    "volume, and Jacobians cancel in log ratios.",
    options={
        "yes": "The base of the second model may be any distribution, that of Φ(Z) too. Which "
        "quantities have to be the same? Only the log ratios, and in these Jacobians cancel.",
        "no": "",
    },
)
def ex_swirl() -> str:
    """Say whether a counterexample's map has to preserve volume."""
    return "no"


def _with(subset: list[int], valuations: list[float]) -> EnvironmentDesign:
    old = ([0.2, -0.1], [-0.3, 0.4], [0.1, 0.0])
    return EnvironmentDesign([*_TOGETHER, subset], [*old, valuations], 0.01)


@construction(
    kind=EnvironmentDesign,
    right="M has rank 2 and both atoms have a contrast. One of them still never occurs without the "
    "other, so Assumption 5 fails; the concepts are identifiable all the same.",
    example=lambda: _with([1], [0.0]),
    wrong={
        "still always occur together": lambda: _with([0, 1], [0.5, 0.5]),
        "environments of always_together come first": lambda: EnvironmentDesign(
            [[0], [1], [0, 1]], [[0.1], [0.2], [0.3, 0.1]], 0.01
        ),
        "Add one environment": lambda: EnvironmentDesign(
            [*_TOGETHER, [0], [1]], [[0, 1], [1, 0], [1, 1], [0.5], [0.7]], 0.01
        ),
    },
    given=lambda: (_with([0, 1], [0.1, 0.1]).subsets[:3],),
)
def ex_repair(design: EnvironmentDesign, old: list[list[int]]) -> str | None:
    """Look for Assumption 4 in a design that adds one environment to those that are given."""
    if [set(S) for S in design.subsets[: len(old)]] != [set(S) for S in old]:
        return "The environments of always_together come first, as they are."
    if design.n_environments != len(old) + 1:
        return f"Add one environment; you added {design.n_environments - len(old)}."
    if np.linalg.matrix_rank(design.M) < design.n_atoms:
        return "Atoms 0 and 1 still always occur together: condition on one of them alone."
    return None if design.check().assumption4.all() else "; ".join(design.check().problems()) + "."
