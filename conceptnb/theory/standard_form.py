r"""The standard form of a model (Appendix A.2, Step 1).

Atoms are coordinates and :math:`\sigma = 1`, so that

.. math:: G_e = \sum_i \tfrac12 M_{ei} z_i^2 - B_{ei} z_i - c'_e,

with M of zeros and ones, and each *column* of B with sum zero and positive first
non-zero entry. (The paper's Step 1 says rows; Step 4 uses :math:`\sum_e B_{ei} = 0`.)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from conceptnb.common.validation import Array

_ZERO_VALUATION = 1e-6  # valuation, in units of σ, that counts as zero when signs are fixed


@dataclass(frozen=True, eq=False)
class StandardForm:
    r"""A model in the standard form of Step 1: all that the data determine of it.

    M (m, n) has zeros and ones, columns in descending binary order; columns of B (m, n) have sum
    zero and a positive first non-zero entry; `constants` are :math:`c'_e` of (46).
    """

    M: Array
    B: Array
    constants: Array

    def ratios(self, valuations: Array) -> Array:
        """Evaluate g of (46) at standard valuations (samples, n), shape (samples, m)."""
        return valuations**2 @ self.M.T / 2 - valuations @ self.B.T - self.constants


def standard_form(M: ArrayLike, B: ArrayLike, variance: float) -> tuple[Array, Array, np.ndarray]:
    r"""Bring true matrices to the standard form of Step 1.

    Valuations become :math:`\langle a_i, z\rangle / \sigma - \lambda_i` up to sign, so
    that M turns into zeros and ones and :math:`B \mapsto B\sigma - M\,\mathrm{diag}(\lambda)`.
    (Equation (41) prints :math:`\sigma^{-1}`; substituting (36) gives :math:`\sigma`.)

    M and B (m, n) are those of (7) and (8); also returned is each column's atom, (n,).
    """
    occurs = np.asarray(M) * variance
    order = np.lexsort(-np.round(occurs[::-1]))  # columns as descending binary numbers
    normalised = normalise_columns(occurs, np.asarray(B) * variance**0.5)
    return occurs[:, order], normalised[:, order], order


def normalise_columns(M: Array, B: Array) -> Array:
    """Shift the columns of B, and choose their signs, as Step 1 fixes them, shape (m, n)."""
    centred = B - M * (B.sum(axis=0) / M.sum(axis=0))
    large = np.abs(centred) > _ZERO_VALUATION
    first = centred[large.argmax(axis=0), np.arange(M.shape[1])]
    return centred * np.where(large.any(axis=0) & (first < 0), -1.0, 1.0)
