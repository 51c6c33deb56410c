r"""What samples of environments tell about linear concepts: Fisher's information on log-odds.

In units of one noise width, :math:`g_e(x) = \alpha_e - \tfrac12 \sum_i M_{ei} h_i^2 + \sum_i
B_{ei} h_i` with :math:`h = A x`, as in (87). The likelihood of softmax regression on these log-odds
has parameters A, B and α, whose information gives the asymptotic covariance of a fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from conceptnb.common.validation import Array, as_points

_ROWS = 10_000
"""Rows of each data set, on average, from which information is computed."""
_SINGULAR = 1e-11  # smallest eigenvalue of the information, relative to its diagonal


@dataclass(frozen=True, eq=False)
class LogOddsFit:
    """Atoms (n, d) in units of σ, B (m, n) and constants (m,), with the covariance of all three.

    Parameters are ordered as atoms, row by row; entries of B where M is one, row by row; constants.
    """

    M: Array
    atoms: Array
    B: Array
    constants: Array
    covariance: Array

    @classmethod
    def at(cls, samples: Sequence[Array], M: Array, theta: Array) -> Self:
        """Return what was fitted to base and environments (N_e, d): `theta`, with its covariance.

        Parameters are in one array, as `as_one` returns them. ValueError if the information is
        singular, as it is for linearly dependent features.
        """
        inverse = inverse_information(score_and_information(theta, some_rows(samples), M)[1])
        covariance = inverse / sum(map(len, samples))
        # The sizes of the data sets are given, not drawn: this changes the constants' block alone.
        m = len(M)
        covariance[-m:, -m:] -= np.diag([1 / len(X) for X in samples[1:]]) + 1 / len(samples[0])
        return cls(M, *_unpack(theta, M), covariance)

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


def as_one(atoms: Array, B: Array, constants: Array, M: Array) -> Array:
    """Return parameters as one array, in the order of `LogOddsFit`."""
    return np.concatenate([atoms.ravel(), B[M > 0], constants])


def some_rows(samples: Sequence[Array]) -> list[Array]:
    """Return as many of the first rows as information is computed from, in equal shares."""
    most, total = _ROWS * len(samples), sum(map(len, samples))
    return [X[: max(len(X) * most // total, 1)] for X in samples]


def _unpack(theta: Array, M: Array) -> tuple[Array, Array, Array]:
    (m, n), used = M.shape, int(M.sum())
    B = np.zeros((m, n))
    B[M > 0] = theta[-m - used : -m]
    return theta[: -m - used].reshape(n, -1), B, theta[-m:]


def score_and_information(
    theta: Array, data: Sequence[Array], M: Array, *, information: bool = True
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


def inverse_information(J: Array) -> Array:
    """Return the inverse of an information matrix; ValueError if it is singular."""
    scale = np.outer(np.sqrt(np.diag(J)), np.sqrt(np.diag(J)))
    if not np.linalg.eigvalsh(J / scale)[0] > _SINGULAR:
        raise ValueError("samples have a singular information: drop linearly dependent features")
    return np.asarray(np.linalg.inv(J / scale) / scale)
