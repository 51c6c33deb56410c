"""Recovery from the poles of V: unequal variances, no minima, no unit entries."""

import numpy as np
import pytest

from conceptnb.core.design import EnvironmentDesign
from conceptnb.studies.theory_tables import recover_by_poles
from conceptnb.theory.legendre import canonical_atoms, legendre_values, recover_from_poles
from conceptnb.theory.nonlinear_map import Diffeomorphism
from conceptnb.theory.observables import Observables


def in_a_chart(M, B, rng, centre, radius, d=None):
    """Black boxes in unknown coordinates, and points of a small cube of concept space."""
    d = M.shape[1] if d is None else d
    warp = Diffeomorphism(d, rng)
    Z = rng.uniform(-radius, radius, size=(300, d))
    Z[:, : M.shape[1]] += centre

    def ratios(U):
        z = warp.inverse(U)[:, : M.shape[1]]
        return z**2 @ M.T / 2 - z @ B.T

    return Observables(ratios, warp(Z), len(M)), Z[:, : M.shape[1]]


def test_v_is_the_value_at_the_critical_point():
    rng = np.random.default_rng(0)
    M, B, c = rng.uniform(0.5, 2, size=(4, 2)), rng.normal(size=(4, 2)), rng.normal(size=4)
    z = rng.normal(size=(20, 2))
    left = np.linalg.svd(M * z[:, None] - B)[0][:, :, 2]
    G = z**2 @ M.T / 2 - z @ B.T - c
    np.testing.assert_allclose((left @ B) / (left @ M), z)
    np.testing.assert_allclose(legendre_values(M, B, c, left), (left * G).sum(axis=1))


@pytest.mark.parametrize("d", [2, 4])
def test_six_variances_from_a_cube_without_a_minimum(d):
    """Theorem 2 would ask for 2n environments; here there are n + 1."""
    rng = np.random.default_rng(3)
    M, B = rng.uniform(0.5, 2.0, size=(3, 2)), rng.normal(size=(3, 2))
    centre = np.array([3.0, -2.5])
    seen, z = in_a_chart(M, B, rng, centre, 0.5, d)
    left = np.linalg.svd(M * z[:, None] - B)[0][:, :, 2]
    assert not ((left > 0).all(axis=1) | (left < 0).all(axis=1)).any()
    found = recover_from_poles(seen, rng)
    assert found.misfit < 1e-8
    true_M, true_B, _ = canonical_atoms(M, B)
    np.testing.assert_allclose(found.model.M, true_M, atol=1e-5)
    np.testing.assert_allclose(np.abs(found.model.B), np.abs(true_B), atol=1e-4)


@pytest.mark.slow
def test_twins_are_separable_when_their_ratios_differ():
    """Equal subsets in all environments, and different variances."""
    rng = np.random.default_rng(4)
    M = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 0.5], [1.0, 1.5]])
    B = rng.normal(size=(4, 2))
    seen, _ = in_a_chart(M, B, rng, np.array([1.5, -1.0]), 1.0)
    found = recover_from_poles(seen, rng)
    true_M, true_B, _ = canonical_atoms(M, B)
    np.testing.assert_allclose(found.model.M, true_M, atol=1e-5)
    np.testing.assert_allclose(np.abs(found.model.B), np.abs(true_B), atol=1e-4)


def test_as_many_environments_as_atoms_are_refused():
    design = EnvironmentDesign([[0], [1]], [[0.1], [0.3]], 1.0)
    seen, _ = in_a_chart(design.M, design.B, np.random.default_rng(0), np.ones(2), 0.5)
    with pytest.raises(ValueError, match="need more than 2"):
        recover_from_poles(seen, np.random.default_rng(0))


def test_random_instances_with_unequal_variances():
    (row,) = recover_by_poles([3])
    assert row["M_right"]
    assert row["B_error"] < 1e-4
    assert row["correlation"] > 0.9999


@pytest.mark.slow
def test_environments_numbered_wrongly_have_other_poles():
    (wrong,) = recover_by_poles([3], mislabelled=True)
    assert not wrong["M_right"]


@pytest.mark.slow
def test_twenty_instances_with_unequal_variances():
    rows = recover_by_poles(range(20))
    right = [r["M_right"] and r["B_error"] < 1e-4 and r["correlation"] > 0.9999 for r in rows]
    assert sum(right) >= 19, rows
