"""Definition 3, Algorithm 1, Lemma 4: two samplers, a formula, and each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from conceptnb.core.concepts import Concept, random_atoms
from conceptnb.core.design import EnvironmentDesign, paper_design
from conceptnb.core.distributions import (
    GaussianMixture,
    acceptance_rate,
    information,
    log_acceptance,
    random_mixture,
    sample_one,
    sample_rejection,
)
from conceptnb.core.problems import log_odds, sample_environments


def correlated_mixture(d_z: int, rng: np.random.Generator, K: int = 3) -> GaussianMixture:
    factors = rng.standard_normal((K, d_z, d_z)) / np.sqrt(d_z)
    covariances = factors @ factors.transpose(0, 2, 1) + 0.1 * np.eye(d_z)
    return GaussianMixture(rng.uniform(0.3, 1, K), rng.uniform(-1, 1, (K, d_z)), covariances)


class Anonymous:
    """A base of which nothing is known but how to draw from it."""

    def __init__(self, base: GaussianMixture) -> None:
        self.sample = base.sample


# (d_z, d_C, variance): atoms and concepts, tight and loose noise.
DESIGNS = [(2, 1, 0.05), (3, 1, 0.5), (5, 2, 0.3), (8, 3, 0.4)]


def one_design(d_z, d_C, variance, seed=0):
    rng = np.random.default_rng([seed, d_z, d_C])
    base = correlated_mixture(d_z, rng)
    A = rng.standard_normal((d_C, d_z)) / np.sqrt(d_z)
    return base, Concept(A, A @ base.sample(1, rng)[0]), variance, rng


@given(st.integers(1, 6), st.integers(0, 1000))
def test_density_agrees_with_scipy(d_z, seed):
    rng = np.random.default_rng(seed)
    base = correlated_mixture(d_z, rng)
    Z = base.sample(10, rng)
    direct = sum(
        w * stats.multivariate_normal(m, S).pdf(Z).reshape(-1)
        for w, m, S in zip(base.weights, base.means, base.covariances, strict=True)
    )
    np.testing.assert_allclose(base.log_density(Z), np.log(direct), rtol=1e-9)


def test_conditional_is_bayes_rule():
    """p_C(z) = p(z) q(Az - b) / N_C, with N_C found by quadrature in the plane."""
    base, concept, variance, _ = one_design(2, 1, 0.2)
    q = stats.norm(scale=np.sqrt(variance)).pdf
    axis = np.linspace(-10, 10, 1201)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)

    def unnormalised(Z):
        return np.exp(base.log_density(Z)) * q(concept.valuation(Z) - concept.b)[:, 0]

    surface = unnormalised(grid).reshape(len(axis), len(axis))
    normaliser = integrate.simpson(integrate.simpson(surface, x=axis), x=axis)
    conditional = base.condition(concept, variance)
    Z = conditional.sample(20, np.random.default_rng(0))
    expected = unnormalised(Z) / normaliser
    np.testing.assert_allclose(np.exp(conditional.log_density(Z)), expected, rtol=1e-6)
    # Lemma 4: N_C over the maximum of q.
    assert acceptance_rate(base, concept, variance) == pytest.approx(normaliser / q(0), rel=1e-6)


@given(st.sampled_from(DESIGNS), st.integers(0, 100))
def test_log_odds_are_the_difference_of_log_densities(design, seed):
    """Lemma 3 with its constants, against the two densities themselves."""
    base, concept, variance, rng = one_design(*design, seed)
    environments = EnvironmentDesign([range(concept.dim)], [concept.b], variance)
    Z = base.sample(20, rng)
    expected = base.condition(concept, variance).log_density(Z) - base.log_density(Z)
    odds = log_odds(base, environments, concept.A, Z)
    np.testing.assert_allclose(odds[:, 0], expected, atol=1e-7)


@pytest.mark.parametrize("design", DESIGNS)
def test_information_is_the_mean_of_the_log_odds(design):
    base, concept, variance, rng = one_design(*design)
    conditional = base.condition(concept, variance)
    Z = conditional.sample(200_000, rng)
    odds = conditional.log_density(Z) - base.log_density(Z)
    standard_error = odds.std() / np.sqrt(len(odds))
    assert abs(information(base, concept, variance) - odds.mean()) < 3 * standard_error
    # Less noise, more information.
    assert information(base, concept, variance / 2) > information(base, concept, variance) > 0


def test_information_grows_by_a_constant_each_time_the_window_shrinks_a_thousandfold():
    """Half the log of the ratio of the variances, however narrow the window is."""
    base = random_mixture(3, np.random.default_rng(0))
    for concept in (Concept([[1.0, 0.0, 0.0]], [0.3]), Concept([[1.0, 0.0, 0.0]], [-3.0])):
        found = [information(base, concept, variance) for variance in (1e-9, 1e-12, 1e-15)]
        np.testing.assert_allclose(np.diff(found), np.log(1000) / 2, rtol=1e-3)


def test_conditioning_in_turn_is_conditioning_at_once():
    """Orthogonal or not, the product in (2) does not care for the order of its factors."""
    base, concept, variance, rng = one_design(5, 2, 0.3)
    first, second = concept.atoms()
    at_once = base.condition(concept, variance)
    in_turn = base.condition(second, variance).condition(first, variance)
    Z = base.sample(50, rng)
    np.testing.assert_allclose(at_once.log_density(Z), in_turn.log_density(Z), atol=1e-8)


def test_wide_noise_changes_nothing_and_narrow_noise_pins_the_valuation():
    base, concept, _, rng = one_design(3, 1, 0.5)
    Z = base.sample(50, rng)
    wide = base.condition(concept, 1e12)
    np.testing.assert_allclose(wide.log_density(Z), base.log_density(Z), atol=1e-6)
    narrow = base.condition(concept, 1e-10).sample(500, rng)
    assert concept.satisfied_by(narrow, atol=1e-3).all()


def two_sample_p_values(first, second, rng, directions=12):
    """Kolmogorov-Smirnov on every coordinate and on random projections."""
    d_z = first.shape[1]
    axes = np.concatenate([np.eye(d_z), rng.standard_normal((directions, d_z))])
    return np.array([stats.ks_2samp(first @ a, second @ a).pvalue for a in axes])


@pytest.mark.parametrize("design", DESIGNS)
def test_rejection_and_exact_sampler_agree(design):
    base, concept, variance, rng = one_design(*design)
    n = 100_000
    rejected = sample_rejection(base, concept, variance, n, rng)
    exact = base.condition(concept, variance).sample(n, rng)
    p_values = two_sample_p_values(rejected, exact, rng)
    assert p_values.min() > 0.01 / len(p_values)
    # The test has power: it tells the base from the conditional distribution.
    assert two_sample_p_values(base.sample(n, rng), exact, rng).min() < 1e-12


@pytest.mark.parametrize("design", DESIGNS)
def test_acceptance_is_within_three_standard_errors_of_lemma_4(design):
    base, concept, variance, rng = one_design(*design)
    n = 400_000
    accepted = log_acceptance(concept, variance, base.sample(n, rng)) >= np.log(rng.uniform(size=n))
    predicted = acceptance_rate(base, concept, variance)
    standard_error = np.sqrt(predicted * (1 - predicted) / n)
    assert abs(accepted.mean() - predicted) < 3 * standard_error


def test_the_literal_algorithm_draws_from_the_same_distribution():
    base, concept, variance, rng = one_design(2, 1, 0.05)
    literal = np.array([sample_one(base, concept, variance, rng) for _ in range(400)])
    exact = base.condition(concept, variance).sample(20_000, rng)
    p_values = two_sample_p_values(literal, exact, rng)
    assert p_values.min() > 0.01 / len(p_values)


def test_a_valuation_far_from_the_base_ends_the_literal_algorithm(rng):
    concept = Concept([[1.0, 0.0]], [50.0])
    with pytest.raises(ValueError, match=r"100000 draws.*which needs no rejection"):
        sample_one(random_mixture(2, rng), concept, 0.005, rng)


def test_any_base_can_be_rejected_from():
    base, concept, variance, _ = one_design(3, 1, 0.5)
    known = sample_rejection(base, concept, variance, 500, np.random.default_rng(1))
    unknown = sample_rejection(Anonymous(base), concept, variance, 500, np.random.default_rng(1))
    np.testing.assert_array_equal(known, unknown)


def test_linear_image_is_the_distribution_of_noisy_valuations():
    base, concept, variance, rng = one_design(5, 2, 0.3)
    image = base.linear_image(concept.A, variance)
    draws = concept.valuation(base.sample(100_000, rng))
    draws += np.sqrt(variance) * rng.standard_normal(draws.shape)
    p_values = two_sample_p_values(draws, image.sample(100_000, rng), rng)
    assert p_values.min() > 0.01 / len(p_values)


def test_papers_base_distribution():
    """Appendix G: ranges of means, variances and weights."""
    bases = [random_mixture(6, np.random.default_rng(s)) for s in range(200)]
    means = np.stack([b.means for b in bases])
    variances = np.stack([np.diagonal(b.covariances, axis1=1, axis2=2) for b in bases])
    assert means.shape == (200, 3, 6)
    assert -1 <= means.min() < -0.99 and 0.99 < means.max() <= 1
    assert 0.01 <= variances.min() < 0.0101 and 0.0149 < variances.max() <= 0.015
    # Weights of 0.3 to 1 before they are normalised differ by a factor of 10/3 at most.
    weights = np.stack([b.weights for b in bases])
    assert 2 < (weights.max(axis=1) / weights.min(axis=1)).max() <= 10 / 3
    assert np.abs(random_mixture(3, np.random.default_rng(0), spread=0.1).means).max() <= 0.1


def test_environments_come_labelled_and_in_the_papers_numbers(rng):
    base, atoms = random_mixture(3, rng), random_atoms(2, 3, rng)
    design = paper_design(2)
    Z, environment = sample_environments(base, design, atoms, 4000, rng)
    np.testing.assert_array_equal(np.bincount(environment), [12000, 4000, 4000, 4000])
    for e, concept in enumerate(design.concepts(atoms), start=1):
        expected = base.condition(concept, design.variance).sample(20_000, rng)
        p_values = two_sample_p_values(Z[environment == e], expected, rng)
        assert p_values.min() > 0.01 / len(p_values)
    _, environment = sample_environments(base, design, atoms, 10, rng, n_base=7)
    np.testing.assert_array_equal(np.bincount(environment), [7, 10, 10, 10])


def test_hopeless_rejection_stops_before_a_draw_with_its_predicted_rate(rng):
    base = random_mixture(3, rng)
    far = Concept([[1.0, 0.0, 0.0]], [50.0])
    before = rng.bit_generator.state
    with pytest.raises(ValueError, match=r"max_draws = 100000000 .* predicted to be 10\^-\d+"):
        sample_rejection(base, far, 0.005, 10, rng)
    assert rng.bit_generator.state == before
    assert acceptance_rate(base, far, 0.005) == 0.0
    assert np.isfinite(acceptance_rate(base, far, 0.005, log=True))
    with pytest.raises(ValueError, match=r"acceptance rate is 0\.0e"):
        sample_rejection(Anonymous(base), far, 0.005, 10, rng, max_draws=1000)
    # The closed form needs no luck, however far the valuation is.
    pinned = base.condition(far, 1e-6).sample(5, rng)
    np.testing.assert_allclose(far.valuation(pinned), 50, atol=0.1)


def test_no_samples_are_no_samples(rng):
    base, concept, variance, _ = one_design(3, 1, 0.5)
    assert sample_rejection(base, concept, variance, 0, rng).shape == (0, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [[0.0, 0.0]], [np.diag([1.0, 0.0])]), "positive definite"),
        (([1.0], [[0.0, 0.0]], [[[1.0, 0.5], [0.0, 1.0]]]), "symmetric"),
        (([1.0, 0.0], [[0.0], [1.0]], [[[1.0]], [[1.0]]]), "weights must be positive"),
        (([1.0], [[0.0], [1.0]], [[[1.0]], [[1.0]]]), r"weights must have shape \(2,\)"),
        (([1.0], [[0.0]], [[[1.0, 0.0], [0.0, 1.0]]]), "covariances must have shape"),
        (([1.0], [[np.nan]], [[[1.0]]]), "means holds 1 entries that are NaN"),
    ],
)
def test_bad_mixtures_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        GaussianMixture(*arguments)


def test_bad_conditioning_is_refused(rng):
    base = random_mixture(3, rng)
    concept = Concept([[1.0, 0.0, 0.0]], [0.0])
    for variance in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="variance must be positive"):
            base.condition(concept, variance)
        with pytest.raises(ValueError, match="variance must be positive"):
            sample_rejection(base, concept, variance, 5, rng)
    with pytest.raises(ValueError, match="concept lives in 2 dimensions"):
        base.condition(Concept([[1.0, 0.0]], [0.0]), 0.1)
    with pytest.raises(TypeError, match="concept must be a Concept"):
        base.condition("red", 0.1)
    with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
        sample_rejection(base, concept, 0.1, 5, 42)
    with pytest.raises(ValueError, match="n must be at least 0"):
        sample_rejection(base, concept, 0.1, -1, rng)
    with pytest.raises(ValueError, match=r"Z must have shape \(samples, 3\)"):
        base.log_density(np.zeros((4, 2)))
