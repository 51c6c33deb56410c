"""Exercises of chapter 31: concepts in CLIP space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises.exercise import choice, construction, value


@value(
    right="About three in a hundred, as in the authors' code: a much harder question than a half.",
    mistakes={
        "Of fifteen orientations the first eight remain, not one half.": 0.5**5,
        "The factor itself, shape, keeps all its values: five others are halved.": 0.5**5 * 8 / 15,
        "All five other factors have to lie in their first halves at once.": 0.5,
    },
)
def ex_split() -> float:
    """Return the share of training images in the released code's split (Appendix D.1)."""
    kept = np.prod([5, 5, 5, 4, 4, 8])  # floor, wall, object hue, scale, shape, orientation
    return float(kept / 480_000)


def _coefficients() -> NDArray[np.float64]:
    return np.random.default_rng(0).normal(size=64)


@construction(
    right="The same direction: fitting all pairs at once changes the cost, not the result.",
    example=lambda: 1.001 * _coefficients(),
    wrong={
        "64 numbers": lambda: np.ones((1, 3)),
        "points the other way": lambda: -_coefficients(),
        "cosine": lambda: _coefficients() + np.random.default_rng(1).normal(size=64),
        "an array of numbers": lambda: "coef_",
        "length": lambda: 3 * _coefficients(),
    },
    given=lambda: (_coefficients(),),
)
def ex_scikit(answer: Any, ours: NDArray[np.float64]) -> str | None:
    """Compare the coefficients of one pair with those fitted side by side (Appendix D.1)."""
    theirs = np.asarray(answer)
    if theirs.dtype.kind not in "iuf":
        return "The answer is an array of numbers: the coefficients."
    if theirs.size != ours.size:
        return f"Coefficients are {ours.size} numbers; got {theirs.size}."
    theirs = theirs.ravel()
    lengths = float(np.linalg.norm(theirs)), float(np.linalg.norm(ours))
    ratio = lengths[0] / lengths[1]
    cosine = float(theirs @ ours) / max(lengths[0] * lengths[1], 1e-300)
    if cosine < -0.99:
        return "It points the other way: the larger label is the positive class."
    if not cosine > 0.99:
        return f"Its cosine with ours is {cosine:.3f}. Keep both labels of the pair, and no other."
    if not 0.9 < ratio < 1.1:
        return f"Its length is {ratio:.2f} of ours: the penalty is another one. C is 0.01."
    return None


@value(
    rtol=0.002,
    right="A high η² between two values means hardly any confusion of these two.",
    mistakes={
        "That is m/s itself; the accuracy is its normal distribution function.": np.sqrt(
            0.85 / 0.15
        ),
        "m/s is a square root: m² / s² = η² / (1 - η²).": 1.0,
        "Both values count the same; the accuracy is Φ(m/s), not Φ(2m/s) or a two-sided one.": (
            lambda right: 2 * right - 1
        ),
        "η² is a share of variance, not an accuracy.": 0.85,
    },
)
def ex_eta() -> float:
    """Return the accuracy at η² = .85, by integrating the density of one value."""
    ratio = np.sqrt(0.85 / 0.15)
    x = np.linspace(0, 14, 200_001)
    density = np.exp(-((x - ratio) ** 2) / 2) / np.sqrt(2 * np.pi)
    return float(np.trapezoid(density, x))


_HINT = "Look at the numbers: another method's valuations correlate more with the scale."


@choice(
    right="It asks for the order. The others ask only that values differ, and get an arc.",
    options={"paper": _HINT, "pairwise": _HINT, "ordinal": _HINT, "discriminant": _HINT},
    given=lambda: ({"paper": 0.4, "pairwise": 0.6, "ordinal": 0.9, "discriminant": 0.7},),
)
def ex_four_ways(correlations: Mapping[str, float]) -> str:
    """Return the method of largest correlation."""
    return sorted(correlations.items(), key=lambda item: item[1])[-1][0]
