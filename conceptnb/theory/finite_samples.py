r"""Finite samples, with a linear mixing: a fit of the log-odds, and how far it is from the truth.

In units of one noise width, :math:`g_e(x) = \alpha_e - \tfrac12 \sum_i M_{ei} h_i^2 + \sum_i
B_{ei} h_i` with :math:`h = A x`. Softmax regression on these log-odds, as in (87), has a likelihood
with parameters A, B and α, whose Fisher information gives the asymptotic covariance of the fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from conceptnb.core.validation import Array, as_array, as_points

_ROWS = 10_000
"""Rows of each data set, on average, from which the information and the start are computed."""
_STEPS = 60
_CONVERGED = 1e-5  # length of a step, in standard errors
_SINGULAR = 1e-11  # smallest eigenvalue of the information, relative to its diagonal


@dataclass(frozen=True, eq=False)
class _LogOddsFit:
    """Atoms (n, d) in units of σ, B (m, n) and constants (m,), with the covariance of all three.

    Parameters are ordered as atoms, row by row; entries of B where M is one, row by row; constants.
    """

    M: Array
    atoms: Array
    B: Array
    constants: Array
    covariance: Array

    @property
    def standard_errors(self) -> tuple[Array, Array, Array]:
        """Standard errors of atoms, B (zero where M is zero) and constants."""
        return _unpack(np.sqrt(np.diag(self.covariance)), self.M)

    def valuations(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return valuations (samples, n), in σ and zero at x = 0, and their standard errors."""
        n, d = self.atoms.shape
        points = as_points(X, "X", d)
        blocks = self.covariance[: n * d, : n * d].reshape(n, d, n, d)
        return points @ self.atoms.T, np.sqrt(
            np.einsum("sj,ijik,sk->si", points, blocks, points, optimize=True)
        )


def fit_log_odds(
    samples: Sequence[ArrayLike],
    M: ArrayLike,
    start: tuple[Array, Array, Array] | None = None,
    *,
    fixed: bool = False,
) -> _LogOddsFit:
    r"""Fit (87) with a linear encoder by maximum likelihood, with standard errors.

    Parameters
    ----------
    samples : sequence of m + 1 arrays of shape (N_e, d)
        The base first, then each environment. No feature is a linear function of the others.
    M : array-like of shape (m, n)
        Ones where an environment conditions on an atom, zeros elsewhere, in different columns.
    start : (atoms, B, constants), optional
        By default from unrestricted quadratic log-odds of each environment; M then has rank n.
    fixed : bool
        Return the start, with its covariance.

    Raises
    ------
    ValueError
        If input is not as above.
    RuntimeError
        If Fisher scoring does not converge.
    """
    columns = as_array(M, "M", ndim=2)
    data = [as_points(X, f"samples[{e}]") for e, X in enumerate(samples)]
    m, n = columns.shape
    if len(data) != m + 1 or len({X.shape[1] for X in data}) > 1:
        shapes = [X.shape for X in data]
        raise ValueError(
            f"samples must be the base and {m} arrays, one for each row of M: {shapes}"
        )
    if not np.isin(columns, (0.0, 1.0)).all() or len(np.unique(columns, axis=1).T) < n:
        raise ValueError("M must hold zeros and ones, and no two of its columns may be equal")
    total = sum(map(len, data))
    few = [X[: max(len(X) * _ROWS * (m + 1) // total, 1)] for X in data]
    atoms, B, constants = _quadratic_start(few, columns) if start is None else start
    theta = np.concatenate([atoms.ravel(), B[columns > 0], constants])
    for _ in range(_STEPS):
        inverse = _inverse(_score(theta, few, columns)[1])
        score, _ = _score(theta, data, columns, information=False)
        size = float(np.sqrt(score @ inverse @ score))  # of the step, for one row's information
        if fixed or size < _CONVERGED / np.sqrt(total):
            break
        theta = theta + inverse @ score * min(1.0, 0.5 / size)
    else:
        raise RuntimeError(f"no convergence in {_STEPS} steps: give a start, or more samples")
    covariance = inverse / total
    # The sizes of the data sets are given, not drawn: this changes the constants' block alone.
    covariance[-m:, -m:] -= np.diag([1 / len(X) for X in data[1:]]) + 1 / len(data[0])
    return _LogOddsFit(columns, *_unpack(theta, columns), covariance)


def _unpack(theta: Array, M: Array) -> tuple[Array, Array, Array]:
    (m, n), used = M.shape, int(M.sum())
    B = np.zeros((m, n))
    B[M > 0] = theta[-m - used : -m]
    return theta[: -m - used].reshape(n, -1), B, theta[-m:]


def _score(
    theta: Array, data: list[Array], M: Array, *, information: bool = True
) -> tuple[Array, Array]:
    """Score of the softmax likelihood and Fisher's information, per row."""
    atoms, B, constants = _unpack(theta, M)
    (m, n), d, p = M.shape, atoms.shape[1], len(theta)
    prior = np.log([len(X) / len(data[0]) for X in data[1:]])
    row, column = np.nonzero(M)
    score, J = np.zeros(p), np.zeros((p, p))
    for label, X in enumerate(data):
        h = X @ atoms.T
        logits = constants + prior - h**2 @ M.T / 2 + h @ B.T
        total = np.logaddexp.reduce(np.column_stack([np.zeros(len(X)), logits]), axis=1)
        shares = np.exp(logits - total[:, None])
        miss = (np.arange(1, m + 1) == label) - shares
        score[: n * d] += (((miss @ B) - (miss @ M) * h).T @ X).ravel()
        score[n * d : -m] += (miss.T @ h)[row, column]
        score[-m:] += miss.sum(axis=0)
        if information:
            by_B = h[:, column]
            slopes = np.zeros((m, len(X), p))
            for e in range(m):
                by_atoms = (B[e] - M[e] * h)[:, :, None] * X[:, None]
                slopes[e, :, :-m] = np.hstack([by_atoms.reshape(len(X), -1), by_B * (row == e)])
                slopes[e, :, p - m + e] = 1
                J += slopes[e].T @ (shares[:, e, None] * slopes[e])
            mean = np.einsum("se,esp->sp", shares, slopes)
            J -= mean.T @ mean
    return score / sum(map(len, data)), J / sum(map(len, data))


def _inverse(J: Array) -> Array:
    scale = np.outer(np.sqrt(np.diag(J)), np.sqrt(np.diag(J)))
    if not np.linalg.eigvalsh(J / scale)[0] > _SINGULAR:
        raise ValueError("samples have a singular information: drop linearly dependent features")
    return np.asarray(np.linalg.inv(J / scale) / scale)


def _quadratic_start(data: list[Array], M: Array) -> tuple[Array, Array, Array]:
    """Atoms, B and constants from unrestricted quadratic log-odds, one environment at a time."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - slow to import

    (m, n), d = M.shape, data[0].shape[1]
    if np.linalg.matrix_rank(M) < n:
        raise ValueError(f"M has rank below {n}: give a start, as none can be computed")
    rows, columns = np.triu_indices(d)
    Q, linear = np.empty((m, d, d)), np.empty((m, d))
    for e, X in enumerate(data[1:]):
        both = np.vstack([data[0], X])
        features = np.hstack([both, both[:, rows] * both[:, columns]])
        size = features.std(axis=0)
        fit = LogisticRegression(C=1e6, solver="newton-cholesky")
        found = fit.fit(features / size, np.arange(len(both)) < len(data[0])).coef_[0] / size
        Q[e][rows, columns] = Q[e][columns, rows] = found[d:] * (1.0 + (rows == columns))
        linear[e] = -found[:d]
    values, axes = np.linalg.eigh(np.einsum("ie,ejk->ijk", np.linalg.pinv(M), Q))
    atoms = axes[:, :, -1] * np.sqrt(np.maximum(values[:, -1:], 1e-12))
    B = np.zeros((m, n))
    for e, used in enumerate(M > 0):
        B[e, used] = np.linalg.lstsq(atoms[used].T, linear[e], rcond=None)[0]
    h = data[0] @ atoms.T
    return atoms, B, -np.log(np.exp(-(h**2) @ M.T / 2 + h @ B.T).mean(axis=0))
