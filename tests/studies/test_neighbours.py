import json

import numpy as np
import pytest
from scipy.stats import differential_entropy

from conceptnb import results
from conceptnb.commands import cli
from conceptnb.embeddings.directions import separation
from conceptnb.learning import ConceptLearner
from conceptnb.studies import components_without_labels as components
from conceptnb.tables import components_report


def independent(n=1200, seed=0, gaussian=False):
    """Two independent concepts and two nuisances, mixed by an orthogonal matrix."""
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(n, 4)) if gaussian else rng.uniform(-1, 1, (n, 4)) * np.sqrt(3)
    values = {"a": (S[:, 0] > 0).astype(int), "b": np.digitize(S[:, 1], [-0.6, 0.6])}
    mixing = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    return S @ mixing.T + rng.normal(size=4), values


def test_the_report_has_the_means_of_the_stored_rows_and_intervals_around_them():
    rows = {
        (r["components"], r["trained"], r["method"], r["corpus"]): r["truth"]
        for r in results.load("neighbours").rows
        if r["purity"] == 1
    }
    table = components_report.truth_by_method(["labels", "unmixing"])
    assert len(table.rows) == 6
    sizes = {"8": (8, True), "32": (32, True), "32, untrained": (32, False)}
    for line in table.rows:
        for corpus in components_report.CORPORA:
            stored = rows[(*sizes[line["components"]], line["method"], corpus)]
            np.testing.assert_allclose(line[corpus], stored, atol=1e-4)
    [line] = components_report.minus_random(["random directions"]).rows
    assert line["truth"] == "0.000 [0.000, 0.000]"
    gap = components_report.labels_minus_piles([1.0]).rows[0]["truth"]
    mean, low, high = (float(x.strip("[],")) for x in gap.split())
    expected = np.mean(
        [
            rows[8, True, "labels", corpus][0] - rows[8, True, "environments", corpus][0]
            for corpus in components_report.SEPARABLE
        ]
    )
    assert low < mean < high
    assert mean == pytest.approx(expected, abs=1e-3)
    with pytest.raises(ValueError, match="has no runs of"):
        components_report.by_model(["alike"], "truth", "nothing")


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


# Piles that are not pure -----------------------------------------------------------------------


def test_piles_of_purity_one_are_the_labelled_environments():
    """Sorted here by hand: every sample, then all samples of the first and of the last value."""
    white, values = independent(n=400)
    found = components._fit("environments", {"start": 5}, None, white, values, 1.0)
    last = [("a", 0), ("a", 1), ("b", 0), ("b", 2)]
    sets = [white, *(white[values[name] == value] for name, value in last)]
    learner = ConceptLearner(
        2, targets=[[1, 0], [1, 0], [0, 1], [0, 1]], encoder="linear", random_state=5
    ).fit(np.concatenate(sets), np.repeat(np.arange(5), [len(rows) for rows in sets]))
    np.testing.assert_array_equal(found.transform(white), learner.transform(white))


def test_a_pile_has_its_purity_and_the_base_rate_in_the_rest(monkeypatch):
    seen = {}
    monkeypatch.setattr(ConceptLearner, "fit", lambda _, X, e: seen.update(X=X, e=e))
    value = np.repeat([0, 1], [12_000, 4_000])
    for purity in (0.0, 0.4, 1.0):
        components._fit("environments", {"start": 0}, None, value[:, None], {"c": value}, purity)
        for pile, (own, base) in enumerate([(0, 0.75), (1, 0.25)], start=1):
            rows = seen["X"][seen["e"] == pile, 0]
            assert len(rows) == (value == own).sum()
            share = purity + (1 - purity) * base
            assert (rows == own).mean() == pytest.approx(share, abs=0.03)


@pytest.mark.slow
def test_piles_at_the_base_rate_give_what_random_directions_give():
    """In isotropic data a direction learned from nothing has no preference."""
    n, dimensions, gained, chance = 500, 12, {0.0: [], 0.4: [], 1.0: []}, []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(n, dimensions))
        values = {"a": (Z[:, 0] > 0).astype(int), "b": (Z[:, 1] > 0).astype(int)}
        for purity, means in gained.items():
            found = components.find(
                "environments", Z, values, dimensions, np.random.default_rng(seed), purity=purity
            )
            means.append(np.mean(list(found.eta2.values())))
        V = Z @ rng.normal(size=(dimensions, 2))
        matched = components._match(V, values)
        chance.append(np.mean([separation(V[:, k], values[c]) for c, k in matched.items()]))
    noise = np.sqrt((np.var(gained[0.0]) + np.var(chance)) / 7)
    assert abs(np.mean(gained[0.0]) - np.mean(chance)) < 3 * noise
    assert np.mean(chance) < 0.2
    assert np.mean(gained[0.4]) > np.mean(chance) + 0.2
    assert np.mean(gained[1.0]) == pytest.approx(2 / np.pi, abs=0.06)
    assert np.mean(gained[1.0]) > np.mean(gained[0.4])


def test_a_purity_that_is_no_share_is_refused():
    Z, values = independent(n=60)
    for purity in (-0.1, 1.5, np.nan):
        with pytest.raises(ValueError, match=f"purity={purity} is a share: give a number from 0"):
            components.find("environments", Z, values, 4, np.random.default_rng(0), purity=purity)


# Settings ----------------------------------------------------------------------------------------


@pytest.fixture
def fits(monkeypatch):
    """All fits of `find`: the setting, and what is made of the same four points."""
    kept, fit = [], components._fit

    def recorded(method, setting, pca, white, labels=None, purity=1.0):
        fitted = fit(method, setting, pca, white, labels, purity)
        kept.append((dict(setting), fitted.transform(np.eye(4))))
        return fitted

    monkeypatch.setattr(components, "_fit", recorded)
    return kept


@pytest.mark.parametrize("method", components.METHODS)
def test_neither_test_samples_nor_labels_reach_a_fit(method, fits):
    """A method of the grid sees no label at all; the two others none of a test sample."""
    Z, values = independent(n=400)
    rng = np.random.default_rng(7)
    test = components._halves(np.arange(400), 400, np.random.default_rng(0))[1]
    other, shuffled = Z.copy(), {name: column.copy() for name, column in values.items()}
    other[test] = 5 * rng.normal(size=(len(test), 4))
    blind = method not in ("labels", "environments")
    hidden = np.arange(400) if blind else test
    for column in shuffled.values():
        column[hidden] = rng.permutation(column[hidden])
    for data in ((Z, values), (other, shuffled)):
        components.find(method, *data, 4, np.random.default_rng(0))
    half = len(fits) // 2
    assert half == (1 if method not in components.GRID else 7), "six settings, and the chosen one"
    for (setting, made), (again, remade) in zip(fits[:half], fits[half:], strict=True):
        assert setting == again
        np.testing.assert_array_equal(made, remade)


def test_a_fit_on_shuffled_training_labels_is_another_one(fits):
    """The test above could not fail if nothing that is fitted were recorded."""
    Z, values = independent(n=400)
    rng = np.random.default_rng(7)
    shuffled = {name: rng.permutation(column) for name, column in values.items()}
    for labels in (values, shuffled):
        components.find("labels", Z, labels, 4, np.random.default_rng(0))
    assert np.abs(fits[0][1] - fits[1][1]).max() > 0.1


def test_a_linear_map_is_chosen_by_the_likelihood_of_independent_components():
    """The same criterion by Vasicek's entropies, which need no density."""
    S = np.random.default_rng(0).uniform(-1, 1, (3000, 2)) * np.sqrt(3)
    Z = S * [2, 1]
    setting = components._chosen(
        "random directions",
        components.GRID["random directions"],
        Z,
        np.arange(len(Z)),
        2,
        np.random.default_rng(3),
    )
    first = int(np.random.default_rng(3).integers(2**31))
    loss = []
    for start in range(first, first + 6):
        R = np.random.default_rng(start).normal(size=(2, 2))
        loss.append(differential_entropy(S @ R).sum() - np.linalg.slogdet(R)[1])
    assert np.ptp(loss) > 0.1
    assert setting["start"] - first == np.argmin(loss)


def test_a_dictionary_is_chosen_by_removing_noise_and_not_by_reconstruction():
    """Without a penalty noise is reconstructed, too; with a large one nothing is."""
    rng = np.random.default_rng(0)
    active = rng.integers(0, 12, 1200)
    Z = np.eye(12)[active] * rng.uniform(0.8, 1.2, (1200, 1)) + 0.01 * rng.normal(size=(1200, 12))
    grid = {"alpha": [1e-4, 0.1, 3.0], "atoms per component": [1]}
    values = {"first": (active == 0).astype(int)}
    found = components.find("sparse dictionary", Z, values, 12, np.random.default_rng(0), grid=grid)
    assert found.setting["alpha"] == 0.1


def test_a_grid_of_one_setting_is_that_setting(fits):
    Z, values = independent(n=200)
    grid = {"fun": ["cube"]}
    found = components.find("ICA", Z, values, 4, np.random.default_rng(0), grid=grid)
    assert found.setting["fun"] == "cube"
    assert len(fits) == 1


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
    assert "'--corpora': 'none' is not one of 'alike'" in capsys.readouterr().err


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
