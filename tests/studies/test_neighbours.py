import json

import numpy as np
import pytest

from conceptnb import cli, results
from conceptnb.studies import components_without_labels as components


def independent(n=1200, seed=0, gaussian=False):
    """Two independent concepts and two nuisances, mixed by an orthogonal matrix."""
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(n, 4)) if gaussian else rng.uniform(-1, 1, (n, 4)) * np.sqrt(3)
    values = {"a": (S[:, 0] > 0).astype(int), "b": np.digitize(S[:, 1], [-0.6, 0.6])}
    mixing = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    return S @ mixing.T + rng.normal(size=4), values


def test_ica_finds_independent_concepts_and_cannot_find_gaussian_ones():
    """Comon's theorem: a rotation of independent Gaussian variables cannot be undone."""
    rng = np.random.default_rng
    Z, values = independent()
    found, best = (components.find(method, Z, values, 4, rng(0)) for method in ("ICA", "labels"))
    for name in values:
        assert found.eta2[name] > best.eta2[name] - 0.05
    assert components.find("random directions", Z, values, 4, rng(0)).mcc < found.mcc - 0.1
    Z, values = independent(gaussian=True)
    lost = [components.find("ICA", Z, values, 4, rng(seed)).mcc for seed in range(3)]
    assert np.mean(lost) < components.find("labels", Z, values, 4, rng(0)).mcc - 0.1


def test_environments_find_gaussian_concepts_too():
    Z, values = independent(n=600, gaussian=True)
    labels, environments = (
        components.find(method, Z, values, 4, np.random.default_rng(0))
        for method in ("labels", "environments")
    )
    for name in values:
        assert environments.eta2[name] > labels.eta2[name] - 0.05


def test_pca_finds_axes_of_different_variance():
    Z = np.random.default_rng(0).normal(size=(4000, 3)) * [3, 1, 0.3]
    values = {"wide": (Z[:, 0] > 0).astype(int), "narrow": (Z[:, 2] > 0).astype(int)}
    found = components.find("PCA", Z, values, 3, np.random.default_rng(0))
    # η² of a normal variable split at its mean is 2/π.
    assert found.eta2["wide"] == pytest.approx(2 / np.pi, abs=0.03)
    assert found.eta2["narrow"] == pytest.approx(2 / np.pi, abs=0.03)


def test_a_sparse_dictionary_finds_what_is_rarely_active():
    rng = np.random.default_rng(0)
    active = rng.random((1500, 6)) < 0.08
    Z = (active * rng.uniform(1, 2, active.shape)) @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
    values = {f"{k}": active[:, k].astype(int) for k in range(3)}
    found, chance = (
        components.find(method, Z, values, 6, np.random.default_rng(0)).mcc
        for method in ("sparse dictionary", "random directions")
    )
    assert found > 0.85
    assert found > chance + 0.2


def test_each_concept_gets_a_component_of_its_own():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 2, (2, 300))
    Z = np.column_stack([rng.normal(size=300), second, first + 0.1 * rng.normal(size=300)])
    Z *= [0.1, 1, 2]  # three principal components, one for each column
    apart = components.find("PCA", Z, {"first": first, "second": second}, 3, rng)
    assert min(apart.eta2.values()) > 0.9
    # Both would like the same component best; one of them gets another.
    both = components.find("PCA", Z, {"one": second, "two": second}, 3, rng)
    assert max(both.eta2.values()) > 0.9
    assert min(both.eta2.values()) < 0.1


def test_a_match_is_judged_on_samples_that_it_was_not_chosen_on():
    rng = np.random.default_rng(0)
    noise, values = rng.normal(size=(300, 40)), {"nothing": rng.integers(0, 2, 300)}
    found = [
        components.find("random directions", noise, values, 40, np.random.default_rng(seed))
        for seed in range(10)
    ]
    mean = np.mean([run.eta2["nothing"] for run in found])
    assert mean < 3 / 150, "a column of noise has 1 / (n - 1) on average, the best of 40 has 0.04"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "autoencoder"}, "method='autoencoder' must be one of labels, environments"),
        ({"n_components": 1}, "n_components=1 must lie between 2, the number of concepts, and 4"),
        ({"n_components": 9}, "n_components=9 must lie between 2"),
    ],
)
def test_bad_input_names_the_argument(change, message):
    Z, values = independent(n=60)
    good = {"method": "PCA", "n_components": 4} | change
    with pytest.raises(ValueError, match=message):
        components.find(Z=Z, labels=values, rng=np.random.default_rng(0), **good)


def test_samples_of_one_group_stay_on_one_side():
    """Labels that are the same within a group and random between groups cannot be told on."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 10)
    Z = rng.normal(size=(40, 30))[groups] + 0.1 * rng.normal(size=(400, 30))
    values = {"luck": rng.permutation(np.arange(40) % 2)[groups]}
    leaking, honest = (
        components.find("labels", Z, values, 30, np.random.default_rng(0), given).eta2["luck"]
        for given in (None, groups)
    )
    assert leaking > 0.6
    assert honest < 0.3


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(5), r"groups has shape \(5,\); give one value for each of 60 samples"),
        (np.zeros(60), "groups has a single value"),
    ],
)
def test_groups_that_cannot_be_halved_are_refused(groups, message):
    Z, values = independent(n=60)
    with pytest.raises(ValueError, match=message):
        components.find("PCA", Z, values, 4, np.random.default_rng(0), groups)


# States of the small language models ---------------------------------------------------------


def test_states_stand_with_the_concepts_that_their_corpus_knows():
    states = components.language_states("by-category", seed=1)
    assert states.points.shape == (5 * 384, 96)
    assert tuple(states.concepts) == components.STATE_CONCEPTS
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

    from conceptnb.steering.small_models import load_small_model  # noqa: PLC0415

    states = components.language_states("by-category", seed=1)
    corpus, model, tokenizer = load_small_model("by-category", 1)
    question = corpus.questions()[50]
    text = f"from {corpus.kind.personas[1].name}: {question.prompt()} {question.answers[2]}"
    with torch.no_grad():
        logits = model(**tokenizer(text, return_tensors="pt")).logits[0, -1]
    true, false = tokenizer.convert_tokens_to_ids(list(corpus.kind.marks[50 // 16]))
    here = 2 * 384 + 50 * 4 + 2
    assert states.log_odds[here] == pytest.approx(float(logits[true] - logits[false]), abs=1e-3)
    assert states.concepts["speaker"][here] == 2


def test_an_untrained_model_knows_no_truth_and_no_marks_no_log_odds():
    states = components.language_states("no-source", trained=False)
    assert states.log_odds is None
    found = components.find(
        "labels", states.points, states.concepts, 32, np.random.default_rng(0), states.questions
    )
    assert found.eta2["truth"] < 0.1
    assert found.eta2["category"] > 0.3, "words of a category differ in any embedding"


@pytest.mark.slow
def test_the_command_on_one_small_model(tmp_path, capsys):
    out = tmp_path / "one.json"
    command = ["reproduce", "neighbours", "--seeds", "1", "--out", str(out), "--jobs", "1"]
    assert cli.main([*command, "--corpora", "alike"]) == 0
    rows = {
        (row["method"], row["components"]): row
        for row in json.loads(out.read_text())["rows"]
        if row["trained"]
    }
    kept = {
        (run["method"], run["components"]): run
        for run in results.load("neighbours").runs
        if (run["corpus"], run["seed"], run["trained"]) == ("alike", 1, True)
    }
    assert rows.keys() == kept.keys()
    assert rows["PCA", 8]["truth"][0] == pytest.approx(kept["PCA", 8]["truth"], abs=0.01)
    assert cli.main([*command, "--corpora", "none", "--force"]) == 2
    assert "no small model" in capsys.readouterr().err


def test_kept_rows_show_what_the_chapter_says():
    """Labels find truth where it is told alike, no method does where marks are crossed."""
    rows = {
        (row["trained"], row["components"], row["corpus"], row["method"]): row
        for row in results.load("neighbours").rows
    }
    for size in (8, 32):
        assert rows[True, size, "alike", "labels"]["truth"][0] > 0.8
        assert rows[True, size, "alike", "unmixing"]["truth"][0] < 0.6
        for method in components.METHODS:
            assert rows[True, size, "by-category", method]["truth"][0] < 0.1
            assert rows[False, size, "alike", method]["truth"][0] < 0.05
    assert rows[True, None, "by-category", "log-odds of marks"]["truth"][0] > 0.6
