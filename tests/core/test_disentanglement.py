"""Companions of R² and MCC on codes whose answer is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


SCORES = {
    "r2": r2,
    "mcc": mcc,
    "spearman": lambda t, h: mcc(t, h, "spearman"),
    "coverage": coverage_mcc,
    "cross-fitted r2": lambda t, h: cross_fitted_r2(t, h, rng()),
    "cross-fitted mcc": lambda t, h: cross_fitted_mcc(t, h, rng()),
    "chance": lambda t, h: chance_mcc(t, h, rng()),
    "dci": lambda t, h: list(vars(dci(t, h, rng())).values()),
}
POWERS = st.lists(st.integers(-9, 9), min_size=3, max_size=3)


@given(
    POWERS, POWERS, st.lists(st.integers(-9, 6), min_size=3, max_size=3), st.sampled_from([1, -1])
)
@settings(max_examples=15, deadline=None)
def test_no_score_depends_on_scale_or_origin(of_true, of_learned, origin, sign):
    """An origin of 1e6 standard deviations leaves ten digits, to which all scores agree."""
    true = rng().normal(size=(80, 3))
    learned = true @ np.array([[2, 0.3, 0], [0, -1, 0.2], [0.1, 0, 0.5]]) + 0.1
    learned += 0.3 * np.random.default_rng(1).normal(size=learned.shape)
    one = (true + sign * 10.0 ** np.array(origin)) * 10.0 ** np.array(of_true)
    other = (learned - 10.0 ** np.array(origin[::-1])) * 10.0 ** np.array(of_learned)
    for name, score in SCORES.items():
        near = 0.05 if name == "dci" else 1e-6  # trees break ties of small nodes by rounding
        np.testing.assert_allclose(score(one, other), score(true, learned), atol=near, err_msg=name)


@pytest.mark.parametrize("name", SCORES)
def test_every_score_checks_its_rows_and_refuses_masks(name):
    true = rng().normal(size=(40, 3))
    for one, other in ((true, true[:30]), (true[:30], true)):
        with pytest.raises(ValueError, match=r"has \d+ samples and learned has"):
            SCORES[name](one, other)
    masked = np.ma.masked_array(np.where(true > 1.5, 1e20, true), true > 1.5)
    with pytest.raises(ValueError, match=r"learned holds .* masked entries"):
        SCORES[name](true, masked)
    assert SCORES[name](true, np.ma.masked_array(true)) == SCORES[name](true, true)


def test_too_few_samples_for_halves_are_refused():
    with pytest.raises(ValueError, match="true has 3 samples; dci needs 4"):
        dci(np.eye(3)[:, :1], np.eye(3)[:, :1], rng())
