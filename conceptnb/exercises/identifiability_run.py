"""Exercises on the theorems: environments, the proof, counterexamples, measures, causality."""

from __future__ import annotations

from typing import Any

import numpy as np

from conceptnb.core.concepts import Concept
from conceptnb.core.conditioning import averaged_measure, bayesian_measure
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import GaussianMixture
from conceptnb.core.validation import Array
from conceptnb.exercises.engine import Construction, Value

# Environments and their diversity

_ONCE = ([0], [1], [2], [0])

ex_write_b = Value(  # B of three environments: the paper's (8)
    np.array([[1.0, 0.0], [2.0, -1.0], [0.0, 3.0]]) / 0.5,
    entries="rows are environments, columns are atoms",
    right="M has 2 = 1/σ² wherever B may be non-zero; B alone does not distinguish a valuation 0 "
    "from an atom that is not conditioned on.",
    mistakes={
        "Those are the valuations. B has valuations divided by σ² = 0.5.": lambda x: x / 2,
        "You multiplied by σ² where (8) divides.": lambda x: x / 4,
        "That is M. B has the valuation over σ² in the same places.": lambda x: 2.0 * (x != 0),
        "Divide by σ² = 0.5, not by its root.": lambda x: x / 2**0.5,
    },
)


def _once(design: EnvironmentDesign) -> str | None:
    if design.n_environments != len(_ONCE):
        return f"Without adding environments: there were 4, now there are {design.n_environments}."
    for e, (old, new) in enumerate(zip(_ONCE, design.subsets, strict=True)):
        if not set(old) <= set(new):
            return f"Environment {e} has lost an atom: it had {old} and has {list(new)}."
    report = design.check()
    if lacking := [i for i, fine in enumerate(report.assumption4) if not fine]:
        return f"Still no contrast for atoms {lacking}: each needs two environments that differ."
    return None if report.satisfied else "; ".join(report.problems()) + "."


ex_once = Construction(  # Assumptions 4 and 5 in a design that extends [[0], [1], [2], [0]]
    _once,
    kind=EnvironmentDesign,
    right="Every atom now has two environments and a contrast; the rank is 3, with four rows.",
)

ex_cycles = Value(  # the rank of M on cycles: the eigenvalues of the circulant 1 + shift
    [int((abs(1 + np.exp(2j * np.pi * np.arange(n) / n)) > 1e-9).sum()) for n in (3, 4, 5)],
    entries="for n = 3, 4, 5",
    right="On an even cycle environments with alternating signs cancel. With m = n there is never "
    "both rank n and a left kernel.",
    mistakes={
        "For even n, add the environments with alternating signs: every atom cancels.": [3, 4, 5],
        "n - 1 is the rank where a row has +1 and -1. Here both entries are positive.": [2, 3, 4],
    },
)


def _price_theorem_2(design: EnvironmentDesign) -> str | None:
    if any(len(subset) > 1 for subset in design.subsets):
        return "One atom per environment was asked for; some environment has more."
    rank, full = np.linalg.matrix_rank(np.hstack([design.M, design.B])), 2 * design.n_atoms
    why = "The same valuation twice gives the same row twice."
    if design.n_environments < full:
        why = "The rank is at most the number of rows, and each atom needs two rows."
    return None if rank == full else f"(M, B) has rank {rank}, not {full}. {why}"


ex_price_theorem_2 = Construction(  # rank 2n of (M, B) with one atom per environment: Theorem 2
    _price_theorem_2,
    kind=EnvironmentDesign,
    right="Each atom alone, twice, at two valuations. It implies Assumption 4, as v M and v B can "
    "be chosen freely, but not Assumption 5 in general: atoms may be nested.",
)

ex_fifty = Value(  # the environments of a minimal design for 50 atoms: the paper's Remark 2
    50 + 1,
    rtol=0.001,
    right="One more than there are atoms: the fewest that Theorem 1 allows.",
    mistakes={
        "That counts the base too; a design lists the environments that condition.": 52,
        "A square M leaves no v with v M = 0: one more is needed.": 50,
        "That is what Theorem 2 needs.": 100,
    },
)

# Theorem 1, step by step

ex_minimum = Value(  # where G_e = z²/2 - B_e z is least, for B = (0.4, -0.5): Step 4
    [0.4, -0.5],
    atol=1e-6,
    entries="one entry per environment",
    right="The minimum is at z = B, and the constant of an environment is read off there.",
    mistakes={
        "You gave the value of G at its minimum; where it lies was asked for.": [-0.08, -0.125],
        "The derivative of z²/2 is z, not z/2.": lambda x: 2 * x,
    },
)


def _count(answer: Any) -> str | None:
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


ex_count = Construction(  # the sizes of all unions, with columns in any order: Step 3
    _count,
    right="Two atoms: both are in environment 2, one of them also in 1, and the other also in 3.",
)


def _denominator() -> Array:
    B, ratios = np.array([0.4, -0.4]), []
    for z in (-1.0, 0.7, 2.0):
        w = np.linalg.svd((z - B)[:, None])[0][:, 1]  # orthogonal to D G = z - B
        ratios.append(w @ B / w.sum())
    return np.array(ratios)


ex_denominator = Value(  # (w B) / (w M) for one atom and B = (0.4, -0.4): Step 5
    _denominator,
    entries="for z = -1, 0.7, 2",
    right="The denominator is B_1 - B_2 everywhere: with one atom the proof's null set is empty.",
    mistakes={
        "That is the numerator, w B. Divide by w M, the sum of w's entries.": lambda x: 0.8 * x,
        "That is the denominator, w M. It does not depend on z, and the ratio does.": [0.8] * 3,
        "You divided the wrong way round.": lambda x: 1 / x,
    },
)

ex_tolerance = {  # how Step 3 notices a misread rank
    "nothing": "Run it with rank_tolerance=0.2: it raises an error.",
    "not symmetric": "Ranks are read from symmetric matrices, whatever the tolerance.",
    "negative count": "Right. Inclusion and exclusion of a wrong set of sizes gives a negative "
    "count, which no matrix has. Only a wrong set that is consistent goes unnoticed.",
}

ex_shortcut = Value(  # the step that evaluates atoms, which linear mixings do not need
    5,
    rtol=1e-6,
    right="The leading eigenvector is the atom, up to sign. M still takes Steps 1 to 3.",
    mistakes={
        "M is used in the formula, and Step 3 is what finds it.": 3,
        "B does not occur in Q_e: the formula says nothing about valuations of environments.": 4,
        "The scale is still free: Q_e is given in standard form.": 1,
    },
)

# When it fails


ex_twins = Value(  # the atoms that always occur together in [[0, 1], [0, 1, 2], [2]]: Assumption 5
    [0, 1],
    entries="the two atoms in increasing order",
    right="They share all their environments. Atoms 1 and 2 share one, but atom 1 also occurs "
    "without atom 2.",
    mistakes={
        "Atom 2 is in the third environment without the others: it has a contrast.": [1, 2],
        "Counted from 0, as in the code.": [2, 3],
    },
)

ex_power = Value(  # how many times the samples are needed to detect half the shift
    (1 / 0.5) ** 2,
    right="The standard error of a mean falls like one over the root of the number of samples.",
    mistakes={
        "Twice the samples shrink the standard error by √2 only.": 2,
        "The other way round: to halve the error takes more than √2 times as many.": 2**0.5,
        "That would be for a quarter of the shift.": 16,
    },
)

ex_swirl = {  # whether a counterexample's map has to preserve volume
    "yes": "The base of the second model may be any distribution, also that of Φ(Z). Which "
    "quantities have to be the same? Only the log ratios, in which Jacobians cancel.",
    "no": "Right. The second model's base is *defined* as the distribution of Φ(Z), whatever Φ "
    "does to volume, and Jacobians cancel in log ratios.",
}


def _repair(design: EnvironmentDesign, old: list[list[int]]) -> str | None:
    if [set(S) for S in design.subsets[: len(old)]] != [set(S) for S in old]:
        return "The environments of always_together come first, as they are."
    if design.n_environments != len(old) + 1:
        return f"Add one environment; you added {design.n_environments - len(old)}."
    if np.linalg.matrix_rank(design.M) < design.n_atoms:
        return "Atoms 0 and 1 still always occur together: condition on one of them alone."
    return None if design.check().assumption4.all() else "; ".join(design.check().problems()) + "."


ex_repair = Construction(  # Assumption 4 in a design that adds one environment to those given
    _repair,
    kind=EnvironmentDesign,
    right="M has rank 2 and both atoms have a contrast. One of them still never occurs without "
    "the other, so Assumption 5 fails; the concepts are identifiable all the same.",
)

# Conditioning three ways

ex_marginal = Value(  # the variance of the valuation under each measure of Appendix C
    [0.25, 0.25, 1 / (1 / 1.0 + 1 / 0.25)],
    entries="enforced, averaged, Bayesian",
    right="Two measures enforce the marginal. Acceptance multiplies it with the base's: narrower.",
    mistakes={
        "Acceptance multiplies q_V with p(v): precisions add.": [0.25, 0.25, 0.25],
        "Only acceptance narrows. Enforced and averaged have the marginal q_V exactly.": [0.2] * 3,
        "The third is a sum of variances; densities are multiplied.": [0.25, 0.25, 1.25],
        "Those are standard deviations.": lambda x: x**0.5,
    },
)


def _cannot_tell(base: GaussianMixture) -> str | None:
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


ex_cannot_tell = Construction(  # the measures of Appendix C for the atom (1, 0), b = 1, σ² = 0.1
    _cannot_tell,
    kind=GaussianMixture,
    right="The first two are equal by independence. The third agrees with them where p(v) is flat.",
)

ex_three_twice = Value(  # which measures of Appendix C are idempotent, from their effect on p(v)
    [True, True, False],
    entries="enforced, averaged, Bayesian",
    right="Acceptance narrows each time: two acceptances are one with half the variance.",
    mistakes={
        "Acceptance multiplies by q_V again: the variance shrinks each time.": [1] * 3,
        "After the first time, the marginal of v is q_V and the rest is left alone. What does the "
        "second time change? The same holds for averaged.": [1, 0, 0],
    },
)

ex_coupling = Value(  # for which ρ equal correlations of three atoms solve (80)
    [-1 / (3 - 1), 1.0],
    entries="the lowest and the highest ρ",
    right="Equal correlations of three concepts can reach 1, but not fall below -1/2.",
    mistakes={
        "That is for two atoms. Three cannot all be opposite to each other.": [-1.0, 1.0],
        "That is for four atoms: with n atoms the lower end is -1/(n - 1).": [-1 / 3, 1.0],
        "Negative correlations are possible, too, down to some ρ.": [0.0, 1.0],
        "The lowest ρ comes first.": [1.0, -0.5],
    },
)

# From causal to concept-based

ex_budget = Value(  # the environments of the four rows of the table for n = 3 and d_z = 20
    [3 + 2, 2 * 3 + 1, 2 * 20 + 1, 20 + 1],
    rtol=1e-6,
    entries="Theorem 1, Theorem 2, iVAE, interventions",
    right="Three of twenty directions need five data sets; all twenty need at least 21.",
    mistakes={
        "You left out the base: the table counts it.": [4, 6, 40, 20],
        "The last two learn all d_z latents, and depend on d_z = 20.": [5, 7, 7, 4],
        "iVAE needs k = 2 for each latent.": [5, 7, 21, 21],
    },
)

ex_leaf = Value(  # the variable of the chain whose averaged measure is the intervention: Appendix C
    2,
    rtol=1e-6,
    atol=1e-6,
    right="It has no effects: the equations of the other variables do not contain it.",
    mistakes={
        "Setting a root changes its effects, and averaging leaves them as they were.": 0,
        "It has an effect, Z_3, which averaging leaves as it was.": 1,
        "Counted from 0, as in the code.": 3,
    },
)

ex_root = Value(  # the means of the fork after conditioning its root on 2, from its covariance
    2.0 * np.array([1.0, 0.8, -0.5]),
    atol=1e-3,
    entries="Z_1, Z_2, Z_3",
    right="The same for both: a root has no causes that conditioning could move.",
    mistakes={
        "The effects change with it: Z_2 = 0.8 Z_1 + noise.": [2.0, 0.0, 0.0],
        "Those are the weights. The value of the cause is 2.": [2.0, 0.8, -0.5],
        "Z_3 falls when Z_1 rises: its weight is negative.": [2.0, 1.6, 1.0],
    },
)

ex_break_even = Value(  # the least n for which Theorem 2 needs more than d_z + 1 data sets
    next(n for n in range(1, 11) if 2 * n + 1 > 10 + 1),
    rtol=1e-6,
    right="Once n > d_z/2. Theorem 1 needs more only for n = d_z, and then by one.",
    mistakes={
        "There both need equally many; the question is where Theorem 2 needs more.": 5,
        "That is where Theorem 1 needs more; Theorem 2 does so for smaller n.": 10,
    },
)
