"""Unmixing of log-posteriors: its loss in closed form, what it recovers, what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad
from scipy.stats import ortho_group, skew
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from conceptnb.embeddings.unmixing import Unmixing, unmixing_loss


def whitened(X):
    centred = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(X))
    return centred @ vectors / np.sqrt(values)


def log_posteriors(share, n=3000, n_concepts=5, seed=0):
    """Log-posteriors of independent concepts, each of which holds in a share of the samples."""
    rng = np.random.default_rng(seed)
    holds = rng.random((n, n_concepts)) < share
    log_odds = np.where(holds, 4.0, -4.0) + rng.normal(size=holds.shape)
    return holds, -np.log1p(np.exp(-log_odds)), rng.normal(size=(n_concepts, n_concepts))


def unmix(X, n_components, rng, weight=1.0):
    return Unmixing(n_components, weight, rng).fit(X).components_.T


def best_match(planted, found):
    between = np.corrcoef(planted.T, found.T)[: planted.shape[1], planted.shape[1] :]
    return np.abs(between).max(axis=1)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5, 0.8])
def test_planted_log_posteriors_are_recovered_from_a_linear_mixture(share):
    _, planted, mixing = log_posteriors(share)
    white = whitened(planted @ mixing + 1.0)
    found = white @ unmix(white, 5, np.random.default_rng(0))
    assert best_match(planted, found).min() > 0.97
    turned = white @ ortho_group.rvs(5, random_state=np.random.default_rng(1))
    assert best_match(planted, turned).min() < 0.9, "chance must not pass"


def test_it_is_a_transformer_of_scikit_learn():
    _, planted, mixing = log_posteriors(0.2)
    X = planted @ mixing
    found = make_pipeline(PCA(whiten=True), Unmixing(5)).fit(X)
    assert best_match(planted, found.transform(X)).min() > 0.97
    assert clone(found[-1]).get_params() == {"n_components": 5, "weight": 1.0, "random_state": 0}


def test_more_components_than_dimensions_still_hold_those_that_were_planted():
    _, planted, mixing = log_posteriors(0.2, n_concepts=3)
    white = whitened(planted @ mixing)
    W = unmix(white, 5, np.random.default_rng(0))
    assert W.shape == (3, 5)
    assert best_match(planted, white @ W).min() > 0.9


def test_of_a_rare_concept_the_log_posterior_of_its_absence_is_found():
    """The mean of exp(z) is least where z is bounded above and seldom far below."""
    _, planted, mixing = log_posteriors(0.1)
    assert (skew(planted) > 0.5).all()
    white = whitened(planted @ mixing)
    assert (skew(white @ unmix(white, 5, np.random.default_rng(0))) < -0.5).all()


@given(share=st.floats(0.02, 0.98), weight=st.floats(0.1, 10))
def test_the_loss_of_one_two_valued_component_in_closed_form(share, weight):
    n = 10_000
    count = round(share * n)
    high, low = np.sqrt((n - count) / count), -np.sqrt(count / (n - count))
    X = np.repeat([high, low], [count, n - count])[:, None]
    loss, slope = unmixing_loss(np.array([[3.0]]), X, weight)
    assert loss == pytest.approx(weight * (count * np.exp(high) + (n - count) * np.exp(low)) / n)
    assert slope == pytest.approx(0), "a single direction can only change its length"


def test_the_first_term_is_the_error_of_reconstruction():
    rng = np.random.default_rng(0)
    X = whitened(rng.normal(size=(500, 4)))
    W = rng.normal(size=(4, 6))
    unit = W / np.linalg.norm(W, axis=0)
    error = ((X @ unit @ unit.T - X) ** 2).sum(axis=1).mean() / 4
    assert unmixing_loss(W, X, 2.0)[0] == pytest.approx(error + 2 * np.exp(X @ unit).mean())


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_the_loss_knows_no_coordinates_lengths_or_order(seed):
    rng = np.random.default_rng(seed)
    X, W = whitened(rng.normal(size=(60, 3))), rng.normal(size=(3, 4))
    turn = ortho_group.rvs(3, random_state=rng)
    loss, _ = unmixing_loss(W, X)
    assert unmixing_loss(turn.T @ W, X @ turn)[0] == pytest.approx(loss)
    assert unmixing_loss(W * rng.uniform(0.1, 9, 4), rng.permutation(X))[0] == pytest.approx(loss)
    assert unmixing_loss(rng.permutation(W, axis=1), X)[0] == pytest.approx(loss)


def test_the_gradient_is_that_of_the_loss():
    rng = np.random.default_rng(0)
    X, W = whitened(rng.normal(size=(40, 3))), rng.normal(size=(3, 5))
    error = check_grad(
        lambda w: unmixing_loss(w.reshape(W.shape), X, 1.7)[0],
        lambda w: unmixing_loss(w.reshape(W.shape), X, 1.7)[1].ravel(),
        W.ravel(),
    )
    assert error < 1e-5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.arange(12.0).reshape(6, 2)}, "X is not whitened"),
        ({"X": 2 * whitened(np.random.default_rng(0).normal(size=(50, 2)))}, "X is not whitened"),
        ({"X": whitened(np.random.default_rng(0).normal(size=(50, 2))) + 1}, "X is not whitened"),
        ({"X": np.full((4, 2), np.nan)}, "X"),
        ({"n_components": 0}, "n_components=0 must be at least 1"),
        ({"weight": 0.0}, r"weight=0\.0 must be positive"),
        ({"weight": np.inf}, "weight=inf must be positive"),
    ],
)
def test_what_cannot_be_unmixed_is_refused(change, message):
    good = {"X": whitened(np.random.default_rng(0).normal(size=(50, 2))), "n_components": 2}
    with pytest.raises(ValueError, match=message):
        unmix(**(good | change), rng=np.random.default_rng(0))
