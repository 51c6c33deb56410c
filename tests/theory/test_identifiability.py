import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.planner import propose_design, random_design
from conceptnb.core.problems import log_odds
from conceptnb.core.scores import mcc
from conceptnb.studies.theory_from_samples import (
    Quadratics,
    estimate_ratios,
    linear_instance,
    recover_from_samples,
)
from conceptnb.studies.theory_tables import (
    draw_instance,
    random_instance,
    recover_instance,
    recover_instances,
    recover_nested,
)
from conceptnb.theory import standard_form
from conceptnb.theory import theorem1 as proof
from conceptnb.theory.minima import jacobian, minimise
from conceptnb.theory.nonlinear_map import Diffeomorphism, SmoothMixing
from conceptnb.theory.observables import Observables
from conceptnb.theory.standard_form import StandardForm
from conceptnb.theory.theorem1 import evaluate_valuations
from conceptnb.theory.theorem2 import recover_linear


@pytest.fixture(scope="module")
def instance():
    rng = np.random.default_rng(0)
    return random_instance(propose_design(2, 0.01), 4, 6, rng)


@given(st.integers(1, 6), st.integers(0, 4), st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_embeddings_invert_and_have_full_rank(d_z, extra, seed):
    rng = np.random.default_rng(seed)
    f, warp = SmoothMixing(d_z, d_z + extra, rng), Diffeomorphism(d_z, rng)
    Z = rng.normal(size=(20, d_z))
    np.testing.assert_allclose(f.inverse(f(Z)), Z, atol=1e-9)
    np.testing.assert_allclose(warp.inverse(warp(Z)), Z, atol=1e-9)
    steps = 1e-6 * np.eye(d_z)
    slope = np.stack([(f(Z[:1] + s) - f(Z[:1] - s))[0] / 2e-6 for s in steps])
    assert np.linalg.svd(slope, compute_uv=False)[-1] > 1e-3


def test_embedding_refuses_to_lose_dimensions():
    with pytest.raises(ValueError, match="d_x must be at least"):
        SmoothMixing(4, 3, np.random.default_rng(0))


def test_log_ratios_do_not_depend_on_the_chart(instance):
    Z = instance.base.sample(50, np.random.default_rng(1))
    exact = -log_odds(instance.base, instance.design, instance.atoms, Z)
    np.testing.assert_allclose(instance.log_ratio(instance.mixing(Z)), exact, atol=1e-8)
    seen = instance.observables(instance.mixing(Z))
    np.testing.assert_allclose(seen.ratios(seen.points), exact, atol=1e-8)
    prepared = seen.prepared()
    np.testing.assert_allclose(prepared.ratios(prepared.points), exact, atol=1e-7)
    np.testing.assert_allclose(prepared.points.std(axis=0), 1.0)


def test_minimise_finds_minima_of_quadratics_with_flat_directions():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(2, 5))

    def ratios(U):
        return (U @ A.T - 1.0) ** 2

    found = minimise(ratios, np.array([[1.0, 0.0], [1.0, 2.0]]), np.zeros(5))
    np.testing.assert_allclose(found.ratios[1], 0.0, atol=1e-12)
    np.testing.assert_allclose(found.ratios[0, 0], 0.0, atol=1e-12)
    np.testing.assert_allclose(found.hessians[1], 2 * A.T @ np.diag([1, 2]) @ A, atol=1e-5)


def test_minimise_says_when_a_sum_has_no_minimum():
    with pytest.raises(RuntimeError, match="bounded below"):
        minimise(lambda U: -(U[:, :1] ** 2), np.ones((1, 1)), np.ones(2), max_iterations=20)


def test_jacobian_of_a_known_function():
    U = np.random.default_rng(0).normal(size=(7, 3))
    found = jacobian(lambda V: np.column_stack([np.sin(V[:, 0]), V[:, 1] * V[:, 2]]), U)
    expected = np.zeros((7, 2, 3))
    expected[:, 0, 0] = np.cos(U[:, 0])
    expected[:, 1, 1], expected[:, 1, 2] = U[:, 2], U[:, 1]
    np.testing.assert_allclose(found, expected, atol=1e-8)


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_signatures_follow_from_the_sizes_of_unions(seed):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    M = (rng.random((m, n)) < 0.5).astype(float)
    M[rng.integers(m, size=n), np.arange(n)] = 1.0
    sizes = {T: int(M[sorted(T)].any(axis=0).sum()) if T else 0 for T in proof.subsets(m)}
    found = proof.environment_matrix(sizes)
    columns = sorted(map(tuple, M.T), reverse=True)
    assert [tuple(column) for column in found.T] == columns


def test_impossible_sizes_are_refused():
    sizes = {frozenset(): 0, frozenset({0}): 2, frozenset({1}): 2, frozenset({0, 1}): 5}
    with pytest.raises(ValueError, match="rank was misread"):
        proof.environment_matrix(sizes)


def test_standard_form_is_that_of_equation_41_with_sigma(instance):
    design = instance.design
    M, B, order = standard_form(design.M, design.B, design.variance)
    assert set(np.unique(M)) == {0.0, 1.0}
    np.testing.assert_allclose(B.sum(axis=0), 0, atol=1e-12)
    # The model in standard form has the same log ratios up to constants.
    Z = instance.base.sample(30, np.random.default_rng(2))
    sigma = design.variance**0.5
    shift = (design.B * sigma).sum(axis=0) / M.sum(axis=0)[np.argsort(order)]
    z = (Z @ instance.atoms.T / sigma - shift)[:, order]
    signs = np.sign(
        (B * ((design.B * sigma) - (design.M * design.variance) * shift)[:, order]).sum(axis=0)
    )
    g = StandardForm(M, B, np.zeros(len(M))).ratios(z * signs)
    exact = -log_odds(instance.base, design, instance.atoms, Z)
    np.testing.assert_allclose((g - exact).std(axis=0), 0, atol=1e-8)


@pytest.mark.parametrize("seed", [1, 6])
def test_theorem1_recovers_random_instances(seed):
    (row,) = recover_instances([seed])
    assert row["M_right"]
    assert row["B_error"] < 1e-4
    assert row["correlation"] > 0.9999


@pytest.mark.long
def test_theorem1_recovers_more_random_instances():
    rows = recover_instances(range(1000, 1012))
    assert all(row["M_right"] for row in rows)
    assert max(row["B_error"] for row in rows) < 1e-4
    assert min(row["correlation"] for row in rows) > 0.9999


def test_the_two_ways_to_recover_B_agree(instance):
    rng = np.random.default_rng(4)
    seen = instance.observables(instance.sample(300, rng)).prepared()
    M, B, _ = standard_form(instance.design.M, instance.design.B, instance.design.variance)
    np.testing.assert_allclose(proof.valuation_matrix(seen, M), B, atol=1e-5)
    np.testing.assert_allclose(proof.valuation_matrix_by_residues(seen, M, rng), B, atol=1e-5)


def test_assumption5_is_needed_by_step_4_and_not_by_residues():
    (row,) = recover_nested([0])
    assert row["M_right"]
    assert row["B_error"] < 1e-6
    assert row["correlation"] > 0.9999
    design = EnvironmentDesign([[0, 1], [0, 1], [1]], [[0.1, -0.2], [-0.1, 0.1], [0.2]], 0.01)
    M, _, _ = standard_form(design.M, design.B, design.variance)
    blank = Observables(lambda U: np.zeros((len(U), 3)), np.zeros((5, 2)), 3)
    with pytest.raises(ValueError, match="Assumption 5"):
        proof.valuation_matrix(blank, M)


def test_step_5_is_exact_on_a_known_model():
    rng = np.random.default_rng(5)
    design = random_design(3, 5, rng, 1.0)
    M, B, _ = standard_form(design.M, design.B, 1.0)
    model = StandardForm(M, B, rng.normal(size=5))
    z = rng.normal(size=(100, 3))
    warp = Diffeomorphism(4, rng)
    U = warp(np.hstack([z, rng.normal(size=(100, 1))]))
    seen = Observables(lambda V: model.ratios(warp.inverse(V)[:, :3]), U, 5)
    np.testing.assert_allclose(evaluate_valuations(seen, model, U), z, atol=1e-6)


def test_step_5_on_the_ratios_of_other_environments_does_not_recover(instance):
    """Control: the score is not high by construction, nor by the truth that is given."""
    X = instance.sample(200, np.random.default_rng(6))
    seen = instance.observables(X)
    model = StandardForm(*_true_form(instance))
    learned = evaluate_valuations(seen, model, instance.coordinates(X))
    assert mcc(instance.valuations(X), learned) > 0.9999
    turned = Observables(lambda U: np.roll(seen.ratios(U), 1, axis=1), seen.points, 3)
    learned = evaluate_valuations(turned, model, instance.coordinates(X))
    assert mcc(instance.valuations(X), learned) < 0.9


def _true_form(instance):
    M, B, _ = standard_form(instance.design.M, instance.design.B, instance.design.variance)
    seen = instance.observables(instance.sample(200, np.random.default_rng(0))).prepared()
    return M, B, proof.constants(seen, M, B)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_theorem2_recovers_by_linear_algebra(n):
    rng = np.random.default_rng(n)
    subsets = [[i] for i in range(n) for _ in range(2)]
    design = EnvironmentDesign(subsets, rng.normal(scale=0.3, size=(2 * n, 1)).tolist(), 0.01)
    instance = random_instance(design, n + 2, n + 4, rng)
    X = instance.sample(1500, rng)
    found = recover_linear(instance.log_ratio(X))
    assert mcc(instance.valuations(X), found.valuations) > 1 - 1e-8
    assert (np.abs(found.M) > 1e-6).sum() == 2 * n


def test_theorem2_refuses_designs_of_lower_rank(instance):
    X = instance.sample(500, np.random.default_rng(0))
    with pytest.raises(ValueError, match="Theorem 2 does not apply"):
        recover_linear(instance.log_ratio(X))
    with pytest.raises(ValueError, match="more than"):
        recover_linear(np.random.default_rng(0).normal(size=(10, 8)))


def test_theorem2_refuses_an_even_rank_without_enough_squares():
    """Single atoms, one of them twice: rank 4, and one function only whose square is there, too."""
    z = np.random.default_rng(3).normal(size=(300, 3))
    M = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]])
    ratios = z**2 @ M.T / 2 - z @ (M * [[0.3], [-0.2], [0.1], [-0.4]]).T
    with pytest.raises(ValueError, match="span 4 dimensions"):
        recover_linear(ratios)


def test_estimated_quadratics_approach_the_true_ones():
    rng = np.random.default_rng(8)
    instance = linear_instance(rng)
    concepts = instance.design.concepts(instance.atoms)
    errors = []
    for n in (500, 20_000):
        data = [
            instance.base.condition(c, instance.design.variance).sample(n, rng) for c in concepts
        ]
        fit = estimate_ratios(instance.base.sample(n, rng), data)
        truth = instance.design.M[:, :, None, None] * np.einsum(
            "ni,nj->nij", instance.atoms, instance.atoms
        )
        errors.append(np.sqrt(np.mean((fit.Q - truth.sum(axis=1)) ** 2)))
    assert errors[1] < errors[0] / 2


def test_recovery_from_samples_improves():
    instance = linear_instance(np.random.default_rng([7, 1]))
    row = recover_from_samples(instance, 15_000, np.random.default_rng(2))
    assert row["M_right"]
    assert row["B_error"] < 0.2
    assert row["valuation_error"] < 0.3


def test_quadratics_evaluate():
    Q = np.array([[[2.0, 1.0], [1.0, 4.0]]])
    found = Quadratics(Q, np.array([[1.0, 0.0]]), np.array([3.0]))(np.array([[1.0, 2.0]]))
    assert found[0, 0] == pytest.approx(0.5 * (2 + 4 + 16) - 1 + 3)


def test_instances_stay_inside_the_announced_sizes():
    for seed in range(20):
        instance = draw_instance(np.random.default_rng(seed))
        n, d_z, d_x = instance.design.n_atoms, instance.mixing.d_z, instance.mixing.d_x
        assert 2 <= n <= 5
        assert n <= d_z <= 12
        assert d_z <= d_x <= 20
        assert instance.design.check().satisfied


def test_environments_numbered_wrongly_are_not_recovered(instance):
    """Control: M or B of another design is seen to be another."""
    right = recover_instance(instance, np.random.default_rng(0))
    assert right["M_right"]
    assert right["B_error"] < 1e-4
    wrong = recover_instance(instance, np.random.default_rng(0), mislabelled=True)
    assert not wrong["M_right"] or wrong["B_error"] > 0.1


def test_B_of_another_design_is_seen_to_be_another():
    """Control: the same M, other valuations; a learner that guessed B would be found out."""
    near, far = (propose_design(2, 0.01, contrast=contrast) for contrast in (2.0, 3.0))
    shown = random_instance(near, 4, 6, np.random.default_rng(9))
    model = proof.recover(shown.observables(shown.sample(500, np.random.default_rng(0))))
    for design, error in ((near, 0.0), (far, 0.5)):
        M, B, _ = standard_form(design.M, design.B, design.variance)
        np.testing.assert_array_equal(model.M, M)
        assert np.abs(model.B - B).max() == pytest.approx(error, abs=1e-4)
