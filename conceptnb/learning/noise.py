r"""Noise of unknown form: a head whose potential is fitted together with the concepts.

The noise q of Definition 2 enters log-odds as :math:`g_e = \alpha_e - \sum_{i \in S_e}
\rho(h_i - b_{ei})` with the potential :math:`\rho = -\ln q + \ln q(0)`. Assumption 3 takes it
as :math:`u^2/2`. Here it is any sum of :math:`\tfrac12 t_k^2 \ln(1 + u^2/t_k^2)` with weights that
are positive and sum to one: even, growing with :math:`|u|`, of curvature one at zero, which fixes
the common unit that the data leave open. A Gaussian is the limit of large t, Student's t one term,
and a logistic is close to a sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from conceptnb.common.validation import Array, as_array
from conceptnb.learning.linear import LinearFit

WIDTHS = np.array([0.7, 1.2, 2.0, 3.5, 6.0, 10.0, np.inf])
"""The t of the terms of a potential, in units of the curvature at zero."""
_RIDGE = 1e-6
_SCALES = (1.0, 1.5)


@dataclass(frozen=True, eq=False)
class Potential:
    """A potential of noise: `weights` (k,) of the terms with widths `WIDTHS`, which sum to one."""

    weights: Array

    def __call__(self, u: Array) -> Array:
        """Return rho(u), of any shape."""
        return sum((w * r for w, r in zip(self.weights, _terms(u)[0], strict=True)), 0 * u)

    def slope(self, u: Array) -> Array:
        """Return the derivative of rho at u."""
        return sum((w * r for w, r in zip(self.weights, _terms(u)[1], strict=True)), 0 * u)

    def density(self, u: Array) -> Array:
        """Return the density of the noise on a grid of equal steps that holds most of it."""
        unnormalised = np.exp(-self(u))
        return np.asarray(unnormalised / (unnormalised.sum() * (u[1] - u[0])))


GAUSSIAN = Potential(np.array([0.0] * (len(WIDTHS) - 1) + [1.0]))


@dataclass(frozen=True, eq=False)
class NoiseFit:
    """Atoms W (d, n), valuations b (m, n), constants alpha (m,), and the potential of the noise."""

    W: Array
    b: Array
    alpha: Array
    potential: Potential
    loss: float


def fit_noise(
    X: Array,
    environment: np.ndarray,
    targets: ArrayLike,
    start: LinearFit,
    *,
    potential: Potential | None = None,
) -> NoiseFit:
    """Fit a linear encoder, the valuations of environments, and the potential of the noise.

    Parameters
    ----------
    X : array of shape (N, d)
        Observations, centred.
    environment : int array of shape (N,)
        0 for the base, 1 to m for the others.
    targets : array-like of shape (m, n)
        Ones where an environment conditions on a concept.
    start : LinearFit
        A fit with Gaussian noise.
    potential : Potential, optional
        Known noise, that is not fitted; by default it is.

    Returns
    -------
    NoiseFit
        Valuations X @ W are in the unit in which the potential has curvature one at zero.
    """
    task = NoiseLikelihood(X, environment, as_array(targets, "targets", ndim=2), potential)
    ends = [task.descend(task.start(start, scale)) for scale in _SCALES]
    theta, loss = min(ends, key=lambda found: found[1])
    W, b, alpha, weights = task.unpack(theta)
    return NoiseFit(W, b, alpha, Potential(weights), loss)


def _terms(u: Array) -> tuple[list[Array], list[Array]]:
    """Return the terms of a potential at u, and their derivatives."""
    squares, values, slopes = u**2, [], []
    for t in WIDTHS:
        if np.isinf(t):
            values.append(squares / 2)
            slopes.append(u)
        else:
            values.append(t**2 / 2 * np.log1p(squares / t**2))
            slopes.append(u / (1 + squares / t**2))
    return values, slopes


class NoiseLikelihood:
    """The softmax likelihood of environments with a common potential, by hand."""

    def __init__(
        self, X: Array, environment: np.ndarray, mask: Array, potential: Potential | None
    ) -> None:
        self.X, self.environment, self.mask = X, environment, mask
        self.known = potential
        counts = np.bincount(environment, minlength=len(mask) + 1)
        self.log_prior = np.log(counts[1:] / counts[0])
        self.own = environment[:, None] == np.arange(1, len(mask) + 1)
        self.row, self.column = np.nonzero(mask)

    def start(self, fit: LinearFit, scale: float) -> Array:
        """Return parameters that begin at a multiple of a fit with Gaussian noise."""
        theta = [fit.W.T.ravel() * scale, fit.gamma[self.mask > 0] * scale]
        h = self.X[self.environment == 0] @ fit.W * scale
        gaps = (h[:, None] - fit.gamma * scale) ** 2 / 2
        inside = -(gaps * self.mask).sum(axis=2)
        theta.append(-np.log(np.exp(inside).mean(axis=0)))
        return np.concatenate([*theta, np.zeros(0 if self.known else len(WIDTHS))])

    def unpack(self, theta: Array) -> tuple[Array, Array, Array, Array]:
        """Return W, b, alpha and the weights of the potential."""
        (m, n), d, k = self.mask.shape, self.X.shape[1], len(self.row)
        b = np.zeros((m, n))
        b[self.row, self.column] = theta[n * d : n * d + k]
        if self.known:
            weights = self.known.weights
        else:
            logits = theta[n * d + k + m :]
            weights = np.exp(logits - logits.max())
            weights = weights / weights.sum()
        return theta[: n * d].reshape(n, d).T, b, theta[n * d + k : n * d + k + m], weights

    def objective(self, theta: Array) -> tuple[float, Array]:
        """Return the mean loss, with a ridge, and its gradient."""
        W, b, alpha, weights = self.unpack(theta)
        h, N = self.X @ W, len(self.X)
        u = h[:, self.column] - b[self.row, self.column]
        values, slopes = _terms(u)
        into = np.zeros((len(self.row), len(self.mask)))
        into[np.arange(len(self.row)), self.row] = 1.0
        rho = sum(w * v for w, v in zip(weights, values, strict=True))
        slope = sum(w * v for w, v in zip(weights, slopes, strict=True))
        logits = np.column_stack([np.zeros(N), alpha + self.log_prior - rho @ into])
        shares = np.exp(logits - np.logaddexp.reduce(logits, axis=1)[:, None])
        loss = -np.log(np.maximum(shares[np.arange(N), self.environment], 1e-300)).mean()
        miss = (shares[:, 1:] - self.own) / N
        down = -miss[:, self.row] * slope  # of the loss, by each h_i - b_ei
        by_h = np.zeros_like(h)
        np.add.at(by_h.T, self.column, down.T)
        gradient = [(self.X.T @ by_h).T.ravel(), -down.sum(axis=0), miss.sum(axis=0)]
        if not self.known:
            by_weight = np.array([-(miss[:, self.row] * v).sum() for v in values])
            gradient.append(weights * (by_weight - weights @ by_weight))
        penalty = _RIDGE * float(theta @ theta)
        return float(loss) + penalty, np.concatenate(gradient) + 2 * _RIDGE * theta

    def descend(self, start: Array) -> tuple[Array, float]:
        """Return where L-BFGS ends, and the loss there."""
        options = {"maxiter": 500, "maxcor": 30, "ftol": 1e-12, "gtol": 1e-8}
        end = minimize(self.objective, start, jac=True, method="L-BFGS-B", options=options)
        return end.x, float(end.fun)
