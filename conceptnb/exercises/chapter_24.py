"""Exercises of chapter 24: against baselines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from conceptnb.core.scores import r2
from conceptnb.exercises.exercise import choice, construction


@construction(
    right="R² is still one: it forgives every invertible map. MCC does not.",
    example=lambda: np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0],
    wrong={
        "3 × 3": lambda: np.eye(2),
        "not invertible": lambda: np.ones((3, 3)),
        "permutation": lambda: 2 * np.eye(3)[[2, 0, 1]],
        "numbers": lambda: [["a"] * 3] * 3,
    },
)
def ex_pca_r2(answer: Any) -> str | None:
    """Look for an invertible map of three codes that mixes them: MCC changes, R² does not."""
    Q = np.asarray(answer)
    if Q.dtype.kind not in "iuf" or Q.shape != (3, 3):
        return f"The answer is a 3 × 3 matrix of numbers; got {Q.dtype} {Q.shape}."
    if not np.isfinite(Q).all() or np.linalg.cond(Q) > 1e6:
        return "The matrix is not invertible, so it loses a part of the codes, and R² falls."
    codes = np.random.default_rng(0).normal(size=(50, 3))
    if r2(codes, codes @ Q) < 1 - 1e-6:
        return "R² fell, so the matrix is nearly not invertible."
    if ((np.abs(Q) > 1e-9 * np.abs(Q).max()).sum(axis=0) == 1).all():
        return "A permutation with scaling: MCC forgives that too. Mix the columns."
    return None


@construction(
    right="Independent and not Gaussian: that is all that ICA asks of latents.",
    example=lambda: np.random.default_rng(0).uniform(-1, 1, size=(6000, 3)),
    wrong={
        "three columns": lambda: np.zeros((6000, 2)),
        "1000": lambda: np.random.default_rng(0).uniform(-1, 1, size=(60, 3)),
        "constant": lambda: np.zeros((6000, 3)),
        "correlated": lambda: np.repeat(
            np.random.default_rng(0).uniform(-1, 1, size=(6000, 1)), 3, axis=1
        ),
        "squares": lambda: (
            np.random.default_rng(0).normal(size=(6000, 3))
            * np.repeat([[0.3], [3.0]], 3000, axis=0)
        ),
        "Gaussian": lambda: np.random.default_rng(0).normal(size=(6000, 3)),
        "numbers": lambda: ["a"] * 3,
    },
)
def ex_ica_works(answer: Any) -> str | None:
    """Look for independent latents that are not Gaussian, by correlations and fourth moments."""
    Z = np.asarray(answer)
    if Z.dtype.kind not in "iuf" or Z.ndim != 2 or Z.shape[1] != 3:
        return f"The answer is an array of numbers with three columns; got {Z.dtype} {Z.shape}."
    if len(Z) < 1000 or not np.isfinite(Z).all():
        return f"Give at least 1000 finite samples, or nothing can be estimated; got {len(Z)}."
    if (np.ptp(Z, axis=0) == 0).any():
        return "A constant column is no latent."
    return _dependence((Z - Z.mean(axis=0)) / Z.std(axis=0))


def _dependence(Z: NDArray[np.float64]) -> str | None:
    """Say in which way standardised columns are not what ICA needs, if they are not."""
    others = ~np.eye(3, dtype=bool)
    if np.abs(np.asarray(np.corrcoef(Z.T))[others]).max() > 0.1:
        return "Columns are correlated, so they are not independent."
    if np.abs(np.asarray(np.corrcoef((Z**2).T))[others]).max() > 0.1:
        return "Columns are uncorrelated, but their squares are not: one tells about another."
    flat = np.abs((Z**4).mean(axis=0) - 3) < 0.2
    if flat.sum() > 1 and (np.abs((Z[:, flat] ** 3).mean(axis=0)) < 0.2).sum() > 1:
        return "More than one column looks Gaussian, and a rotation of Gaussians cannot be seen."
    return None


@choice(
    right="Its MCC is nearly the classifier's, and it has learned nothing.",
    options={
        "chance": "Shuffled rows destroy every correlation. The tickets need not be drawn blindly "
        "to win: a direction close to an atom is close in any sample.",
        "cross-fitting": "That takes away luck in the sample. These directions really are close.",
        "random code": "",
        "r²": "R² of 32 codes of three dimensions is one whatever they are.",
    },
)
def ex_thirty_two_codes() -> str:
    """Name the control of a code with 32 columns: 32 columns that learned nothing."""
    return "random code"


@choice(
    right="It repairs the log-odds where a code mixes atoms, at the price of leaving it mixed.",
    options={
        "vanishes": "That would be the truth, s = 0. Compare the two rows of deviations.",
        "repairs": "",
        "dominates": "Compare it with the parabola's: is it larger in every environment?",
    },
)
def ex_shared_square() -> str:
    """Say what the shared square does on data that do not need it: Appendix F."""
    return "repairs"


@construction(
    right="It is a ceiling of this encoder at this number of samples, and no more.",
    example=lambda: np.array([0.95, 0.97, 0.98]),
    wrong={
        "three numbers": lambda: np.zeros(4),
        "falls": lambda: np.array([0.98, 0.95, 0.93]),
        "cannot exceed one": lambda: np.array([0.5, 1.0, 2.0]),
        "numbers": lambda: ["a"] * 3,
    },
)
def ex_ceiling(answer: Any) -> str | None:
    """Look for R² that does not fall as samples grow, beyond what seeds do to it."""
    scores = np.asarray(answer)
    if scores.dtype.kind not in "iuf" or scores.shape != (3,):
        return f"The answer is three numbers, one a sample size; got {scores.dtype} {scores.shape}."
    if scores.max() > 1:
        return "R² cannot exceed one."
    if not scores[0] < scores[2] + 0.005:
        return "R² falls with more samples: is it taken on the same fresh points Z each time?"
    return None
