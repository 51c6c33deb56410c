import numpy as np
import pytest

from conceptnb.core.causal import LinearSCM, environments_needed, ratio_form
from conceptnb.core.concepts import Concept, intersection
from conceptnb.core.conditioning import (
    EnforcedMeasure,
    averaged_measure,
    bayesian_measure,
    matching_covariance,
    wanted_valuation,
)
from conceptnb.core.distributions import GaussianMixture, sample_rejection
from conceptnb.core.problems import TABLE_1, draw_problem

BASE = GaussianMixture(
    [0.6, 0.4],
    [[0.0, 0.0, 0.0], [1.0, -1.0, 0.5]],
    [[[1, 0.7, 0], [0.7, 1, 0.2], [0, 0.2, 0.5]], 0.5 * np.eye(3)],
)
CONCEPT = Concept([[1.0, 0.5, 0.0], [0.0, 1.0, 0.3]], [0.8, -0.2])


def test_enforced_and_averaged_have_the_wanted_marginal_and_bayesian_not():
    rng = np.random.default_rng(0)
    mean, covariance = wanted_valuation(CONCEPT, 0.2)
    V = CONCEPT.row_space
    enforced = EnforcedMeasure(BASE, CONCEPT, 0.2).sample(60_000, rng) @ V.T
    np.testing.assert_allclose(enforced.mean(axis=0), mean, atol=0.01)
    np.testing.assert_allclose(np.cov(enforced.T), covariance, atol=0.01)
    averaged = averaged_measure(BASE, CONCEPT, 0.2).linear_image(V)
    np.testing.assert_allclose(averaged.means, np.tile(mean, (2, 1)), atol=1e-12)
    np.testing.assert_allclose(averaged.covariances[0], covariance, atol=1e-12)
    bayesian = bayesian_measure(BASE, CONCEPT, 0.2).linear_image(V)
    assert np.abs(bayesian.weights @ bayesian.means - mean).max() > 0.02


def test_enforced_density_is_normalised_and_keeps_the_plane():
    rng = np.random.default_rng(1)
    enforced = EnforcedMeasure(BASE, CONCEPT, 0.2)
    proposal = averaged_measure(BASE, CONCEPT, 0.2)
    Z = proposal.sample(60_000, rng)
    ratio = np.exp(enforced.log_density(Z) - proposal.log_density(Z))
    assert ratio.mean() == pytest.approx(1.0, abs=0.02)
    # p_C(c | v) = p(c | v): along the plane, log densities differ by a constant.
    along = np.linspace(-1, 1, 7)[:, None] * CONCEPT.directions[0] + Z[0]
    difference = enforced.log_density(along) - BASE.log_density(along)
    np.testing.assert_allclose(difference, difference[0], atol=1e-9)


def test_enforced_samples_follow_its_density():
    rng = np.random.default_rng(2)
    enforced = EnforcedMeasure(BASE, CONCEPT, 0.2)
    proposal = averaged_measure(BASE, CONCEPT, 0.2)
    Y = proposal.sample(60_000, rng)
    weight = np.exp(enforced.log_density(Y) - proposal.log_density(Y))
    Z = enforced.sample(60_000, rng)
    c = CONCEPT.directions[0]
    for moment in (1, 2, 3):
        expected = np.average((Y @ c) ** moment, weights=weight)
        assert ((Z @ c) ** moment).mean() == pytest.approx(expected, abs=0.05)


def test_averaged_makes_plane_and_valuation_independent():
    measure = averaged_measure(BASE, CONCEPT, 0.2)
    cross = CONCEPT.directions @ measure.covariances @ CONCEPT.row_space.T
    np.testing.assert_allclose(cross, 0, atol=1e-12)
    plane = BASE.linear_image(CONCEPT.directions)
    np.testing.assert_allclose(
        measure.linear_image(CONCEPT.directions).means, plane.means, atol=1e-12
    )


def test_bayesian_measure_is_definition_3():
    rng = np.random.default_rng(3)
    exact = bayesian_measure(BASE, CONCEPT, 0.2)
    drawn = sample_rejection(BASE, CONCEPT, 0.2, 30_000, rng)
    np.testing.assert_allclose(drawn.mean(axis=0), exact.weights @ exact.means, atol=0.03)


def test_widths_agree_only_for_orthonormal_rows():
    square = Concept([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]], [0.1, 0.2])
    np.testing.assert_allclose(
        wanted_valuation(square, 0.3)[1], wanted_valuation(square, 0.3, "isotropic")[1]
    )
    assert (
        np.abs(
            wanted_valuation(CONCEPT, 0.3)[1] - wanted_valuation(CONCEPT, 0.3, "isotropic")[1]
        ).max()
        > 0.01
    )
    # The valuation width gives A z the covariance sigma^2 I.
    A = CONCEPT.A @ CONCEPT.row_space.T
    np.testing.assert_allclose(
        A @ wanted_valuation(CONCEPT, 0.3)[1] @ A.T, 0.3 * np.eye(2), atol=1e-12
    )


def test_equation_80_has_many_solutions_even_for_orthogonal_concepts():
    concepts = [Concept([[1.0, 0.0, 0.0]], [0.0]), Concept([[0.0, 1.0, 0.0]], [0.0])]
    found = []
    for r in (0.0, 0.7):
        covariance, _ = matching_covariance(concepts, [[1.0, r], [r, 1.0]])
        for concept in concepts:
            np.testing.assert_allclose(concept.A @ covariance @ concept.A.T, [[1.0]])
        found.append(covariance)
    assert np.abs(found[0] - found[1]).max() > 0.5


def test_matching_covariance_solves_80_where_79_does_not():
    concepts = [Concept([[1.0, 0.5, 0.0]], [0.0]), Concept([[0.0, 1.0, 0.3]], [0.0])]
    covariance, _ = matching_covariance(concepts)
    flat = intersection(concepts).projector
    for concept in concepts:
        np.testing.assert_allclose(concept.A @ covariance @ concept.A.T, [[1.0]])
        assert abs((concept.A @ flat @ concept.A.T)[0, 0] - 1) > 0.05


def test_79_solves_80_for_rows_that_are_orthonormal_within_each_concept():
    """Rows of different concepts need not be orthogonal; rows of one concept have to be."""
    unit = [Concept([[1.0, 0.0]], [0.0]), Concept([[0.6, 0.8]], [0.0])]
    flat = intersection(unit).projector
    for concept in unit:
        np.testing.assert_allclose(concept.A @ flat @ concept.A.T, [[1.0]])
    assert np.abs(matching_covariance(unit)[0] - flat).max() > 0.1  # another solution
    oblique = [Concept([[1.0, 0, 0], [0.6, 0.8, 0]], [0, 0]), Concept([[0, 0, 1.0]], [0])]
    left = oblique[0].A @ intersection(oblique).projector @ oblique[0].A.T
    assert np.abs(left - np.eye(2)).max() > 0.5


def test_log_ratios_of_the_three_measures_to_the_base():
    """Beside ln q: nothing, -ln p(v), and ln p(c) - ln p(c | v) - ln p(v)."""
    rng = np.random.default_rng(4)
    Z = BASE.sample(200, rng)
    mean, covariance = wanted_valuation(CONCEPT, 0.2)
    across, along = CONCEPT.row_space, CONCEPT.directions
    q = GaussianMixture([1.0], [mean], [covariance]).log_density(Z @ across.T)
    p, p_v = BASE.log_density(Z), BASE.linear_image(across).log_density(Z @ across.T)
    p_c = BASE.linear_image(along).log_density(Z @ along.T)
    beside = {
        "Bayesian": (bayesian_measure(BASE, CONCEPT, 0.2), 0 * p),
        "enforced": (EnforcedMeasure(BASE, CONCEPT, 0.2), -p_v),
        "averaged": (averaged_measure(BASE, CONCEPT, 0.2), p_c - (p - p_v) - p_v),
    }
    for name, (measure, expected) in beside.items():
        found = measure.log_density(Z) - p - q
        assert np.ptp(found - expected) < 1e-8, name
    without = p_c - (p - p_v)  # the averaged measure, -ln p(v) forgotten
    found = beside["averaged"][0].log_density(Z) - p - q
    assert np.ptp(found - without) > 0.1


def test_filtering_cannot_enforce_a_marginal_in_the_smallest_setting():
    """q is wider than every component of p(v), as |a|² 0.015 <= 3 (0.3)² 0.015 < 0.005."""
    for seed in range(20):
        problem = draw_problem(TABLE_1[0], seed, samples=5)
        marginals = [problem.base.linear_image(atom[None]) for atom in problem.atoms]
        spread = max(float(marginal.covariances.max()) for marginal in marginals)
        assert spread <= 3 * 0.3**2 * 0.015 < problem.design.variance
        far = np.array([[3.0], [6.0], [12.0]])
        log_q = -((far[:, 0]) ** 2) / (2 * problem.design.variance)
        quotient = log_q - marginals[0].log_density(far)
        assert (np.diff(quotient) > 100).all()


@pytest.mark.parametrize(
    ("coupling", "message"),
    [
        (np.eye(3), "shape"),
        ([[2.0, 0.0], [0.0, 1.0]], "identities"),
        ([[1.0, 2.0], [2.0, 1.0]], "semi-definite"),
    ],
)
def test_bad_couplings_are_named(coupling, message):
    concepts = [Concept([[1.0, 0.0]], [0.0]), Concept([[0.0, 1.0]], [0.0])]
    with pytest.raises(ValueError, match=message):
        matching_covariance(concepts, coupling)


def test_wrong_width_and_space_are_named():
    with pytest.raises(ValueError, match="width"):
        wanted_valuation(CONCEPT, 0.1, "narrow")
    with pytest.raises(ValueError, match="2 dimensions"):
        averaged_measure(BASE, Concept([[1.0, 0.0]], [0.0]), 0.1)


def test_scm_covariance_matches_ancestral_sampling():
    scm = LinearSCM([[0, 0, 0], [0.9, 0, 0], [0.3, -0.5, 0]], [1.0, 0.0, -1.0], [1.0, 0.5, 2.0])
    rng = np.random.default_rng(0)
    Z = np.zeros((100_000, 3))
    for j in range(3):
        noise = rng.normal(scm.means[j], np.sqrt(scm.variances[j]), size=len(Z))
        Z[:, j] = Z @ scm.W[j] + noise
    p = scm.distribution()
    np.testing.assert_allclose(Z.mean(axis=0), p.means[0], atol=0.03)
    np.testing.assert_allclose(np.cov(Z.T), p.covariances[0], atol=0.06)


def test_conditioning_moves_causes_and_intervening_does_not():
    scm = LinearSCM.chain()
    p = scm.distribution()
    seen, done = p.condition(scm.atom(1, 2.0), 0.01), scm.intervene(1, 2.0, 0.01).distribution()
    assert seen.means[0, 0] > 0.5
    assert done.means[0, 0] == pytest.approx(0.0)
    assert done.means[0, 2] == pytest.approx(1.8)
    averaged = averaged_measure(p, scm.atom(1, 2.0), 0.01)
    np.testing.assert_allclose(averaged.means[0], [0.0, 2.0, 0.0], atol=1e-12)


def test_ratio_forms_have_the_ranks_that_the_chapter_states():
    scm = LinearSCM.chain()
    p = scm.distribution()
    seen = np.linalg.eigvalsh(ratio_form(p, p.condition(scm.atom(1, 1.0), 0.1)))
    np.testing.assert_allclose(seen, [0.0, 0.0, 10.0], atol=1e-9)
    done = np.linalg.eigvalsh(ratio_form(p, scm.intervene(1, 1.0, 0.1).distribution()))
    assert done[0] < -0.1
    assert done[2] > 1


def test_log_ratios_of_interventions_on_several_variables_add_up():
    """Appendix B.2's multi-node interventions: two by two, and back to single ones by M⁺."""
    scm, rng = LinearSCM.chain(), np.random.default_rng(5)
    p = scm.distribution()
    Z = p.sample(50, rng)
    changes = [(i, rng.normal(), rng.uniform(0.2, 2)) for i in range(3)]

    def ratio(rows):
        model = scm
        for i in rows:
            model = model.intervene(*changes[i])
        return p.log_density(Z) - model.distribution().log_density(Z)

    single = np.array([ratio([i]) for i in range(3)])
    pairs = [[0, 1], [1, 2], [0, 2]]
    M = np.array([[float(i in S) for i in range(3)] for S in pairs])
    several = np.array([ratio(S) for S in pairs])
    np.testing.assert_allclose(several, M @ single, atol=1e-9)
    np.testing.assert_allclose(np.linalg.pinv(M) @ several, single, atol=1e-9)
    # Conditioning adds up to a constant, and not without it.
    atoms = [scm.atom(i, changes[i][1]) for i in range(2)]
    joint = p.log_density(Z) - p.condition(intersection(atoms), 0.3).log_density(Z)
    parts = sum(p.log_density(Z) - p.condition(atom, 0.3).log_density(Z) for atom in atoms)
    assert np.ptp(joint - parts) < 1e-9
    assert np.abs(joint - parts).max() > 1e-3


def test_an_intervention_on_a_root_is_a_parabola_in_it_alone():
    """M = 1/s² - 1/d of either sign, B = b/s² - μ/d; a variable with causes brings these in."""
    scm = LinearSCM([[0, 0], [0.7, 0]], [0.4, 0.0], [1.5, 1.0])
    p, rng = scm.distribution(), np.random.default_rng(6)
    Z = p.sample(40, rng)
    for variance in (0.5, 3.0):
        done = scm.intervene(0, -1.0, variance).distribution()
        slope, shift = 1 / variance - 1 / 1.5, -1 / variance - 0.4 / 1.5
        expected = slope * Z[:, 0] ** 2 / 2 - shift * Z[:, 0]
        assert np.ptp(p.log_density(Z) - done.log_density(Z) - expected) < 1e-9
    values = np.linalg.eigvalsh(ratio_form(p, scm.intervene(1, 0.0, 0.5).distribution()))
    assert values[0] < -0.1 < 0.1 < values[1]


def test_numbers_of_environments():
    counts = list(environments_needed([5], [1000]).values())
    assert [int(c[0]) for c in counts] == [7, 11, 1001, 2001]
    with pytest.raises(ValueError, match="between 1 and d_z"):
        environments_needed(3, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 1], [0, 0]], [0, 0], [1, 1]), "lower triangular"),
        (([[0, 0], [1, 0]], [0], [1, 1]), "means must have 2"),
        (([[0, 0], [1, 0]], [0, 0], [1, 0]), "positive"),
    ],
)
def test_bad_models_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        LinearSCM(*arguments)
    with pytest.raises(ValueError, match="below 3"):
        LinearSCM.chain().intervene(3, 0.0, 1.0)
