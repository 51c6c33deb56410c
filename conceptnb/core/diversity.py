r"""Are the environments diverse enough? Assumptions 4 and 5, Lemma 1, Theorem 2's rank.

All conditions are read from M and B of (7) and (8). They do not change when atoms are
rescaled or shifted (Step 1 of the proof of Theorem 1), so margins are measured in
standard units: entries of M are 0 or 1, and valuations count in noise widths σ.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import null_space

from conceptnb.common.validation import Array, as_array, as_positive
from conceptnb.core.certificate import Verdict, certify

_TOLERANCE = 1e-9  # relative size below which a singular value or a product counts as zero
_MOST_SUBSETS = 20_000
"""Choices of n + 1 environments that the search for Lemma 1's condition may try."""


@dataclass(frozen=True, eq=False)
class DiversityReport:
    r"""What a design of environments satisfies, and by how much.

    Parameters
    ----------
    M : ndarray of shape (m, n)
        Environment-concept matrix in standard units (entries 0 and 1).
    B : ndarray of shape (m, n)
        Environment-valuation matrix in standard units (valuations in units of σ).
    assumption4 : ndarray of bool, shape (n,)
        For each atom: its column of M is no combination of the others, and some v with
        :math:`v^\top M = 0` has :math:`(v^\top B)_i \ne 0`. Assumption 4: all entries hold.
    assumption5 : ndarray of bool, shape (n, n)
        Entry (i, j): some environment conditions on atom i and not on j; the diagonal is True.
    lemma1 : bool or None
        Some n + 1 environments have every n of their rows of M linearly independent.
        None if there are too many choices to try.
    theorem2 : bool
        Theorem 2's condition: (M, B) has rank 2n.
    rank : int
        Rank of M; Assumption 4 asks for n.
    smallest_singular_value : float
        n-th singular value of M (0 if m < n): distance to the matrices of lower rank.
    valuation_margins : ndarray of shape (n,)
        Largest :math:`|(v^\top B)_i|` over unit v with :math:`v^\top M = 0`, in σ. One v serves all
        atoms if each has a v of its own, since a generic combination of them has no zero entry. A
        margin of zero is failure; a positive one is at most the distance of B to the matrices that
        fail, as only the entries of B that are not zero by design can move: a path's two valuations
        are :math:`|\Delta|/\sqrt 2` away, and its margin is :math:`|\Delta|/\sqrt{n + 1}`.
    theorem2_singular_value : float
        2n-th singular value of (M, B) (0 if m < 2n).
    repeated : tuple of (int, int)
        Pairs of environments that have equal rows in M and in B: the same distribution twice.
    """

    M: Array
    B: Array
    assumption4: np.ndarray
    assumption5: np.ndarray
    lemma1: bool | None
    theorem2: bool
    rank: int
    smallest_singular_value: float
    valuation_margins: Array
    theorem2_singular_value: float
    repeated: tuple[tuple[int, int], ...]

    @property
    def dependent(self) -> np.ndarray:
        """Atoms whose column of M is a combination of the others, shape (n,)."""
        return _dependent_columns(self.M)

    @cached_property
    def identified(self) -> tuple[Verdict, ...]:
        """On which supports each atom is identified: "always", "full support" or "never".

        Sharper than Assumptions 4 and 5, with one v for all z: see `conceptnb.core.certificate`.
        """
        return certify(self.M, self.B)

    @property
    def satisfied(self) -> bool:
        """True if Theorem 1 covers the design: Assumptions 4 and 5 hold."""
        return bool(self.assumption4.all() and self.assumption5.all())

    def problems(self) -> list[str]:
        """Name every condition that fails, and the atoms, in one sentence each.

        Atoms count from 0 as in `subsets`, environments from 1 as in the paper: 0 is the base.
        """
        m, n = self.M.shape
        found = []
        if self.rank < n:
            found.append(f"Assumption 4: M has rank {self.rank}, {n} is needed")
        elif m == n:
            found.append(f"Assumption 4: {m} environments for {n} atoms, {n + 1} are needed")
        for i in np.flatnonzero(~self.assumption4):
            users = np.flatnonzero(self.M[:, i])
            if self.dependent[i]:
                why = "its column of M is a combination of the others"
            elif len(users) == 1:
                why = f"it is conditioned on once, in environment {users[0] + 1}"
            elif np.ptp(self.B[users, i]) <= _TOLERANCE * (1 + np.abs(self.B[users, i]).max()):
                why = "its valuation never varies"
            else:
                why = "no v with vᵀM = 0 and (vᵀB)ᵢ ≠ 0 separates its valuations"
            found.append(f"Assumption 4, atom {i}: {why}")
        for i, j in np.argwhere(~self.assumption5):
            found.append(f"Assumption 5, atoms ({i}, {j}): no environment has {i} without {j}")
        for e, d in self.repeated:
            found.append(f"environments {e + 1} and {d + 1} are repeated: they are the same")
        return found

    def __str__(self) -> str:
        m, n = self.M.shape
        mark = {True: "yes", False: "NO", None: "?"}
        lines = [
            f"{m} environments and the base, {n} atoms; margins in units of σ",
            f"  rank of M            {self.rank} of {n}   "
            f"smallest singular value {self.smallest_singular_value:.3g}",
            f"  Lemma 1's condition  {mark[self.lemma1]}",
            f"  Theorem 2: rank 2n   {mark[self.theorem2]}   "
            f"2n-th singular value of (M, B) {self.theorem2_singular_value:.3g}",
            "",
            "  atom  environments  Assumption 4  margin  identified    Assumption 5",
        ]
        for i in range(n):
            missing = np.flatnonzero(~self.assumption5[i])
            lines.append(
                f"  {i:>4}  {int((self.M[:, i] > 0).sum()):>12}  "
                f"{mark[bool(self.assumption4[i])]:>12}  {self.valuation_margins[i]:>6.3g}  "
                f"{self.identified[i]:<12}  "
                + ("yes" if len(missing) == 0 else f"NO: never without {missing.tolist()}")
            )
        verdict = "Theorem 1 covers this design." if self.satisfied else "Not covered:"
        return "\n".join([*lines, "", verdict, *(f"  - {text}" for text in self.problems())])


def check_diversity(M: ArrayLike, B: ArrayLike, variance: float = 1.0) -> DiversityReport:
    r"""Check Assumptions 4 and 5, Lemma 1's condition and Theorem 2's.

    M (m, n) is the environment-concept matrix (7), with entries 0 or :math:`1/\sigma^2`, and B the
    environment-valuation matrix (8), zero wherever M is. Each atom is conditioned on somewhere.
    """
    scale = as_positive(variance, "variance")
    occurs = as_array(M, "M", ndim=2) * scale
    values = as_array(B, "B", ndim=2) * math.sqrt(scale)
    if occurs.shape != values.shape or 0 in occurs.shape:
        raise ValueError(f"M and B must have one shape (m, n), got {occurs.shape}, {values.shape}")
    present = np.isclose(occurs, 1.0)
    if not (present | (occurs == 0)).all():
        raise ValueError(
            f"M must hold 0 and 1/variance = {1 / scale:g} only, as in (7); "
            "conceptnb.core.certificate.certify takes variances that differ"
        )
    if (values[~present] != 0).any():
        raise ValueError("B has entries where M has none: an atom's valuation where it is not used")
    unused = np.flatnonzero(~present.any(axis=0))
    if len(unused):
        raise ValueError(f"atoms {unused.tolist()} are conditioned on in no environment")

    occurs = present.astype(float)
    m, n = occurs.shape
    rank = int(np.linalg.matrix_rank(occurs))
    margins = np.linalg.norm(_null_space(occurs.T).T @ values, axis=0)
    sizes = np.linalg.norm(values, axis=0)
    lengths = np.linalg.svd(occurs, compute_uv=False)
    rows = np.hstack([occurs, values])
    both = np.linalg.svd(rows, compute_uv=False)
    last = float(both[2 * n - 1]) if m >= 2 * n else 0.0
    return DiversityReport(
        M=occurs,
        B=values,
        assumption4=~_dependent_columns(occurs) & (margins > _TOLERANCE * (1 + sizes)),
        assumption5=(present.T @ ~present) | np.eye(n, dtype=bool),
        lemma1=_lemma1_condition(occurs),
        theorem2=bool(last > _TOLERANCE * both[0]),
        rank=rank,
        smallest_singular_value=float(lengths[n - 1]) if m >= n else 0.0,
        valuation_margins=margins,
        theorem2_singular_value=last,
        repeated=tuple(
            (e, d)
            for e, d in itertools.combinations(range(m), 2)
            if np.array_equal(rows[e], rows[d])
        ),
    )


def _null_space(matrix: Array) -> Array:
    """Orthonormal basis of the kernel, shape (columns, dimension of the kernel)."""
    return null_space(matrix, rcond=_TOLERANCE, check_finite=False)


def _dependent_columns(matrix: Array) -> np.ndarray:
    return np.abs(_null_space(matrix)).max(axis=1, initial=0) > _TOLERANCE


def _lemma1_condition(M: Array) -> bool | None:
    """Look for n + 1 rows of rank n whose one dependency has no zero entry (Lemma 1)."""
    m, n = M.shape
    if np.linalg.matrix_rank(M) < n or m <= n:
        return False
    # Equal rows of M serve alike but may both be needed, so no choice can be skipped.
    for tried, rows in enumerate(itertools.combinations(range(m), n + 1)):
        if tried == _MOST_SUBSETS:
            return None
        dependency = _null_space(M[list(rows)].T)
        if dependency.shape[1] == 1 and (np.abs(dependency) > _TOLERANCE).all():
            return True
    return False
