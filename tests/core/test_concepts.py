"""Definitions 1 and 2: concepts, atoms, valuations, projections."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conceptnb.core.concepts import Concept, intersection, random_atoms

SIZES = st.tuples(st.integers(1, 5), st.integers(0, 4), st.integers(0, 2**31)).map(
    lambda t: (t[0], t[0] + t[1], t[2])
)


def make(d_C: int, d_z: int, seed: int) -> tuple[Concept, np.random.Generator]:
    """A random concept whose rows are far from dependent."""
    rng = np.random.default_rng(seed)
    rows = np.linalg.qr(rng.standard_normal((d_z, d_C)))[0].T
    mix = rng.uniform(-0.2, 0.2, (d_C, d_C)) + np.diag(rng.uniform(1, 2, d_C))
    return Concept(mix @ rows, rng.standard_normal(d_C)), rng


@given(SIZES)
def test_projection_is_the_nearest_point_that_satisfies(size):
    concept, rng = make(*size)
    Z = rng.standard_normal((20, concept.d_z))
    projected = concept.project(Z)
    np.testing.assert_allclose(concept.valuation(projected), np.tile(concept.b, (20, 1)), atol=1e-9)
    assert concept.satisfied_by(projected).all()
    # Any other point of the subspace is farther away.
    other = projected + rng.standard_normal((20, len(concept.directions))) @ concept.directions
    np.testing.assert_allclose(concept.valuation(other), concept.valuation(projected), atol=1e-9)
    near, far = (np.linalg.norm(Z - points, axis=1) for points in (projected, other))
    assert (near <= far + 1e-9).all()


@given(SIZES)
def test_projector_is_orthogonal_and_has_the_same_level_sets(size):
    concept, rng = make(*size)
    P = concept.projector
    np.testing.assert_allclose(P @ P, P, atol=1e-9)
    np.testing.assert_allclose(P, P.T, atol=1e-9)
    Z = concept.point + rng.standard_normal((5, len(concept.directions))) @ concept.directions
    np.testing.assert_allclose(Z @ P.T, np.tile(concept.point, (5, 1)), atol=1e-9)


@given(SIZES)
def test_valuations_do_not_change_under_a_linear_change_of_latent_space(size):
    """A T^-1 evaluated at T z is A z: the ambiguity that Definition 4 names."""
    concept, rng = make(*size)
    T = rng.uniform(-0.1, 0.1, (concept.d_z, concept.d_z)) + 2 * np.eye(concept.d_z)
    Z = rng.standard_normal((7, concept.d_z))
    moved = Concept(concept.A @ np.linalg.inv(T), concept.b)
    np.testing.assert_allclose(moved.valuation(Z @ T.T), concept.valuation(Z), atol=1e-9)


def test_small_red_objects_are_an_intersection_of_atoms():
    red, small = Concept([[1, 0, 0]], [2.0]), Concept([[0, 1, 0]], [-1.0])
    both = intersection([red, small])
    assert both.dim == 2
    Z = np.array([[2, -1, 9], [2, 0, 9], [0, -1, 9]], dtype=float)
    np.testing.assert_array_equal(both.satisfied_by(Z), [True, False, False])
    parts = both.atoms()
    assert [atom.b.tolist() for atom in parts] == [[2.0], [-1.0]]
    np.testing.assert_array_equal(parts[0].A, red.A)


def test_distance_and_not_valuation_decides_what_satisfies():
    """Rescaling A and b together leaves the subspace, so also who lies on it."""
    Z = np.array([[1.0, 1.0 + 1e-5]])
    for scale in (1e-6, 1.0, 1e6):
        concept = Concept([[0.0, scale]], [scale])
        assert concept.satisfied_by(Z, atol=2e-5).all()
        assert not concept.satisfied_by(Z, atol=0.5e-5).any()


def test_another_valuation_is_a_parallel_subspace():
    concept = Concept([[3.0, 4.0]], [5.0])
    moved = concept.at([10.0])
    np.testing.assert_allclose(moved.directions, concept.directions)
    # Valuations 5 apart, for a row of norm 5, are subspaces at distance 1.
    assert np.linalg.norm(moved.point - concept.point) == pytest.approx(1.0)


def test_arrays_cannot_be_changed_behind_a_concept():
    concept = Concept([[1.0, 0.0]], [0.0])
    with pytest.raises(ValueError, match="read-only"):
        concept.A[0, 0] = 5.0


def test_random_atoms_follow_appendix_g():
    atoms = random_atoms(40, 500, np.random.default_rng(0))
    assert np.abs(atoms).max() < 0.3
    assert atoms.std() == pytest.approx(0.3 / np.sqrt(3), rel=0.02)
    assert np.linalg.matrix_rank(atoms) == 40


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([[1, 0], [2, 0]], [1, 1]), ValueError, "rows of A are linearly dependent"),
        (([[0, 0]], [1]), ValueError, "linearly dependent"),
        (([[1, 0], [0, 1], [1, 1]], [1, 1, 1]), ValueError, "linearly dependent"),
        (([[1, 0]], [1, 2]), ValueError, "b must have one entry per row of A: 1, got 2"),
        (([1, 0], [1]), ValueError, "A must have 2 axes"),
        (([[1, np.nan]], [1]), ValueError, "A holds 1 entries that are NaN"),
        (([[1, 0]], [np.inf]), ValueError, "b holds 1 entries that are NaN"),
        (([["a", "b"]], [1]), TypeError, "A must hold real numbers"),
        (([[1, 0], [1]], [1]), ValueError, "A must be rectangular"),
        ((np.empty((0, 3)), []), ValueError, "at least one row"),
    ],
)
def test_bad_concepts_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Concept(*arguments)


def test_bad_points_and_sizes_are_refused(rng):
    concept = Concept([[1.0, 0.0, 0.0]], [0.0])
    with pytest.raises(ValueError, match=r"Z must have shape \(samples, 3\)"):
        concept.valuation(np.zeros((5, 2)))
    with pytest.raises(ValueError, match="atol must be positive"):
        concept.satisfied_by(np.zeros((1, 3)), atol=-1.0)
    with pytest.raises(ValueError, match="n must be at most d_z"):
        random_atoms(4, 3, rng)
    with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
        random_atoms(2, 3, 0)
    with pytest.raises(ValueError, match="different dimensions"):
        intersection([concept, Concept([[0.0, 1.0]], [0.0])])
    with pytest.raises(ValueError, match="at least one Concept"):
        intersection([])
