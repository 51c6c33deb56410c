"""Sparse unmixing of log-posteriors: what concept component analysis asks for, in small.

Liu, Gao, Gong, van den Hengel and Shi (2026) look for log-posteriors z of the concepts c_j in a
next-token model's state, f(x) ≈ A [log p(c_j | x)]_j + b, with sparse posteriors exp(z). This is a
small stand-in and none of their variants: one matrix for both directions, the plainest penalty.
"""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from conceptnb.common.validation import Array


class Unmixing(TransformerMixin, BaseEstimator):
    """Directions along which whitened samples look like log-posteriors of concepts.

    Minimises `unmixing_loss` from a random start, over matrices W with columns of unit length.

    Parameters
    ----------
    n_components : int
        Number of log-posteriors; there may be more of them than dimensions.
    weight : float
        Of the posteriors against the reconstruction.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, dimensions)
        Columns of W as rows. ``X @ components_.T`` are the log-posteriors, in unit variance and
        without their constant, which a linear mixture leaves open.
    """

    def __init__(
        self, n_components: int, weight: float = 1.0, random_state: int | np.random.Generator = 0
    ) -> None:
        self.n_components = n_components
        self.weight = weight
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn W from whitened samples (samples, dimensions): mean zero, covariance 1."""
        points = validate_data(self, X, dtype=np.float64)
        if self.n_components < 1:
            raise ValueError(f"n_components={self.n_components} must be at least 1")
        if not 0 < self.weight < np.inf:
            raise ValueError(f"weight={self.weight} must be positive and finite")
        away = np.abs(points.T @ points / len(points) - np.eye(points.shape[1])).max()
        if max(away, np.abs(points.mean(axis=0)).max()) > 0.05:
            raise ValueError("X is not whitened: sklearn.decomposition.PCA(whiten=True) does that")
        rng = np.random.default_rng(self.random_state)
        start = rng.normal(size=(points.shape[1], self.n_components))

        def loss(flat: Array) -> tuple[float, Array]:
            value, slope = unmixing_loss(flat.reshape(start.shape), points, self.weight)
            return value, slope.ravel()

        found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 200})
        self.components_ = _unit(found.x.reshape(start.shape)).T
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Log-posteriors (samples, n_components), up to unit and constant."""
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, reset=False) @ self.components_.T


def unmixing_loss(W: Array, X: Array, weight: float = 1.0) -> tuple[float, Array]:
    """Return what whitened X (samples, dimensions) lose in W (dimensions, components), with slope.

    With the columns of W scaled to unit length, which fixes the variance of z = X W, the loss is
    ‖X - z Wᵀ‖² per sample and dimension (for whitened samples ‖W Wᵀ - 1‖² / dimensions), plus
    `weight` times the mean posterior exp(z). The slope is the gradient with respect to W.
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
