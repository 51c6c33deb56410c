"""Statements of the theory chapters that have no program of their own, each with numbers."""

import itertools

import numpy as np
import pytest

from conceptnb.core.certificate import certify
from conceptnb.core.concepts import Concept
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import GaussianMixture, log_acceptance
from conceptnb.core.planner import propose_design
from conceptnb.core.scores import mcc


@pytest.mark.parametrize("n", [2, 3, 4])
def test_single_atom_environments_leave_all_atoms_but_one_without_a_contrast(n):
    """n + 1 environments with one atom each, all atoms used: Assumption 4 holds for one atom."""
    rng = np.random.default_rng(n)
    covering = [S for S in itertools.product(range(n), repeat=n + 1) if len(set(S)) == n]
    for S in covering:
        design = EnvironmentDesign([[i] for i in S], rng.normal(size=(n + 1, 1)).tolist(), 1.0)
        report = design.check()
        (twice,) = (i for i in range(n) if S.count(i) == 2)
        assert np.flatnonzero(report.assumption4).tolist() == [twice]
    assert propose_design(n).check().satisfied


@pytest.mark.parametrize(("sign", "equal"), [(1.0, True), (-1.0, False)])
def test_from_atoms_to_concepts_with_a_plus(sign, equal):
    """(24) to (34): the second model's valuations are λ (b + <a, w>), as (4) does not print."""
    rng = np.random.default_rng(0)
    A, w, scale = rng.normal(size=(3, 5)), rng.normal(size=5), np.array([2.0, -2.0, 2.0])
    order = np.array([2, 0, 1])  # atom i of the first model is atom order[i] of the second
    Z = rng.normal(size=(50, 5))
    u = Z @ A.T
    other = np.empty_like(u)
    other[:, order] = scale * (u + A @ w)
    S, b, variance = [0, 2], np.array([0.3, -0.7]), 0.5
    first = ((u[:, S] - b) ** 2).sum(axis=1) / variance
    b_other = scale[S] * (b + sign * (A @ w)[S])
    second = ((other[:, order[S]] - b_other) ** 2).sum(axis=1) / (4 * variance)
    assert (np.ptp(first - second) < 1e-9) == equal


def residual_of_head(design, valuations, h):
    """Least misfit of log ratios by a head (87) with dense β and γ, on an encoder's outputs."""
    G = valuations**2 @ design.M.T / 2 - valuations @ design.B.T
    features = np.hstack([h**2, h, np.ones((len(h), 1))])
    return np.abs(features @ np.linalg.lstsq(features, G, rcond=None)[0] - G).max() / G.std()


def test_a_dense_head_fits_affine_encoders_of_single_atoms_and_no_others():
    """Minimisers of (88) with η = 0: with b of one sign no bent or mixed encoder fits."""
    rng = np.random.default_rng(1)
    design = propose_design(3)
    z = rng.normal(scale=0.3, size=(500, 3))
    affine = (z * [2.0, -1.0, 0.5] + [0.1, 0.0, 3.0])[:, [1, 2, 0]]
    assert residual_of_head(design, z, affine) < 1e-8
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    assert residual_of_head(design, z, z @ turn) > 1e-2
    bent = z + 0.3 * z**2
    assert residual_of_head(design, z, bent) > 1e-2


def test_a_reflected_island_and_a_bent_half_line_have_the_same_data():
    """The three regimes of one design, as the chapter on failures prints them."""
    b, z = 0.5, np.random.default_rng(2).normal(size=5000)
    above, apart = b + 0.3 + np.abs(z), b + np.sign(z) * (0.3 + np.abs(z))
    bent = b + np.sqrt((above - b) ** 2 + 4)
    for one, other, least in ((above, bent, 0.01), (apart, b + np.abs(apart - b), 0.3)):
        assert np.ptp((one - b) ** 2 - (other - b) ** 2) < 1e-12
        assert 1 - abs(np.corrcoef(one, other)[0, 1]) > least


def test_independent_gaussian_latents_are_not_identified_and_conditioning_shows_the_atom():
    rng = np.random.default_rng(3)
    turn = np.array([[1.0, -1.0], [1.0, 1.0]]) / 2**0.5
    z = GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)]).sample(20_000, rng)
    np.testing.assert_allclose(np.cov(z @ turn.T, rowvar=False), np.eye(2), atol=0.05)
    assert mcc(z, z @ turn.T) == pytest.approx(2**-0.5, abs=0.02)


def test_a_connected_support_is_not_enough_for_valuations_that_vary():
    """Two atoms move on a ball, by an explicit map, and no log ratio changes."""
    M = np.array([[1.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 1]])
    B = np.array([[0.3, 0, 0], [-0.4, 0, 0], [0.2, 1.0, 0], [0, -0.6, 0.0]])
    design = EnvironmentDesign([[0], [0], [0, 1], [1, 2]], [[0.3], [-0.4], [0.2, 1], [-0.6, 0]], 1)
    np.testing.assert_array_equal(design.B, B)
    assert "always" not in certify(M, B)[1:]
    rng = np.random.default_rng(0)
    z = np.array([0.0, 1.0, 4.0]) + rng.uniform(-0.5, 0.5, size=(500, 3))
    other = z.copy()
    other[:, 1] = 2 - z[:, 1]
    other[:, 2] = np.sqrt(z[:, 2] ** 2 + (z[:, 1] + 0.6) ** 2 - (other[:, 1] + 0.6) ** 2)
    ratios = [(v**2 @ M.T) / 2 - v @ B.T for v in (z, other)]
    np.testing.assert_allclose(ratios[1] - ratios[0], 0, atol=1e-12)
    assert abs(np.corrcoef(z[:, 2], other[:, 2])[0, 1]) < 0.95


def test_one_environment_with_rows_of_its_own_has_the_same_data():
    """Why Definition 4 compares with models that share their atoms (Assumption 2) only."""
    base = GaussianMixture([1.0], [np.zeros(3)], [np.eye(3)])
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    first = Concept([[1.0, 0.2, 0.0], [0.0, 1.0, 0.5]], [0.3, -0.4])
    second = Concept(turn @ first.A, turn @ first.b)
    one, two = (base.condition(concept, 0.1) for concept in (first, second))
    np.testing.assert_allclose(one.means, two.means, atol=1e-12)
    np.testing.assert_allclose(one.covariances, two.covariances, atol=1e-12)
    Z = np.random.default_rng(1).normal(size=(2000, 3))
    assert mcc(first.valuation(Z), second.valuation(Z)) < 0.9


def test_learned_valuations_condition_like_true_ones():
    """Rejection by valuations in other units, signs and zeros, of Appendix H."""
    rng = np.random.default_rng(2)
    concept = Concept([[1.0, 0.2, 0.0], [0.0, 1.0, 0.5]], [0.3, -0.4])
    Z, scale, shift = rng.normal(size=(300, 3)), np.array([2.0, -0.5]), np.array([0.7, -1.1])
    learned = scale * (Z @ concept.A.T + shift)
    wanted, width = scale * (concept.b + shift), np.abs(scale) * 0.1**0.5
    kept = -(((learned - wanted) / width) ** 2).sum(axis=1) / 2
    truth = log_acceptance(concept, 0.1, Z)
    np.testing.assert_allclose(kept, truth, rtol=1e-9)
    one_width = -(((learned - wanted) ** 2) / 0.1).sum(axis=1) / 2
    assert np.ptp(one_width - truth) > 1
