"""From pairwise coefficients to one direction: the paper's average, and one without order.

The coefficients of a pair are a direction up to sign, since which value comes
first is a convention. The paper aligns signs by a heuristic whose result can
depend on the order of the pairs. What does not depend on signs at all is the
matrix Σ w wᵀ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.extmath import svd_flip

from conceptnb.core.validation import Array, as_points


def averaged_direction(
    coefficients: ArrayLike, *, order: ArrayLike | None = None, passes: int = 10
) -> Array:
    """Mean of sign-aligned coefficients: the paper's direction (Appendix D.1).

    Coefficients are added one by one, each turned to the side of the mean of
    those before it. In the passes that follow, each is turned again where it
    points away from the mean of all.

    Parameters
    ----------
    coefficients : array-like of shape (n_pairs, dimensions)
    order : array-like of shape (n_pairs,), optional
        The order in which pairs are visited; by default as given.
    passes : int
        Passes in all; the paper's code makes ten.

    Returns
    -------
    ndarray of shape (dimensions,)
        Not normalised; its sign is a convention.

    Raises
    ------
    ValueError
        If `order` is not an order of the pairs, or `passes` is below 1.
    """
    W = as_points(coefficients, "coefficients")
    visit = np.arange(len(W)) if order is None else np.asarray(order)
    if not np.array_equal(np.sort(visit), np.arange(len(W))):
        raise ValueError(f"order must hold each of 0 to {len(W) - 1} once")
    if passes < 1:
        raise ValueError(f"passes={passes} must be at least 1")
    W = W[visit]
    total = np.zeros(W.shape[1])
    for row in range(len(W)):
        if W[row] @ total < 0:
            W[row] *= -1
        total += W[row]
    for _ in range(passes - 1):
        for row in range(len(W)):
            if W[row] @ total < 0:
                total -= 2 * W[row]
                W[row] *= -1
    return total / len(W)


def leading_directions(coefficients: ArrayLike, n_components: int = 1) -> Array:
    """Leading eigenvectors of Σ w wᵀ, free of signs and of order.

    The first maximises the mean squared valuation gap Σ ⟨a, w⟩² over unit
    vectors a; further ones span a concept of more dimensions (Definition 1).

    Parameters
    ----------
    coefficients : array-like of shape (n_pairs, dimensions)
    n_components : int

    Returns
    -------
    ndarray of shape (n_components, dimensions)
        Orthonormal rows, each with its entry of largest size positive.

    Raises
    ------
    ValueError
        If `n_components` is not between 1 and the number of pairs or dimensions.
    """
    W = as_points(coefficients, "coefficients")
    if not 1 <= n_components <= min(W.shape):
        raise ValueError(
            f"n_components={n_components} must lie between 1 and {min(W.shape)}, the smaller "
            "of the numbers of pairs and dimensions"
        )
    _, _, right = np.linalg.svd(W, full_matrices=False)
    return svd_flip(None, right[:n_components], u_based_decision=False)[1]


def order_dependence(
    coefficients: ArrayLike, n_orders: int, rng: np.random.Generator, *, passes: int = 10
) -> Array:
    """Absolute cosines between averaged directions of different orders of the pairs.

    Parameters
    ----------
    coefficients : array-like of shape (n_pairs, dimensions)
    n_orders : int
        Number of random orders, at least 2.
    rng : numpy.random.Generator
        Source of the orders.
    passes : int
        As in `averaged_direction`.

    Returns
    -------
    ndarray of shape (n_orders * (n_orders - 1) / 2,)
        |cos| between every two results: all 1 where the averaged direction is well defined.

    Raises
    ------
    ValueError
        If `n_orders` is below 2.
    """
    if n_orders < 2:
        raise ValueError(f"n_orders={n_orders} must be at least 2 to compare anything")
    W = as_points(coefficients, "coefficients")
    directions = np.stack(
        [
            averaged_direction(W, order=rng.permutation(len(W)), passes=passes)
            for _ in range(n_orders)
        ]
    )
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.abs(directions @ directions.T)[np.triu_indices(n_orders, 1)]
