"""Exercises of chapter 10: environments and their diversity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conceptnb.core.design import EnvironmentDesign
from conceptnb.exercises.exercise import construction, value

_ONCE = ([0], [1], [2], [0])


@value(
    entries="rows are environments, columns are atoms",
    right="And M has 2 = 1/σ² wherever B may be non-zero; B alone does not tell a valuation 0 from "
    "an atom that is not conditioned on.",
    mistakes={
        "Those are the valuations. B has valuations divided by σ² = 0.5.": lambda right: right / 2,
        "You multiplied by σ² where (8) divides.": lambda right: right / 4,
        "That is M. B has the valuation over σ² in the same places.": lambda right: (
            2.0 * (right != 0)
        ),
        "Divide by σ² = 0.5, not by its root.": lambda right: right / 2**0.5,
    },
)
def ex_write_b() -> NDArray[np.float64]:
    """Return B of three environments: the paper's (8)."""
    return np.array([[1.0, 0.0], [2.0, -1.0], [0.0, 3.0]]) / 0.5


def _repaired(*last: int) -> EnvironmentDesign:
    subsets = [*_ONCE[:3], list(last)]
    return EnvironmentDesign(subsets, [[0.2], [-0.2], [0.1], [-0.1, 0.1, -0.2][: len(last)]], 0.005)


@construction(
    kind=EnvironmentDesign,
    right="Every atom now has two environments and a contrast; the rank is 3 and one row is left "
    "over.",
    example=lambda: _repaired(0, 1, 2),
    wrong={
        "Still no contrast": lambda: _repaired(0, 1),
        "Without adding environments": lambda: EnvironmentDesign(
            [*_ONCE, [1], [2]], [[0.2], [-0.2], [0.1], [0.4], [0.3], [0.5]], 0.005
        ),
        "has lost an atom": lambda: EnvironmentDesign(
            [[0, 1], [1, 2], [0], [0, 1, 2]], [[0.2, 1], [0.3, 1], [0.1], [-0.1, 0.1, 0.4]], 0.005
        ),
    },
)
def ex_once(design: EnvironmentDesign) -> str | None:
    """Look for Assumptions 4 and 5 in a design that extends [[0], [1], [2], [0]]."""
    if design.n_environments != len(_ONCE):
        return (
            f"Without adding environments: there were {len(_ONCE)}, now there are "
            f"{design.n_environments}."
        )
    for e, (old, new) in enumerate(zip(_ONCE, design.subsets, strict=True)):
        if not set(old) <= set(new):
            return f"Environment {e} has lost an atom: it had {old} and has {list(new)}."
    report = design.check()
    lacking = [i for i, fine in enumerate(report.assumption4) if not fine]
    if lacking:
        return (
            f"Still no contrast for atoms {lacking}: each needs a second environment, at another "
            "valuation."
        )
    return None if report.satisfied else "; ".join(report.problems()) + "."


@value(
    entries="for n = 3, 4, 5",
    right="On an even cycle environments with alternating signs cancel. With m = n there is never "
    "both rank n and a left kernel.",
    mistakes={
        "For even n, add the environments with alternating signs: every atom cancels.": [3, 4, 5],
        "n - 1 is the rank where a row has +1 and -1. Here both entries are positive.": [2, 3, 4],
    },
)
def ex_cycles() -> list[int]:
    """Return the rank of M on cycles: the eigenvalues of the circulant 1 + shift."""
    shifts = [np.exp(2j * np.pi * np.arange(n) / n) for n in (3, 4, 5)]
    return [int((abs(1 + eigenvalue) > 1e-9).sum()) for eigenvalue in shifts]


@construction(
    kind=EnvironmentDesign,
    right="Each atom alone, twice, at two valuations. It implies Assumption 4, as v M and v B can "
    "be chosen freely, but not Assumption 5 in general: atoms may be nested.",
    example=lambda: EnvironmentDesign([[0], [0], [1], [1]], [[0.0], [1.0], [0.0], [2.0]], 1.0),
    wrong={
        "has rank 3": lambda: EnvironmentDesign([[0], [0], [1]], [[0.0], [1.0], [2.0]], 1.0),
        "The same valuation twice": lambda: EnvironmentDesign(
            [[0], [0], [1], [1]], [[1.0], [1.0], [0.0], [2.0]], 1.0
        ),
        "One atom an environment": lambda: EnvironmentDesign(
            [[0, 1], [0, 1], [1], [1]], [[0.3, 1.0], [-0.7, 0.2], [0.5], [-0.4]], 1.0
        ),
    },
)
def ex_price_theorem_2(design: EnvironmentDesign) -> str | None:
    """Look for rank 2n of (M, B), the assumption of Theorem 2, with one atom an environment."""
    if any(len(subset) > 1 for subset in design.subsets):
        return "One atom an environment was asked for; some environment has more."
    rank = np.linalg.matrix_rank(np.hstack([design.M, design.B]))
    if rank == 2 * design.n_atoms:
        return None
    if design.n_environments >= 2 * design.n_atoms:
        return (
            f"(M, B) has rank {rank}, not {2 * design.n_atoms}. The same valuation twice gives the "
            "same row twice."
        )
    return (
        f"(M, B) has rank {rank}, not {2 * design.n_atoms}: a matrix has no more rank than rows, "
        "and each atom needs two."
    )


@value(
    right="One more than there are atoms: the fewest that Theorem 1 allows.",
    mistakes={
        "That counts the base too; a design lists the environments that condition.": 52,
        "A square M leaves no v with v M = 0: one more is needed.": 50,
        "That is what Theorem 2 needs.": 100,
    },
    rtol=0.001,
)
def ex_fifty() -> int:
    """Return the environments of a minimal design for 50 atoms: the paper's Remark 2."""
    return 50 + 1
