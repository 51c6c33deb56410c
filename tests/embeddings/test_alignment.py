"""CKA and mutual neighbours: closed forms, invariances, an independent reading, refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import ortho_group

from conceptnb.embeddings.alignment import linear_cka, mutual_neighbours

SEEDS = st.integers(0, 2**32 - 1)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def hsic(X, Y):
    """Sum over pairs of samples of the products of centred kernels (Gretton et al. 2005)."""
    n = len(X)
    H = np.eye(n) - 1 / n
    return np.trace(X @ X.T @ H @ Y @ Y.T @ H)


@given(SEEDS, st.floats(0.01, 100), st.integers(2, 6))
def test_a_turn_a_shift_and_a_scale_change_no_cka(seed, scale, d):
    X, Y = normal(30, d, seed=seed), normal(30, 3, seed=seed + 1)
    turned = scale * X @ ortho_group.rvs(d, random_state=seed) + 5
    assert linear_cka(X, turned) == pytest.approx(1)
    assert linear_cka(turned, Y) == pytest.approx(linear_cka(X, Y))
    assert linear_cka(Y, X) == pytest.approx(linear_cka(X, Y))


@given(SEEDS, st.integers(3, 12), st.integers(1, 15))
def test_cka_is_that_of_kernels_between_samples(seed, n, d):
    X, Y = normal(n, d, seed=seed), normal(n, 2, seed=seed + 1)
    by_kernels = hsic(X, Y) / np.sqrt(hsic(X, X) * hsic(Y, Y))
    assert linear_cka(X, Y) == pytest.approx(by_kernels)
    assert 0 <= linear_cka(X, Y) <= 1


def test_cka_of_one_column_each_is_the_squared_correlation():
    X = normal(50, 2)
    expected = np.corrcoef(X.T)[0, 1] ** 2
    assert linear_cka(X[:, :1], X[:, 1:]) == pytest.approx(expected)


def test_cka_of_independent_gaussians_is_small_and_known():
    n, first, second = 3000, 20, 45
    found = np.mean([linear_cka(normal(n, first, seed=s), normal(n, second, seed=s + 99))
                     for s in range(5)])  # fmt: skip
    expected = np.sqrt(first * second) / n / np.sqrt((1 + first / n) * (1 + second / n))
    assert found == pytest.approx(expected, rel=0.05)


def test_cka_of_a_direction_added_to_one_of_two():
    # columns of variance 1 in both; the second has a variable of variance v more: d / √(d (d + v²))
    n, d, v = 200_000, 4, 9.0
    X = normal(n, d)
    Y = np.column_stack([X, np.sqrt(v) * normal(n, 1, seed=1)])
    assert linear_cka(X, Y) == pytest.approx(d / np.sqrt(d * (d + v**2)), rel=0.02)


@given(SEEDS, st.integers(1, 9))
def test_neighbours_of_an_embedding_are_its_own_whatever_the_turn_and_the_lengths(seed, k):
    X = normal(25, 4, seed=seed)
    lengths = np.exp(3 * normal(25, 1, seed=seed + 1))
    turned = lengths * X @ ortho_group.rvs(4, random_state=seed)
    assert mutual_neighbours(X, turned, k) == 1
    order = np.random.default_rng(seed).permutation(25)
    Y = normal(25, 3, seed=seed + 2)
    assert mutual_neighbours(X[order], Y[order], k) == mutual_neighbours(X, Y, k)


@given(SEEDS, st.integers(1, 7))
def test_mutual_neighbours_are_those_of_sorted_distances(seed, k):
    X, Y = normal(20, 5, seed=seed), normal(20, 3, seed=seed + 1)
    orders = [np.argsort(cdist(Z, Z, "cosine") + 9 * np.eye(20), axis=1)[:, :k] for Z in (X, Y)]
    shared = [len(np.intersect1d(a, b)) / k for a, b in zip(*orders, strict=True)]
    assert mutual_neighbours(X, Y, k) == pytest.approx(np.mean(shared))


@pytest.mark.parametrize("k", [1, 10, 100])
def test_independent_embeddings_share_neighbours_by_chance_alone(k):
    X, Y = normal(600, 8), normal(600, 5, seed=1)
    assert mutual_neighbours(X, Y, k) == pytest.approx(k / 599, abs=4 / np.sqrt(600 * k) * 0.5)
    assert mutual_neighbours(X, Y, 599) == 1


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_numbers_whose_squares_overflow_or_vanish(scale):
    X, Y = normal(20, 3), normal(20, 2, seed=1)
    assert linear_cka(scale * X, Y) == pytest.approx(linear_cka(X, Y))
    assert mutual_neighbours(scale * X, Y, 3) == mutual_neighbours(X, Y, 3)


@pytest.mark.parametrize("measure", [linear_cka, mutual_neighbours])
def test_other_rows_constants_and_nan_are_refused_by_name(measure):
    X = normal(20, 3)
    with pytest.raises(ValueError, match="X has 20 rows and Y 19"):
        measure(X, X[1:])
    with pytest.raises(ValueError, match="Y is constant"):
        measure(X, np.full((20, 2), 0.1))
    with pytest.raises(ValueError, match="X holds 1 entries that are NaN"):
        measure(np.where(np.arange(60).reshape(20, 3) == 7, np.nan, X), X)
    with pytest.raises(ValueError, match="Y must have 2 axes"):
        measure(X, X[:, 0])


def test_neighbours_that_there_are_not_are_refused():
    X = normal(20, 3)
    for k in (20, 0):
        with pytest.raises(ValueError, match="k"):
            mutual_neighbours(X, X, k)
    with pytest.raises(ValueError, match="X has a row of zeros"):
        mutual_neighbours(np.r_[X[1:], np.zeros((1, 3))], X)
