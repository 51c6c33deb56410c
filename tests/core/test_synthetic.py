"""The synthetic problems of Tables 1 and 7."""

import numpy as np
import pytest

from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.problems import TABLE_1, TABLE_7, Setting, draw_problem


def test_settings_are_the_rows_of_the_tables():
    assert [str(s) for s in TABLE_1[:2]] == ["linear (2, 3, 4)", "nonlinear (2, 3, 4)"]
    assert len(TABLE_1 + TABLE_7) == 12
    assert {s.d_z for s in TABLE_7} == {15, 20, 25}


def test_a_problem_has_the_papers_sizes():
    problem = draw_problem(TABLE_1[3], 3)
    assert problem.X.shape == (8 * 5000, 6)
    assert np.bincount(problem.environment).tolist() == [20000, 5000, 5000, 5000, 5000]
    assert problem.valuations().shape == (40000, 3)
    assert problem.log_odds().shape == (40000, 4)


def test_log_odds_reweight_the_base_into_each_environment():
    """E_base[exp(g_e)] = 1, and E_base[exp(g_e) v] is the environment's mean valuation."""
    problem = draw_problem(TABLE_1[0], 5, samples=50_000)
    base = problem.environment == 0
    weights = np.exp(problem.log_odds()[base])
    np.testing.assert_allclose(weights.mean(axis=0), 1, atol=0.05)
    for e in range(3):
        expected = problem.valuations()[problem.environment == e + 1].mean(axis=0)
        reweighted = weights[:, [e]].T @ problem.valuations()[base] / base.sum()
        np.testing.assert_allclose(reweighted[0], expected, atol=0.02)


def test_seed_fixes_the_draw_and_sample_size_leaves_the_world_alone():
    first, again = (draw_problem(TABLE_1[1], 7, samples=50) for _ in range(2))
    np.testing.assert_array_equal(first.X, again.X)
    more = draw_problem(TABLE_1[1], 7, samples=80)
    np.testing.assert_array_equal(first.atoms, more.atoms)
    np.testing.assert_array_equal(first.base.means, more.base.means)
    np.testing.assert_array_equal(first.fresh(10), more.fresh(10))
    Z = first.fresh(5)
    np.testing.assert_array_equal(first.mixing(Z), more.mixing(Z))


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="mixing must be"):
        Setting("cubic", 2, 3, 4)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="d_z"):
        Setting("linear", 2, 0, 4)
    with pytest.raises(ValueError, match="n must be one of"):
        draw_problem(Setting("linear", 9, 10, 12), 0)
    with pytest.raises(ValueError, match="design has 1 atoms"):
        draw_problem(TABLE_1[0], 0, design=EnvironmentDesign([[0], [0]], [[0.1], [0.2]], 0.005))
