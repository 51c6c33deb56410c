"""Exercises on the theorems: environments, the proof, counterexamples, measures, causality."""

from typing import Any

import numpy as np

from conceptnb.core.concepts import Concept
from conceptnb.core.conditioning import averaged_measure, bayesian_measure
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import GaussianMixture
from conceptnb.exercises.engine import Construction

# Environments and their diversity

_ONCE = ([0], [1], [2], [0])


@Construction.declare(kind=EnvironmentDesign)
def _ex_once(design: EnvironmentDesign) -> str | None:
    """Look for Assumptions 4 and 5 in a design that extends [[0], [1], [2], [0]]."""
    if design.n_environments != len(_ONCE):
        return f"Without adding environments: there were 4, now there are {design.n_environments}."
    for e, (old, new) in enumerate(zip(_ONCE, design.subsets, strict=True)):
        if not set(old) <= set(new):
            return f"Environment {e} has lost an atom: it had {old} and has {list(new)}."
    report = design.check()
    if lacking := [i for i, fine in enumerate(report.assumption4) if not fine]:
        return f"Still no contrast for atoms {lacking}: each needs two environments that differ."
    return None if report.satisfied else "; ".join(report.problems()) + "."


@Construction.declare(kind=EnvironmentDesign)
def _ex_price_theorem_2(design: EnvironmentDesign) -> str | None:
    """Look for rank 2n of (M, B) with one atom per environment: Theorem 2."""
    if any(len(subset) > 1 for subset in design.subsets):
        return "One atom per environment was asked for; some environment has more."
    rank, full = np.linalg.matrix_rank(np.hstack([design.M, design.B])), 2 * design.n_atoms
    why = "The same valuation twice gives the same row twice."
    if design.n_environments < full:
        why = "The rank is at most the number of rows, and each atom needs two rows."
    return None if rank == full else f"(M, B) has rank {rank}, not {full}. {why}"


# Theorem 1, step by step
@Construction.declare()
def _ex_count(answer: Any) -> str | None:
    """Compare the sizes of all unions, with columns in any order: Step 3."""
    M = np.asarray(answer)
    if M.dtype.kind not in "biuf" or M.ndim != 2:
        return "The answer is a matrix of numbers, with environments as rows."
    if M.shape[0] != 3:
        return f"M has 3 rows, one per environment, and one column per atom; got {M.shape}."
    if not np.isin(M, (0, 1)).all():
        return "In standard form M holds zeros and ones."
    sizes = {"1": 1, "2": 2, "3": 1, "1,2": 2, "1,3": 2, "2,3": 2, "1,2,3": 2}
    for T, size in sizes.items():
        got = M[[int(e) - 1 for e in T.split(",")]].any(axis=0).sum()
        if got != size:
            return f"In your M, S_{{{T}}} has {got} atoms; the exercise gives {size}."
    return None


# When it fails
@Construction.declare(kind=EnvironmentDesign)
def _ex_repair(design: EnvironmentDesign, old: list[list[int]]) -> str | None:
    if [set(S) for S in design.subsets[: len(old)]] != [set(S) for S in old]:
        return "The environments of always_together come first, as they are."
    if design.n_environments != len(old) + 1:
        return f"Add one environment; you added {design.n_environments - len(old)}."
    if np.linalg.matrix_rank(design.M) < design.n_atoms:
        return "Atoms 0 and 1 still always occur together: condition on one of them alone."
    return None if design.check().assumption4.all() else "; ".join(design.check().problems()) + "."


# Conditioning three ways
@Construction.declare(kind=GaussianMixture)
def _ex_cannot_tell(base: GaussianMixture) -> str | None:
    """Compare the measures of Appendix C for the atom (1, 0), b = 1, σ² = 0.1."""
    if base.means.shape[1] != 2:
        return f"The base has two dimensions; yours has {base.means.shape[1]}."
    if len(base.weights) != 1:
        return "Take a base of a single component, so that the comparison is clear."
    covariance = base.covariances[0]
    if abs(covariance[0, 1]) > 0.01 * np.sqrt(covariance[0, 0] * covariance[1, 1]):
        return "The second coordinate depends on the first: p(c | v) is not p(c)."
    atom = Concept(np.array([[1.0, 0.0]]), np.array([1.0]))
    averaged, accepted = averaged_measure(base, atom, 0.1), bayesian_measure(base, atom, 0.1)
    if not np.allclose(averaged.covariances, accepted.covariances, rtol=0.05):
        return "Here acceptance still narrows: make p(v) flatter where q_V has its mass."
    if not np.allclose(averaged.means, accepted.means, rtol=0.05):
        return "Here acceptance still moves the mean: make p(v) flatter where q_V has its mass."
    return None
