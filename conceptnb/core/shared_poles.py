r"""Atoms whose poles coincide, and the turns that replace them by others.

On the space L of weights w on which the atoms that are not shown drop out, the Legendre transform
of the log ratios is :math:`-\tfrac12 \sum_i (w^\top B_i)^2 / w^\top M_i` up to a linear function
(the theory notes prove it). Atoms with :math:`M_i = \mu_i \ell` on L for one form :math:`\ell`
share a pole, and a second model may replace them by others with
:math:`\sum_j \tilde\beta_j^2/\tilde\mu_j = \sum_i \beta_i^2/\mu_i`, where :math:`\beta_i` is
:math:`B_i` on the kernel of :math:`\ell`: a rotation where the factors have one sign, a hyperbolic
turn where they have two. Each new atom has a column of zeros and ones that is a multiple of
:math:`\ell` on L, and its valuations vanish where that column does.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space

from conceptnb.common.validation import Array

_TOLERANCE = 1e-8
_STARTS = 24  # random starts of the search in each choice of columns
_STEPS = 60
_LARGEST = 6.0  # entries of a turn, above which it is left out as too steep to compute with
_ALONE = 1e-4  # share of other atoms below which a turned atom is the old one


@dataclass(frozen=True, eq=False)
class Turn:
    """A second model of the atoms that share a pole: z_new = slope @ z_old + shift.

    `columns` and `values`, of shape (m, p), are its columns of M and B.
    """

    columns: Array
    values: Array
    slope: Array
    shift: Array


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A column that a new atom may have, with its factor and the span of its turned atoms."""

    column: Array
    support: np.ndarray
    factor: float
    span: Array


def find_turn(
    M: Array, B: Array, space: Array, atoms: np.ndarray, atom: int, rng: np.random.Generator
) -> Turn | None:
    """Find a second model of the `atoms` that share a pole, none of which is a multiple of `atom`.

    Parameters
    ----------
    M, B : arrays of shape (m, n)
        The design, in any units. Columns with one value where they are not zero are those of
        Assumption 3, and may be exchanged for any column of zeros and ones; with other
        matrices, for each other.
    space : array of shape (m, k)
        Orthonormal basis of the weights on which the atoms that are not shown drop out.
    atoms : array of int, of shape (p,)
        The shown atoms whose columns of M are proportional on `space`.
    atom : int
        The one of them that has to be bent.
    rng : numpy.random.Generator
        Random starts of the search.

    Returns
    -------
    Turn or None
        None if every second model keeps the atom.
    """
    units = np.abs(M).max(axis=0)[atoms]
    columns, values = M[:, atoms] / units, B[:, atoms] / np.sqrt(units)
    form = space.T @ columns[:, 0]
    factors = form @ space.T @ columns / (form @ form)
    kernel = space @ null_space(form[None])
    beta = kernel.T @ values
    here = int(np.flatnonzero(atoms == atom)[0])
    candidates = _candidates(columns, values, space, form, kernel, beta)
    for chosen in _choices(candidates, factors):
        for _ in range(_STARTS):
            rows = _frame(chosen, factors, rng)
            if rows is not None and _bends(rows, here):
                return _turn(rows, chosen, factors, values, units, space, form)
    return None


def _candidates(
    columns: Array, values: Array, space: Array, form: Array, kernel: Array, beta: Array
) -> list[_Candidate]:
    """List the columns that a new atom may have; of two with one sign, the freer one."""
    found: list[_Candidate] = []
    for column, support in _possible_columns(columns, values, space):
        factor = float(form @ space.T @ column / (form @ form))
        if abs(factor) < _TOLERANCE:
            continue
        u, s, _ = np.linalg.svd(kernel[support].T, full_matrices=False)
        allowed = u[:, s > _TOLERANCE]
        span = null_space(beta - allowed @ (allowed.T @ beta), rcond=_TOLERANCE)
        if (np.abs(beta - allowed @ (allowed.T @ beta)) < _TOLERANCE * np.abs(beta).max()).all():
            span = np.eye(beta.shape[1])
        if span.size:
            found.append(_Candidate(column, support, factor, span))
    found.sort(key=lambda c: -c.span.shape[1])
    kept: list[_Candidate] = []
    for candidate in found:
        if not any(_contains(other, candidate) for other in kept):
            kept.append(candidate)
    return kept


def _possible_columns(columns: Array, values: Array, space: Array) -> list[tuple[Array, Array]]:
    """List columns that are a multiple of the common one on `space`, each with its support."""
    if not np.isin(np.round(columns, 9), (0.0, 1.0)).all():
        rows = (columns != 0) | (np.abs(values) > 0)
        return [(c, s) for c, s in zip(columns.T, rows.T, strict=True)]
    # Zeros and ones in the span of one column and of what vanishes on `space`: its pivot rows
    # decide about the others.
    hidden = null_space(space.T) if space.shape[1] < len(space) else np.zeros((len(space), 0))
    span = np.hstack([columns[:, :1], hidden])
    pivots = _independent_rows(span)
    through = span @ np.linalg.inv(span[pivots])
    entries = np.array(list(itertools.product((0.0, 1.0), repeat=len(pivots)))) @ through.T
    binary = (np.abs(entries - np.round(entries)) < 1e-7).all(axis=1)
    entries = np.round(entries[binary])
    entries = entries[((entries == 0) | (entries == 1)).all(axis=1)]
    return [(c, c != 0) for c in entries]


def _independent_rows(matrix: Array) -> list[int]:
    chosen: list[int] = []
    for row in range(len(matrix)):
        tried = [*chosen, row]
        if np.linalg.matrix_rank(matrix[tried], tol=_TOLERANCE) == len(tried):
            chosen = tried
    return chosen


def _contains(one: _Candidate, other: _Candidate) -> bool:
    """Tell whether the first column may be taken wherever the second may."""
    rest = other.span - one.span @ (one.span.T @ other.span)
    return one.factor * other.factor > 0 and bool(np.abs(rest).max() < 1e-6)


def _choices(candidates: list[_Candidate], factors: Array) -> list[list[_Candidate]]:
    """List the choices of columns whose factors have the signs of the old ones."""
    p, positive = len(factors), int((factors > 0).sum())
    chosen = itertools.combinations_with_replacement(candidates, p)
    return [list(c) for c in chosen if sum(k.factor > 0 for k in c) == positive]


def _frame(chosen: list[_Candidate], factors: Array, rng: np.random.Generator) -> Array | None:
    """Solve for rows x_j in the given spans with x_j' diag(factors) x_k = factor_j delta_jk."""
    target = np.diag([c.factor for c in chosen])
    sizes = np.cumsum([0, *(c.span.shape[1] for c in chosen)])
    free = rng.standard_normal(sizes[-1])
    upper = np.triu_indices(len(chosen))

    def rows_of(free: Array) -> Array:
        parts = zip(chosen, itertools.pairwise(sizes), strict=True)
        return np.array([c.span @ free[a:b] for c, (a, b) in parts])

    for _ in range(_STEPS):
        rows = rows_of(free)
        gap = (rows * factors @ rows.T - target)[upper]
        if np.abs(gap).max() < 1e-13:
            break
        slope = np.zeros((len(chosen), len(chosen), sizes[-1]))
        for j, (c, (a, b)) in enumerate(zip(chosen, itertools.pairwise(sizes), strict=True)):
            part = rows * factors @ c.span  # (p, d_j): x_k' diag(factors) times the span of x_j
            slope[j, :, a:b] += part
            slope[:, j, a:b] += part
        step = np.linalg.pinv(slope[upper], rcond=1e-10) @ gap
        free = free - step * min(1.0, 1.0 / max(np.abs(step).max(), 1e-300))
    rows = rows_of(free)
    gap = np.abs(rows * factors @ rows.T - target).max()
    return rows if gap < 1e-10 and np.abs(rows).max() < _LARGEST else None


def _bends(rows: Array, atom: int) -> bool:
    """Tell whether no row is a multiple of the unit vector of the atom."""
    others = np.delete(rows, atom, axis=1)
    return bool((np.linalg.norm(others, axis=1) > _ALONE * np.linalg.norm(rows, axis=1)).all())


def _turn(
    rows: Array,
    chosen: list[_Candidate],
    factors: Array,
    values: Array,
    units: Array,
    space: Array,
    form: Array,
) -> Turn:
    """Give the turned atoms their columns of B, with zeros where those of M are zero."""
    shape = (len(space), len(chosen))
    columns, new, slope, shift = np.zeros(shape), np.zeros(shape), np.zeros(rows.shape), []
    for j, (c, row) in enumerate(zip(chosen, rows, strict=True)):
        support = c.support
        wanted = space.T @ values @ row
        known = np.column_stack([space[support].T, -form])
        solved = np.linalg.lstsq(known, wanted, rcond=None)[0]
        columns[:, j] = c.column
        new[support, j] = solved[:-1]
        # w'B_new = sum_i row_i w'B_i + t l(w), and w'B_i = mu_i z_i l(w), w'M_new = mu_new l(w).
        slope[j] = row * factors * np.sqrt(units) / c.factor
        shift.append(solved[-1] / c.factor)
    return Turn(columns, new, slope, np.array(shift))
