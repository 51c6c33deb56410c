"""Unmixing of log-posteriors: its loss in closed form, what it recovers, what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad
from scipy.stats import ortho_group, skew

from conceptnb import results
from conceptnb.embeddings.unmixing import unmix, unmixing_loss
from conceptnb.studies import components, language_components
from conceptnb.studies.language_components import STATE_CONCEPTS, compare_states


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


# States of the small language models ---------------------------------------------------------


def test_states_stand_with_the_concepts_that_their_world_knows():
    states = language_components.language_states("by-category", seed=1)
    assert states.points.shape == (5 * 384, 96)
    assert tuple(states.concepts) == STATE_CONCEPTS
    assert [len(np.unique(column)) for column in states.concepts.values()] == [6, 5, 2]
    assert states.concepts["truth"].mean() == 0.25
    for question in np.unique(states.questions):
        rows = states.questions == question
        assert rows.sum() == 5 * 4
        assert len(np.unique(states.concepts["category"][rows])) == 1
        assert states.concepts["truth"][rows].sum() == 5


def test_log_odds_of_marks_are_the_models_own():
    """Read off the logits of a text on its own, without padding."""
    import torch  # noqa: PLC0415

    from conceptnb.steering.worlds.language_models import load_trained  # noqa: PLC0415

    states = language_components.language_states("by-category", seed=1)
    world, model, tokenizer = load_trained("by-category", 1)
    question = world.questions()[50]
    text = f"from {world.kind.personas[1].name}: {question.prompt()} {question.answers[2]}"
    with torch.no_grad():
        logits = model(**tokenizer(text, return_tensors="pt")).logits[0, -1]
    true, false = tokenizer.convert_tokens_to_ids(list(world.kind.marks[50 // 16]))
    here = 2 * 384 + 50 * 4 + 2
    assert states.log_odds[here] == pytest.approx(float(logits[true] - logits[false]), abs=1e-3)
    assert states.concepts["speaker"][here] == 2


def test_an_untrained_model_knows_no_truth_and_no_marks_no_log_odds():
    states = language_components.language_states("no-source", trained=False)
    assert states.log_odds is None
    found = components.find(
        "labels", states.points, states.concepts, 32, np.random.default_rng(0), states.questions
    )
    assert found.eta2["truth"] < 0.1
    assert found.eta2["category"] > 0.3, "words of a category differ in any embedding"


@pytest.mark.slow
def test_rows_of_one_model_again():
    kept = [
        row
        for row in results.load("neighbours_runs").rows
        if (row["world"], row["seed"], row["trained"]) == ("alike", 1, True)
    ]
    computed = compare_states("alike", 1)
    assert len(kept) == len(computed) > 10
    for old, new in zip(kept, computed, strict=True):
        assert (old["method"], old["components"]) == (new["method"], new["components"])
        # Solvers with random starts end elsewhere on another machine; the others do not.
        loose = new["method"] in ("ICA", "sparse dictionary", "unmixing")
        for name in set(STATE_CONCEPTS) & set(new):
            assert old[name] == pytest.approx(new[name], abs=0.3 if loose else 0.03), new


def test_the_summary_is_the_mean_of_the_runs():
    runs, table = results.load("neighbours_runs").rows, results.load("neighbours").rows
    assert table == language_components.summary(runs)
    for row in table:
        mine = [
            r["truth"]
            for r in runs
            if all(r[k] == row[k] for k in ("trained", "components", "world", "method"))
        ]
        assert len(mine) == 3
        assert row["truth"] == pytest.approx([np.mean(mine), np.std(mine)], abs=1e-4)


def test_kept_rows_show_what_the_chapter_says():
    """Labels find truth where it is told alike, no method does where marks are crossed."""
    rows = {
        (row["trained"], row["components"], row["world"], row["method"]): row
        for row in results.load("neighbours").rows
    }
    for size in (8, 32):
        assert rows[True, size, "alike", "labels"]["truth"][0] > 0.8
        assert rows[True, size, "alike", "unmixing"]["truth"][0] < 0.6
        for method in components.METHODS:
            assert rows[True, components, "by-category", method]["truth"][0] < 0.1
            assert rows[False, components, "alike", method]["truth"][0] < 0.05
    assert rows[True, None, "by-category", "log-odds of marks"]["truth"][0] > 0.6
