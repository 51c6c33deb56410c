"""Trials of the checker, of Lemma 1, of the remark on Assumption 5, and of the pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.planner import random_design, tree_design
from conceptnb.core.validation import as_generator
from conceptnb.studies.theory_instances import VARIANCE, random_world
from conceptnb.theory.counterexamples import ModelPair, all_counterexamples, ambiguity, perturbed
from conceptnb.theory.standard_form import StandardForm, standard_form
from conceptnb.theory.theorem1 import (
    codimensions,
    constants,
    count_signatures,
    environment_matrix,
    evaluate,
    prepare,
    valuation_matrix_by_residues,
)
from conceptnb.theory.two_sample import classifier_test, projection_test

Subsets = list[list[int]]
Valuations = list[list[float]]

KINDS = ("constant valuation", "conditioned once", "nested", "always together", "too few")
"""Ways in which `violation` breaks a design."""


@dataclass(frozen=True)
class Violation:
    """Whether the checker named one broken design's fault, and only that.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    n, m : int
    named : bool
        Assumption 4 fails for exactly the atoms, and Assumption 5 for exactly the
        pairs, that were broken.
    """

    kind: str
    n: int
    m: int
    named: bool


def violation(
    kind: str, rng: np.random.Generator
) -> tuple[EnvironmentDesign, set[int], set[tuple[int, int]]]:
    """Break a random satisfying design in one known way.

    Parameters
    ----------
    kind : str
        "constant valuation": one atom has the same valuation everywhere. "conditioned
        once": a new atom occurs alone, once. "nested": a new atom occurs wherever an old
        one does, and once alone. "always together": a new atom occurs exactly where an
        old one does. "too few": n environments, one an atom.
    rng : numpy.random.Generator

    Returns
    -------
    design : EnvironmentDesign
    atoms : set of int
        Those for which Assumption 4 now fails.
    pairs : set of (int, int)
        Those for which Assumption 5 now fails.

    Raises
    ------
    ValueError
        If `kind` is unknown.
    """
    n = int(as_generator(rng).integers(2, 5))
    start = random_design(n, n + int(rng.integers(1, 3)), rng, VARIANCE)
    subsets: Subsets = [list(S) for S in start.subsets]
    values: Valuations = [list(b) for b in start.valuations]
    atoms: set[int] = set()
    pairs: set[tuple[int, int]] = set()
    old, new = int(rng.integers(n)), n
    draw = lambda: float(rng.normal(scale=0.3))  # noqa: E731
    if kind == "constant valuation":
        b = draw()
        values = [
            [b if i == old else value for i, value in zip(S, row, strict=True)]
            for S, row in zip(subsets, values, strict=True)
        ]
        atoms = {old}
    elif kind == "conditioned once":
        subsets.append([new])
        values.append([draw()])
        atoms = {new}
    elif kind in ("nested", "always together"):
        for S, row in zip(subsets, values, strict=True):
            if old in S:
                S.append(new)
                row.append(draw())
        pairs = {(old, new)}
        if kind == "nested":
            subsets.append([new])
            values.append([draw()])
        else:
            atoms, pairs = {old, new}, {(old, new), (new, old)}
    elif kind == "too few":
        subsets, values = [[i] for i in range(n)], [[draw()] for _ in range(n)]
        atoms = set(range(n))
    else:
        raise ValueError(f"kind must be one of {KINDS}, got {kind!r}")
    order = rng.permutation(len(subsets))
    design = EnvironmentDesign([subsets[e] for e in order], [values[e] for e in order], VARIANCE)
    return design, atoms, pairs


def check_violations(seed: int) -> list[Violation]:
    """Break one design in each way and compare the checker's report with the truth."""
    rng = np.random.default_rng([11, seed])
    rows = []
    for kind in KINDS:
        design, atoms, pairs = violation(kind, rng)
        report = design.check()
        found = set(np.flatnonzero(~report.assumption4).tolist())
        found_pairs = {(int(i), int(j)) for i, j in np.argwhere(~report.assumption5)}
        m, n = design.M.shape
        rows.append(Violation(kind, n, m, found == atoms and found_pairs == pairs))
    return rows


@dataclass(frozen=True)
class NestedRecovery:
    """Recovery of a design that satisfies Assumption 4 and violates Assumption 5.

    Attributes
    ----------
    n, m : int
    M_right : bool
    B_error : float
        Largest absolute error of B in standard form, in σ.
    correlation : float
        Smallest absolute correlation of recovered with true valuations.
    """

    n: int
    m: int
    M_right: bool
    B_error: float
    correlation: float


def recover_nested(seed: int) -> NestedRecovery:
    """Recover one world with nested environments by residues, without Assumption 5."""
    rng = np.random.default_rng([13, seed])
    design, _, _ = violation("nested", rng)
    while design.n_atoms > 4:
        design, _, _ = violation("nested", rng)
    d_z = design.n_atoms + int(rng.integers(0, 4))
    world = random_world(design, d_z, d_z + 2, rng)
    seen = world.observables(world.sample(500, rng))
    scaled = prepare(seen)
    M = environment_matrix(count_signatures(codimensions(scaled)[0]), design.n_environments)
    B = valuation_matrix_by_residues(scaled, M, rng)
    true_M, true_B, order = standard_form(design.M, design.B, design.variance)
    X = world.sample(200, rng)
    model = StandardForm(M, B, constants(scaled, M, B))
    learned = evaluate(seen, model, world.coordinates(X))
    pairs = zip(world.valuations(X)[:, order].T, learned.T, strict=True)
    return NestedRecovery(
        n=design.n_atoms,
        m=design.n_environments,
        M_right=bool((true_M == M).all()),
        B_error=float(np.abs(B - true_B).max()),
        correlation=float(min(abs(np.corrcoef(a, b)[0, 1]) for a, b in pairs)),
    )


@dataclass(frozen=True)
class Lemma1Trial:
    """Random designs under Lemma 1's condition, with valuations of one distribution.

    Attributes
    ----------
    distribution : str
        "normal", or "two values" (not continuous: the lemma does not apply).
    n : int
    designs, failures : int
        How many were drawn, and in how many Assumption 4 failed.
    smallest_margin : float
        Smallest margin of Assumption 4 over designs and atoms, in σ.
    """

    distribution: str
    n: int
    designs: int
    failures: int
    smallest_margin: float


def lemma1_trials(seed: int, designs: int = 500) -> list[Lemma1Trial]:
    """Draw random trees of environments and random valuations; count failures.

    For two equally likely values an atom of a tree fails with probability one half, so a
    design of n atoms passes with probability :math:`2^{-n}`.
    """
    rng = np.random.default_rng([17, seed])
    rows = []
    for distribution in ("normal", "two values"):
        for n in (2, 3, 5, 8):
            margins = np.array([_random_tree_margin(n, distribution, rng) for _ in range(designs)])
            failures = int((margins <= 1e-9).sum())
            rows.append(
                Lemma1Trial(distribution, n, designs, failures, float(margins.min(initial=np.inf)))
            )
    return rows


def _random_tree_margin(n: int, distribution: str, rng: np.random.Generator) -> float:
    """Smallest margin of Assumption 4 of one random tree design."""
    edges = [(int(rng.integers(i + 1)), i + 1) for i in range(n)]
    if distribution == "normal":
        valuations = rng.standard_normal((n, 2))
    else:
        valuations = rng.choice([-1.0, 1.0], size=(n, 2))
    # Equal valuations are what is being counted, so the tree is checked apart from them.
    shape = tree_design(edges, np.tile([0.0, 1.0], (n, 1)), 1.0)
    position = {
        (i, e): b for i, edge in enumerate(edges) for e, b in zip(edge, valuations[i], strict=True)
    }
    values = [[position[i, e] for i in S] for e, S in enumerate(shape.subsets)]
    report = EnvironmentDesign(shape.subsets, values, 1.0).check()
    return float(report.valuation_margins.min())


@dataclass(frozen=True)
class PairTrial:
    """Two-sample tests of one pair of models, and how far their concepts are apart.

    Attributes
    ----------
    pair, broken : str
    samples : int
        An environment and model.
    p_projection, p_classifier : float
        Corrected for the number of environments.
    p_control : float
        Projection test after one valuation of the second model was moved.
    agreement : float or None
        Smallest matched correlation of the two models' valuations; None where f has no
        inverse.
    """

    pair: str
    broken: str
    samples: int
    p_projection: float
    p_classifier: float
    p_control: float
    agreement: float | None


CONTROL_SHIFT = 0.5
"""How far the control moves a valuation, in σ."""


def trial_pairs(seed: int, samples: int = 100_000) -> list[PairTrial]:
    """Test all pairs of models, those of Definition 4's freedom included."""
    rng = np.random.default_rng([19, seed])
    printed = ambiguity(np.random.default_rng([23, seed]), shift_sign=-1.0)
    pairs = [
        *all_counterexamples(rng),
        ambiguity(np.random.default_rng([23, seed])),
        ModelPair("Definition 4 with the sign of (4)", "none", printed.first, printed.second),
    ]
    return [_test_pair(pair, samples, rng) for pair in pairs]


def _test_pair(pair: ModelPair, samples: int, rng: np.random.Generator) -> PairTrial:
    control = perturbed(pair, CONTROL_SHIFT)
    invertible = pair.first.encoder is not None
    return PairTrial(
        pair=pair.name,
        broken=pair.broken,
        samples=samples,
        p_projection=pair.p_value(samples, rng, projection_test),
        p_classifier=pair.p_value(samples, rng, classifier_test),
        p_control=control.p_value(samples, rng, projection_test),
        agreement=float(pair.agreement(20_000, rng).min()) if invertible else None,
    )
