"""Exercises of chapter 36: without labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises.exercise import choice, value


@value(
    right="Twenty-four million ways to be lucky.",
    mistakes={
        "That is the number of sets of five; which concept gets which matters, too.": (
            math.comb(32, 5)
        ),
        "No two concepts share a component.": 32**5,
        "The concepts choose, one after the other; there are five of them.": 5.0**32,
    },
    rtol=1e-9,
)
def ex_room_for_luck() -> int:
    """Return the number of injective maps from 5 concepts to 32 components."""
    return math.perm(32, 5)


@value(
    right="The penalty prefers to see a rare concept as one that is nearly always absent.",
    mistakes={
        "That is exp of the mean, which is 1 for both; asked for is the mean of exp.": [1.0, 1.0],
        "These values have variance q (1 - q); divide by its root first.": [
            0.1 * math.exp(0.9) + 0.9 * math.exp(-0.1),
            0.9 * math.exp(0.1) + 0.1 * math.exp(-0.9),
        ],
    },
    rtol=0.01,
)
def ex_presence() -> NDArray[np.float64]:
    """Return the mean of exp(z) of a standardised variable with two values, both ways."""
    holds = np.repeat([1.0, 0.0], [1, 9])
    z = (holds - holds.mean()) / holds.std()
    return np.array([np.exp(z).mean(), np.exp(-z).mean()])


@choice(
    right="After whitening, variance singles out no direction.",
    options={
        "labels": "The direction that separates the values turns with the data.",
        "ica": "The least Gaussian direction turns with the data.",
        "pca": "",
    },
)
def ex_rotation() -> str:
    """Say whose components depend on the coordinates of whitened data."""
    return "pca"


@choice(
    right="A rotated pair of standard normal variables is again one: data cannot tell.",
    options={
        "labels": "Labels say which direction separates their values, whatever the density.",
        "environments": "A conditioned data set is narrow in the direction of its concept.",
        "ica": "",
    },
)
def ex_two_bells() -> str:
    """Say which method needs non-Gaussian components (Comon's theorem)."""
    return "ica"


def _noise() -> tuple[Any, ...]:
    rng = np.random.default_rng(1)
    return rng.normal(size=(60, 8)), rng.integers(0, 2, 60)


@value(
    given=_noise,
    right="Noise, several times above average: matched and judged at once, it passes for more.",
    mistakes={
        "That is one over the number of samples less one: a single column's average.": 1 / 59,
        "η² of a column that says everything; these say nothing.": 1.0,
    },
)
def ex_best_of_many(noise: NDArray[np.float64], labels: NDArray[np.intp]) -> float:
    """Return the largest η², as the squared correlation with a label of two values."""
    return max(float(np.corrcoef(column, labels)[0, 1] ** 2) for column in noise.T)
