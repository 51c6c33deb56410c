import numpy as np
import pytest

from conceptnb.theory.counterexamples import (
    always_together,
    ambiguity,
    constant_valuations,
    non_injective,
    reflection,
    too_few_environments,
)
from conceptnb.theory.two_sample import classifier_test, projection_test

WITH_ENCODER = [always_together, constant_valuations, too_few_environments, reflection, ambiguity]


@pytest.mark.parametrize("make", WITH_ENCODER)
def test_second_model_inverts_and_has_the_same_log_ratios(make):
    """The reason why the data agree, checked without sampling: g(z) = g~(Phi(z))."""
    rng = np.random.default_rng(0)
    pair = make(rng)
    X = pair.first.mixing(pair.first.draw(400, rng))
    np.testing.assert_allclose(pair.second.mixing(pair.second.encoder(X)), X, atol=1e-7)
    for first, second in zip(
        pair.first.design.concepts(pair.first.atoms),
        pair.second.design.concepts(pair.second.atoms),
        strict=True,
    ):
        g = ((first.valuation(pair.first.encoder(X)) - first.b) ** 2).sum(axis=1)
        h = ((second.valuation(pair.second.encoder(X)) - second.b) ** 2).sum(axis=1)
        g, h = g / pair.first.design.variance, h / pair.second.design.variance
        np.testing.assert_allclose(g - h, (g - h).mean(), atol=1e-6)


@pytest.mark.parametrize("make", [*WITH_ENCODER[:-1]])
def test_concepts_differ_by_more_than_definition_4_allows(make):
    rng = np.random.default_rng(1)
    assert make(rng).agreement(3000, rng).min() < 0.9


def test_definition_4_freedom_leaves_concepts_alone_with_the_sign_of_34():
    rng = np.random.default_rng(2)
    right, printed = ambiguity(np.random.default_rng(5)), ambiguity(np.random.default_rng(5), -1.0)
    np.testing.assert_allclose(right.agreement(2000, rng), 1.0, atol=1e-9)
    assert right.p_value(1500, rng) > 0.01
    assert printed.p_value(1500, rng) < 1e-6


@pytest.mark.parametrize("make", [too_few_environments, non_injective])
def test_two_sample_tests_agree_and_notice_a_moved_valuation(make):
    rng = np.random.default_rng(3)
    pair = make(rng)
    assert pair.p_value(1500, rng) > 0.01
    assert pair.moved(2.0).p_value(1500, rng) < 1e-3


@pytest.mark.long
def test_all_pairs_at_twenty_thousand_samples():
    rng = np.random.default_rng(4)
    for pair in [make(rng) for make in [*WITH_ENCODER, non_injective]]:
        assert pair.p_value(20_000, rng) > 0.005, pair.name


def test_two_sample_tests_are_valid_and_powerful():
    rng = np.random.default_rng(5)
    for test, repeats in ((projection_test, 12), (classifier_test, 2)):
        null = [test(*rng.normal(size=(2, 600, 3)), rng) for _ in range(repeats)]
        assert np.mean(np.array(null) < 0.01) <= 0.1
        X, Y = rng.normal(size=(2, 2000, 3))
        # Equal marginals and an unequal dependence: no single coordinate shows it.
        Y[:, 1] = 0.6 * Y[:, 0] + 0.8 * Y[:, 1]
        assert test(X, Y, rng) < 1e-4


def test_too_small_samples_are_refused():
    with pytest.raises(ValueError, match="at least 500"):
        projection_test(np.zeros((10, 2)), np.zeros((10, 2)), np.random.default_rng(0))
    with pytest.raises(ValueError, match="not injective"):
        non_injective(np.random.default_rng(0)).first.valuations(np.zeros((1, 4)))


def test_the_projection_test_sees_a_radius_that_no_line_shows():
    """In 40 dimensions the projections of a sphere are nearly normal; distances are not."""
    rng = np.random.default_rng(6)
    X, Y = rng.normal(size=(2, 4000, 40))
    assert projection_test(X, Y, rng) > 0.01
    Y *= 40**0.5 / np.linalg.norm(Y, axis=1, keepdims=True)
    assert projection_test(X, Y, rng) < 1e-6
