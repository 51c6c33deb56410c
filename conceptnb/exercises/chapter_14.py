"""Exercises of chapter 14: from causal to concept-based."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises.exercise import value


@value(
    rtol=1e-6,
    entries="Theorem 1, Theorem 2, iVAE, interventions",
    right="For three of twenty directions, five data sets do. For all twenty, at least 21.",
    mistakes={
        "You left out the base: the table counts it.": [4, 6, 40, 20],
        "The last two learn all d_z latents, and depend on d_z = 20.": [5, 7, 7, 4],
        "iVAE needs k = 2 for each latent.": [5, 7, 21, 21],
    },
)
def ex_budget() -> list[int]:
    """Return the environments of the four rows of the table for n = 3 and d_z = 20."""
    n, d_z = 3, 20
    return [n + 2, 2 * n + 1, 2 * d_z + 1, d_z + 1]


@value(
    rtol=1e-6,
    atol=1e-6,
    right="It has no effects: the equations of the other variables do not contain it.",
    mistakes={
        "Setting a root changes its effects, and averaging leaves them as they were.": 0,
        "It has an effect, Z_3, which averaging leaves as it was.": 1,
        "Counted from 0, as in the code.": 3,
    },
)
def ex_leaf() -> int:
    """Return the variable of the chain whose averaged measure is the intervention: Appendix C."""
    arrows = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]])  # row: effect, column: cause
    return int(np.flatnonzero(~arrows.any(axis=0))[0])


@value(
    atol=1e-3,
    entries="Z_1, Z_2, Z_3",
    right="The same for both: a root has no causes that conditioning could move.",
    mistakes={
        "The effects follow: Z_2 = 0.8 Z_1 + noise.": [2.0, 0.0, 0.0],
        "Those are the weights. The cause's value is 2.": [2.0, 0.8, -0.5],
        "Z_3 falls when Z_1 rises: its weight is negative.": [2.0, 1.6, 1.0],
    },
)
def ex_root() -> NDArray[np.float64]:
    """Return the means of the fork after conditioning its root on 2, from its covariance."""
    mixing = np.linalg.inv(np.eye(3) - np.array([[0, 0, 0], [0.8, 0, 0], [-0.5, 0, 0]]))
    covariance = mixing @ mixing.T
    return covariance[:, 0] / covariance[0, 0] * 2.0


@value(
    rtol=1e-6,
    right="Once n > d_z/2. Theorem 1 needs more only for n = d_z, and then by one.",
    mistakes={
        "There they need equally many; asked is where Theorem 2 needs more.": 5,
        "That is where Theorem 1 needs more; Theorem 2 does so long before.": 10,
    },
)
def ex_break_even() -> int:
    """Return the least n for which Theorem 2 needs more than d_z + 1 data sets, d_z = 10."""
    return next(n for n in range(1, 11) if 2 * n + 1 > 10 + 1)
