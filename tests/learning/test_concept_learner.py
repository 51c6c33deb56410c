"""The scikit-learn estimator: its contract, and that it learns."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

torch = pytest.importorskip("torch")

from conceptnb.core.problems import TABLE_1, draw_problem  # noqa: E402
from conceptnb.core.scores import mcc, r2  # noqa: E402
from conceptnb.learning.learner import ConceptLearner  # noqa: E402

LABELS = "environments are integers 0, 1, ..., m without gaps; the check draws other labels"
ALONE = "an environment is learned from by contrast, so one alone is refused, in words of its own"
EXPECTED_FAILURES = {
    "check_estimators_dtypes": LABELS,
    "check_fit2d_1feature": LABELS,
    "check_dtype_object": LABELS,
    "check_estimators_nan_inf": LABELS,
    "check_classifier_data_not_an_array": LABELS,
    "check_classifiers_classes": LABELS + ", and names only with base=...",
    "check_classifiers_one_label": ALONE,
    "check_classifiers_regression_target": "refused as no integers, in words of its own",
    "check_supervised_y_no_nan": "refused as no integers, in words of its own",
    "check_supervised_y_2d": "environments have one axis: a column is refused, not flattened",
}


@pytest.fixture(scope="module")
def problem():
    return draw_problem(TABLE_1[0], 6, samples=1500)


@pytest.fixture(scope="module")
def fitted(problem):
    learner = ConceptLearner(2, targets=problem.design.M > 0, encoder="linear")
    return learner.fit(problem.X, problem.environment)


def test_learns_valuations_from_rows_in_any_order(problem, fitted):
    Z = problem.fresh(2000)
    learned = fitted.transform(problem.mixing(Z))
    assert r2(problem.valuations(Z), learned) > 0.98
    assert mcc(problem.valuations(Z), learned) > 0.98
    order = np.random.default_rng(1).permutation(len(problem.X))
    again = clone(fitted).fit(problem.X[order], problem.environment[order])
    assert mcc(learned, again.transform(problem.mixing(Z))) > 0.98


def test_score_is_the_log_likelihood_of_the_environments(problem, fitted):
    odds = np.column_stack([np.zeros(len(problem.X)), fitted.log_odds(problem.X)])
    weights = np.bincount(problem.environment) * np.exp(odds)
    chosen = weights[np.arange(len(odds)), problem.environment] / weights.sum(axis=1)
    score = fitted.score(problem.X, problem.environment)
    assert score == pytest.approx(np.log(chosen).mean(), abs=1e-9)
    shuffled = np.random.default_rng(0).permutation(problem.environment)
    assert fitted.score(problem.X, shuffled) < score
    assert -score == pytest.approx(fitted.held_out_loss_, abs=0.05)


@pytest.mark.parametrize(
    ("known", "encoder", "base_clusters"),
    [
        (True, "linear", None),
        (True, "mlp", None),
        (True, "mlp", 3),
        (False, "linear", None),
        (False, "mlp", None),
    ],
)
def test_save_and_load_without_pickle(tmp_path, problem, known, encoder, base_clusters):
    few = np.random.default_rng(0).permutation(len(problem.X))[:600]
    targets = problem.design.M > 0 if known else None
    quick = {} if known and encoder == "linear" else {"n_starts": 1, "epochs": 2}
    learner = ConceptLearner(
        2, targets=targets, encoder=encoder, base_clusters=base_clusters, **quick
    )
    learner.fit(problem.X[few], problem.environment[few])
    learner.save(tmp_path / "learner.safetensors")
    loaded = ConceptLearner.load(tmp_path / "learner.safetensors")
    np.testing.assert_array_equal(loaded.transform(problem.X), learner.transform(problem.X))
    assert loaded.score(problem.X, problem.environment) == pytest.approx(
        learner.score(problem.X, problem.environment)
    )
    assert loaded.get_feature_names_out().tolist() == ["conceptlearner0", "conceptlearner1"]


def test_environments_may_have_names(tmp_path, problem, fitted):
    names = np.array(["any", *(f"e{k}" for k in range(1, problem.environment.max() + 1))])
    named = clone(fitted).set_params(base="any").fit(problem.X, names[problem.environment])
    np.testing.assert_array_equal(named.transform(problem.X), fitted.transform(problem.X))
    assert named.environments_.tolist() == names.tolist()
    named.save(tmp_path / "learner.safetensors")
    loaded = ConceptLearner.load(tmp_path / "learner.safetensors")
    some = problem.environment != 2  # a new sample need not have rows of all
    score = loaded.score(problem.X[some], names[problem.environment[some]])
    assert score == fitted.score(problem.X[some], problem.environment[some])
    with pytest.raises(ValueError, match=r"environment holds \['e9'\]; the fit knows"):
        loaded.score(problem.X, np.resize(["any", "e9"], len(problem.X)))
    with pytest.raises(ValueError, match="base='none' is no environment; there are"):
        clone(named).set_params(base="none").fit(problem.X, names[problem.environment])
    with pytest.raises(TypeError, match=r"name the base by ConceptLearner\(base=...\)"):
        clone(fitted).fit(problem.X, names[problem.environment])


def test_the_base_comes_first_and_targets_follow_the_alphabet(problem):
    names = np.array(["the base", *"zyxwvut"])[: problem.environment.max() + 1]
    targets = (problem.design.M > 0)[::-1]  # the last environment is the first in the alphabet
    learner = ConceptLearner(2, targets=targets, base="the base", encoder="linear")
    learner.fit(problem.X, names[problem.environment])
    assert learner.environments_.tolist() == ["the base", *sorted(names[1:])]
    assert mcc(problem.valuations(), learner.transform(problem.X)) > 0.98
    others = learner.log_odds(problem.X)[:, ::-1]
    own = [others[problem.environment == e + 1, e].mean() for e in range(others.shape[1])]
    base = others[problem.environment == 0].mean(axis=0)
    assert (own > base).all()


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, "", " "])
def test_a_missing_name_is_no_environment(problem, fitted, missing):
    names = np.array(["any", *"abcdefg"], dtype=object)[problem.environment]
    names[7] = missing
    with pytest.raises(ValueError, match="name of row 8 is missing"):
        clone(fitted).set_params(base="any").fit(problem.X, names)


def test_labels_that_are_no_names_or_no_numbers_are_refused(problem, fitted):
    for bad in (problem.environment[:, None], problem.environment > 0, 3, None):
        with pytest.raises(TypeError, match="one integer per row"):
            fitted.score(problem.X, bad)
    with pytest.raises(TypeError, match="base=0 must be the name of an environment"):
        clone(fitted).set_params(base=0).fit(problem.X, problem.environment)
    with pytest.raises(ValueError, match="environment holds 'a' alone"):
        ConceptLearner(2, base="a").fit(problem.X, ["a"] * len(problem.X))
    with pytest.raises(ValueError, match="must have one axis"):
        ConceptLearner(2, base="a").fit(problem.X, [["a", "b"]] * len(problem.X))


def test_starts_and_epochs_are_honoured_whatever_is_known(problem):
    few = np.random.default_rng(0).permutation(len(problem.X))[:600]
    for targets in (None, problem.design.M > 0):
        learner = ConceptLearner(2, targets=targets, n_starts=3, epochs=2)
        learner.fit(problem.X[few], problem.environment[few])
        assert learner._fit.held_out_loss.shape == (1, 3)
        assert learner._fit.held_out_curve.shape == (1, 2)


def test_names_of_columns_survive_saving_and_numpys_scalars_are_saved(tmp_path, problem):
    columns = [f"x{k}" for k in range(problem.X.shape[1])]
    frame = pd.DataFrame(problem.X, columns=columns)
    settings = {"encoder": "linear", "random_state": np.int64(3), "held_out": np.float64(0.25)}
    learner = ConceptLearner(np.int64(2), targets=problem.design.M > 0, **settings)
    learner.fit(frame, problem.environment).save(tmp_path / "x.safetensors")
    loaded = ConceptLearner.load(tmp_path / "x.safetensors")
    assert loaded.feature_names_in_.tolist() == columns
    np.testing.assert_array_equal(loaded.transform(frame), learner.transform(frame))
    for one in (learner, loaded):
        with pytest.raises(ValueError, match="feature names"):
            one.transform(frame[columns[::-1]])


def test_a_random_state_may_be_a_generator_or_new_in_each_fit(problem, tmp_path):
    learner = ConceptLearner(2, targets=problem.design.M > 0, encoder="linear", random_state=None)
    seeds = {clone(learner).fit(problem.X, problem.environment).seed_ for _ in range(2)}
    assert len(seeds) == 2
    drawn = [np.random.default_rng(5) for _ in range(2)]
    one, other = (
        clone(learner).set_params(random_state=rng).fit(problem.X, problem.environment)
        for rng in drawn
    )
    np.testing.assert_array_equal(one.transform(problem.X), other.transform(problem.X))
    one.save(tmp_path / "x.safetensors")
    assert ConceptLearner.load(tmp_path / "x.safetensors").seed_ == one.seed_


@pytest.mark.parametrize("state", ["0", 0.5, np.random.RandomState(0)])
def test_a_random_state_that_is_no_integer_is_refused_by_name(problem, state):
    learner = ConceptLearner(targets=problem.design.M > 0, encoder="linear", random_state=state)
    with pytest.raises(TypeError, match="random_state must be an integer"):
        learner.fit(problem.X, problem.environment)


def test_foreign_file_is_refused(tmp_path):
    from safetensors.torch import save_file  # noqa: PLC0415

    save_file({"a": torch.zeros(1)}, tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="not written by ConceptLearner"):
        ConceptLearner.load(tmp_path / "other.safetensors")


def test_works_in_a_pipeline(problem):
    pipeline = make_pipeline(
        StandardScaler(), ConceptLearner(2, encoder="linear", n_starts=1, epochs=2)
    )
    assert pipeline.fit(problem.X, problem.environment).transform(problem.X).shape[1] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_concepts": 3}, "n_concepts = 3 columns"),
        ({"encoder": "tree"}, "encoder must be"),
        ({"n_concepts": 0}, "n_concepts"),
        (
            {"base_clusters": 3, "encoder": "linear"},
            "base_clusters needs targets and encoder='mlp'",
        ),
        ({"base_clusters": 3, "targets": None}, "base_clusters needs targets"),
        ({"encoder": "linear", "epochs": 5}, "searched and not trained"),
        ({"encoder": "linear", "n_starts": 2}, "searched and not trained"),
        ({"epochs": 0}, "epochs must be at least 1"),
    ],
)
def test_bad_parameters_are_refused(problem, arguments, message):
    learner = ConceptLearner(targets=problem.design.M > 0).set_params(**arguments)
    with pytest.raises(ValueError, match=message):
        learner.fit(problem.X, problem.environment)


def test_lengths_must_agree(problem, fitted):
    with pytest.raises(ValueError, match="entries for"):
        ConceptLearner().fit(problem.X, problem.environment[:-1])
    with pytest.raises(ValueError, match="entries for"):
        fitted.score(problem.X, problem.environment[:-1])


@pytest.mark.slow
def test_scikit_learns_estimator_checks():
    learner = ConceptLearner(1, encoder="linear", n_starts=1, epochs=1)
    outcomes = check_estimator(
        learner, expected_failed_checks=EXPECTED_FAILURES, on_skip=None, on_fail=None
    )
    failed = {o["check_name"]: o["exception"] for o in outcomes if o["status"] == "failed"}
    assert failed == {}
    stated = {o["check_name"] for o in outcomes if o["status"] == "xfail"}
    assert stated == set(EXPECTED_FAILURES)  # no exception that is not needed


MANY = st.lists(st.integers(-9, 9), min_size=3, max_size=3)


@given(MANY, MANY)
@settings(max_examples=6, deadline=None, phases=[Phase.generate])
def test_valuations_do_not_depend_on_units_and_origins(powers, origins):
    rng = np.random.default_rng(0)
    targets = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], bool)
    parts = [rng.normal(size=(400, 3)) for _ in range(5)]
    for e, (k, level) in enumerate([(0, 0.8), (0, -0.8), (1, 0.8), (1, -0.8)], start=1):
        parts[e][:, k] = level + 0.4 * parts[e][:, k]  # as a selection about a level leaves it
    X, environment = np.vstack(parts), np.repeat(range(5), 400)
    learner = ConceptLearner(2, targets=targets, encoder="linear")
    here = learner.fit(X, environment).transform(X)
    there = (X + 10.0 ** np.array(origins)) * 10.0 ** np.array(powers)
    moved = clone(learner).fit(there, environment)
    np.testing.assert_allclose(moved.transform(there), here, atol=1e-3)
    np.testing.assert_allclose(moved.coef_ * 10.0 ** np.array(powers), learner.coef_, atol=1e-3)
    assert moved.score(there, environment) == pytest.approx(learner.score(X, environment), abs=1e-5)


@pytest.mark.parametrize("encoder", ["linear", "mlp"])
@pytest.mark.parametrize("known", [True, False])
def test_no_column_of_small_unit_is_dropped(encoder, known):
    """Not even by 1e-9: the old threshold was 1e-8 of the largest variance."""
    rng = np.random.default_rng(1)
    environment = np.repeat([0, 1, 2], 80)
    X = rng.normal(size=(240, 2)) + np.array([[0, 0], [2, 0], [0, 2]])[environment]
    targets = np.eye(2, dtype=bool) if known else None
    quick = {} if known and encoder == "linear" else {"n_starts": 1, "epochs": 2}
    learner = ConceptLearner(2, targets=targets, encoder=encoder, **quick)
    moved = clone(learner).fit(X * [1, 1e-9] - [5e8, 0], environment)
    assert moved._fit.whitening.matrix.shape == (1, 2, 2)
    here = learner.fit(X, environment).transform(X)
    np.testing.assert_allclose(moved.transform(X * [1, 1e-9] - [5e8, 0]), here, atol=1e-2)


def test_weights_are_those_of_the_columns(problem, fitted, tmp_path):
    expected = problem.X @ fitted.coef_.T + fitted.intercept_
    np.testing.assert_allclose(fitted.transform(problem.X), expected, atol=1e-4)
    fitted.save(tmp_path / "x.safetensors")
    assert (tmp_path / "x.safetensors").stat().st_mode & 0o777 == 0o644
    loaded = ConceptLearner.load(tmp_path / "x.safetensors")
    np.testing.assert_allclose(loaded.coef_, fitted.coef_, rtol=1e-6)
    base = fitted.transform(problem.X[problem.environment == 0])
    assert np.abs(base.mean(axis=0) / base.std(axis=0)).max() < 0.1
    network = ConceptLearner(2, n_starts=1, epochs=1).fit(problem.X[::5], problem.environment[::5])
    assert not hasattr(network, "coef_")
    assert not hasattr(ConceptLearner(2), "coef_")


def test_more_concepts_than_columns_are_refused_and_dependent_columns_are_said(problem):
    X, environment = problem.X[:, :1], problem.environment
    with pytest.raises(ValueError, match="n_concepts=2 is more than X can hold, whose n_features"):
        ConceptLearner(2, encoder="linear").fit(X, environment)
    twice = np.hstack([X, 3 * X + 1])
    learner = ConceptLearner(2, targets=problem.design.M > 0, encoder="linear")
    with pytest.warns(UserWarning, match="only 1 independent columns"):
        learner.fit(twice, environment)


@pytest.mark.parametrize(("scale", "shift", "said"), [(1e140, 0, "hold up to"), (1, 1e13, "lie")])
def test_what_no_fit_can_hold_is_refused_by_the_columns_name(problem, scale, shift, said):
    frame = pd.DataFrame(problem.X).add_prefix("x")
    frame["x1"] = frame["x1"] * scale + shift
    with pytest.raises(ValueError, match=rf"columns \['x1'\] {said}"):
        ConceptLearner(2, encoder="linear").fit(frame, problem.environment)
    far = problem.X * 1e40 + 1e48
    learner = ConceptLearner(2, targets=problem.design.M > 0, encoder="linear")
    found = learner.fit(far, problem.environment).transform(far)
    assert mcc(problem.valuations(), found) > 0.98


def test_folds_of_a_whole_number_hold_every_environment(problem):
    """Rows stand environment by environment, as tables do."""
    learner = ConceptLearner(2, targets=problem.design.M > 0, encoder="linear")
    few = np.sort(np.random.default_rng(0).permutation(len(problem.X))[:900])
    search = GridSearchCV(learner, {"held_out": [0.1, 0.2]}, cv=2)
    search.fit(problem.X[few], problem.environment[few])
    assert search.best_score_ > -np.log(len(problem.design.M) + 1)


def test_environments_are_predicted_and_named_by_either_word(problem, fitted):
    chance = fitted.predict_proba(problem.X)
    np.testing.assert_allclose(chance.sum(axis=1), 1)
    np.testing.assert_array_equal(fitted.classes_[chance.argmax(axis=1)], fitted.predict(problem.X))
    again = clone(fitted).fit(X=problem.X, environment=problem.environment)
    np.testing.assert_array_equal(again.transform(problem.X), fitted.transform(problem.X))
    assert again.score(problem.X, y=problem.environment) == again.score(
        problem.X, environment=problem.environment
    )
    with pytest.raises(TypeError, match="two names for one"):
        fitted.score(problem.X, problem.environment, environment=problem.environment)
    with pytest.raises(TypeError, match="sample_weight"):
        clone(fitted).fit(problem.X, problem.environment, sample_weight=np.ones(len(problem.X)))
