"""Logistic regressions between all pairs of values of a factor, and their common direction.

Coefficients of a pair are a direction up to sign. The paper aligns signs by a heuristic whose
result can depend on the order of the pairs (Appendix D.1); the matrix Σ w wᵀ knows no signs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.utils.extmath import svd_flip

from conceptnb.common.coordinates import Coordinates
from conceptnb.common.validation import Array, as_count, as_points

_MOST_FOR_NEWTON = 256  # dimensions up to which Newton's method is the faster solver
_PASSES = 10  # of the paper's code over all pairs


def check_labels(labels: ArrayLike, n: int) -> NDArray[np.generic]:
    """Return labels (n,), whole numbers or text with two values at least, or raise ValueError."""
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
    """Logistic regressions between all pairs of values (n_pairs, 2) of one factor.

    Coefficients (n_pairs, dimensions) point from the first value to the second and are not
    normalised; intercepts are (n_pairs,).
    """

    pairs: NDArray[np.generic]
    coefficients: Array
    intercepts: Array

    def of_columns(self, inputs: Coordinates) -> PairwiseRegressions:
        """Return the same regressions of columns that were fitted in other coordinates."""
        W = inputs.weights(self.coefficients.T).T
        return replace(self, coefficients=W, intercepts=self.intercepts - W @ inputs.origin)


def pairwise_regressions(Z: ArrayLike, labels: ArrayLike, *, C: float = 1.0) -> PairwiseRegressions:
    """Fit a logistic regression between every two values of a factor (Appendix D.1).

    `labels` (samples,) are the values of the rows of Z (samples, dimensions), C is the inverse
    strength of the L2 penalty. Directions of an embedding have very different variances, for which
    L-BFGS needs up to hundreds of iterations and Newton's method ten; with many dimensions L-BFGS
    is faster all the same.
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


def averaged_direction(coefficients: ArrayLike) -> Array:
    """Mean (dimensions,) of sign-aligned coefficients (n_pairs, dimensions), as in Appendix D.1.

    Coefficients are added one by one, each turned to the side of the mean of those before it.
    In the passes that follow (the paper's code makes ten in all), each is turned again where it
    points away from the mean of all. The result is not normalised and its sign is a convention.
    """
    W = as_points(coefficients, "coefficients")
    total = np.zeros(W.shape[1])
    for row in range(len(W)):
        if W[row] @ total < 0:
            W[row] *= -1
        total += W[row]
    for _ in range(_PASSES - 1):
        for row in range(len(W)):
            if W[row] @ total < 0:
                total -= 2 * W[row]
                W[row] *= -1
    return total / len(W)


def leading_directions(coefficients: ArrayLike, n_components: int = 1) -> Array:
    """Leading eigenvectors of Σ w wᵀ, free of signs and of order.

    The first maximises the mean squared valuation gap Σ ⟨a, w⟩² over unit
    vectors a; further ones span a concept of more dimensions (Definition 1).

    Returns orthonormal rows (n_components, dimensions), each one's largest entry positive.
    """
    W = as_points(coefficients, "coefficients")
    if not 1 <= n_components <= min(W.shape):
        raise ValueError(f"n_components={n_components} must lie between 1 and {min(W.shape)}")
    _, _, right = np.linalg.svd(W, full_matrices=False)
    return svd_flip(None, right[:n_components], u_based_decision=False)[1]


def order_dependence(coefficients: ArrayLike, n_orders: int, rng: np.random.Generator) -> Array:
    """|cos| between every two averaged directions of `n_orders` random orders of the pairs.

    All n_orders (n_orders - 1) / 2 are 1 where the averaged direction is well defined.
    """
    as_count(n_orders, "n_orders", 2)
    W = as_points(coefficients, "coefficients")
    directions = np.stack([averaged_direction(W[rng.permutation(len(W))]) for _ in range(n_orders)])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.abs(directions @ directions.T)[np.triu_indices(n_orders, 1)]
