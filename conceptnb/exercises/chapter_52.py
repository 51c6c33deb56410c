"""Exercises of chapter 52: a list of questions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises.exercise import choice, value


@value(
    entries="mean gain, its standard error",
    right="A gain of a quarter on eight questions is not two standard errors.",
    mistakes={
        "The second is the standard deviation; divide by the root of the number.": (
            lambda right: right * [1.0, 8**0.5]
        ),
        "You subtracted the other way round.": lambda right: right * [-1.0, 1.0],
        "The error is that of the paired differences, not of the steered answers.": (
            lambda right: np.array([right[0], np.std([1, 1, 0, 1, 0, 1, 1, 0], ddof=1) / 8**0.5])
        ),
    },
)
def ex_paired() -> NDArray[np.float64]:
    """Return the paired gain of eight answers and its standard error."""
    steered = np.array([1, 1, 0, 1, 0, 1, 1, 0])
    baseline = np.array([0, 1, 0, 0, 0, 1, 0, 1])
    d = steered - baseline
    error = np.sqrt(((d - d.mean()) ** 2).sum() / 7) / np.sqrt(8)
    return np.array([d.mean(), error])


@value(
    rtol=0.05,
    right="Four times the questions halve the error: some four hundred.",
    mistakes={
        "Twice the questions shrink the error by √2 only.": 192,
        "Round numbers are welcome, but the error has to fall to half: a factor of four.": 288,
    },
)
def ex_enough() -> int:
    """Return how many questions make the error 0.03, if 96 make it 0.06."""
    return round(96 * (0.06 / 0.03) ** 2)


@choice(
    right="It disturbs as much as the others do, and knows nothing.",
    options={
        "lower bound": "It may gain, as above, by disturbing what kept the model from the truth.",
        "control": "",
        "baseline": "The baseline is the model that is not steered. What does a random direction "
        "have that it has not?",
    },
)
def ex_random() -> str:
    """Say what the random direction of Table 6 is for."""
    return "control"


@choice(
    right="Length tells them apart, and a probe takes what it can get.",
    options={
        "truth": "Look at the lengths of the answers: what else tells the two apart?",
        "length": "",
        "topic": "Both answers are about the same question, so its topic tells nothing.",
    },
)
def ex_cue() -> str:
    """Say what a probe may learn where right answers are long and wrong ones short."""
    return "length"
