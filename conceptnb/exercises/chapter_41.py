"""Exercises of chapter 41: reading truth off the heads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from conceptnb.exercises.exercise import choice, value


@value(
    entries="accuracy, balanced accuracy",
    right="A probe that has learned nothing can score 75 %. Balanced, chance is one half.",
    mistakes={
        "The other way round: first the plain accuracy.": [0.5, 0.75],
        "Three answers of four are false, and calling them so is right.": [0.25, 0.5],
        "Balanced means the mean of two shares: of the true ones, and of the false ones.": [
            0.75,
            0.75,
        ],
    },
)
def ex_balanced() -> NDArray[np.float64]:
    """Return both accuracies of calling every answer false, with one true answer in four."""
    true = np.array([True, False, False, False])
    said = np.zeros(4, dtype=bool)
    plain = np.mean(said == true)
    return np.array([plain, (np.mean(said[true]) + np.mean(~said[~true])) / 2])


def _two_halves() -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    rng = np.random.default_rng(0)
    true = rng.random(400) < 0.25
    first = np.arange(400) < 200
    x = rng.normal(size=(400, 4))
    x[:, 0] += 2 * true
    x[:, 1] += true * first
    return x, true, first


def _balanced(said: NDArray[np.bool_], true: NDArray[np.bool_]) -> float:
    return float((said[true].mean() + (~said)[~true].mean()) / 2)


@value(
    atol=0.005,
    rtol=0.0,
    right="What tells truth in categories with another truthful source is common to all.",
    mistakes={"That is chance. Does the probe reach it, exceed it, or fall below it?": 0.5},
    given=_two_halves,
)
def ex_carry_over(
    x: NDArray[np.float64], true: NDArray[np.bool_], first: NDArray[np.bool_]
) -> float:
    """Return the balanced accuracy, on the other categories, of a probe of the first (E.1)."""
    probe = LogisticRegression(max_iter=1000, class_weight="balanced").fit(x[first], true[first])
    score = x[~first] @ probe.coef_[0] + probe.intercept_[0]
    return _balanced(score > 0, true[~first])


@choice(
    right="It has seen answers to the very questions it is tested on.",
    options={
        "too high": "",
        "too low": "The probe would know something about the tested questions. Does that hurt?",
        "unbiased": "Held-out rows would be new, but their questions would not.",
    },
)
def ex_leak() -> str:
    """Return in which direction accuracy errs if rows are held out instead of questions (E.1)."""
    return "too high"


@value(
    entries="first and second coordinate",
    right="The probe discounts the direction in which the clouds are wide; the mean does not.",
    mistakes={
        "That is the difference of the means. The probe divides by the covariance.": [2.0, 1.0],
        "That is the covariance times the difference; its inverse is needed.": [8.0, 1.0],
        "Divide by variances, not by standard deviations.": [1.0, 1.0],
    },
)
def ex_probe_or_mean() -> NDArray[np.float64]:
    """Return the direction that separates two Gaussian clouds best: Σ⁻¹ δ."""
    return np.asarray(np.linalg.solve(np.diag([4.0, 1.0]), [2.0, 1.0]), dtype=np.float64)
