"""Exercises of chapter 11: Theorem 1, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises.exercise import choice, construction, value


@value(
    atol=1e-6,
    right="The minimum is at z = B, and the constant of an environment is read off there.",
    mistakes={
        "You gave the value of G at its minimum; where it lies was asked for.": [-0.08, -0.125],
        "The derivative of z²/2 is z, not z/2.": lambda right: 2 * right,
    },
    entries="one entry an environment",
)
def ex_minimum() -> NDArray[np.float64]:
    """Return where G_e = z²/2 - B_e z is least, for B = (0.4, -0.5): Step 4."""
    z = np.linspace(-1, 1, 200_001)
    return np.array([z[np.argmin(z**2 / 2 - b * z)] for b in (0.4, -0.5)])


@construction(
    right="Two atoms; both are in environment 2, one of them in 1, and the other in 3.",
    example=lambda: np.array([[1, 0], [1, 1], [0, 1]]),
    wrong={
        "3 rows": lambda: np.array([[1, 1, 0], [0, 1, 1]]),
        "zeros and ones": lambda: np.array([[2, 0], [2, 2], [0, 2]]),
        "S_{2} has 1 atoms": lambda: np.array([[1, 0], [1, 0], [0, 1]]),
        "S_{1,3} has 1 atoms": lambda: np.array([[1, 0], [1, 1], [1, 0]]),
        "a matrix of numbers": lambda: "two atoms",
    },
)
def ex_count(answer: Any) -> str | None:
    """Compare the sizes of all unions with those given: Step 3. Columns come in any order."""
    M = np.asarray(answer)
    if M.dtype.kind not in "biuf" or M.ndim != 2:
        return "The answer is a matrix of numbers, with environments as rows."
    if M.shape[0] != 3:
        return f"M has 3 rows, one an environment, and a column for each atom; got {M.shape}."
    if not np.isin(M, (0, 1)).all():
        return "In standard form M holds zeros and ones."
    sizes = {(1,): 1, (2,): 2, (3,): 1, (1, 2): 2, (1, 3): 2, (2, 3): 2, (1, 2, 3): 2}
    for T, size in sizes.items():
        got = int(M[[e - 1 for e in T]].any(axis=0).sum())
        if got != size:
            name = ",".join(map(str, T))
            return f"In your M, S_{{{name}}} has {got} atoms; given is {size}."
    return None


@value(
    entries="for z = -1, 0.7, 2",
    right="The denominator is B_1 - B_2 everywhere: with one atom, the null set of the proof is "
    "empty.",
    mistakes={
        "That is the numerator, w B. Divide by w M, the sum of the entries of w.": (
            lambda right: 0.8 * right
        ),
        "That is the denominator, w M. It does not depend on z, and the ratio does.": [0.8] * 3,
        "You divided the wrong way round.": lambda right: 1 / right,
    },
)
def ex_denominator() -> NDArray[np.float64]:
    """Return (w B) / (w M) for one atom and B = (0.4, -0.4): Step 5."""
    B, ratios = np.array([0.4, -0.4]), []
    for z in (-1.0, 0.7, 2.0):
        w = np.linalg.svd((z - B)[:, None])[0][:, 1]  # orthogonal to D G = z - B
        ratios.append(w @ B / w.sum())
    return np.array(ratios)


@choice(
    right="Inclusion and exclusion of a wrong set of sizes gives a negative count, and no matrix "
    "has that. Only a wrong set that is consistent goes unnoticed.",
    options={
        "nothing": "Run it with rank_tolerance=0.2: it raises an error.",
        "not symmetric": "Ranks are read from symmetric matrices, whatever the tolerance.",
        "negative count": "",
    },
)
def ex_tolerance() -> str:
    """Say how Step 3 notices a misread rank."""
    return "negative count"


@value(
    rtol=1e-6,
    right="The leading eigenvector of the combination is the atom, up to sign. M, and so Steps 1 "
    "to 3, are still needed.",
    mistakes={
        "M is used in the formula, and Step 3 is what finds it.": 3,
        "B does not occur in Q_e: the formula says nothing about valuations of environments.": 4,
        "The scale is still free: Q_e is given in standard form.": 1,
    },
)
def ex_shortcut() -> int:
    """Return the step that evaluates atoms, which linear mixings do not need."""
    return 5
