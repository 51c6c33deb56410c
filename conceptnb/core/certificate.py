r"""Which atoms does a design identify, and on which supports? A certificate for each atom.

In units of its own noise :math:`G_e = \sum_i (\tfrac12 M_{ei} z_i^2 - B_{ei} z_i) + c_e`, with
:math:`\partial G / \partial z = M\,\mathrm{diag}(z) - B =: D(z)`. Second models are those of
Assumptions 1 to 3: columns of M are zeros and ones in the units of their atoms, and B vanishes
where M does. Three statements, proved in the theory notes, decide:

- *On every support* (any open set) an atom is identified if and only if it is shown, that is
  :math:`(w^\top M)_i \ne 0` for some w with :math:`w^\top D(z) = 0`, and the shown atoms whose
  columns are proportional to :math:`M_i` on the space of these w cannot be turned: no second
  choice of columns and valuations has the same residue there
  (`conceptnb.core.shared_poles`).
- *On no support* if two columns of M are proportional (rotate the two atoms), or if some v with
  :math:`D(z) v = 0` has :math:`v_i \ne 0` (flow along v, as far as one likes).
- *Under full support* (:math:`p > 0` everywhere) any other atom is identified if its column is
  linearly independent of those of the atoms that are open as it is; in particular all are if M
  has rank n, and m = n environments suffice. Some dependent columns are settled too.
"""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import null_space, orth

from conceptnb.common.validation import Array, as_array
from conceptnb.core.shared_poles import Turn, find_turn

Verdict = Literal["always", "full support", "never"]

_MOST_ATOMS = 8  # atoms of which all subsets are looked at
_TOLERANCE = 1e-8  # relative size below which a singular value or a product counts as zero


def certify(M: ArrayLike, B: ArrayLike) -> tuple[Verdict, ...]:
    r"""Tell for each atom on which supports its valuation is identified.

    Parameters
    ----------
    M : array-like of shape (m, n)
        Environment-concept matrix (7), up to a factor for each atom. Other real matrices
        without a zero column will do for "always", so that variances may differ by environment
        and atom; the columns of second models are then multiples of those of M. "full support"
        is proved for the matrices of (7), with one variance.
    B : array-like of shape (m, n)
        Environment-valuation matrix (8).

    Returns
    -------
    tuple of {"always", "full support", "never"}, of length n
        "always": on every support with interior points. "full support": where p > 0
        everywhere; some smaller support leaves the atom open. "never": on no support. Some
        designs of four or more atoms with dependent columns of M are called "never"
        although only the failure on small supports is proved (43 of the 179 with four
        environments and general valuations); none with n at most 3 and m at most 4 is.

    Examples
    --------
    >>> certify([[1, 0], [0, 1], [1, 1]], [[0.5, 0], [0, -0.3], [0.2, 0.4]])
    ('always', 'always')
    >>> certify([[1, 0], [0, 1]], [[0.5, 0], [0, -0.3]])
    ('full support', 'full support')
    >>> certify([[1, 1]], [[0.5, -0.3]])
    ('never', 'never')

    Two atoms that share a pole, and whose valuations vanish in different environments:

    >>> M = [[1, 0, 1], [1, 0, 1], [0, 1, 1], [0, 1, 1]]
    >>> certify(M, [[0.3, 0, 1], [-0.4, 0, 1], [0, 0.7, 1], [0, -0.2, 1]])
    ('always', 'always', 'full support')
    """
    columns, values = _standard_units(M, B)
    n = columns.shape[1]
    twins = _proportional(columns)
    seen, space = shown_atoms(M, B)
    always = seen & ~twins
    for i in np.flatnonzero(always):
        always[i] = turn_of(M, B, seen, space, int(i), np.random.default_rng(0)) is None
    moving = _length(_kernel(_slope(columns, values)).T) > _TOLERANCE
    never = twins | moving
    full = _full_support(columns, values, always, moving, never)
    return tuple(
        "always" if always[i] else "full support" if full[i] and not never[i] else "never"
        for i in range(n)
    )


def shown_atoms(M: ArrayLike, B: ArrayLike) -> tuple[np.ndarray, Array]:
    """Tell which atoms some w with w'D(z) = 0 shows, and where the others drop out.

    Parameters
    ----------
    M, B : array-like of shape (m, n)
        The design, as in `certify`.

    Returns
    -------
    seen : array of bool, of shape (n,)
        Whether (w'M)_i is not zero for some w that annihilates D at a random z.
    space : array of shape (m, k)
        Orthonormal basis of the w that vanish on M_j and B_j of every atom j that is not shown:
        the span of all w that annihilate D(z) at some z.
    """
    columns, values = _standard_units(M, B)
    left = _kernel(_slope(columns, values).T)
    seen = _length(left.T @ columns) > _TOLERANCE
    return seen, _kernel(np.hstack([columns[:, ~seen], values[:, ~seen]]).T)


def turn_of(
    M: ArrayLike,
    B: ArrayLike,
    seen: np.ndarray,
    space: Array,
    atom: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, Turn] | None:
    """Find the shown atoms that share the pole of one of them, and a turn that bends it.

    `seen` and `space` are those of `shown_atoms`. None if no such turn exists.
    """
    columns, values = as_array(M, "M", ndim=2), as_array(B, "B", ndim=2)
    seen = np.flatnonzero(seen)
    lines = _unit(space.T @ columns[:, seen])
    here = lines[:, seen == atom][:, 0]
    atoms = seen[np.abs(np.abs(here @ lines) - 1) < _TOLERANCE]
    if len(atoms) == 1:
        return None
    turn = find_turn(columns, values, space, atoms, atom, rng)
    return None if turn is None else (atoms, turn)


def _full_support(
    M: Array, B: Array, known: np.ndarray, moving: np.ndarray, never: np.ndarray
) -> np.ndarray:
    """Tell which atoms p > 0 everywhere settles, once the `known` ones are, shape (n,)."""
    # Atoms that move along a kernel are projected out; `never` marks them and those that may turn.
    space = _kernel(np.hstack([M[:, moving], B[:, moving]]).T)
    M, B = space.T @ M, space.T @ B
    known = known.copy()
    settled = known.copy()
    for _ in range(M.shape[1]):  # atoms that a combination of environments shows alone
        rest = np.flatnonzero(~known & ~moving)
        lines = _kernel(M[:, rest].T).T @ B[:, rest]
        linear = orth(lines.T, rcond=_TOLERANCE) if lines.size else np.zeros((len(rest), 0))
        alone = rest[np.isclose((linear**2).sum(axis=1), 1.0, atol=_TOLERANCE)]
        if len(alone) == 0:
            break
        known[alone] = settled[alone] = True
    rest = np.flatnonzero(~known & ~moving)
    straight = np.array([i for i in rest if not never[i]], dtype=int)
    if _independent(M[:, rest]):
        settled[rest] = True
        return settled
    for some in _subsets(straight):  # a part of the model that the rest does not touch
        others = np.setdiff1d(rest, some)
        space = _kernel(np.hstack([M[:, others], B[:, others]]).T)
        if space.size and _independent(space.T @ M[:, some]):
            settled[some] = True
    if len(rest) == 3 and len(straight) == 1:  # one atom beside two that may be rotated
        settled[straight] = True
    for block in _subsets(rest):
        outside = np.setdiff1d(rest, block)
        if _is_two_valued(M, B, block, outside) and _independent(M[:, outside]):
            settled[straight] = True
    return settled


def _subsets(atoms: np.ndarray) -> list[np.ndarray]:
    """All subsets of a few atoms that are not empty; of many, only those of up to two."""
    most = len(atoms) if len(atoms) <= _MOST_ATOMS else 2
    sizes = range(1, most + 1)
    return [np.array(s) for k in sizes for s in itertools.combinations(atoms.tolist(), k)]


def _is_two_valued(M: Array, B: Array, block: np.ndarray, others: np.ndarray) -> bool:
    """Tell whether the block's fibre is a line that meets an ellipsoid: two points."""
    # Those combinations of environments that do not contain the other atoms must show all linear
    # functions of the block but one, and one definite quadratic function.
    space = _kernel(np.hstack([M[:, others], B[:, others]]).T)
    columns, values = space.T @ M[:, block], space.T @ B[:, block]
    if not columns.size:
        return False
    u, s, vt = np.linalg.svd(columns)
    if s[0] <= _TOLERANCE or (len(s) > 1 and s[1] > _TOLERANCE * s[0]):
        return False
    definite = vt[0] * np.sign(vt[0].sum())
    lines = u[:, 1:].T @ values
    rank = np.linalg.matrix_rank(lines, tol=_TOLERANCE) if lines.size else 0
    return bool((definite > _TOLERANCE).all() and rank == len(block) - 1)


def _standard_units(M: ArrayLike, B: ArrayLike) -> tuple[Array, Array]:
    """Scale and shift each atom: unit columns of M, and B orthogonal to them and of size one."""
    columns, values = as_array(M, "M", ndim=2), as_array(B, "B", ndim=2)
    if columns.shape != values.shape or 0 in columns.shape:
        raise ValueError(
            f"M and B must have one shape (m, n), got {columns.shape} and {values.shape}"
        )
    lengths = np.linalg.norm(columns, axis=0)
    if (lengths == 0).any():
        raise ValueError(f"columns {np.flatnonzero(lengths == 0).tolist()} of M are zero")
    columns = columns / lengths
    sizes = np.linalg.norm(values, axis=0)
    values = values - columns * (columns * values).sum(axis=0)
    rest = np.linalg.norm(values, axis=0)
    varies = rest > _TOLERANCE * sizes
    return columns, np.where(varies, values / np.where(varies, rest, 1.0), 0.0)


def _slope(M: Array, B: Array) -> Array:
    """D(z) at a generic z, the same one each time."""
    return M * np.random.default_rng(0).standard_normal(M.shape[1]) - B


def _kernel(matrix: Array) -> Array:
    """Orthonormal basis of the kernel, shape (columns, dimension of the kernel)."""
    if 0 in matrix.shape:
        return np.eye(matrix.shape[1])
    return null_space(matrix, rcond=_TOLERANCE, check_finite=False)


def _length(columns: Array) -> Array:
    return np.linalg.norm(columns, axis=0) if columns.size else np.zeros(columns.shape[1])


def _independent(columns: Array) -> bool:
    k = columns.shape[1]
    return k == 0 or bool(np.linalg.matrix_rank(columns, tol=_TOLERANCE) == k)


def _proportional(columns: Array) -> np.ndarray:
    """Tell which columns are proportional to another one, shape (n,)."""
    lines = _unit(columns)
    cosines = np.abs(lines.T @ lines) - 2 * np.eye(columns.shape[1])
    return np.asarray((cosines > 1 - _TOLERANCE).any(axis=1))


def _unit(columns: Array) -> Array:
    return columns / np.linalg.norm(columns, axis=0)
