"""Sparse unmixing of log-posteriors: what concept component analysis asks for, in small.

Liu, Gao, Gong, van den Hengel and Shi (2026) derive that a next-token model's state is
approximately a linear mixture of log-posteriors, f(x) ≈ A [log p(c_j | x)]_j + b, and look for the
log-posteriors z of the concepts c_j, with the sparsity on the posteriors exp(z) and not on the
codes z. This is a small stand-in for their method and none of its authors' variants: one matrix
for both directions, the plainest penalty, a quasi-Newton solver.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from conceptnb.core.validation import as_points

Array = NDArray[np.float64]


def unmix(X: ArrayLike, n_components: int, rng: np.random.Generator, weight: float = 1.0) -> Array:
    """Find directions along which whitened samples look like log-posteriors of concepts.

    Minimises `unmixing_loss` from a random start, over matrices W with columns of unit length.

    Parameters
    ----------
    X : (samples, dimensions), whitened: mean zero, covariance the identity
    n_components : int
        Number of log-posteriors; there may be more of them than dimensions.
    rng : source of the start
    weight : of the posteriors against the reconstruction

    Returns
    -------
    W : (dimensions, n_components)
        ``X @ W`` are the log-posteriors, in unit variance and without their constant: neither is
        determined by a linear mixture. Nor is which of two values a component stands for, since
        log (1 - p) falls where log p rises.

    Raises
    ------
    ValueError
        If X is not whitened, or there is no component or no positive weight.
    """
    points = as_points(X, "X")
    if n_components < 1:
        raise ValueError(f"n_components={n_components} must be at least 1")
    if not 0 < weight < np.inf:
        raise ValueError(f"weight={weight} must be positive and finite")
    away = np.abs(points.T @ points / len(points) - np.eye(points.shape[1])).max()
    if max(away, np.abs(points.mean(axis=0)).max()) > 0.05:
        raise ValueError(
            "X is not whitened: its columns must have mean zero, variance one and no correlation. "
            "sklearn.decomposition.PCA(whiten=True) does that"
        )
    start = rng.normal(size=(points.shape[1], n_components))

    def loss(flat: Array) -> tuple[float, Array]:
        value, slope = unmixing_loss(flat.reshape(start.shape), points, weight)
        return value, slope.ravel()

    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return _unit(found.x.reshape(start.shape))


def unmixing_loss(W: Array, X: Array, weight: float = 1.0) -> tuple[float, Array]:
    """Return what whitened samples lose in unmixing and mixing, plus the mean posterior.

    With the columns of W scaled to unit length and z = X W, the loss is
    ‖X - z Wᵀ‖² a sample and dimension, plus `weight` times the mean of exp(z). Of whitened
    samples the first term is ‖W Wᵀ - 1‖² / dimensions. Unit length fixes the variance of z, without
    which the second term could be had for nothing.

    Returns
    -------
    loss, gradient (dimensions, components) with respect to W
    """
    unit, dimensions = _unit(W), len(W)
    excess = unit @ unit.T - np.eye(dimensions)
    posterior = np.exp(X @ unit)
    loss = (excess**2).sum() / dimensions + weight * posterior.mean()
    slope = 4 * excess @ unit / dimensions + weight * X.T @ posterior / posterior.size
    # Only what turns a column counts: its length is scaled away.
    slope -= unit * (unit * slope).sum(axis=0)
    return float(loss), slope / np.linalg.norm(W, axis=0)


def _unit(W: Array) -> Array:
    return W / np.linalg.norm(W, axis=0)
