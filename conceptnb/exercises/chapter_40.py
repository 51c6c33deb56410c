"""Exercises of chapter 40: a small world with known truth."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises.exercise import value


@value(
    entries="MC1, MC2",
    right="A model below a quarter does worse than chance: it has learned the misconceptions.",
    mistakes={
        "There are four choices: the true answer and three misconceptions.": [1 / 3, 1 / 3],
        "A yes or no would have one half. Here there are four choices.": [0.5, 0.5],
        "MC2 is a share of probability, and only one answer of four is true.": [0.25, 1.0],
    },
)
def ex_guessing() -> NDArray[np.float64]:
    """Return MC1 and MC2 of a model that finds four answers equally probable: Appendix E."""
    probabilities = np.full(4, 1 / 4)
    chance_that_the_truth_is_first = 1 / len(probabilities)
    return np.array([chance_that_the_truth_is_first, probabilities[0] / probabilities.sum()])


def _voices() -> tuple[NDArray[np.float64]]:
    return (np.array([[0.9, 0.8, 0.1, 0.2], [0.1, 0.3, 1.0, 0.7], [0.1, 0.0, 0.1, 0.0]]),)


@value(
    atol=0.002,
    entries="one voice for all, one voice a category",
    right="A steering vector can be the first at best. A steering matrix may be the second.",
    mistakes={
        "The other way round: first one voice for all.": lambda right: right[::-1],
        "For one voice, average over categories first and take the best voice then.": (
            lambda right: right[[1, 1]]
        ),
        "By category, take the best voice in each column; then average.": lambda right: right[
            [0, 0]
        ],
    },
    given=_voices,
)
def ex_best_voice(by_source: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the best MC1 with one source, and with one for each category."""
    one = max(np.mean(row) for row in by_source)
    each = np.mean([max(column) for column in by_source.T])
    return np.array([one, each])


@value(
    rtol=1e-6,
    entries="times true, times false",
    right="Whichever word it is. So no probe for single words can find truth in this world.",
    mistakes={
        "The other way round: first how often it is true.": [6, 2],
        "The second is how often it is on offer at all; as a misconception was asked for.": [2, 8],
        "Each question has one true answer, but a word is the answer to more than one.": [1, 3],
    },
)
def ex_no_word() -> list[int]:
    """Return how often a word of the first category is true, and a misconception."""
    things, words, misconceptions = 16, 8, 3
    return [things // words, things * misconceptions // words]


def _popularity() -> tuple[Any, NDArray[np.float64]]:
    shares = np.array([[[0.6, 0.2], [0.3, 0.3]], [[0.7, 0.1], [0.4, 0.2]]])
    return SimpleNamespace(popularity=shares), np.array([0.0, 1.0, 0.25, 0.5])


@value(
    atol=0.002,
    entries="more popular, less popular",
    right="The model has picked up how often each falsehood is told.",
    mistakes={
        "The other way round: first the more popular misconceptions.": lambda right: right[::-1],
        "That is the mean over all questions, twice.": lambda right: np.full(2, right.mean()),
    },
    given=_popularity,
)
def ex_popularity(world: Any, mc1: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean MC1 of questions by popularity of their first misconception."""
    order = np.argsort(-world.popularity[:, :, 0].ravel(), kind="stable")
    top = world.popularity[:, :, 0].ravel()
    threshold = np.median(top[order])
    return np.array([mc1[top > threshold].mean(), mc1[top <= threshold].mean()])
