r"""Environments: which atoms each one conditions on, and at which valuations (Section 5).

Environment 0 is the base distribution. Environments 1, ..., m condition on concepts
whose rows are atoms of one shared collection (Assumption 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from conceptnb.common.validation import Array, as_array, as_positive
from conceptnb.core.concepts import Concept, check_independent
from conceptnb.core.diversity import DiversityReport, check_diversity

# Appendix G: "chosen randomly"; the authors' script fixes atoms, order and valuations.
_PAPER_ENVIRONMENTS: dict[int, tuple[list[int], list[float]]] = {
    2: ([0, 1, 1], [0.2, -0.2, 0.1]),
    3: ([0, 1, 2, 0], [0.2, -0.2, 0.1, -0.1]),
    4: ([0, 1, 2, 3, 0], [0.2, -0.2, 0.1, -0.1, -0.1]),
}
PAPER_VARIANCE = 0.005
"""Variance of q in the paper's synthetic experiments (Appendix G)."""


@dataclass(frozen=True, eq=False)
class EnvironmentDesign:
    r"""Which atoms each environment conditions on, and at which valuations.

    Parameters
    ----------
    subsets : sequence of sequences of int
        :math:`S_e`, the indices of the atoms that environment e conditions on, for the
        m concept conditional environments. Atoms are numbered from 0 to n - 1, and each
        occurs in some environment (Assumption 2).
    valuations : sequence of sequences of float
        :math:`b^e`, in the order of `subsets`.
    variance : float
        :math:`\sigma^2`, the variance of the noise q (Assumption 3).

    Raises
    ------
    TypeError, ValueError
        If the lists do not fit together, an atom is named twice in one environment or
        is conditioned on nowhere, or the variance is not positive.

    Examples
    --------
    >>> design = EnvironmentDesign([[0], [1], [0, 1]], [[1.0], [2.0], [3.0, 4.0]], 0.5)
    >>> design.M.tolist()
    [[2.0, 0.0], [0.0, 2.0], [2.0, 2.0]]
    >>> design.B.tolist()
    [[2.0, 0.0], [0.0, 4.0], [6.0, 8.0]]
    """

    subsets: Sequence[Sequence[int]]
    valuations: Sequence[Sequence[float]]
    variance: float

    def __post_init__(self) -> None:
        if len(self.subsets) == 0:
            raise ValueError("subsets is empty: name the atoms of at least one environment")
        if len(self.subsets) != len(self.valuations):
            raise ValueError(
                f"subsets has {len(self.subsets)} environments and valuations "
                f"{len(self.valuations)}: give one list of valuations per environment"
            )
        pairs = zip(self.subsets, self.valuations, strict=True)
        checked = [_check_environment(e, s, b) for e, (s, b) in enumerate(pairs)]
        named = {i for subset, _ in checked for i in subset}
        if max(named) >= 10_000:
            raise ValueError(f"subsets names atom {max(named)}: number atoms from 0 without gaps")
        missing = sorted(set(range(max(named) + 1)) - named)
        if missing:
            raise ValueError(
                f"atoms {missing} are conditioned on in no environment (Assumption 2): "
                "add them to subsets or number the atoms without gaps"
            )
        object.__setattr__(self, "subsets", tuple(subset for subset, _ in checked))
        object.__setattr__(self, "valuations", tuple(values for _, values in checked))
        object.__setattr__(self, "variance", as_positive(self.variance, "variance"))

    @property
    def n_environments(self) -> int:
        """Number m of concept conditional environments; the base is not counted."""
        return len(self.subsets)

    @property
    def n_atoms(self) -> int:
        """Number n of atoms."""
        return max(i for subset in self.subsets for i in subset) + 1

    @property
    def M(self) -> Array:
        """Environment-concept matrix of (7), shape (m, n)."""
        return self._matrix([[1.0] * len(subset) for subset in self.subsets])

    @property
    def B(self) -> Array:
        """Environment-valuation matrix of (8), shape (m, n)."""
        return self._matrix(self.valuations)

    def _matrix(self, entries: Sequence[Sequence[float]]) -> Array:
        matrix = np.zeros((self.n_environments, self.n_atoms))
        for row, subset, values in zip(matrix, self.subsets, entries, strict=True):
            row[list(subset)] = np.asarray(values) / self.variance
        return matrix

    def check(self) -> DiversityReport:
        """Check Assumptions 4 and 5, Lemma 1's condition and Theorem 2's; prints as a table.

        `identified` says for each atom on which supports of the base its valuation is.
        """
        return check_diversity(self.M, self.B, self.variance)

    def concepts(self, atoms: ArrayLike) -> list[Concept]:
        """Return the m environments' concepts, from independent atoms (n, d_z) (Assumption 2)."""
        rows = check_independent(atoms, "atoms")
        if len(rows) != self.n_atoms:
            raise ValueError(f"atoms must have {self.n_atoms} rows, one per atom, got {len(rows)}")
        pairs = zip(self.subsets, self.valuations, strict=True)
        return [Concept(rows[list(subset)], np.asarray(values)) for subset, values in pairs]


def _check_environment(
    e: int, subset: Sequence[int], values: Sequence[float]
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    if isinstance(subset, (int, np.integer)):
        raise TypeError(f"subsets[{e}] must be a list of atom indices, got the number {subset}")
    indices = np.asarray(subset)
    if indices.size == 0:
        raise ValueError(f"subsets[{e}] is empty: environment {e} conditions on nothing")
    if indices.dtype.kind not in "iu":
        raise TypeError(f"subsets[{e}] must hold integers, got {list(subset)}")
    if indices.min() < 0:
        raise ValueError(f"subsets[{e}] holds a negative index: atoms are numbered from 0")
    if len(set(indices.tolist())) != len(indices):
        raise ValueError(f"subsets[{e}] names an atom twice: {list(subset)}")
    numbers = as_array(values, f"valuations[{e}]", ndim=1)
    if len(numbers) != len(indices):
        raise ValueError(
            f"valuations[{e}] must have {len(indices)} entries, one per atom of "
            f"subsets[{e}], got {len(numbers)}"
        )
    return tuple(indices.tolist()), tuple(numbers.tolist())


def paper_design(n: int) -> EnvironmentDesign:
    """Return the environments of the paper's experiments with n = 2, 3 or 4 (Tables 1 and 7).

    Each of m = n + 1 conditions on one atom, as in the authors' code; Appendix G prints none.
    """
    if n not in _PAPER_ENVIRONMENTS:
        raise ValueError(f"n must be one of {sorted(_PAPER_ENVIRONMENTS)}, got {n}")
    atoms, valuations = _PAPER_ENVIRONMENTS[n]
    return EnvironmentDesign(
        tuple((i,) for i in atoms), tuple((b,) for b in valuations), PAPER_VARIANCE
    )
