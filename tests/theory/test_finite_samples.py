"""Finite samples with a linear mixing: the information, the covariance and the intervals."""

import itertools

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from conceptnb import results
from conceptnb.core import information
from conceptnb.studies.theory_beyond_paper import _draw, _finite_samples, _setting
from conceptnb.theory.finite_samples import fit_log_odds


def model(M, d, rng):
    """A Gaussian base, its environments at valuations near zero, and the true parameters."""
    n = M.shape[1]
    atoms = np.linalg.qr(rng.standard_normal((d, d)))[0][:n] * 3
    B = np.where(M > 0, rng.normal(scale=0.7, size=M.shape), 0.0)
    precisions = [np.eye(d)] + [np.eye(d) + (atoms.T * row) @ atoms for row in M]
    means = [np.zeros(d)] + [
        np.linalg.solve(K, atoms.T @ b) for K, b in zip(precisions[1:], B, strict=True)
    ]
    # ln p^e/p^0 at x = 0 is minus the log of the acceptance rate, without -B²/2.
    constants = np.array(
        [
            0.5 * (np.linalg.slogdet(K)[1] - mu @ K @ mu)
            for K, mu in zip(precisions, means, strict=True)
        ]
    )

    def draw(sizes, rng):
        return [
            rng.multivariate_normal(mu, np.linalg.inv(K), size=N)
            for mu, K, N in zip(means, precisions, sizes, strict=True)
        ]

    return (atoms, B, constants[1:]), draw


def log_likelihood(theta, data, M):
    """Softmax likelihood per row, written down without the module's algebra."""
    m, n = M.shape
    d = data[0].shape[1]
    atoms, rest = theta[: n * d].reshape(n, d), theta[n * d :]
    B = np.zeros((m, n))
    B[M > 0] = rest[:-m]
    total = 0.0
    for label, X in enumerate(data):
        h = X @ atoms.T
        g = rest[-m:] - h**2 @ M.T / 2 + h @ B.T + np.log([len(Y) / len(data[0]) for Y in data[1:]])
        g = np.column_stack([np.zeros(len(X)), g])
        total += (g[:, label] - np.log(np.exp(g).sum(axis=1))).sum()
    return total / sum(map(len, data))


def test_the_score_is_the_derivative_of_the_likelihood():
    rng = np.random.default_rng(0)
    M = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    (atoms, B, constants), draw = model(M, 3, rng)
    data = draw([60, 40, 70, 50], rng)
    theta = np.concatenate([atoms.ravel(), B[M > 0], constants]) + 0.1
    score, _ = information.score_and_information(theta, data, M)
    numeric = approx_fprime(theta, log_likelihood, 1e-6, data, M)
    np.testing.assert_allclose(score, numeric, atol=1e-5)


def test_the_information_is_the_expected_curvature():
    rng = np.random.default_rng(1)
    M = np.array([[1.0, 0.0], [1.0, 1.0]])
    (atoms, B, constants), draw = model(M, 2, rng)
    data = draw([60_000, 40_000, 50_000], rng)
    theta = np.concatenate([atoms.ravel(), B[M > 0], constants])
    _, J = information.score_and_information(theta, data, M)
    step = 1e-4
    curvature = np.array(
        [
            information.score_and_information(theta - step * e, data, M, information=False)[0]
            - information.score_and_information(theta + step * e, data, M, information=False)[0]
            for e in np.eye(len(theta))
        ]
    ) / (2 * step)
    np.testing.assert_allclose(J, curvature, atol=0.03 * np.abs(J).max())


def test_the_constants_block_is_that_of_the_theorem():
    """J⁻¹/N minus 1/N_e on the diagonal and 1/N_0 everywhere; other blocks are J⁻¹/N."""
    rng = np.random.default_rng(4)
    M = np.array([[1.0, 0.0], [1.0, 1.0]])
    truth, draw = model(M, 2, rng)
    sizes = np.array([400, 900, 200])
    data = draw(sizes, rng)
    fit = fit_log_odds(data, M, truth, fixed=True)
    theta = np.concatenate([truth[0].ravel(), truth[1][M > 0], truth[2]])
    inverse = np.linalg.inv(information.score_and_information(theta, data, M)[1]) / sizes.sum()
    difference = inverse - fit.covariance
    expected = np.zeros_like(difference)
    expected[-2:, -2:] = np.diag(1 / sizes[1:]) + 1 / sizes[0]
    np.testing.assert_allclose(difference, expected, atol=1e-9)


@pytest.mark.long
def test_sizes_that_are_given_change_the_constants_alone():
    """The covariance is that of random sizes, less diag(1/N_e) + 1/N_0 in the constants' block."""
    rng = np.random.default_rng(2)
    M = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    truth, draw = model(M, 2, rng)
    sizes = [4000, 2000, 3000, 5000]
    fit = fit_log_odds(draw(sizes, rng), M, truth, fixed=True)
    errors = []
    for _ in range(300):
        found = fit_log_odds(draw(sizes, rng), M, truth)
        errors.append(found.constants - truth[2])
    ratio = np.var(errors, axis=0) / np.diag(fit.covariance)[-3:]
    assert (np.abs(ratio - 1) < 0.35).all(), ratio  # four standard errors of a variance
    without = np.diag(fit.covariance)[-3:] + 1 / 4000 + 1 / np.array(sizes[1:])
    assert (np.var(errors, axis=0) / without < 0.8).all()


def test_the_information_is_singular_exactly_for_equal_columns():
    """All 0-1 matrices with 2 or 3 environments and 2 or 3 atoms that occur."""
    rng = np.random.default_rng(3)
    for m, n in itertools.product((2, 3), (2, 3)):
        columns = [np.array(c, dtype=float) for c in itertools.product((0, 1), repeat=m) if any(c)]
        for chosen in itertools.combinations_with_replacement(columns, n):
            M = np.array(chosen).T
            (atoms, B, constants), draw = model(M, 3, rng)
            theta = np.concatenate([atoms.ravel(), B[M > 0], constants])
            J = information.score_and_information(theta, draw([400] * (m + 1), rng), M)[1]
            scale = np.sqrt(np.diag(J))
            least = np.linalg.eigvalsh(J / np.outer(scale, scale))[0]
            equal = len({tuple(c) for c in chosen}) < n
            assert (least < 1e-10) == equal, (M, least)


def test_seven_atoms_from_three_environments():
    """A linear mixing needs distinct columns of M only, so fewer environments than atoms do."""
    rng = np.random.default_rng(4)
    M = np.array([c for c in itertools.product((0.0, 1.0), repeat=3) if any(c)]).T
    truth, draw = model(M, 7, rng)
    off = [part + rng.normal(scale=0.05, size=part.shape) for part in truth[:2]]
    fit = fit_log_odds(draw([40_000] * 4, rng), M, (*off, truth[2]))
    error = (fit.atoms - truth[0]) / fit.standard_errors[0]
    assert 0.7 < np.sqrt((error**2).mean()) < 1.3
    with pytest.raises(ValueError, match="rank below 7: give a start"):
        fit_log_odds(draw([400] * 4, rng), M)


def test_a_linear_map_of_the_data_changes_neither_b_nor_valuations():
    data = _draw(2000, [5])
    M = (_setting()[3] != 0).astype(float)
    T = np.random.default_rng(6).standard_normal((4, 4)) * 7
    one, other = fit_log_odds(data, M), fit_log_odds([X @ T.T for X in data], M)
    sign = np.sign((one.B * other.B).sum(axis=0))
    np.testing.assert_allclose(one.B, other.B * sign, atol=1e-4)
    values, errors = one.valuations(data[0][:50])
    again, same = other.valuations(data[0][:50] @ T.T)
    np.testing.assert_allclose(values, again * sign, atol=1e-4)
    np.testing.assert_allclose(errors, same, rtol=1e-3)


def test_errors_are_as_large_as_predicted_and_half_the_data_is_noticed():
    rows = _finite_samples(range(60), 1000)
    assert np.mean([row["distance"] for row in rows]) == pytest.approx(1, abs=0.15)
    assert np.mean([row["B_covered"] for row in rows]) == pytest.approx(0.95, abs=0.04)
    assert np.mean([row["valuations_covered"] for row in rows]) == pytest.approx(0.95, abs=0.04)
    halves = _finite_samples(range(20), 1000, share=0.5)
    assert np.mean([row["distance"] for row in halves]) > 1.6


@pytest.mark.parametrize(
    ("samples", "M", "message"),
    [
        ([np.zeros((9, 2))] * 2, [[1, 0], [0, 1]], "samples must be the base and 2 arrays"),
        ([np.zeros((9, 2))] * 3, [[1, 2], [0, 1]], "zeros and ones"),
        ([np.zeros((9, 2))] * 3, [[1, 1], [1, 1]], "no two of its columns"),
    ],
)
def test_bad_input_is_named(samples, M, message):
    with pytest.raises(ValueError, match=message):
        fit_log_odds(samples, M)


def test_features_that_depend_on_each_other_are_refused():
    data = [X @ np.ones((4, 2)) for X in _draw(500, [7])]
    with pytest.raises(ValueError, match="singular information"):
        fit_log_odds(data, [[1, 0], [1, 1], [0, 1], [1, 0]])


def test_stored_draws_meet_their_bars():
    """Errors within 10 % of the prediction, and intervals of 95 % that cover 95 ± 2 %."""
    table = results.load("theory_finite_samples")
    assert [row["samples"] for row in table.rows] == [1_000, 10_000, 100_000]
    for row in table.rows:
        assert row["draws"] == 200
        assert row["distance"] == pytest.approx(1, abs=0.1)
        # One standard deviation is known to 5 % from 200 draws, their mean square to less.
        for key in ("B_ratios", "valuations_ratios"):
            assert np.sqrt(np.mean(np.square(row[key]))) == pytest.approx(1, abs=0.1)
        for key in ("B_covered", "valuations_covered"):
            assert np.mean(row[key]) == pytest.approx(0.95, abs=0.02)


def test_stored_recoveries_from_poles_meet_their_bars():
    """What is not recovered is explained: all points hold a minimum, or no fit was found."""
    runs = results.load("theory_poles").runs
    good = [r["M_right"] and r["B_error"] < 1e-4 and r["correlation"] > 0.9999 for r in runs]
    assert np.mean(good) >= 0.99
    for run, right in zip(runs, good, strict=True):
        assert right or run["failure"] or run["misfit"] > 1e-8, run
