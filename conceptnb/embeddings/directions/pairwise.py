"""All pairwise logistic regressions of a factor at once (Appendix D.1).

For each pair of values of a factor the paper fits a logistic regression that
tells the two values apart from the embedding. One factor of 3D Shapes has 6 to
105 pairs, all six have 274. Each image takes part in one problem for every other
value, so the problems share their data: the images of one value enter all their
problems through a single matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.special import expit

from conceptnb.core.validation import as_points

Array = NDArray[np.float64]

_MEMORY = 8
_ARMIJO = 1e-4


def check_labels(labels: ArrayLike, n: int) -> NDArray[np.intp]:
    """Return labels (n,) as whole numbers, or raise.

    Raises
    ------
    ValueError
        If the length is not `n`, a label is not whole, or fewer than two values occur.
    """
    array = np.asarray(labels)
    if array.shape != (n,):
        raise ValueError(f"labels must have shape ({n},), one a row of Z; got {array.shape}")
    whole = array.astype(np.intp)
    if not np.array_equal(whole, array):
        raise ValueError("labels must be whole numbers, one for each value of the factor")
    if len(np.unique(whole)) < 2:
        raise ValueError("labels hold a single value; a direction needs at least two")
    return whole


@dataclass(frozen=True)
class PairwiseRegressions:
    """Logistic regressions between all pairs of values of one factor.

    Attributes
    ----------
    pairs : (n_pairs, 2) the two values; the coefficients point from the first to the second
    coefficients : (n_pairs, dimensions), not normalised
    intercepts : (n_pairs,)
    n_iter : iterations of the solver
    """

    pairs: NDArray[np.intp]
    coefficients: Array
    intercepts: Array
    n_iter: int


class _Problems:
    """The summed logistic losses of all pairs, their gradients, and a metric for steps."""

    def __init__(self, Z: Array, labels: NDArray[np.intp], C: float) -> None:
        values = np.unique(labels)
        self.C, self.pairs = C, np.array(list(combinations(range(len(values)), 2)))
        self.values = values
        self.blocks = [np.ascontiguousarray(Z[labels == value]) for value in values]
        # which problems a value takes part in, and on which side of them
        self.members = [np.flatnonzero((self.pairs == k).any(axis=1)) for k in range(len(values))]
        self.sides = [
            np.where(self.pairs[rows, 1] == k, 1.0, -1.0) for k, rows in enumerate(self.members)
        ]
        self._factors = self._cholesky_factors()

    def _cholesky_factors(self) -> Array:
        """Cholesky factors (n_pairs, d + 1, d + 1) of each Hessian at the origin.

        The last row and column belong to the intercept, which is not penalised.
        """
        d = self.blocks[0].shape[1]
        moments = []
        for block in self.blocks:
            extended = np.column_stack([block, np.ones(len(block))])
            moments.append(extended.T @ extended)
        penalty = np.diag(np.append(np.ones(d), 1e-6))
        return np.stack(
            [
                np.linalg.cholesky(0.25 * self.C * (moments[i] + moments[j]) + penalty)
                for i, j in self.pairs
            ]
        )

    def to_weights(self, U: Array) -> Array:
        """Coefficients and intercept (n_pairs, d + 1) of preconditioned parameters."""
        return np.stack(
            [
                solve_triangular(L, u, lower=True, trans="T", check_finite=False)
                for L, u in zip(self._factors, U, strict=True)
            ]
        )

    def evaluate(self, U: Array) -> tuple[Array, Array]:
        """Loss (n_pairs,) and gradient (n_pairs, d + 1) at preconditioned parameters."""
        W = self.to_weights(U)
        loss = 0.5 * np.einsum("pd,pd->p", W[:, :-1], W[:, :-1])
        gradient = W.copy()
        gradient[:, -1] = 0
        for block, rows, side in zip(self.blocks, self.members, self.sides, strict=True):
            margin = (block @ W[rows, :-1].T + W[rows, -1]) * side
            loss[rows] += self.C * np.logaddexp(0, -margin).sum(axis=0)
            pull = -self.C * side * expit(-margin)
            gradient[rows, :-1] += pull.T @ block
            gradient[rows, -1] += pull.sum(axis=0)
        preconditioned = [
            solve_triangular(L, g, lower=True, check_finite=False)
            for L, g in zip(self._factors, gradient, strict=True)
        ]
        return loss, np.stack(preconditioned)


def _two_loop(gradient: Array, history: list[tuple[Array, Array]]) -> Array:
    """L-BFGS directions (n_pairs, d) of many problems; each has its own curvature."""
    q = gradient.copy()
    kept = []
    for s, y in reversed(history):
        curvature = np.einsum("pd,pd->p", s, y)
        rho = np.where(curvature > 1e-12, 1 / np.maximum(curvature, 1e-12), 0)
        alpha = rho * np.einsum("pd,pd->p", s, q)
        q -= alpha[:, None] * y
        kept.append((rho, alpha))
    if history:
        s, y = history[-1]
        norm = np.einsum("pd,pd->p", y, y)
        scale = np.einsum("pd,pd->p", s, y) / np.maximum(norm, 1e-30)
        q *= np.where(scale > 0, scale, 1)[:, None]
    for (s, y), (rho, alpha) in zip(history, reversed(kept), strict=True):
        beta = rho * np.einsum("pd,pd->p", y, q)
        q += (alpha - beta)[:, None] * s
    return -q


def _minimise(problems: _Problems, max_iter: int, tol: float) -> tuple[Array, int]:
    """Minimise all problems side by side by L-BFGS with backtracking."""
    U = np.zeros(problems._factors.shape[:2])
    loss, gradient = problems.evaluate(U)
    start = np.linalg.norm(gradient, axis=1)
    history: list[tuple[Array, Array]] = []
    for iteration in range(1, max_iter + 1):
        step = _two_loop(gradient, history)
        slope = np.einsum("pd,pd->p", gradient, step)
        length = np.where(np.linalg.norm(gradient, axis=1) > tol * start, 1.0, 0.0)
        if not length.any():
            return problems.to_weights(U), iteration - 1
        for _ in range(12):
            new_loss, new_gradient = problems.evaluate(U + length[:, None] * step)
            worse = new_loss > loss + _ARMIJO * length * slope + 1e-12 * np.abs(loss)
            if not worse.any():
                break
            length[worse] *= 0.4
        length[worse] = 0  # no descent in sight: this problem is as good as it gets
        moved = (length > 0)[:, None]
        new_gradient = np.where(moved, new_gradient, gradient)
        history.append((length[:, None] * step, new_gradient - gradient))
        del history[:-_MEMORY]
        U += length[:, None] * step
        loss, gradient = np.where(moved[:, 0], new_loss, loss), new_gradient
    return problems.to_weights(U), max_iter


def pairwise_regressions(
    Z: ArrayLike, labels: ArrayLike, *, C: float = 1.0, max_iter: int = 250, tol: float = 1e-4
) -> PairwiseRegressions:
    """Fit a logistic regression between every two values of a factor (Appendix D.1).

    The minima are those of ``sklearn.linear_model.LogisticRegression(C=C)`` on the
    images of each pair: an L2 penalty on the coefficients, none on the intercept.

    Parameters
    ----------
    Z : (samples, dimensions) embeddings
    labels : (samples,) whole numbers, the value of the factor for each row
    C : inverse strength of the penalty, above 0
    max_iter : most iterations of L-BFGS
    tol : a problem is solved when its (preconditioned) gradient has shrunk by this factor

    Raises
    ------
    ValueError
        If shapes do not match, a value is not finite, fewer than two values occur,
        or `C` is not positive.

    Notes
    -----
    Steps are measured by the Hessian at the origin, ``C/4 Σ z zᵀ + I``, of each pair.
    Embeddings have directions of very different variance, and L-BFGS without this
    needs several times as many iterations.
    """
    points = as_points(Z, "Z")
    whole = check_labels(labels, len(points))
    if not C > 0:
        raise ValueError(f"C={C} must be positive")
    centre = points.mean(axis=0)
    problems = _Problems(points - centre, whole, C)
    W, n_iter = _minimise(problems, max_iter, tol)
    return PairwiseRegressions(
        pairs=problems.values[problems.pairs],
        coefficients=W[:, :-1],
        intercepts=W[:, -1] - W[:, :-1] @ centre,
        n_iter=n_iter,
    )


def all_factors(
    Z: ArrayLike, factors: ArrayLike, names: tuple[str, ...]
) -> Iterator[tuple[str, PairwiseRegressions]]:
    """Pairwise regressions of each column of `factors`, by name; 274 in all for 3D Shapes."""
    columns = np.asarray(factors).T
    if len(columns) != len(names):
        raise ValueError(f"factors has {len(columns)} columns and names has {len(names)}")
    for name, column in zip(names, columns, strict=True):
        yield name, pairwise_regressions(Z, column)
