"""Exercises of chapter 45: on a real model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises.exercise import value


@value(
    rtol=1e-6,
    entries="layers, heads, width of a head",
    right="The same for every family: heads are the input of a block's last linear map, cut up.",
    mistakes={
        "The heads share the width of the model: 32 over 4.": [2, 4, 32],
        "First the layers, then the heads of each.": [4, 2, 8],
    },
)
def ex_family() -> list[int]:
    """Return the shape of head activations for 2 layers of 4 heads and width 32: Appendix E.1."""
    layers, heads, width = 2, 4, 32
    return [layers, heads, width // heads]


@value(
    entries="2 to 8 answers",
    right="A baseline below it prefers what is false, as a model that repeats misconceptions does.",
    mistakes={
        "With two answers, one of which is best, chance is one half.": 1 / np.arange(3, 10),
        "That is the probability of a wrong choice.": 1 - 1 / np.arange(2, 9),
        "Adding one more answer does not change chance by the same amount each time.": (
            np.linspace(1 / 2, 1 / 8, 7)
        ),
    },
)
def ex_chance_level() -> NDArray[np.float64]:
    """Return MC1 of random probabilities for 2 to 8 answers, one of them best: Table 6."""
    return np.array([1 / k for k in range(2, 9)])


@value(
    right="The longer answer starts far behind, for its length alone.",
    mistakes={
        "That is the ratio of the log-probabilities; that of probabilities was asked for.": 2.0,
        "The other way round: how many times as probable the short answer is.": 0.6**3,
        "Divided by length the two are equal. MC1 does not divide.": 1.0,
    },
)
def ex_length() -> float:
    """Return how much more probable three tokens are than six, at 0.6 a token."""
    return float(np.exp(3 * np.log(0.6) - 6 * np.log(0.6)))
