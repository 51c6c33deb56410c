"""Exercises of chapter 32: whether two models agree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises.exercise import value

Array = NDArray[np.float64]


def _planes() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    first = rng.normal(size=(200, 2))
    return first, first * [1.0, 0.5] + 0.5 * rng.normal(size=(200, 2))


@value(
    rtol=0.01,
    atol=0.002,
    entries="the larger, the smaller",
    right="An invertible map of either side changes nothing: the freedom that Theorem 1 leaves.",
    mistakes={
        "The larger one first.": lambda right: right[::-1],
        "These are the squares: a regression explains ρ² of the variance.": lambda right: right**2,
    },
    given=_planes,
)
def ex_canonical(first: Array, second: Array) -> Array:
    """Return canonical correlations as roots of eigenvalues of a product of covariances."""
    joint = np.cov(np.hstack([first, second]).T)
    k = first.shape[1]
    within, across, other = joint[:k, :k], joint[:k, k:], joint[k:, k:]
    product = np.linalg.solve(within, across) @ np.linalg.solve(other, across.T)
    squares = np.sort(np.linalg.eigvals(product).real)[::-1]
    return np.sqrt(np.maximum(squares, 0))


def _scales() -> tuple[Array, Array, NDArray[np.intp]]:
    rng = np.random.default_rng(1)
    scale = np.arange(400) % 8
    shared = rng.normal(size=400)
    x, y = (scale + 0.5 * shared + rng.normal(size=400) for _ in range(2))
    return x, y, scale


@value(
    atol=0.01,
    right="The rest of the overall correlation is the factor itself, which both towers know.",
    mistakes={
        "That is the overall correlation: the means of the values are still in it.": float(
            np.corrcoef(*_scales()[:2])[0, 1]
        ),
    },
    given=_scales,
)
def ex_within(x: Array, y: Array, labels: NDArray[np.intp]) -> float:
    """Return the correlation within values, by regression on indicators."""
    design = (labels[:, None] == np.unique(labels)).astype(float)
    left = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (x, y)]
    return float(left[0] @ left[1] / np.sqrt((left[0] @ left[0]) * (left[1] @ left[1])))


@value(
    rtol=0.15,
    right="So correlations of .85 and more between two towers are no accident of the sample.",
    mistakes={
        "That is k / n; correlations go with its square root.": 2 / 2000,
        "Nothing is exactly uncorrelated in a sample.": 0.0,
        "n counts images: 2,000 of them.": np.sqrt(2 / 20),
    },
)
def ex_chance() -> float:
    """Return the mean largest canonical correlation of independent samples, by simulation."""
    rng = np.random.default_rng(5)
    # of whitened independent samples the cross-covariance is Gaussian with variance 1 / n
    return float(np.linalg.svd(rng.normal(size=(4000, 2, 2)))[1][:, 0].mean() / np.sqrt(2000))


@value(
    atol=0.005,
    entries="two of the space, two of the plane",
    right="Agreement is a matter of the space in which it is asked for.",
    mistakes={
        "v₂ is independent of both components of w: the plane's second correlation is 0.": (
            lambda right: right[[0, 0, 0, 0]]
        ),
        "The correlation is 1 / √(1 + 1/4): the errors have variance 1/4, so do not square it.": (
            lambda right: right**2
        ),
        "v₃ is in the space: both of its correlations are high.": lambda right: right[[0, 3, 0, 3]],
    },
)
def ex_subspace() -> Array:
    """Return canonical correlations from the covariances of v and w."""
    other = np.sqrt(1.25) * np.eye(2)
    space = np.array([[1, 0], [0, 0], [0, 1.0]]) @ np.linalg.inv(other)
    return np.concatenate([np.linalg.svd(part)[1] for part in (space, space[:2])])
