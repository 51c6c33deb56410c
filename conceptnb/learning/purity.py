r"""Impure environments: a share of each was not looked for and comes from the base.

Environment e is :math:`(1 - \pi_e) p^0 + \pi_e p^e` with the unknown purity :math:`\pi_e`,
so that its log ratio to the base is :math:`\ln(1 - \pi_e + \pi_e \exp g_e)` with the
:math:`g_e` of (87). Purities are parameters of the softmax regression beside those of (87), and
its information gives their standard errors. The theory notes prove that environments in a tree
determine them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import expit

from conceptnb.common.validation import Array
from conceptnb.core.information import inverse_information
from conceptnb.learning.linear import LinearFit

_ROWS = 8_000  # that starts are compared on
_MOST = 40_000  # rows from which information is computed
_RIDGE = 1e-6
_SCALES = (1.0, 1.6, 2.6, 4.0)
_SHARES = (0.8, 0.5)  # purities that the search starts from


@dataclass(frozen=True, eq=False)
class ImpureFit:
    """Atoms, head and purities of a linear encoder, with the covariance of all.

    Parameters
    ----------
    W : array of shape (d, n)
        Directions of the concepts, in units of one noise width.
    gamma : array of shape (m, n)
        Valuations that environments condition on, zero off the targets.
    alpha, purity : arrays of shape (m,)
        Constants of (87), and shares of each environment that were looked for.
    covariance : array of shape (p, p)
        Of W by columns, gamma on the targets by rows, alpha, purity, in this order.
    """

    W: Array
    gamma: Array
    alpha: Array
    purity: Array
    covariance: Array

    @property
    def purity_errors(self) -> Array:
        """Return standard errors of the purities, shape (m,), not for purities at 0 or 1."""
        return np.sqrt(np.diag(self.covariance)[-len(self.purity) :])

    def valuation_errors(self, X: Array) -> Array:
        """Return standard errors (samples, n) of valuations of X (samples, d), from the origin."""
        d, n = self.W.shape
        blocks = self.covariance[: n * d, : n * d].reshape(n, d, n, d)
        return np.sqrt(np.einsum("sj,ijik,sk->si", X, blocks, X, optimize=True))


def fit_impure(
    X: Array,
    environment: np.ndarray,
    targets: ArrayLike,
    start: LinearFit,
    rng: np.random.Generator,
) -> ImpureFit:
    """Fit (87) with a linear encoder and an unknown purity of each environment.

    Parameters
    ----------
    X : array of shape (N, d)
        Observations, centred.
    environment : int array of shape (N,)
        0 for the base, 1 to m for the others.
    targets : array-like of shape (m, n)
        Ones where an environment conditions on a concept.
    start : LinearFit
        A fit that takes all environments as pure. Ignored impurity shortens its directions,
        so the search starts from multiples of them.
    rng : numpy.random.Generator
        Chooses the rows on which starts are compared.
    """
    mask = np.asarray(targets, dtype=float)
    few = rng.permutation(len(X))[:_ROWS]
    small, whole = (ImpureLikelihood(X[r], environment[r], mask) for r in (few, slice(None)))
    begun = [
        small.descend(small.pack(start.W * s, start.gamma * s, None, np.full(len(mask), p)), 60)
        for s in _SCALES
        for p in _SHARES
    ]
    begun.sort(key=lambda found: found[1])
    ends = [whole.descend(theta, 400) for theta, _ in begun[:2]]
    theta, _ = min(ends, key=lambda found: found[1])
    W, gamma, alpha, logit = whole.unpack(theta)
    task = whole
    if len(X) > _MOST:
        some = rng.permutation(len(X))[:_MOST]
        task = ImpureLikelihood(X[some], environment[some], mask)
    covariance = task.covariance(theta) * len(task.X) / len(X)
    return ImpureFit(W, gamma, alpha, expit(logit), covariance)


class ImpureLikelihood:
    """The softmax likelihood of impure environments, by hand."""

    def __init__(self, X: Array, environment: np.ndarray, mask: Array) -> None:
        self.X, self.environment, self.mask = X, environment, mask
        self.counts = np.bincount(environment, minlength=len(mask) + 1)
        self.log_prior = np.log(self.counts[1:] / self.counts[0])
        self.own = environment[:, None] == np.arange(1, len(mask) + 1)

    def pack(self, W: Array, gamma: Array, alpha: Array | None, purity: Array) -> Array:
        """Return parameters as one array; without constants, those that normalise the ratios."""
        if alpha is None:
            h = self.X[self.environment == 0] @ W
            ratios = -0.5 * h**2 @ self.mask.T + h @ (gamma * self.mask).T
            alpha = -np.log(np.exp(ratios - ratios.max(axis=0)).mean(axis=0)) - ratios.max(axis=0)
        logit = np.log(purity / (1 - purity))
        return np.concatenate([W.T.ravel(), gamma[self.mask > 0], alpha, logit])

    def unpack(self, theta: Array) -> tuple[Array, Array, Array, Array]:
        """Return W, gamma, alpha and the logits of the purities."""
        (m, n), d = self.mask.shape, self.X.shape[1]
        gamma = np.zeros((m, n))
        gamma[self.mask > 0] = theta[n * d : -2 * m]
        return theta[: n * d].reshape(n, d).T, gamma, theta[-2 * m : -m], theta[-m:]

    def parts(self, theta: Array) -> tuple[Array, Array, Array, Array]:
        """Return valuations, shares, and slopes of log ratios in g and in the purity's logit."""
        W, gamma, alpha, logit = self.unpack(theta)
        h = self.X @ W
        g = alpha - 0.5 * h**2 @ self.mask.T + h @ gamma.T
        looked_for, from_base = g - np.logaddexp(0, -logit), -np.logaddexp(0, logit)
        ratio = np.logaddexp(looked_for, from_base)
        logits = np.column_stack([np.zeros(len(h)), ratio + self.log_prior])
        shares = np.exp(logits - np.logaddexp.reduce(logits, axis=1)[:, None])
        by_g = np.exp(looked_for - ratio)
        # d ratio / d logit = pi (1 - pi) (exp(g) - 1) / exp(ratio)
        by_logit = by_g * expit(-logit) - np.exp(from_base - ratio) * expit(logit)
        return h, shares, by_g, by_logit

    def objective(self, theta: Array) -> tuple[float, Array]:
        """Return the mean loss, with a ridge, and its gradient."""
        _, gamma, _, _ = self.unpack(theta)
        h, shares, by_g, by_logit = self.parts(theta)
        loss = -np.log(np.maximum(shares[np.arange(len(h)), self.environment], 1e-300)).mean()
        miss = (shares[:, 1:] - self.own) / len(h)
        residual = miss * by_g
        dW = self.X.T @ (residual @ gamma - (residual @ self.mask) * h)
        gradient = [
            dW.T.ravel(),
            (residual.T @ h)[self.mask > 0],
            residual.sum(axis=0),
            (miss * by_logit).sum(axis=0),
        ]
        # Far logits belong to purities of 0 or 1: the ridge keeps them finite.
        penalty = _RIDGE * float(theta @ theta)
        return float(loss) + penalty, np.concatenate(gradient) + 2 * _RIDGE * theta

    def descend(self, start: Array, iterations: int) -> tuple[Array, float]:
        """Return where L-BFGS ends, and the loss there."""
        options = {"maxiter": iterations, "maxcor": 30, "ftol": 1e-12, "gtol": 1e-8}
        end = minimize(self.objective, start, jac=True, method="L-BFGS-B", options=options)
        return end.x, float(end.fun)

    def covariance(self, theta: Array) -> Array:
        """Return the covariance of the fit, of purities and not logits, for given sizes."""
        _, gamma, _, logit = self.unpack(theta)
        (m, n), d, p, N = self.mask.shape, self.X.shape[1], len(theta), len(self.X)
        h, shares, by_g, by_logit = self.parts(theta)
        row, column = np.nonzero(self.mask)
        J, means, mean = np.zeros((p, p)), np.zeros((m + 1, p)), np.zeros((N, p))
        for e in range(m):
            slopes = np.zeros((N, p))
            by_atoms = (gamma[e] - self.mask[e] * h)[:, :, None] * self.X[:, None]
            slopes[:, : n * d] = by_atoms.reshape(N, -1)
            slopes[:, n * d : -2 * m] = h[:, column] * (row == e)
            slopes[:, p - 2 * m + e] = 1.0
            slopes *= by_g[:, [e]]
            slopes[:, p - m + e] = by_logit[:, e] / (expit(logit[e]) * expit(-logit[e]))
            J += slopes.T @ (shares[:, [e + 1]] * slopes) / N
            mean += shares[:, [e + 1]] * slopes
            means[e + 1] = slopes[self.environment == e + 1].mean(axis=0)
        J -= mean.T @ mean / N
        for e in range(m + 1):
            means[e] -= mean[self.environment == e].mean(axis=0)
        inverse = inverse_information(J)
        # Sizes of the environments are given: what would come from drawing them is taken away.
        drawn = inverse @ (means.T * np.sqrt(self.counts / N))
        return (inverse - drawn @ drawn.T) / N
