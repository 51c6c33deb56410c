"""Errors of an estimated M, and shares of samples: the information, used twice."""

import itertools

import numpy as np
import pytest

from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import GaussianMixture
from conceptnb.core.planner import tree_design
from conceptnb.core.problems import log_odds
from conceptnb.theory.finite_samples import fit_log_odds
from conceptnb.theory.sampling_plans import estimated_design, optimal_shares

ATOMS = np.array([[1.0, 0.3, 0.0], [-0.2, 1.0, 0.1], [0.0, 0.4, 1.0]])


def instance(design):
    """Return the design's 0-1 matrix, how to draw its data sets, and the true parameters."""
    n = design.n_atoms
    atoms, sigma = ATOMS[:n, :n], design.variance**0.5
    base = GaussianMixture([1.0], [np.zeros(n)], [np.eye(n)])
    parts = [base, *(base.condition(c, design.variance) for c in design.concepts(atoms))]
    constants = log_odds(base, design, atoms, np.zeros((1, n)))[0]
    truth = (atoms / sigma, design.B * sigma, constants)

    def draw(sizes, rng):
        return [part.sample(N, rng) for part, N in zip(parts, sizes, strict=True)]

    return (design.M > 0).astype(float), draw, truth


PATH = tree_design("path", np.tile([-0.3, 0.3], (2, 1)), 0.1)
PAPER = EnvironmentDesign([[0], [1], [0]], [[0.3], [0.3], [-0.3]], 0.1)


def in_order(entries, M):
    """Put estimated columns into the order of M's, by the best match."""
    orders = itertools.permutations(range(M.shape[1]))
    best = min(orders, key=lambda p: np.abs(entries[:, p] - M).sum())
    return list(best)


def test_entries_scatter_as_predicted():
    """Squared errors over predicted covariance is one, and not for a quarter of the data."""
    M, draw, _ = instance(PATH)
    rng = np.random.default_rng(0)
    pilot, covariance = estimated_design(draw([20_000] * 4, rng))
    order = in_order(pilot, M)
    np.testing.assert_allclose(pilot[:, order], M, atol=0.25)
    covariance = covariance[:, order][:, :, :, order].reshape(M.size, -1)

    def distance(count, claimed, draws=60):
        total = 0.0
        for _ in range(draws):
            found, _ = estimated_design(draw([count] * 4, rng))
            # The scale of a column is common to its entries: compare what is left of it.
            gap = (found[:, in_order(found, M)] - M).ravel()
            total += gap @ np.linalg.pinv(scaled * 20_000 / claimed, rcond=1e-6) @ gap
        return total / draws / (M.size - M.shape[1])

    free = np.eye(M.size)  # derivative of that rescaling at the truth
    for i in range(M.shape[1]):
        at = np.ravel_multi_index((np.arange(len(M)), i), M.shape)
        free[np.ix_(at, at)] -= np.outer(M[:, i], M[:, i]) / M[:, i].sum()
    scaled = free @ covariance @ free.T
    assert distance(3000, 3000) == pytest.approx(1, abs=0.25)
    assert distance(3000, 12_000, 20) > 3


def test_a_linear_map_of_the_data_changes_nothing():
    _, draw, _ = instance(PATH)
    data = draw([3000] * 4, np.random.default_rng(1))
    T = np.array([[3.0, 40.0], [-0.5, 7.0]])
    one, other = estimated_design(data), estimated_design([X @ T.T for X in data])
    order = in_order(other[0], one[0])
    np.testing.assert_allclose(other[0][:, order], one[0], atol=1e-6)
    moved = other[1][:, order][:, :, :, order]
    np.testing.assert_allclose(moved, one[1], atol=1e-5 * np.abs(one[1]).max())


def test_misreading_is_as_frequent_as_predicted():
    """At sizes where a fifth or a twentieth of the readings are wrong."""
    M, draw, _ = instance(PATH)
    rng = np.random.default_rng(2)
    pilot, covariance = estimated_design(draw([20_000] * 4, rng))
    for count in (50, 100):
        normal = rng.multivariate_normal(
            (pilot > 0.5).astype(float).ravel(),
            covariance.reshape(M.size, -1) * 20_000 / count,
            size=20_000,
        ).reshape(-1, *M.shape)
        predicted = ((normal > normal.max(axis=1, keepdims=True) / 2) != (pilot > 0.5)).any((1, 2))
        wrong = 0
        for _ in range(150):
            try:
                found = estimated_design(draw([count] * 4, rng))[0] > 0.5
                wrong += sorted(found.T.tolist()) != sorted((M > 0).T.tolist())
            except RuntimeError:
                wrong += 1
        p = predicted.mean()
        assert 0.02 < p < 0.7
        assert abs(wrong / 150 - p) < 0.05 + 3 * np.sqrt(p * (1 - p) / 150)


def variance(shares, data, M, truth, total=12_000):
    """Mean variance of valuations, by the information of data sets of these shares."""
    cut = [X[: max(round(s * total), 1)] for X, s in zip(data, shares, strict=True)]
    fit = fit_log_odds(cut, M, truth, fixed=True)
    return (fit.valuations(data[0])[1] ** 2).mean() * sum(map(len, cut)) / total


@pytest.mark.parametrize("design", [PATH, PAPER])
def test_no_other_shares_are_better(design):
    """Against random shares, judged by the information of data of these sizes."""
    M, draw, truth = instance(design)
    rng = np.random.default_rng(3)
    data = draw([12_000] * 4, rng)
    fit = fit_log_odds(data, M, truth, fixed=True)
    best, ratio = optimal_shares([X[:3000] for X in data], fit)
    assert best.sum() == pytest.approx(1)
    least = variance(best, data, M, truth)
    equal = variance([0.25] * 4, data, M, truth)
    assert np.sqrt(least / equal) == pytest.approx(ratio, abs=0.01)
    for shares in rng.dirichlet([3.0] * 4, size=15):
        assert variance(shares, data, M, truth) > least * 0.99
    worst = np.roll(best, 1 + int(np.argmax(best)))
    assert variance(worst, data, M, truth) > least or np.allclose(worst, best, atol=0.05)


def test_prices_are_paid_for():
    """A dear environment gets fewer samples, and the budget goes further."""
    M, draw, truth = instance(PAPER)
    data = draw([3000] * 4, np.random.default_rng(4))
    fit = fit_log_odds(data, M, truth, fixed=True)
    free, _ = optimal_shares(data, fit)
    prices = np.array([1.0, 1.0, 1.0, 30.0])
    dear, ratio = optimal_shares(data, fit, prices)
    assert dear[3] < free[3] / 3
    assert ratio < 0.5

    def spent(shares):  # variance for the budget that this number of samples costs
        return variance(shares, data, M, truth, 3000) * (shares @ prices)

    every = np.array([0.25] * 4)
    assert np.sqrt(spent(dear) / spent(every)) == pytest.approx(ratio, abs=0.03)
    assert spent(dear) < spent(free)
    again, same = optimal_shares(data, fit, 7 * prices)
    np.testing.assert_allclose(again, dear)
    assert same == pytest.approx(ratio)


def test_bad_prices_are_refused():
    M, draw, truth = instance(PAPER)
    data = draw([300] * 4, np.random.default_rng(5))
    fit = fit_log_odds(data, M, truth, fixed=True)
    for samples, prices in ((data[:3], None), (data, [1.0, 1.0]), (data, [1.0, 1.0, 1.0, 0.0])):
        with pytest.raises(ValueError, match="must be of the base and 3 environments"):
            optimal_shares(samples, fit, prices)


def test_a_direction_that_no_environment_narrows_is_refused():
    rng = np.random.default_rng(6)
    wide = [rng.normal(size=(500, 2)) for _ in range(2)]
    with pytest.raises(RuntimeError, match="give more samples"):
        estimated_design([wide[0], wide[1] * [1.0, 3.0]])
