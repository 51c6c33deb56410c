"""Logistic regressions between all pairs of values of a factor (Appendix D.1)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression

from conceptnb.core.validation import Array, as_points

_MOST_FOR_NEWTON = 256  # dimensions up to which Newton's method is the faster solver


def check_labels(labels: ArrayLike, n: int) -> NDArray[np.generic]:
    """Return labels as an array of shape (n,), or raise.

    Raises
    ------
    ValueError
        If the length is not `n`, a label is a fraction, or fewer than two values occur.
    """
    array = np.asarray(labels)
    if array.shape != (n,):
        raise ValueError(f"labels must have shape ({n},), one per row of Z; got {array.shape}")
    if array.dtype.kind == "f" and not (array == np.round(array)).all():
        raise ValueError("labels must be whole numbers or text, one for each value of the factor")
    if len(np.unique(array)) < 2:
        raise ValueError("labels hold a single value; a direction needs at least two")
    return array


@dataclass(frozen=True)
class PairwiseRegressions:
    """Logistic regressions between all pairs of values of one factor.

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2)
        The two values; coefficients point from the first to the second.
    coefficients : ndarray of shape (n_pairs, dimensions)
        Not normalised.
    intercepts : ndarray of shape (n_pairs,)
    """

    pairs: NDArray[np.generic]
    coefficients: Array
    intercepts: Array


def pairwise_regressions(Z: ArrayLike, labels: ArrayLike, *, C: float = 1.0) -> PairwiseRegressions:
    """Fit a logistic regression between every two values of a factor (Appendix D.1).

    One factor of 3D Shapes has 6 to 105 pairs, all six have 274.

    Parameters
    ----------
    Z : array-like of shape (samples, dimensions)
        Embeddings.
    labels : array-like of shape (samples,)
        The value of the factor for each row.
    C : float
        Inverse strength of the L2 penalty on coefficients, above 0.

    Raises
    ------
    ValueError
        If shapes do not match, a value is not finite, fewer than two values occur,
        or `C` is not positive.

    Notes
    -----
    Directions of an embedding have very different variances, for which L-BFGS needs up to
    hundreds of iterations and Newton's method ten. At 64 dimensions the latter is faster and
    more accurate, at 512 it costs ten times as much.
    """
    points = as_points(Z, "Z")
    values, rows = np.unique(check_labels(labels, len(points)), return_inverse=True)
    if not C > 0:
        raise ValueError(f"C={C} must be positive")
    centre = points.mean(axis=0)
    solver = "newton-cholesky" if points.shape[1] <= _MOST_FOR_NEWTON else "lbfgs"
    model = LogisticRegression(C=C, solver=solver, tol=1e-6, max_iter=1000)
    pairs = list(combinations(range(len(values)), 2))
    W, intercepts = np.empty((len(pairs), points.shape[1])), np.empty(len(pairs))
    for k, (i, j) in enumerate(pairs):
        chosen = (rows == i) | (rows == j)
        model.fit(points[chosen] - centre, rows[chosen] == j)
        W[k], intercepts[k] = model.coef_[0], model.intercept_[0]
    return PairwiseRegressions(values[np.array(pairs)], W, intercepts - W @ centre)
