"""Companions of R² and MCC on codes whose answer is known."""

import numpy as np
import pytest

from conceptnb.core.disentanglement import (
    chance_mcc,
    correlated_normal,
    coverage_mcc,
    cross_fitted_mcc,
    cross_fitted_r2,
    dci,
)
from conceptnb.core.scores import mcc, r2


def rng():
    return np.random.default_rng(0)


def test_dropped_concepts_count_as_zero():
    true = rng().normal(size=(100, 4))
    assert mcc(true, true[:, [2]]) == pytest.approx(1)
    assert coverage_mcc(true, true[:, [2]]) == pytest.approx(0.25)
    assert coverage_mcc(true, true) == pytest.approx(1)


def test_noise_scores_nothing_after_cross_fitting():
    generator = rng()
    true, noise = generator.normal(size=(60, 3)), generator.normal(size=(60, 25))
    assert mcc(true, noise) > 0.25
    assert r2(true, noise) > 0.25
    values = [cross_fitted_mcc(true, noise, np.random.default_rng(s)) for s in range(20)]
    assert abs(np.mean(values)) < 0.1
    assert cross_fitted_r2(true, noise, rng()) < 0.05
    assert chance_mcc(true, noise, rng()) == pytest.approx(mcc(true, noise), abs=0.1)


def test_cross_fitting_refuses_what_leaves_nothing_to_explain():
    true = np.column_stack([rng().normal(size=20), np.full(20, 3.0)])
    with pytest.raises(ValueError, match="true has a column that is constant on half"):
        cross_fitted_r2(true, true, rng())


def test_perfect_codes_stay_perfect():
    true = rng().normal(size=(400, 3))
    code = true[:, [2, 0, 1]] * [-3, 1, 0.1] + 5
    assert cross_fitted_mcc(true, code, rng()) == pytest.approx(1)
    assert cross_fitted_r2(true, code, rng()) == pytest.approx(1)
    result = dci(true, code, rng())
    assert result.disentanglement > 0.98
    assert result.completeness > 0.98
    assert result.informativeness > 0.9


def test_dci_of_a_rotation_is_mixed_though_r2_is_one():
    true = rng().normal(size=(2000, 2))
    rotated = true @ np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    result = dci(true, rotated, rng())
    assert result.disentanglement < 0.1
    assert result.completeness < 0.1
    assert r2(true, rotated) == pytest.approx(1)


def test_correlated_normal_has_its_correlation():
    sample = correlated_normal(3, 0.6, 100_000, rng())
    np.testing.assert_allclose(np.corrcoef(sample.T)[0, 1:], 0.6, atol=0.01)
    with pytest.raises(ValueError, match=r"correlation is -0\.6"):
        correlated_normal(3, -0.6, 10, rng())


def test_one_common_cause_under_correlation_has_a_high_mcc():
    """All n columns equal to the mean of n equicorrelated concepts: correlation in closed form."""
    n, rho = 4, 0.9
    true = correlated_normal(n, rho, 200_000, rng())
    code = np.repeat(true.mean(axis=1, keepdims=True), n, axis=1)
    expected = np.sqrt((1 + (n - 1) * rho) / n)
    assert mcc(true, code) == pytest.approx(expected, abs=0.005)
