"""Every "no" of the certificate comes with a second model of the same data."""

import itertools

import numpy as np
import pytest

from conceptnb.core.certificate import certify
from conceptnb.core.concepts import Concept
from conceptnb.core.distributions import random_mixture
from conceptnb.core.planner import propose_design
from conceptnb.core.scores import mcc
from conceptnb.theory.competitors import competitor


def designs(n, m):
    """All 0-1 designs without an empty row or column, up to the order of rows."""
    rows = [row for row in itertools.product((0.0, 1.0), repeat=n) if any(row)]
    for chosen in itertools.combinations_with_replacement(rows, m):
        M = np.array(chosen)
        if M.any(axis=0).all():
            yield M


def valuations(M):
    rng = np.random.default_rng(1)
    general = rng.normal(size=M.shape)
    return [M * B for B in (general, rng.choice([-1.0, 1.0], size=M.shape), np.zeros(M.shape))]


def assert_other_model(M, B, atom):
    other = competitor(M, B, atom, np.random.default_rng(7))
    np.testing.assert_allclose(other.second_b[other.second_m == 0], 0, atol=1e-12)
    assert set(np.unique(other.second_m)) <= set(np.unique(M))
    offsets = np.random.default_rng(3).uniform(-1, 1, size=(200, M.shape[1]))
    cloud = other.centre + offsets * other.radius / M.shape[1] ** 0.5
    assert other.mismatch(cloud) < 1e-10
    assert other.bend(cloud, atom) > 1e-3
    h = 1e-4 * np.eye(M.shape[1])
    slope = (other(other.centre + h) - other(other.centre - h)) / 2e-4
    assert np.linalg.svd(slope, compute_uv=False)[-1] > 1e-6
    return other


@pytest.mark.parametrize("seed", range(6))
def test_every_no_has_a_second_model(seed):
    rng = np.random.default_rng(seed)
    cases = [(n, m) for n in (1, 2, 3) for m in (1, 2, 3, 4)]
    n, m = cases[rng.integers(len(cases))]
    drawn = list(designs(n, m))
    M = drawn[rng.integers(len(drawn))]
    for B in valuations(M):
        for atom, verdict in enumerate(certify(M, B)):
            if verdict != "always":
                kind = assert_other_model(M, B, atom).kind
                assert (verdict == "never") == (kind != "reparametrisation")


@pytest.mark.slow
def test_every_no_of_small_designs_has_a_second_model():
    sizes = itertools.product((1, 2, 3), (1, 2, 3, 4))
    cases = [(M, B) for n, m in sizes for M in designs(n, m) for B in valuations(M)]
    for M, B in cases[::9]:
        for atom, verdict in enumerate(certify(M, B)):
            if verdict != "always":
                kind = assert_other_model(M, B, atom).kind
                assert (verdict == "never") == (kind != "reparametrisation")


@pytest.mark.parametrize(
    ("M", "expected"),
    [
        # A line meets a circle in two points, and these leave two values of the third atom.
        ([[0, 1, 1], [0, 1, 1], [1, 0, 1]], ("full support",) * 3),
        # One atom beside two that may be rotated.
        ([[0, 1, 1], [1, 1, 1], [1, 1, 1]], ("full support", "never", "never")),
    ],
)
def test_dependent_columns_of_which_some_are_settled_by_full_support(M, expected):
    M = np.array(M, dtype=float)
    B = M * np.random.default_rng(5).normal(size=M.shape)
    assert certify(M, B) == expected
    for atom, verdict in enumerate(expected):
        kind = assert_other_model(M, B, atom).kind
        assert (kind == "reparametrisation") == (verdict == "full support")


def test_an_atom_with_an_environment_of_its_own_beside_atoms_with_equal_columns():
    """Special valuations: environment 1 alone shows atom 3, and the others may be rotated."""
    M = np.array([[0.0, 0, 0, 1], [1, 1, 1, 1], [1, 1, 1, 1]])
    B = np.array([[0.0, 0, 0, 1], [1, -1, 1, 1], [-1, -1, 1, -1]])
    assert certify(M, B) == ("never",) * 3 + ("full support",)


def test_an_identified_atom_has_no_competitor():
    M = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    B = np.array([[0.3, 0.0], [0.0, 0.2], [-0.5, 0.7]])
    with pytest.raises(ValueError, match="identified on every support"):
        competitor(M, B, 0, np.random.default_rng(0))


def test_a_flow_moves_nothing_outside_its_ball():
    M, B = np.array([[1.0, 1.0]]), np.array([[0.3, -0.4]])
    M3, B3 = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), np.array([[0.3, -0.4, 0], [0, 0.2, 1]])
    assert competitor(M, B, 0, np.random.default_rng(0)).kind == "rotation"
    flow = competitor(M3, B3, 0, np.random.default_rng(0))
    assert flow.kind == "flow"
    outside = flow.centre + 1.01 * flow.radius * np.eye(3)
    np.testing.assert_array_equal(flow(outside), outside)


def test_a_connected_support_that_is_not_full_leaves_an_atom_open():
    """z_1 is mirrored and z_2 made good: g is unchanged on a ball, and z_2 is bent."""
    M = np.array([[1.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 1]])
    B = np.array([[0.3, 0, 0], [-0.4, 0, 0], [0.2, 1, 0], [0, -0.6, 0]])
    z = np.array([0.0, 1.0, 4.0]) + np.random.default_rng(0).uniform(-0.5, 0.5, size=(300, 3))
    other = z.copy()
    other[:, 1] = 2 - z[:, 1]
    other[:, 2] = np.sqrt(z[:, 2] ** 2 + (z[:, 1] + 0.6) ** 2 - (other[:, 1] + 0.6) ** 2)
    first, second = (Z**2 @ M.T / 2 - Z @ B.T for Z in (z, other))
    np.testing.assert_allclose(first - second, (first - second)[:1].repeat(300, 0), atol=1e-12)
    assert abs(np.corrcoef(z[:, 2], other[:, 2])[0, 1]) < 0.9
    assert certify(M, B) == ("always", "full support", "full support")


def test_without_shared_atoms_one_environment_may_be_rotated():
    """Definition 4 has to say that competitors satisfy Assumption 2: with it, another one shows."""
    rng = np.random.default_rng(1)
    design, atoms = propose_design(3), np.linalg.qr(rng.normal(size=(4, 4)))[0][:3]
    base = random_mixture(4, rng)
    Z = base.sample(300, rng)
    concepts = design.concepts(atoms)
    assert [list(S) for S in design.subsets[:2]] == [[0], [0, 1]]
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    turned = Concept(turn @ concepts[1].A, turn @ concepts[1].b)
    densities = [base.condition(c, design.variance).log_density(Z) for c in (concepts[1], turned)]
    np.testing.assert_allclose(densities[0], densities[1], atol=1e-9)
    assert mcc(concepts[1].valuation(Z), turned.valuation(Z)) < 0.95
    shared = Concept(turned.A[:1], concepts[0].b)  # the same row in environment 1
    densities = [base.condition(c, design.variance).log_density(Z) for c in (concepts[0], shared)]
    assert np.ptp(densities[0] - densities[1]) > 1
