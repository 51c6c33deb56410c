"""Exercises of chapter 51: a folder of images."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises.exercise import choice, value


@value(
    right="Always compare with it: an accuracy of 0.72 is less than it sounds.",
    mistakes={
        "That is one over the number of values; here one of them is more frequent.": 1 / 3,
        "That is guessing in proportion to the shares; always saying the most frequent one does "
        "better.": 0.7**2 + 0.2**2 + 0.1**2,
    },
)
def ex_no_knowledge() -> float:
    """Return the accuracy of a constant answer for shares 0.7, 0.2 and 0.1."""
    return float(max(np.array([0.7, 0.2, 0.1])))


@value(
    right="All pictures of a value on one plane would be 1.",
    mistakes={
        "That is the share within values; one minus it is between them.": 0.2,
        "That is the ratio of the two; the share is of the total.": 4.0,
        "Use variances, the squares of standard deviations.": 2 / 3,
    },
    rtol=0.005,
)
def ex_eta_by_hand() -> float:
    """Return η² of two equally frequent values at -2 and 2, with standard deviation 1."""
    between, within = np.var([-2.0, 2.0]), 1.0
    return float(between / (between + within))


@value(
    atol=0.01,
    right="Where one label tells the other, no picture can tell which of them a direction reads.",
    mistakes={
        "In the first table, each size goes with each ripeness as often.": [1.0, 1.0],
        "In the second table, knowing one tells the other.": [0.0, 0.0],
        "The other way round: first the balanced table.": [1.0, 0.0],
    },
    entries="Cramér's V of the first and of the second table",
)
def ex_together() -> NDArray[np.float64]:
    """Return Cramér's V of a balanced table and of a diagonal one, from χ²."""
    found = []
    for counts in (np.full((2, 2), 10.0), np.diag([20.0, 20.0])):
        expected = counts.sum(1, keepdims=True) * counts.sum(0) / counts.sum()
        found.append(np.sqrt(((counts - expected) ** 2 / expected).sum() / counts.sum()))
    return np.array(found)


@choice(
    right="The pictures of Mondays show something else that a human eye may miss.",
    options={
        "weekday": "A picture of fruit has no weekday in it. What has?",
        "leak": "",
        "chance": "Accuracy on hundreds of held-out pictures, far above shuffled labels, is not.",
    },
)
def ex_weekday() -> str:
    """Say what it means if a label is read that the pictures cannot show."""
    return "leak"
