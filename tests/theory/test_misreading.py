"""How often M is misread: predictions against counts, and invariances of the reading."""

from __future__ import annotations

import numpy as np
import pytest

from conceptnb.core.concepts import random_atoms
from conceptnb.core.planner import tree_design
from conceptnb.theory import misreading
from conceptnb.theory.sampling_plans import estimated_design

DESIGN = tree_design("path", np.tile([-0.3, 0.3], (2, 1)), 0.05)
ATOMS = random_atoms(2, 2, np.random.default_rng(1))


def test_predicted_and_counted_misreadings_agree():
    rng = np.random.default_rng(0)
    pilot, count, repeated = 20_000, 200, 80
    entries, covariance = estimated_design(misreading.draw_data_sets(DESIGN, ATOMS, pilot, rng))
    pattern = misreading.read_design(entries)
    assert sorted(pattern.T.tolist()) == sorted((DESIGN.M > 0).T.tolist())
    p = misreading.predicted_misreading(pattern, covariance * pilot / count, rng)
    assert 0.02 < p < 0.98
    wrong = [
        misreading.is_misread(misreading.draw_data_sets(DESIGN, ATOMS, count, rng), DESIGN.M > 0)
        for _ in range(repeated)
    ]
    assert abs(np.mean(wrong) - p) < 5 * np.sqrt(p * (1 - p) / repeated)
    assert misreading.predicted_misreading(pattern, covariance * 1e-6, rng) == 0


def test_the_order_of_atoms_is_free_and_no_estimate_counts_as_misread():
    rng = np.random.default_rng(1)
    samples = misreading.draw_data_sets(DESIGN, ATOMS, 20_000, rng)
    truth = DESIGN.M > 0
    assert not misreading.is_misread(samples, truth)
    assert not misreading.is_misread(samples, truth[:, ::-1])
    assert misreading.is_misread(samples, ~truth)
    same = [rng.normal(size=(50, 2)) for _ in samples]  # nothing narrows any direction
    assert misreading.is_misread([same[0], *(3 * part for part in same[1:])], truth)


def test_environments_have_the_moments_of_conditioned_normals():
    rng = np.random.default_rng(2)
    parts = misreading.draw_data_sets(DESIGN, ATOMS, 40_000, rng)
    np.testing.assert_allclose(np.cov(parts[0], rowvar=False), np.eye(2), atol=0.03)
    for part, concept in zip(parts[1:], DESIGN.concepts(ATOMS), strict=True):
        precision = np.eye(2) + concept.A.T @ concept.A / DESIGN.variance
        mean = np.linalg.solve(precision, concept.A.T @ concept.b / DESIGN.variance)
        np.testing.assert_allclose(part.mean(axis=0), mean, atol=0.03)
        np.testing.assert_allclose(np.cov(part, rowvar=False), np.linalg.inv(precision), atol=0.03)


def test_prices_are_what_rejection_sampling_pays():
    rng = np.random.default_rng(3)
    draws = misreading.standard_base(2).sample(200_000, rng)
    first, *others = misreading.prices(DESIGN, ATOMS)
    assert first == 1
    for price, concept in zip(others, DESIGN.concepts(ATOMS), strict=True):
        distance = ((draws @ concept.A.T - concept.b) ** 2).sum(axis=1)
        kept = np.exp(-distance / (2 * DESIGN.variance)).mean()  # Algorithm 1 keeps so many
        assert kept * price == pytest.approx(1, rel=0.05)


def test_a_fit_at_the_truth_has_the_true_valuations():
    rng = np.random.default_rng(4)
    samples = misreading.draw_data_sets(DESIGN, ATOMS, 500, rng)
    fit = misreading.fit_at_the_truth(DESIGN, ATOMS, samples)
    found, deviations = fit.valuations(samples[0])
    np.testing.assert_allclose(found, samples[0] @ ATOMS.T / DESIGN.variance**0.5, atol=1e-8)
    assert (deviations > 0).all()
