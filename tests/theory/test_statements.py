"""Statements of the theory chapters that have no program of their own, each with numbers."""

import itertools

import numpy as np
import pytest

from conceptnb.core.certificate import certify
from conceptnb.core.concepts import Concept
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import GaussianMixture, acceptance_rate, log_acceptance
from conceptnb.core.planner import propose_design
from conceptnb.core.scores import mcc
from conceptnb.studies.theory_tables import random_instance
from conceptnb.theory import standard_form
from conceptnb.theory import theorem1 as proof
from conceptnb.theory.theorem2 import recover_linear


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


@pytest.mark.parametrize(("scale", "equal"), [((2.0, -2.0), True), ((2.0, -3.0), False)])
def test_one_variance_leaves_one_unit(scale, equal):
    """Assumption 3: all |λ| are equal, by (31); valuations, signs and zeros are free."""
    rng = np.random.default_rng(11)
    u, b, w = rng.normal(size=(50, 2)), np.array([0.3, -0.7]), np.array([0.5, -1.0])
    first = ((u - b) ** 2).sum(axis=1) / 0.5
    other, b_other = np.array(scale) * (u + w), np.array(scale) * (b + w)
    fits = [((other - b_other) ** 2).sum(axis=1) / (s**2 * 0.5) for s in np.abs(scale)]
    assert (min(np.ptp(first - fit) for fit in fits) < 1e-9) == equal


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
    base = GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])
    seen = base.condition(Concept([[1.0, 0.0]], [1.0]), 0.1).covariances[0]
    np.testing.assert_allclose(seen, np.diag([1 / 11, 1.0]), atol=1e-12)
    assert np.abs((turn @ seen @ turn.T)[0, 1]) > 0.4  # the turn does not leave it as it is


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


def quadratics(M, B, z):
    """Log ratios (37) without their constants."""
    return z**2 @ M.T / 2 - z @ B.T


@pytest.mark.parametrize(("power", "equal"), [(1, True), (-1, False)])
def test_a_variance_for_each_atom_leaves_a_standard_form(power, equal):
    """(35), (36) and (41), which prints the inverse of σ where σ belongs."""
    rng = np.random.default_rng(4)
    occurs = np.array([[1.0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 1, 1]])
    sigma, shift = np.array([0.5, 1.3, 2.0]), rng.normal(size=3)
    M, B = occurs / sigma**2, occurs * rng.normal(size=occurs.shape) / sigma**2
    u = rng.normal(size=(50, 3))
    standard = quadratics(occurs, B * sigma**power - occurs * shift, u / sigma - shift)
    gaps = np.ptp(quadratics(M, B, u) - standard, axis=0)
    assert (gaps.max() < 1e-9) == equal


def test_a_variance_for_each_environment_and_atom_is_recovered_up_to_the_unit():
    """(11), (12): Theorem 2 uses the rank of (M, B) only. One unit is left open for each atom."""
    rng = np.random.default_rng(5)
    occurs = np.array([[1.0, 0], [1, 1], [1, 1], [0, 1], [1, 1], [1, 0]])
    M = occurs / rng.uniform(0.5, 2, size=occurs.shape)
    B = M * rng.normal(size=occurs.shape)
    z = rng.normal(size=(400, 2))
    found = recover_linear(quadratics(M, B, z))
    assert mcc(z, found.valuations) > 1 - 1e-9
    order = np.abs(np.corrcoef(z.T, found.valuations.T)[:2, 2:]).argmax(axis=1)
    np.testing.assert_allclose(found.M[:, order] / found.M[1, order], M / M[1], atol=1e-7)
    # Zeros and ones in place of the variances leave something over: no unit hides them.
    features = np.hstack([z @ np.diag([1, 2.0]), np.ones((400, 1))])
    rest = quadratics(M, B, z) - z**2 @ occurs.T / 2
    assert np.abs(features @ np.linalg.lstsq(features, rest, rcond=None)[0] - rest).max() > 0.1


@pytest.mark.parametrize(("sign", "right"), [(1, True), (-1, False)])
def test_lemma_2_lifts_to_concepts_with_a_plus(sign, right):
    """(74) to (77): back from the second model, and on to a third."""
    rng = np.random.default_rng(6)
    A, b, Z = rng.normal(size=(3, 6)), rng.normal(size=3), rng.normal(size=(6, 40))

    def step(A, b, values):
        P, scale = np.eye(3)[rng.permutation(3)], np.diag(rng.choice([-2.0, 0.5, 3.0], size=3))
        T, w = rng.normal(size=(6, 6)), rng.normal(size=6)
        factor = scale @ P
        rows = P @ A @ np.linalg.inv(T)
        return rows, factor @ (b + A @ w), factor @ (values + (A @ w)[:, None]), factor, T, w

    A2, b2, v2, factor, T, w = step(A, b, A @ Z)
    w_back = np.linalg.lstsq(A2, -factor @ A @ w, rcond=None)[0]
    back = np.linalg.inv(factor)
    np.testing.assert_allclose(factor @ A @ w, -A2 @ w_back, atol=1e-9)  # (74)
    np.testing.assert_allclose(back @ (v2 + (A2 @ w_back)[:, None]), A @ Z, atol=1e-9)  # (75)
    P = (factor != 0).astype(float)
    np.testing.assert_allclose(P.T @ A2 @ T, A, atol=1e-9)  # (76)
    found = back @ (b2 + sign * A2 @ w_back)
    assert (np.abs(found - b).max() < 1e-9) == right  # (77)
    # Transitive: factors multiply, and the atoms' independence gives the common shift.
    _, b3, v3, second, _, w2 = step(A2, b2, v2)
    total = np.linalg.lstsq(A, A @ w + back @ A2 @ w2, rcond=None)[0]
    np.testing.assert_allclose(second @ factor @ (A @ (Z + total[:, None])), v3, atol=1e-8)
    np.testing.assert_allclose(second @ factor @ (b + A @ total), b3, atol=1e-8)


def test_dependent_atoms_share_a_scale_and_have_a_shift_back():
    """Against Remark 3: (6) at all z makes (71) consistent, with atoms a, b, a + b and c."""
    rng = np.random.default_rng(10)
    A = np.vstack([rng.normal(size=(2, 4)), np.zeros(4), rng.normal(size=4)])
    A[2] = A[0] + A[1]
    Z, w, T = rng.normal(size=(50, 4)), rng.normal(size=4), rng.normal(size=(4, 4))
    new = A @ np.linalg.inv(T)
    for scale, related in (([2.0, 2, 2, -0.5], True), ([2.0, 0.5, 3, 1], False)):
        values = (Z + w) @ A.T * scale
        latents = np.linalg.lstsq(new, values.T, rcond=None)[0]
        assert (np.abs(new @ latents - values.T).max() < 1e-9) == related
        back = np.linalg.lstsq(new, -(A @ w) * scale, rcond=None)[0]
        gap = np.abs((values + new @ back) / scale - Z @ A.T).max()
        assert (gap < 1e-9) == related


def test_the_penalty_of_88_has_no_minimum():
    """Outputs times t: equal log-odds, and a norm that falls as one over t squared."""
    design, rng = propose_design(2), np.random.default_rng(7)
    beta, gamma, h = design.M / 2, design.B, rng.normal(size=(30, 2))
    odds, norm = -(h**2) @ beta.T + h @ gamma.T, np.abs(beta).sum()
    for t in (2.0, 100.0):
        other = -((t * h) ** 2) @ (beta / t**2).T + (t * h) @ (gamma / t).T
        np.testing.assert_allclose(other, odds, atol=1e-9)
        assert np.abs(beta / t**2).sum() == pytest.approx(norm / t**2)
    wrong = -((2 * h) ** 2) @ (beta / 4).T + (2 * h) @ gamma.T
    assert np.abs(wrong - odds).max() > 0.1


def test_a_dense_head_learns_the_zeros_of_m():
    """At a minimum of the cross-entropy, 2 λ² β = M: nothing is left for the penalty to do."""
    design, rng = propose_design(3), np.random.default_rng(8)
    z, scale = rng.normal(scale=0.3, size=(500, 3)), np.array([2.0, -0.5, 1.5])
    h = z * scale + [0.3, -1.0, 0.2]
    features = np.hstack([-(h**2), h, np.ones((500, 1))])
    log_odds = -quadratics(design.M, design.B, z)
    beta = np.linalg.lstsq(features, log_odds, rcond=None)[0][:3].T
    np.testing.assert_allclose(2 * scale**2 * beta, design.M, atol=1e-6 * design.M.max())


def test_step_5_fails_on_its_own_lines_and_not_where_the_papers_determinant_vanishes():
    M = np.array([[1.0, 0], [1, 1], [0, 1]])
    B = np.array([[1.0, 0], [-1.5, 1], [0, -1]])
    C, v = np.linalg.pinv(M) @ B, np.array([1.0, -1, 1])

    def left(z):
        return np.cross(*(M * z - B).T)

    for z0 in (-2.0, 0.2, 3.0):  # on the curve det(diag(z) - C) = 0
        z = np.array([z0, C[1, 1] + C[0, 1] * C[1, 0] / (z0 - C[0, 0])])
        assert abs(np.linalg.det(np.diag(z) - C)) < 1e-9
        w = left(z)
        np.testing.assert_allclose((w @ B) / (w @ M), z, atol=1e-9)
        in_the_papers_basis = np.linalg.solve(np.vstack([np.linalg.pinv(M), v]).T, w)
        assert abs(in_the_papers_basis[2]) < 1e-9
        assert (np.abs(in_the_papers_basis[:2]) > 0.1).all()
    for z0, z1 in ((0.4, -1.7), (2.0, 0.3)):
        np.testing.assert_allclose(left([z0, z1]) @ M, [2.5 * (z1 + 1), -2 * (z0 - 1)])
    assert np.abs(left(np.array([1.0, -1]))).max() < 1e-12


def test_the_induction_of_step_3_with_its_cases_in_order():
    """Sizes |S_T| within and without the last environment, as the errata have them."""
    rng = np.random.default_rng(9)
    printed = 0
    for _ in range(40):
        m, n = rng.integers(1, 5), rng.integers(1, 6)
        M = rng.random((m + 1, n)) < 0.5

        def size(T, atoms, M=M):
            return int(M[list(T)][:, atoms].any(axis=0).sum())

        whole = np.ones(n, dtype=bool)
        for T in itertools.chain(*(itertools.combinations(range(m), k) for k in range(m + 1))):
            alone, both, last = (size(S, whole) for S in (T, (*T, m), (m,)))
            assert alone + last - both == size(T, M[m])
            assert both - last == size(T, ~M[m])
            printed += both == size(T, M[m]) and alone - both == size(T, ~M[m])
    assert printed < 200  # what is printed holds by chance only


def test_a_design_without_a_contrast_is_recovered_all_the_same():
    """Assumption 4 is not necessary: no v serves atom 1, and B and all valuations come out."""
    design = EnvironmentDesign([[0, 1], [0, 1], [1]], [[0.1, 0.15], [-0.15, 0.15], [-0.1]], 0.01)
    assert design.check().assumption4.tolist() == [True, False]
    rng = np.random.default_rng(0)
    instance = random_instance(design, 3, 5, rng)
    seen = instance.observables(instance.sample(300, rng))
    scaled = seen.prepared()
    M = proof.environment_matrix(proof.codimensions(scaled)[0])
    B = proof.valuation_matrix_by_residues(scaled, M, rng)
    np.testing.assert_allclose(B, standard_form(design.M, design.B, 0.01)[1], atol=1e-6)
    X = instance.sample(200, rng)
    model = proof.StandardForm(M, B, proof.constants(scaled, M, B))
    learned = proof.evaluate_valuations(seen, model, instance.coordinates(X))
    assert mcc(instance.valuations(X), learned) > 0.9999


@pytest.mark.parametrize("factor", [1.0, 2.0, 5.0])
def test_lemma_4_needs_its_constant_to_be_equal_to_the_largest_density(factor):
    """A constant M above max(q)^dim keeps N_C / M, which is fewer, and the same distribution."""
    rng = np.random.default_rng(12)
    base = GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])
    concept = Concept([[1.0, 0.3]], [0.4])
    Z = base.sample(200_000, rng)
    ratio = np.exp(log_acceptance(concept, 0.3, Z)) / factor
    kept = Z[rng.random(len(Z)) <= ratio]
    expected = acceptance_rate(base, concept, 0.3) / factor
    assert len(kept) / len(Z) == pytest.approx(expected, rel=0.03)
    np.testing.assert_allclose(kept.mean(axis=0), base.condition(concept, 0.3).means[0], atol=0.03)
