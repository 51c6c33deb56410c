"""Recovery from the poles of V: unequal variances, no minima, no unit entries."""

import numpy as np
import pytest

from conceptnb.core.design import EnvironmentDesign
from conceptnb.studies.theory_tables import recover_by_poles
from conceptnb.theory.legendre import (
    _elected,
    canonical_atoms,
    legendre_values,
    recover_from_poles,
)
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


@pytest.mark.long
@pytest.mark.parametrize("seed", [130, 279, 331])
def test_instances_that_are_hard(seed):
    """Each point of the base holds a minimum (130, 331), or no start shows all poles (279)."""
    (row,) = recover_by_poles([seed])
    assert row["M_right"]
    assert row["B_error"] < 1e-4
    assert row["correlation"] > 0.9999


def test_poles_are_elected_by_votes_and_by_fit():
    """Three of four poles have votes among noise, one is shown once, and B comes from the forms."""
    rng = np.random.default_rng(5)
    M, B, c = rng.normal(size=(5, 4)), rng.normal(size=(5, 4)), rng.normal(size=5)
    W = rng.normal(size=(900, 5))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    W = W[(np.abs(W @ M) > 0.2).all(axis=1)]
    V = legendre_values(M, B, c, W)
    unit = (M / np.linalg.norm(M, axis=0)).T
    noise = rng.normal(size=(30, 5))
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    shown = np.vstack([unit[[0, 0, 0, 1, 1, 1, 1, 2, 2, 2]], noise, unit[3:]])
    shown += 1e-3 * rng.normal(size=shown.shape)
    shown /= np.linalg.norm(shown, axis=1, keepdims=True)
    found_M, found_B = _elected(W, V, shown, 4)
    order = np.abs(unit @ found_M).argmax(axis=1)
    np.testing.assert_allclose(np.abs((unit.T * found_M[:, order]).sum(axis=0)), 1, atol=1e-8)
    constants = np.linalg.lstsq(
        W, -V + legendre_values(found_M, found_B, np.zeros(5), W), rcond=None
    )[0]
    again = legendre_values(found_M, found_B, constants, W)
    np.testing.assert_allclose(again, V, atol=1e-6 * np.abs(V).max())


@pytest.mark.slow
def test_environments_numbered_wrongly_have_other_poles():
    (wrong,) = recover_by_poles([3], mislabelled=True)
    assert not wrong["M_right"]


@pytest.mark.long
def test_twenty_instances_with_unequal_variances():
    rows = recover_by_poles(range(20))
    right = [r["M_right"] and r["B_error"] < 1e-4 and r["correlation"] > 0.9999 for r in rows]
    assert sum(right) >= 19, rows
