"""Metrics against independent implementations, closed forms and invariances."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import pearsonr, spearmanr
from sklearn.linear_model import LinearRegression

from conceptnb.core.scores import correlation, match_columns, mcc, r2

METHODS = ("pearson", "spearman")


def brute_force_mcc(true, learned, method):
    """Every one-to-one matching, correlations one pair at a time by scipy."""
    statistic = {"pearson": pearsonr, "spearman": spearmanr}[method]
    n, k = true.shape[1], learned.shape[1]
    table = np.zeros((n, k))
    for i, j in itertools.product(range(n), range(k)):
        if np.ptp(true[:, i]) > 0 and np.ptp(learned[:, j]) > 0:
            table[i, j] = abs(statistic(true[:, i], learned[:, j]).statistic)
    if n > k:
        table = table.T
    return max(
        np.mean([table[i, j] for i, j in enumerate(choice)])
        for choice in itertools.permutations(range(table.shape[1]), table.shape[0])
    )


def random_case(seed):
    rng = np.random.default_rng(seed)
    samples, n, k = rng.integers(5, 60), rng.integers(1, 5), rng.integers(1, 6)
    true = rng.normal(size=(samples, n)) * 10.0 ** rng.integers(-3, 4)
    learned = np.resize(true, (samples, k)) + rng.normal(size=(samples, k)) * rng.choice([0.1, 3])
    if rng.random() < 0.5:  # ties
        true, learned = np.round(true, 1), np.round(learned)
    if rng.random() < 0.3:
        learned[:, rng.integers(k)] = 0.1
    if rng.random() < 0.3:
        true[:, rng.integers(n)] = -2.3
    return true, learned


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("method", METHODS)
def test_mcc_equals_brute_force(seed, method):
    true, learned = random_case(seed)
    assert mcc(true, learned, method) == pytest.approx(
        brute_force_mcc(true, learned, method), abs=1e-10
    )


@pytest.mark.parametrize("seed", range(40))
def test_r2_equals_sklearn(seed):
    true, learned = random_case(seed)
    fit = LinearRegression().fit(learned, true)
    expected = [
        1.0 if np.ptp(t) == 0 else 1 - np.sum((t - p) ** 2) / np.sum((t - t.mean()) ** 2)
        for t, p in zip(true.T, np.atleast_2d(fit.predict(learned).T), strict=True)
    ]
    assert r2(true, learned) == pytest.approx(np.mean(expected), abs=1e-10)
    if all(np.ptp(true, axis=0) > 0):
        assert r2(true, learned) == pytest.approx(fit.score(learned, true), abs=1e-10)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    scales=arrays(float, 3, elements=st.sampled_from([-40.0, -1.0, 0.02, 5.0])),
    shift=st.floats(-5, 5),
)
def test_scores_ignore_order_scale_and_shift(seed, scales, shift):
    """The freedom of Definition 4 leaves both metrics at one."""
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(50, 3))
    learned = true[:, rng.permutation(3)] * scales + shift
    assert mcc(true, learned) == pytest.approx(1, abs=1e-9)
    assert mcc(true, learned, "spearman") == pytest.approx(1, abs=1e-9)
    assert r2(true, learned) == pytest.approx(1, abs=1e-9)


def test_rotation_by_45_degrees_keeps_r2_and_halves_the_squared_correlation():
    rng = np.random.default_rng(0)
    true = rng.normal(size=(400_000, 2))
    rotated = true @ np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    assert r2(true, rotated) == pytest.approx(1, abs=1e-12)
    assert mcc(true, rotated) == pytest.approx(np.sqrt(0.5), abs=0.005)


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_no_rotation_has_an_mcc_below_one_over_root_n(n):
    """Birkhoff: the best assignment of |Q| is at least Σ|Q|³, and that at least √n; Hadamard is."""
    rng = np.random.default_rng(n)
    bound, turns = np.sqrt(n), [np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(60)]
    if n in (2, 4):
        square = np.array([[1.0, 1], [1, -1]])
        turns.append((square if n == 2 else np.kron(square, square)) / bound)
    white = np.linalg.qr(rng.normal(size=(50, n + 1)))[0]
    white = np.linalg.qr(white - white.mean(axis=0))[0][:, :n]  # uncorrelated columns
    for Q in turns:
        best, cubes = n * mcc(white, white @ Q), (np.abs(Q) ** 3).sum()
        assert best >= cubes - 1e-9
        assert cubes >= bound - 1e-9
    if n in (2, 4):
        assert best == pytest.approx(bound)


def test_spearman_is_one_for_monotone_codes_and_averages_ties():
    true = np.arange(1.0, 8.0)[:, None]
    assert mcc(true, np.exp(true), "spearman") == pytest.approx(1)
    assert mcc(true, np.exp(true)) < 0.9
    # Textbook case with ties: ranks 1, 2.5, 2.5, 4 against 1..4.
    value = correlation([[1], [2], [3], [4]], [[1], [5], [5], [9]], "spearman")[0, 0]
    assert value == pytest.approx(4.5 / np.sqrt(5 * 4.5), abs=1e-14)


def test_different_numbers_of_columns():
    rng = np.random.default_rng(1)
    true = rng.normal(size=(200, 3))
    extra = np.column_stack([rng.normal(size=200), -true[:, 2], true[:, 0], true[:, 1]])
    rows, columns, values = match_columns(true, extra)
    assert rows.tolist() == [0, 1, 2]
    assert columns.tolist() == [2, 3, 1]
    assert values == pytest.approx([1, 1, -1])
    assert mcc(true, extra) == pytest.approx(1)
    assert mcc(true, true[:, [1]]) == pytest.approx(1)  # only matched pairs count
    assert r2(true, true[:, [1]]) < 0.5


def test_constant_columns():
    true = np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 4.0]])
    assert correlation(true, true).tolist() == [[0.0, 0.0], [0.0, pytest.approx(1.0)]]
    assert mcc(true, true) == pytest.approx(0.5)
    assert r2(true, true) == pytest.approx(1)
    assert r2(true[:, [1]], true[:, [0]]) == pytest.approx(0)


def test_large_offset_and_scale_do_not_spoil_precision():
    rng = np.random.default_rng(2)
    true = rng.normal(size=(300, 2))
    assert mcc(true, 1e150 * true) == pytest.approx(1, abs=1e-12)
    assert r2(true, 1e-150 * true) == pytest.approx(1, abs=1e-12)
    assert mcc(true, true + 1e6) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("metric", [mcc, r2])
@pytest.mark.parametrize(
    ("true", "learned", "message"),
    [
        (np.zeros((3, 1)), np.zeros((4, 1)), "true has 3 samples and learned has 4"),
        (np.zeros(3), np.zeros((3, 1)), r"true must have 2 axes.*reshape"),
        (np.zeros((3, 1)), [[0.0], [np.nan], [1.0]], "learned holds 1 entries that are NaN"),
        ([[0.0], [np.inf], [1.0]], np.zeros((3, 1)), "true holds 1 entries"),
        (np.zeros((1, 2)), np.zeros((1, 2)), "at least two samples"),
        (np.zeros((3, 0)), np.zeros((3, 2)), "one column"),
    ],
)
def test_bad_input_is_refused(metric, true, learned, message):
    with pytest.raises(ValueError, match=message):
        metric(true, learned)


def test_unknown_method_is_refused():
    with pytest.raises(ValueError, match="method is 'kendall'"):
        mcc(np.eye(3), np.eye(3), "kendall")
