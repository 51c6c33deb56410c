"""Exercises of chapter 23: what the metrics mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from conceptnb.core.scores import mcc
from conceptnb.exercises.exercise import construction, value


@value(
    entries="rows are R² and MCC; columns are permutation, scaling with sign, shift, mixing",
    right="Definition 4 leaves open what MCC forgives; R² forgives mixing, too.",
    mistakes={
        "Mixing columns changes correlations with each single one: MCC does not forgive it.": [
            [True] * 4
        ]
        * 2,
        "R² looks at the span of all columns, which mixing does not change.": [
            [True, True, True, False]
        ]
        * 2,
        "MCC takes absolute values of correlations: scale and sign do not matter.": [
            [True] * 4,
            [True, False, True, False],
        ],
        "First R², then MCC.": lambda right: right[::-1],
    },
)
def ex_r2_forgives() -> NDArray[np.bool_]:
    """Say which maps of a code leave R² and MCC as they are, by a singular value argument."""
    same_span = np.array([True, True, True, True])
    one_to_one = np.array([True, True, True, False])
    return np.stack([same_span, same_span & one_to_one])


@value(
    entries="0, 15, 30 and 45 degrees",
    right="No rotation of two concepts has a lower MCC than 0.71, and each has R² = 1.",
    mistakes={
        "From 45 degrees on, the sine is larger; before it, the cosine.": lambda _: np.sin(
            np.deg2rad([0, 15, 30, 45])
        ),
        "Both concepts are matched well or badly alike: there is no averaging with the sine.": (
            lambda right: (right + np.sqrt(1 - right**2)) / 2
        ),
    },
)
def ex_45() -> NDArray[np.float64]:
    """Return the MCC of two independent concepts rotated by an angle: Section 6."""
    angles = np.deg2rad([0, 15, 30, 45])
    return np.maximum(np.abs(np.cos(angles)), np.abs(np.sin(angles)))


@value(
    right="1/√n, where a Hadamard matrix exists. R² stays 1.",
    mistakes={
        "That is the bound for two dimensions. In four, a concept can be spread over four "
        "columns.": 0.5**0.5,
        "The rows have length 1: four equal entries are 1/2 each, not 1/4.": 0.25,
        "An orthogonal mixture keeps all information, so R² is 1; its MCC is not.": 1.0,
        "A correlation of 0 with every column would leave nothing of the concept.": 0.0,
    },
)
def ex_worst_rotation() -> float:
    """Return the lowest MCC of an orthogonal mixture of four independent concepts."""
    squares_of_a_row = np.full(4, 1 / 4)  # they sum to 1, so the largest is at least 1/4
    return float(np.sqrt(squares_of_a_row.max()))


@construction(
    right="It knows the sizes. No permutation, scale and shift undoes the fold, so an "
    "identifiability theorem has to count it as a failure.",
    example=lambda: np.abs(np.random.default_rng(0).normal(size=(200, 3))),
    wrong={
        "The folded code has an MCC of 0.": lambda: np.random.default_rng(0).normal(size=(200, 3)),
        "shape (200, 3)": lambda: np.ones((200, 2)),
        "the code itself": lambda: 2 * np.abs(np.random.default_rng(0).normal(size=(200, 3))) + 1,
        "numbers": lambda: "sizes",
    },
    given=lambda: (
        np.abs(np.random.default_rng(0).normal(size=(200, 3))),
        np.random.default_rng(0).normal(size=(200, 3)),
    ),
)
def ex_folded(answer: Any, code: NDArray[np.float64], true: NDArray[np.float64]) -> str | None:
    """Look for a target that the folded code matches and that is computed from the truth."""
    target = np.asarray(answer)
    if target.dtype.kind not in "iuf" or target.shape != true.shape:
        return f"The target is an array of numbers of shape {true.shape}; got {target.shape}."
    found = mcc(target, code)
    if found < 0.999:
        return f"The folded code has an MCC of {found:.2f} with it. What is left of a folded sheet?"
    if not np.allclose(target, np.abs(true)):
        return "That is close to the code itself. Say it as a function of the true valuations."
    return None


@value(
    rtol=1e-6,
    right="Permutations only: a code has to earn its match column by column.",
    mistakes={
        "That is the mean over all pairs; the best one-to-one match is asked for.": 0.525,
        "Taking the best column for each concept uses the first column twice.": 0.85,
        "That is the match of the largest correlation. Is the sum of the other one larger?": 0.5,
    },
)
def ex_match() -> float:
    """Return the MCC of two concepts from their correlations: Section 6."""
    correlations = np.array([[0.9, 0.3], [0.8, 0.1]])
    straight, crossed = np.trace(correlations), np.trace(correlations[:, ::-1])
    return max(straight, crossed) / 2
