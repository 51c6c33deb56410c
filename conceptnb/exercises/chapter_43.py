"""Exercises of chapter 43: steering matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises.exercise import choice, construction, value

_TEXTS = ("food of brask?", "soil of mulin?", "any other question", "food of kral?")


def _hot(texts: Sequence[str]) -> NDArray[np.float64]:
    return np.eye(len(texts))


@construction(
    right="All questions get the same weight, so the matrix gives the mean: a steering vector.",
    example=lambda: lambda texts: np.ones((len(texts), 1)),
    wrong={
        "different vectors": lambda: _hot,
        "all zero": lambda: lambda texts: np.zeros((len(texts), 2)),
        "one row for each text": lambda: lambda _: np.ones((1, 3)),
        "finite": lambda: lambda texts: np.full((len(texts), 1), np.nan),
    },
)
def ex_constant(embedding: Callable[[list[str]], Any]) -> str | None:
    """Return what keeps λ from making the steering matrix the mass mean shift (E.3)."""
    if not callable(embedding):
        return "An embedding is a function: texts in, an array with one row for each text out."
    weights = np.asarray(embedding(list(_TEXTS)))
    if weights.ndim != 2 or len(weights) != len(_TEXTS):
        return f"An array with one row for each text is needed; got shape {weights.shape}."
    if weights.dtype.kind not in "fiu" or not np.isfinite(weights).all():
        return "Its entries must be finite real numbers."
    if not np.allclose(weights, weights[0]):
        return "It gives the texts different vectors, so some questions weigh more than others."
    if not weights.any():
        return "Its vectors are all zero, and so are all weights."
    return None


@value(
    entries="first and second coordinate of η(x)",
    right="Similar questions weigh more, and one without similarity has no vote at all.",
    mistakes={
        "That is the plain sum, the mass mean times three.": [2.0, 2.0],
        "That is the mean. Weigh each difference by the similarity of its question.": [
            2 / 3,
            2 / 3,
        ],
        "The second question is orthogonal to x: its weight is zero.": [
            1 + 0.5**0.5,
            1 + 0.5**0.5,
        ],
        "The third question's similarity is less than one.": [2.0, 1.0],
    },
)
def ex_by_hand() -> NDArray[np.float64]:
    """Return η(x) = M λ(x) for three training questions (E.3)."""
    embeddings = np.array([[1, 0], [0, 1], [0.5**0.5, 0.5**0.5]])
    differences = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    return (differences.T @ embeddings) @ np.array([1.0, 0.0])


@choice(
    right="What all questions share has no weight any more, and there it was all there is.",
    options={
        "alike": "",
        "by-category": "There truth differs by category, and dissimilar questions mislead.",
        "no-source": "There truth differs by category, and dissimilar questions mislead.",
    },
)
def ex_centred() -> str:
    """Return the world in which centring λ costs a steering matrix most (E.3, first idea)."""
    return "alike"


@value(
    right="A quadratic form instead of a pass over the data: that is why λ(x) may be any text.",
    mistakes={
        "That is the variance; its root is the standard deviation.": 3.5,
        "η must have unit length first.": 7**0.5,
        "The covariance between the coordinates counts, too, twice.": 2.5**0.5,
    },
)
def ex_sigma() -> float:
    """Return σ(x) = sqrt(ηᵀ Σ η) for η along (1, 1)."""
    covariance = np.array([[4.0, 1.0], [1.0, 1.0]])
    eta = np.array([1.0, 1.0]) / np.sqrt(2)
    return float(np.sqrt(eta @ covariance @ eta))
