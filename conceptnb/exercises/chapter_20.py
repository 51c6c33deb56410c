"""Exercises of chapter 20: the contrastive algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises.exercise import choice, construction, value


@value(
    rtol=1e-6,
    atol=1e-3,
    right="The curvature -1/2 makes σ the unit, and the peak is where the plane is.",
    mistakes={
        "Compare with -(h - c)²/2 = -h²/2 + c h + const: c is γ itself.": 0.7,
        "That is the constant. Where is the quadratic largest?": 0.98,
        "The sign: -h²/2 + 1.4 h grows with h at 0.": -1.4,
    },
)
def ex_peak_of_a_head() -> float:
    """Return where the tied head -h²/2 + 1.4 h is largest: equation (87)."""
    h = np.linspace(-5, 5, 100_001)
    return float(h[np.argmax(-(h**2) / 2 + 1.4 * h)])


@value(
    entries="designs (a), (b), (c)",
    right="A bias shifts the centre of all environments of an atom alike. The authors' designs are "
    "of the third kind.",
    mistakes={
        "An atom's bias is one number. Can it stand at two valuations at once?": [True] * 3,
        "In (b) both environments of the atom have the same centre, so one bias will do.": [
            True,
            False,
            False,
        ],
        "With γ = 0 the centre of environment e is h = 0; a bias in the encoder moves it.": [False]
        * 3,
    },
)
def ex_gamma_zero() -> NDArray[np.bool_]:
    """Say for which designs one centre an atom suffices: the head (87) against the log-odds."""
    centres = [[0.3], [0.3, 0.3], [0.3, -0.2]]
    return np.array([np.ptp(valuations) == 0 for valuations in centres])


@value(
    rtol=1e-6,
    entries="joint starts, starts of each atom",
    right="Seven starts of each atom cost as much as seven joint ones, of which 34 are needed.",
    mistakes={
        "Round up: with fewer the probability is below 0.99.": [33, 6],
        "The other way round: joint starts first.": [7, 34],
        "The joint start succeeds with 0.6⁴, not with 0.6.": [6, 7],
        "All four atoms have to be found: each with probability 0.99 to the power 1/4.": [34, 6],
    },
)
def ex_luck() -> list[int]:
    """Return the starts for a success with probability 0.99, by trying numbers in turn."""
    joint = next(s for s in range(1, 99) if 1 - (1 - 0.6**4) ** s >= 0.99)
    single = next(s for s in range(1, 99) if (1 - 0.4**s) ** 4 >= 0.99)
    return [joint, single]


@choice(
    right="h = ±<a, z>/σ up to a shift: with σ known, differences of valuations are learned in "
    "absolute units.",
    options={
        "sigma": "",
        "variance": "The curvature of the log-odds in <a, z> is 1/2σ², and that of the head in h "
        "is 1/2. What is h then?",
        "free": "A free β could absorb any unit. Here β is tied to 1/2.",
    },
)
def ex_unit() -> str:
    """Say in which unit a tied head learns valuations: Lemma 3 and (87)."""
    return "sigma"


@construction(
    right="Zero: found at the first attempt. The larger the gap, the more atoms were missed.",
    example=lambda: np.array([0.0, 0.02, 0.0, 0.0, 0.11]),
    wrong={
        "five numbers": lambda: np.zeros(4),
        "the other way round": lambda: -np.array([0.0, 0.02, 0.0, 0.0, 0.11]),
        "losses themselves": lambda: np.array([1.1, 1.2, 1.1, 1.1, 1.15]),
        "numbers": lambda: ["a"] * 5,
    },
)
def ex_fewer_starts(answer: Any) -> str | None:
    """Look for differences of losses, few starts less many, which cannot be negative."""
    gaps = np.asarray(answer)
    if gaps.dtype.kind not in "iuf" or gaps.shape != (5,):
        return f"The answer is five numbers, one a generator; got {gaps.dtype} {gaps.shape}."
    if gaps.min() < -1e-3:
        return "Ten starts cannot end above one: subtract the other way round."
    if gaps.min() > 0.5:
        return "Those look like the losses themselves; subtract the loss of ten starts."
    return None
