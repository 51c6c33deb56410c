import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conceptnb.core.concepts import random_atoms
from conceptnb.core.design import EnvironmentDesign, paper_design
from conceptnb.core.distributions import acceptance_rate, random_mixture
from conceptnb.core.diversity import check_diversity
from conceptnb.core.planner import (
    propose_design,
    random_design,
    tree_design,
)
from conceptnb.studies.theory_tables import VIOLATIONS, lemma1_trials, violation


@pytest.mark.parametrize(("n", "covered"), [(2, [1]), (3, [0]), (4, [0])])
def test_the_papers_environments_cover_only_the_atom_that_occurs_twice(n, covered):
    report = paper_design(n).check()
    assert np.flatnonzero(report.assumption4).tolist() == covered
    assert report.assumption5.all()
    assert not report.lemma1
    assert not report.theorem2
    assert "conditioned on once" in str(report)


def test_margin_is_the_largest_product_over_unit_vectors():
    rng = np.random.default_rng(0)
    design = random_design(3, 6, rng)
    report = design.check()
    # Independent implementation: project v onto the kernel by least squares, many times.
    v = rng.standard_normal((6, 20_000))
    v -= report.M @ np.linalg.lstsq(report.M, v, rcond=None)[0]
    products = np.abs((v / np.linalg.norm(v, axis=0)).T @ report.B)
    assert (products <= report.valuation_margins + 1e-9).all()
    np.testing.assert_allclose(products.max(axis=0), report.valuation_margins, rtol=0.02)


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_report_does_not_change_with_units_shift_and_order(seed):
    rng = np.random.default_rng(seed)
    kind = VIOLATIONS[seed % len(VIOLATIONS)]
    design, atoms, pairs = violation(kind, rng)
    first = design.check()
    assert set(np.flatnonzero(~first.assumption4)) == atoms
    assert {tuple(p) for p in np.argwhere(~first.assumption5)} == pairs
    shift, scale = rng.normal(size=design.n_atoms), 3.0
    moved = EnvironmentDesign(
        design.subsets,
        [
            [scale * (b + shift[i]) for i, b in zip(S, row, strict=True)]
            for S, row in zip(design.subsets, design.valuations, strict=True)
        ],
        design.variance * scale**2,
    ).check()
    np.testing.assert_array_equal(first.assumption4, moved.assumption4)
    np.testing.assert_allclose(first.valuation_margins, moved.valuation_margins, atol=1e-8)
    assert first.lemma1 == moved.lemma1


def test_lemma1_condition_against_brute_force():
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(60):
        M = (rng.random((5, 3)) < 0.5).astype(float)
        if not M.any(axis=0).all():
            continue
        brute = any(
            all(np.linalg.matrix_rank(M[list(rows)]) == 3 for rows in itertools.combinations(R, 3))
            for R in itertools.combinations(range(5), 4)
        )
        seen.add(brute)
        assert check_diversity(M, np.zeros_like(M)).lemma1 == brute
    assert seen == {True, False}


def test_theorem2_needs_twice_as_many_and_implies_assumption4():
    twice = EnvironmentDesign([[0], [0], [1], [1]], [[0.0], [1.0], [0.0], [2.0]], 1.0).check()
    assert twice.theorem2
    assert twice.assumption4.all()
    assert not propose_design(2).check().theorem2


def test_nested_design_satisfies_theorem2_without_assumption5():
    design = EnvironmentDesign(
        [[0, 1], [0, 1], [1], [1]], [[0.3, 1.0], [-0.7, 0.2], [0.5], [-0.4]], 1.0
    )
    report = design.check()
    assert report.theorem2
    assert not report.assumption5[0, 1]
    assert report.assumption5[1, 0]


def test_lemma1_has_no_failures_and_discrete_valuations_fail_as_predicted():
    rows = lemma1_trials([0], designs=60)
    assert {row["distribution"] for row in rows} > {"normal"}
    for row in rows:
        if row["distribution"] == "normal":
            assert row["failures"] == 0
        else:
            passed = 0.5 ** row["n"]
            expected = 60 * (1 - passed)
            assert abs(row["failures"] - expected) < 5 * np.sqrt(expected * passed) + 5


@given(st.integers(1, 9), st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_every_tree_satisfies_everything(n, seed):
    rng = np.random.default_rng(seed)
    edges = [(int(rng.integers(i + 1)), i + 1) for i in range(n)]
    valuations = rng.normal(size=(n, 2))
    report = tree_design(edges, valuations, 0.25).check()
    assert report.satisfied
    assert report.lemma1
    gaps = np.abs(valuations[:, 0] - valuations[:, 1]) / 0.5
    np.testing.assert_allclose(report.valuation_margins, gaps / np.sqrt(n + 1), rtol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_distance_to_failure_of_a_path_is_not_its_margin(n):
    """B's zeros stay zero: failing takes |Δ|/√2, and the margin |Δ|/√(n + 1) is a bound below."""
    report = tree_design("path", np.tile([-0.4, 0.8], (n, 1)), 1.0).check()
    two = np.flatnonzero(report.M[:, 0])
    failing = report.B.copy()
    failing[two, 0] = failing[two, 0].mean()
    distance = np.linalg.norm(failing - report.B)
    assert distance == pytest.approx(1.2 / np.sqrt(2))
    assert not check_diversity(report.M, failing).assumption4[0]
    margin = report.valuation_margins[0]
    assert margin == pytest.approx(1.2 / np.sqrt(n + 1))
    assert margin <= distance + 1e-12
    rng = np.random.default_rng(n)
    for _ in range(50):  # anything closer leaves a contrast
        step = report.M * rng.normal(size=report.M.shape)
        step *= 0.99 * distance / np.linalg.norm(step)
        assert check_diversity(report.M, report.B + step).assumption4[0]


def test_path_singular_value_is_that_of_the_path_graph():
    for n in (2, 5, 20):
        report = propose_design(n).check()
        expected = 2 * np.sin(np.pi / (2 * (n + 1)))
        assert report.smallest_singular_value == pytest.approx(expected)
    star = tree_design("star", np.tile([0.0, 1.0], (6, 1))).check()
    assert star.smallest_singular_value == pytest.approx(1.0)


def test_planner_at_fifty_atoms_is_fast_and_beats_plain_valuations():
    rng = np.random.default_rng(0)
    base, atoms = random_mixture(60, rng), random_atoms(50, 60, rng)
    design = propose_design(50, base=base, atoms=atoms)
    assert design.check().satisfied
    assert design.n_environments == 51
    worst = min(acceptance_rate(base, c, design.variance) for c in design.concepts(atoms))
    plain = propose_design(50)
    assert worst > 0.01
    assert worst > min(acceptance_rate(base, c, plain.variance) for c in plain.concepts(atoms))


def test_planner_is_optimal_on_its_grid():
    from conceptnb.core.planner import _candidate_pairs  # noqa: PLC0415

    rng = np.random.default_rng(3)
    base, atoms = random_mixture(3, rng), random_atoms(2, 3, rng)
    design = propose_design(2, base=base, atoms=atoms, contrast=2.0)
    marginals = [base.linear_image(atoms[[i]], design.variance) for i in (0, 1)]
    gap = 2.0 * design.variance**0.5
    pairs = [_candidate_pairs(marginal, gap) for marginal in marginals]

    def rate(valuations):
        candidate = tree_design("path", valuations, design.variance)
        rates = [acceptance_rate(base, c, candidate.variance) for c in candidate.concepts(atoms)]
        return np.prod(rates)

    found = [[design.valuations[0][0], design.valuations[1][0]]]
    found.append([design.valuations[1][1], design.valuations[2][0]])
    tried = [rate([p, q]) for p in pairs[0][::5] for q in pairs[1][::5]]
    assert rate(found) >= max(tried) * (1 - 1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_diversity([[1.0, 0.0]], [[0.0, 0.0]]), r"atoms \[1\]"),
        (lambda: check_diversity([[1.0, 2.0]], [[0.0, 0.0]]), "0 and 1/variance"),
        (lambda: check_diversity([[1.0], [0.0]], [[0.0], [1.0]]), "not used"),
        (lambda: check_diversity([[1.0]], [[0.0, 1.0]]), "one shape"),
        (lambda: tree_design([(0, 1), (1, 0)], [[0, 1], [0, 1]]), "cycle"),
        (lambda: tree_design([(0, 1)], [[1.0, 1.0]]), "equal valuations"),
        (lambda: tree_design([(0, 5)], [[0.0, 1.0]]), "vertices"),
        (lambda: random_design(3, 3, np.random.default_rng(0)), r"n \+ 1"),
        (lambda: propose_design(2, base=random_mixture(2, np.random.default_rng(0))), "both"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_repeated_environments_are_named():
    design = EnvironmentDesign([[0], [0, 1], [0], [1]], [[0.1], [0.2, 0.3], [0.1], [0.0]], 1.0)
    report = design.check()
    assert report.repeated == ((0, 2),)
    assert "environments 1 and 3 are repeated" in str(report)


def test_equal_subsets_with_other_valuations_are_no_repetition():
    design = EnvironmentDesign([[0], [0, 1], [0], [1]], [[0.1], [0.2, 0.3], [0.4], [0.0]], 1.0)
    assert design.check().repeated == ()


def test_dependent_atoms_are_named():
    with pytest.raises(ValueError, match="dependent"):
        propose_design(2).concepts([[1.0, 0.0], [2.0, 0.0]])
