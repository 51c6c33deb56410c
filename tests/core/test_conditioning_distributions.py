"""Environments of other conditioning distributions, against their true log-odds."""

import numpy as np
import pytest
from scipy.stats import kstest

from conceptnb.core.concepts import random_atoms
from conceptnb.core.conditioning_distributions import CONDITIONINGS, sample_conditioned
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import random_mixture


@pytest.mark.parametrize("conditioning", CONDITIONINGS)
def test_log_odds_reweight_the_base_into_the_environment(conditioning):
    """E_base[exp(g) v] is the environment's mean valuation, and E_base[exp(g)] is one."""
    rng = np.random.default_rng(1)
    base, atoms = random_mixture(2, rng, spread=0.3), random_atoms(1, 2, rng)
    around = base.sample(2000, rng) @ atoms[0]
    # Narrower than the base's own valuations: otherwise the weights below have heavy tails.
    b, variance = float(around.mean()), float(around.var() / 6)
    concept = EnvironmentDesign([[0]], [[b]], variance).concepts(atoms)[0]
    Z, log_odds = sample_conditioned(conditioning, base, concept, variance, 20_000, rng)
    background = base.sample(200_000, rng)
    weights = np.exp(log_odds(background))
    assert weights.mean() == pytest.approx(1, abs=0.05)
    expected, spread = concept.valuation(Z).mean(), concept.valuation(Z).std()
    found = (weights * concept.valuation(background)[:, 0]).mean() / weights.mean()
    assert found == pytest.approx(expected, abs=0.05 * spread)


def test_enforced_measure_has_the_wanted_valuations_and_the_window_its_width():
    rng = np.random.default_rng(2)
    base, atoms = random_mixture(3, rng), random_atoms(1, 3, rng)
    concept = EnvironmentDesign([[0]], [[0.1]], 0.005).concepts(atoms)[0]
    Z, _ = sample_conditioned("enforced", base, concept, 0.005, 4000, rng)
    gaps = (concept.valuation(Z) - 0.1)[:, 0] / np.sqrt(0.005)
    assert kstest(gaps, "norm").pvalue > 1e-3
    Z, log_odds = sample_conditioned("window", base, concept, 0.005, 500, rng)
    assert np.abs(concept.valuation(Z) - 0.1).max() <= np.sqrt(0.015)
    assert np.ptp(log_odds(Z)) == 0


def test_a_conditioning_that_does_not_exist_is_refused():
    rng = np.random.default_rng(3)
    base, atoms = random_mixture(2, rng), random_atoms(1, 2, rng)
    concept = EnvironmentDesign([[0]], [[0.0]], 0.1).concepts(atoms)[0]
    with pytest.raises(ValueError, match="conditioning must be one of gaussian"):
        sample_conditioned("cauchy", base, concept, 0.1, 5, rng)  # type: ignore[arg-type]
