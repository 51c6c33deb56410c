"""How many samples a linear mixing needs, and of which environments: two uses of information."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag, eigh

from conceptnb.common.validation import Array, as_array, as_points
from conceptnb.core.information import LogOddsFit, inverse_information
from conceptnb.theory.finite_samples import CONVERGED

_STEPS = 400
_GAP = 1e-3  # by which, relative to it, a variance may exceed the least


def estimated_design(samples: Sequence[ArrayLike]) -> tuple[Array, Array]:
    r"""Estimate M from base and environments (N_e, n), linear images of n valuations.

    Quadratic log-odds, fitted to all data sets at once, have matrices :math:`Q_e = \sum_i M_{ei}
    a_i a_i^\top` with common axes. Returns M (m, n), of which the entries above half of the largest
    are one on average in each column, and the covariance (m, n, m, n) of the :math:`Q_e` along true
    axes: errors of axes are of second order. RuntimeError if the fit does not converge, or no
    environment narrows some direction.
    """
    X, labels = _stacked(samples)
    m, d = labels[-1], X.shape[1]
    j, k = np.triu_indices(d)
    features = np.column_stack([np.ones(len(X)), X, X[:, j] * X[:, k]])
    theta = np.zeros((m, features.shape[1]))
    for _ in range(_STEPS):
        odds = features @ theta.T
        shares = np.exp(odds - np.logaddexp(0, np.logaddexp.reduce(odds, axis=1))[:, None])
        weighted = shares[:, :, None] * features[:, None]
        J = -np.tensordot(weighted, weighted, (0, 0))
        for e in range(m):
            J[e, :, e] += features.T @ weighted[:, e]
        inverse = inverse_information(J.reshape(theta.size, -1))
        score = (((labels[:, None] == np.arange(1, m + 1)) - shares).T @ features).ravel()
        size = np.sqrt(score @ inverse @ score)
        theta += (inverse @ score * min(1, np.sqrt(len(X)) / 2 / size)).reshape(theta.shape)
        if size < CONVERGED:
            break
    Q = np.zeros((m, d, d))
    Q[:, j, k] = Q[:, k, j] = -theta[:, 1 + d :] * (1.0 + (j == k))
    if size > CONVERGED or np.linalg.eigvalsh(Q.sum(axis=0))[0] <= 0:
        raise RuntimeError("log-odds diverge or do not narrow some direction: give more samples")
    mixed = np.tensordot(np.random.default_rng(0).random(m), Q, 1)
    axes = eigh(mixed, Q.sum(axis=0))[1]
    entries = np.einsum("ji,ejk,ki->ei", axes, Q, axes)
    ones = entries > entries.max(axis=0) / 2
    scale = (entries * ones).sum(axis=0) / ones.sum(axis=0)
    along = -2 * axes[j] * axes[k] / scale
    blocks = inverse.reshape(*theta.shape, *theta.shape)[:, 1 + d :, :, 1 + d :]
    return entries / scale, np.einsum("pi,epfq,qk->eifk", along, blocks, along)


def optimal_shares(
    samples: Sequence[ArrayLike], fit: LogOddsFit, prices: ArrayLike | None = None
) -> tuple[Array, float]:
    """Return the best shares (m + 1,) of base and environments, and their error relative to equal.

    They make the mean asymptotic variance of valuations at base points least, for a given budget
    and a price of a sample of each data set (by default one). The error is a ratio of standard
    deviations. `samples` (N_e, d) compute expectations under the parameters of `fit`.
    """
    X, labels = _stacked(samples)
    (m, n), (row, column), h = fit.M.shape, np.nonzero(fit.M), X @ fit.atoms.T
    costs = np.ones(m + 1) if prices is None else as_array(prices, "prices", ndim=1)
    if labels[-1] != m or costs.shape != (m + 1,) or not (costs > 0).all():
        raise ValueError(f"samples, and prices > 0, must be of the base and {m} environments")
    odds = np.column_stack([np.zeros(len(X)), fit.constants - h**2 @ fit.M.T / 2 + h @ fit.B.T])
    drawn = np.log(np.bincount(labels) / len(X))
    density = np.exp(odds - np.logaddexp.reduce(odds + drawn, axis=1, keepdims=True))
    second = X[labels == 0].T @ X[labels == 0] / (labels == 0).sum()
    weight = block_diag(*[second] * n, np.zeros((len(row) + m, len(row) + m)))
    spent, variances = costs / costs.sum(), []
    for _ in range(_STEPS):
        s = density * spent / costs
        s /= s.sum(axis=1, keepdims=True)
        known = []  # for the price of one: the second moment of scores in each data set
        for e in range(m + 1):
            miss = (np.arange(1, m + 1) == e) - s[:, 1:]
            by_atoms = np.einsum("si,sj->sij", miss @ fit.B - miss @ fit.M * h, X)
            score = np.hstack([by_atoms.reshape(len(X), -1), miss[:, row] * h[:, column], miss])
            known.append(score.T @ (score * density[:, [e]]) / len(X) / costs[e])
        inverse = inverse_information(np.tensordot(spent, known, 1))
        gains = np.tensordot(known, inverse @ weight @ inverse, 2)
        variances.append(spent @ gains)
        if gains.max() < (1 + _GAP) * variances[-1]:  # by convexity, close to the least
            break
        spent = spent * np.sqrt(gains) / (spent @ np.sqrt(gains))
    else:
        raise RuntimeError(f"no convergence in {_STEPS} steps: give more samples")
    return spent / costs / (spent / costs).sum(), float(np.sqrt(variances[-1] / variances[0]))


def _stacked(samples: Sequence[ArrayLike]) -> tuple[Array, np.ndarray]:
    d = np.shape(samples[0])[-1]
    data = [as_points(X, f"samples[{e}]", d) for e, X in enumerate(samples)]
    return np.vstack(data), np.repeat(np.arange(len(data)), [len(X) for X in data])
