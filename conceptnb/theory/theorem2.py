"""Theorem 2's proof as a program (Appendix A.1): 2n + 1 environments and linear algebra.

If (M, B) has rank 2n, the functions :math:`G_e` and 1 span the same space W as
:math:`1, z_i, z_i^2`. An atom of any model with the same data is a function in W whose square
lies in W too, (18) and (19), and only affine functions of a single :math:`z_i` are, (20) to (23).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from conceptnb.common.validation import Array, as_points

_TOLERANCE = 1e-7  # relative singular value below which a direction counts as absent


@dataclass(frozen=True, eq=False)
class _LinearRecovery:
    """What Theorem 2's proof recovers.

    The valuations (samples, n), up to order, sign, scale and shift, have mean zero and variance
    one. In that scale G is ``valuations**2 @ M.T / 2 - valuations @ B.T`` and a constant.
    """

    valuations: Array
    M: Array
    B: Array


def recover_linear(ratios: ArrayLike) -> _LinearRecovery:
    r"""Run Theorem 2's proof on values of G at data points.

    Let :math:`h_a` be an orthonormal basis of W without constants, and :math:`R_{ab}` what is left
    of :math:`h_a h_b` after projecting W out. A function :math:`\sum_a \alpha_a h_a` has its square
    in W (19) if :math:`\sum_{ab} \alpha_a \alpha_b R_{ab} = 0`. The symmetric matrices
    :math:`\Gamma` with :math:`\sum_{ab} \Gamma_{ab} R_{ab} = 0` are those spanned by
    :math:`\alpha_i \alpha_i^\top`, one per atom; a generic pencil of two of them has the
    :math:`\alpha_i` as its eigenvectors. The theorem supposes n known; here it is found.

    `ratios` (samples, m) are :math:`G_e = \ln p^0 - \ln p^e` at data points, of which more than
    products of two functions are needed: n(2n + 1) + 2n + 1. ValueError if the rank is odd or the
    squares do not single out n functions: Theorem 2's condition does not hold.
    """
    G = as_points(ratios, "ratios")
    basis, singular, _ = np.linalg.svd(G - G.mean(axis=0), full_matrices=False)
    rank = int((singular > _TOLERANCE * singular[0]).sum())
    n, odd = divmod(rank, 2)
    needed = n * (2 * n + 1) + 2 * n + 1
    if len(G) <= needed:
        raise ValueError(f"ratios must have more than {needed} rows for {n} atoms, got {len(G)}")
    W = basis[:, :rank] * np.sqrt(len(G))
    atoms = _squares_inside(W) if not odd else np.empty((0, rank))
    if odd or len(atoms) != n:
        raise ValueError(
            f"Theorem 2 does not apply: the log ratios span {rank} dimensions and "
            f"{len(atoms)} functions have their squares among them; (M, B) needs rank 2n"
        )
    h = W @ atoms.T
    h = (h - h.mean(axis=0)) / h.std(axis=0)
    design = np.hstack([h**2 / 2, -h, np.ones((len(h), 1))])
    coefficients = np.linalg.lstsq(design, G, rcond=None)[0]
    return _LinearRecovery(h, coefficients[:n].T, coefficients[n : 2 * n].T)


def _squares_inside(W: Array) -> Array:
    """Return the coefficients of the functions whose squares stay in W, shape (n, 2n)."""
    samples, rank = W.shape
    rows, columns = np.triu_indices(rank)
    products = W[:, rows] * W[:, columns] * np.where(rows == columns, 1.0, 2.0)
    space = np.linalg.qr(np.hstack([W, np.ones((samples, 1))]))[0]
    left = products - space @ (space.T @ products)
    _, singular, right = np.linalg.svd(left, full_matrices=False)
    kernel = right[singular < _TOLERANCE * singular[0]]
    if len(kernel) < rank // 2:
        return np.empty((0, rank))
    forms = np.zeros((len(kernel), rank, rank))
    forms[:, rows, columns] = forms[:, columns, rows] = kernel
    return _common_rank_one(forms)


def _common_rank_one(forms: Array) -> Array:
    r"""Split a space of symmetric matrices spanned by :math:`\alpha_i\alpha_i^\top`."""
    k = len(forms)
    # Fixed generic combinations: the result does not depend on which are taken.
    first = np.tensordot(np.cos(1 + np.arange(k)), forms, axes=1)
    second = np.tensordot(np.cos(2.5 * np.arange(k) + 0.3), forms, axes=1)
    axes = np.linalg.svd(first)[0][:, :k]
    pencil = np.linalg.solve(axes.T @ first @ axes, axes.T @ second @ axes)
    _, dual = np.linalg.eig(pencil)
    # Columns of `dual` are orthogonal to all α but one; first maps each to that α.
    return np.real(axes @ (axes.T @ first @ axes) @ dual).T
