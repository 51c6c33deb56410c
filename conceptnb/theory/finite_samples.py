"""Finite samples, with a linear mixing: a fit of the log-odds (87), and how far from the truth."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from conceptnb.common.validation import Array, as_array, as_points
from conceptnb.core.information import (
    LogOddsFit,
    as_one,
    inverse_information,
    score_and_information,
    some_rows,
)

_STEPS = 60
CONVERGED = 1e-5
"""Length of a step, in standard errors, that is not worth another."""


def fit_log_odds(
    samples: Sequence[ArrayLike],
    M: ArrayLike,
    start: tuple[Array, Array, Array] | None = None,
    *,
    fixed: bool = False,
) -> LogOddsFit:
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
    few, total = some_rows(data), sum(map(len, data))
    atoms, B, constants = _quadratic_start(few, columns) if start is None else start
    theta = as_one(atoms, B, constants, columns)
    for _ in range(0 if fixed else _STEPS):
        inverse = inverse_information(score_and_information(theta, few, columns)[1])
        score, _ = score_and_information(theta, data, columns, information=False)
        size = float(np.sqrt(score @ inverse @ score))  # of the step, for one row's information
        if size < CONVERGED / np.sqrt(total):
            break
        theta = theta + inverse @ score * min(1.0, 0.5 / size)
    else:
        if not fixed:
            raise RuntimeError(f"no convergence in {_STEPS} steps: give a start, or more samples")
    return LogOddsFit.at(data, columns, theta)


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
