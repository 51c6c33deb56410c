"""A reader's table of environments: what is learned, what is warned of, and what is refused."""

import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from conceptnb.core import example_data as examples
from conceptnb.core.concepts import random_atoms
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import random_mixture
from conceptnb.core.problems import sample_environments
from conceptnb.core.scores import match_columns, mcc
from conceptnb.learning import ConceptLearner
from conceptnb.learning.environment_tables import (
    _about_design,
    from_arrays,
    learn_concepts,
    read_environments,
)

TEMPLATE = Path(__file__).resolve().parents[2] / "book/templates/my_environments.py"


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """Write the example, learn from it, and return truth, file and report."""
    path = tmp_path_factory.mktemp("beans") / "beans.csv"
    truth = examples.write_environments(path)
    table = read_environments(path, base="any")
    return truth, path, learn_concepts(table, examples.LOOKED_FOR)


def test_concepts_of_the_example_are_found_without_a_warning(learned):
    truth, _, report = learned
    assert mcc(truth, report.valuations) > 0.99
    assert report.warnings == []
    assert report.concepts == ["roast", "acidity"]
    assert min(report.agreement.values()) > 0.99
    assert all(0.6 < area < 0.95 for area in report.separation.values())
    summary = report.summary()
    assert summary["rows"].tolist() == [400] * 5
    roast = dict(zip(summary["environment"], summary["mean roast"], strict=True))
    assert np.sign(roast["dark"]) == -np.sign(roast["light"])


def test_rows_may_come_in_any_order(learned):
    _, path, report = learned
    shuffled = pd.read_csv(path).sample(frac=1, random_state=1)
    table = from_arrays(shuffled.iloc[:, 1:], shuffled["environment"].tolist(), "any")
    assert table.counts == dict.fromkeys(table.names, 400)
    assert sorted(table.names) == sorted(report.table.names)


@pytest.mark.slow
def test_environments_that_do_not_fit_are_warned_of(learned, tmp_path):
    rows = pd.read_csv(learned[1]).iloc[::3]
    rows.loc[rows.environment == "sour", "sensor_1":] += 50.0
    table = from_arrays(rows.iloc[:, 1:], rows["environment"].tolist(), "any")
    said = "\n".join(learn_concepts(table, examples.LOOKED_FOR).warnings)
    assert "'sour' lie outside the range of the base" in said
    assert "'sour' does not overlap with the base" in said
    # Labels that say nothing teach nothing, and two halves cannot agree on it.
    rng = np.random.default_rng(0)
    noise = from_arrays(rng.normal(size=(800, 5)), ["any", "a", "b", "c"] * 200, "any")
    said = "\n".join(learn_concepts(noise, {"a": ["u"], "b": ["u"], "c": ["v"]}).warnings)
    assert "'a' can barely be told from the base" in said
    assert "Two halves disagree" in said


@pytest.mark.parametrize(
    ("M", "words"),
    [
        ([[1, 0], [0, 1]], ["Few environments", "'u' is looked for in one", "'v' is looked for"]),
        ([[1, 1]] * 3, ["rank 1, not 2", "'u' is never looked for without 'v'"]),
        ([[1, 0], [1, 1], [1, 1]], ["'v' is never looked for without 'u'"]),
        ([[1, 0], [0, 1], [1, 1]], []),
    ],
)
def test_the_design_is_held_against_the_assumptions(M, words):
    said = list(_about_design(np.array(M, dtype=bool), ["u", "v"]))
    assert all(any(word in line for line in said) for word in words)
    assert bool(said) == bool(words)


def test_columns_that_are_no_measurements_are_named(learned):
    rows = pd.read_csv(learned[1])
    X, labels = rows.iloc[:, 1:], rows["environment"].tolist()
    assert from_arrays(X, labels, "any").suspicious_columns() == []
    rng = np.random.default_rng(0)
    odd = X.assign(
        row=np.arange(len(X)),
        within=np.tile(np.arange(400) * 0.5, 5),
        id=rng.permutation(len(X)) + 10**6,
        time=1.6e9 + np.cumsum(rng.exponential(size=len(X))),
        count=rng.poisson(3, len(X)),
        sex=rng.integers(2, size=len(X)),
        lognormal=rng.lognormal(size=len(X)),
        batch=np.repeat([5, 1, 4, 2, 3], 400),
        one=1,
    )
    odd.loc[5:9, "sensor_1"] = -999
    odd.loc[7:9, "sensor_2"] = 9999
    said = from_arrays(odd, labels, "any", columns=list(odd)).suspicious_columns()
    assert [line.split()[0] for line in said] == [
        "'sensor_1'", "'sensor_2'", "'row'", "'within'", "'id'", "'time'", "'batch'",
    ]  # fmt: skip
    assert "-999 in 5 rows" in said[0]
    assert "9999 in 3 rows" in said[1]
    assert all("numbers rows" in line for line in said[2:])


@pytest.mark.parametrize("code", [-99, 999, -999, -9999, 9999])
def test_a_single_code_of_nines_is_named_and_a_single_far_value_is_not(code):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    X[3, 0], X[5, 1] = code, code + 2.5
    [said] = from_arrays(X, ["any", "dark"] * 40, "any", columns=["a", "b"]).suspicious_columns()
    assert said.startswith(f"'a' is {code} in 1 rows, far from all its other values")


def test_several_codes_in_one_column_do_not_hide_each_other():
    X = np.random.default_rng(0).normal(size=(80, 2))
    X[3, 0], X[4, 0], X[5:8, 1], X[8, 1] = -9999, 9999, 999, 99
    said = from_arrays(X, ["any", "dark"] * 40, "any").suspicious_columns()
    assert [line.split(", far")[0] for line in said] == [
        "'column 1' is -9999 in 1 rows",
        "'column 1' is 9999 in 1 rows",
        "'column 2' is 999 in 3 rows",
    ]


def test_a_lognormal_column_is_read_without_an_override(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"environment": ["any", "dark"] * 1000, "a": rng.lognormal(0, 2.5, 2000)})
    rows.to_csv(tmp_path / "mine.csv", index=False)
    table = read_environments(tmp_path / "mine.csv", base="any")
    np.testing.assert_allclose(table.X[:, 0], rows["a"])
    assert table.suspicious_columns() == []


def test_names_of_columns_and_environments_are_checked():
    with pytest.raises(ValueError, match=r"each of X's 2 columns its own name"):
        from_arrays(np.eye(80)[:, :2], ["any", "dark"] * 40, "any", columns=["a", "a"])
    frame = pd.DataFrame(np.eye(80)[:, :2], columns=["a", "b"])
    assert from_arrays(frame, ["any", "dark"] * 40, "any").columns == ["a", "b"]
    for missing in (np.nan, None, ""):
        with pytest.raises(ValueError, match="environment of row 2 of the data is missing"):
            from_arrays(np.eye(80)[:, :2], ["any", missing] * 40, "any")


BEANS = {f"e{e}": concepts for e, concepts in enumerate(examples.LOOKED_FOR.values(), start=1)}


def simulated(seed, d_x, shift):
    """A table of the example's design, one environment of which may have been shifted."""
    rng = np.random.default_rng(seed)
    _, X, environment = examples.draw_environments(rng, 400, d_x)
    X[environment == 3] += shift * X.std(axis=0) * rng.choice([-1, 1], size=d_x)
    return from_arrays(X, [f"e{e}" for e in environment], "e0")


@pytest.mark.slow
@pytest.mark.parametrize("d_x", [6, 4])
def test_changed_environments_are_warned_of_and_selected_ones_are_not(d_x):
    """`conceptnb reproduce own-tables` counts them on more tables."""
    changed = ("farther from the base", "in more than its concepts", "outside the range")
    found = {
        shift: [
            any(part in line for line in warnings for part in changed)
            for seed in range(4)
            for warnings in [learn_concepts(simulated(seed, d_x, shift), BEANS).warnings]
        ]
        for shift in (0.0, 0.3)
    }
    assert sum(found[0.0]) <= 1
    assert sum(found[0.3]) >= 3


def test_equal_valuations_are_warned_of():
    rng = np.random.default_rng(3)
    base, atoms = random_mixture(3, rng), random_atoms(2, 3, rng)
    centre = base.sample(4000, rng) @ atoms.T
    high, low = np.percentile(centre, [70, 30], axis=0)
    design = EnvironmentDesign(
        [[0], [0], [1], [1]],
        [[high[0]], [high[0]], [high[1]], [low[1]]],
        float(0.15 * centre.var()),
    )
    Z, environment = sample_environments(base, design, atoms, 600, rng, n_base=600)
    table = from_arrays(Z, [f"e{e}" for e in environment], "e0")
    looked = {"e1": ["u"], "e2": ["u"], "e3": ["v"], "e4": ["v"]}
    said = [line for line in learn_concepts(table, looked).warnings if "Assumption 4" in line]
    assert len(said) == 1
    assert said[0].startswith("'u' was looked for at nearly the same valuation in 2 of its 2")


GOOD = "environment,a,b\n" + "any,1,2\nany,2,1\ndark,3,1\ndark,1,4\n" * 20


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (GOOD.replace("environment,", "where,"), ["lacks the columns ['environment']", "'where'"]),
        ("environment,a,b\n" + "any,1,2\nany,2,1\n" * 20, ["all rows", "at least one more"]),
        (GOOD.replace("1,2", "3,2").replace("2,1", "3,1").replace("1,4", "3,4"), ["['a'] hold"]),
        (GOOD + "dark,,1\n", ["column 'a', row 82", "missing ('')", "1 of 81"]),
        (GOOD.replace("a,b\n", "a,b\n\n\n") + "dark,,1\n", ["column 'a', row 84", "1 of 81"]),
        (GOOD + "dark,NaN,1\n", ["row 82", "missing ('NaN')", "Remove these rows"]),
        (
            re.sub(r"(any|dark),\d", r"\1,red", GOOD),
            ["column 'a' holds no number, but 'red'", "leave it out with features"],
        ),
        (
            re.sub(r"(any|dark),(\d)", r'\1,"\2,5"', GOOD),
            ["column 'a'", "'1,5'", "decimals with a point"],
        ),
        (GOOD + "dark,seven,1\n", ["row 82", "no number: 'seven'"]),
        (GOOD + "dark,1e300,1\n", ["row 82", "1e+300 is huge", "median 2"]),
        (GOOD + "dark,999999,1\n", ["row 82", "999999 is huge", "missing value"]),
        (GOOD + "dark,1\n", ["row 82: 2 cells where the header has 3"]),
        (GOOD + "rare,1,2\n", ["{'rare': 1} are too few"]),
        ("", ["is empty", "names the columns"]),
        ("environment,a,b\n", ["no rows"]),
        ("environment,a,a\nany,1,2\n", ["['a'] twice"]),
        (GOOD.replace("any", "café").encode("latin-1"), ["row 2", "0xe9", "encoding='latin-1'"]),
        (GOOD.replace("any", "other"), ["base='any' is no environment", "'other'"]),
        (GOOD.replace("dark", "NaT"), ["row 3 of the data", "its name reads so"]),
    ],
)
def test_bad_files_are_refused_with_file_place_and_way_out(content, words, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match="mine") as caught:
        read_environments(path, base="any")
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_other_encodings_and_columns_can_be_named(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_bytes(GOOD.replace("any", "café").encode("utf-16"))
    table = read_environments(path, base="café", encoding="utf-16", features=["b"])
    assert (table.names, table.X.shape) == (["café", "dark"], (80, 1))
    with pytest.raises(FileNotFoundError, match=r"other.csv is no file"):
        read_environments(tmp_path / "other.csv", base="any")


def test_what_was_looked_for_has_to_name_every_environment():
    table = from_arrays(np.eye(80)[:, :3], ["any", "dark"] * 40, "any")
    with pytest.raises(ValueError, match=r"looked_for names \['light'\].*\['dark'\]"):
        learn_concepts(table, {"light": ["roast"]})
    with pytest.raises(ValueError, match="must be a list"):
        learn_concepts(table, {"dark": "roast"})
    for empty in ([], [""], ["roast", " "]):
        with pytest.raises(ValueError, match=r"looked_for of \['dark'\] must be a list"):
            learn_concepts(table, {"dark": empty})


@pytest.mark.slow
def test_the_template_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    examples.write_environments("beans.csv", rows=300)
    runpy.run_path(str(TEMPLATE), run_name="__main__")
    assert "separation" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} >= {"valuations.png", "concepts.safetensors"}


@pytest.fixture(scope="module")
def digits():
    """Scikit-learn's digits, of which environments select by ink and by where it is."""
    X = load_digits().data
    X = X[:, X.std(axis=0) > 0]
    truth = np.column_stack([X.sum(axis=1), X[:, : X.shape[1] // 2].sum(axis=1) / X.sum(axis=1)])
    standard = (truth - truth.mean(axis=0)) / truth.std(axis=0)
    rng = np.random.default_rng(0)
    rows, labels = [rng.permutation(len(X))[:900]], ["any"] * 900
    for name, k, side in (("dark", 0, 1), ("light", 0, -1), ("top", 1, 1), ("bottom", 1, -1)):
        weight = np.exp(side * standard[:, k])
        rows.append(rng.choice(len(X), 600, replace=False, p=weight / weight.sum()))
        labels += [name] * 600
    chosen = np.concatenate(rows)
    looked = {"dark": ["ink"], "light": ["ink"], "top": ["place"], "bottom": ["place"]}
    return from_arrays(X[chosen], labels, "any"), looked, truth[chosen]


@pytest.mark.long
def test_components_make_halves_agree_where_there_are_many_columns(digits, tmp_path):
    table, looked, truth = digits
    plain = learn_concepts(table, looked)
    few = learn_concepts(table, looked, components=[5, 20])
    assert any("--components or --shrinkage may help" in line for line in plain.warnings)
    first, second = (np.mean([*report.agreement.values()]) for report in (plain, few))
    assert second > first
    assert mcc(truth, few.valuations) > mcc(truth, plain.valuations) + 0.02
    # The one with the lowest held-out loss was kept, and it takes the table's own columns.
    other = learn_concepts(table, looked, components=[5]).learner
    assert few.learner.held_out_loss_ < other.held_out_loss_
    few.learner.save(tmp_path / "concepts.safetensors")
    loaded = ConceptLearner.load(tmp_path / "concepts.safetensors")
    np.testing.assert_allclose(loaded.transform(table.X), few.valuations, rtol=1e-6)
    assert loaded.n_features_in_ == table.X.shape[1]


def wide_table(seed, rows=60, columns=20):
    """Few rows of many noisy columns."""
    rng = np.random.default_rng([seed, 77])
    truth, X, environment = examples.draw_environments(rng, rows, 4)
    X = X @ rng.normal(size=(4, columns)) / 2 + 0.3 * X.std() * rng.normal(size=(len(X), columns))
    looked_for = {f"e{e}": names for e, names in enumerate(examples.LOOKED_FOR.values(), start=1)}
    return truth, from_arrays(X, [f"e{e}" for e in environment], "e0"), looked_for


@pytest.mark.long
def test_shrinkage_finds_more_where_there_are_many_columns_and_few_rows():
    gains = []
    for seed in range(6):
        truth, table, looked_for = wide_table(seed)
        plain = learn_concepts(table, looked_for)
        shrunk = learn_concepts(table, looked_for, shrinkage=[0, 0.3, 0.6])
        assert shrunk.learner.held_out_loss_ < plain.learner.held_out_loss_
        assert shrunk.shrinkage > 0
        assert (plain.components, plain.shrinkage) == (None, 0)
        gains.append(mcc(truth, shrunk.valuations) - mcc(truth, plain.valuations))
    assert np.mean(gains) > 0.05


def test_shrunk_directions_are_those_of_the_shrunk_covariance():
    """Σ_s⁻¹ Σ a, in standardised columns, spans the directions that are learned from."""
    truth, table, looked_for = wide_table(0, rows=200, columns=6)
    plain = learn_concepts(table, looked_for)
    shrunk = learn_concepts(table, looked_for, shrinkage=[0.5])
    covariance = np.corrcoef(table.X.T)
    mixed = 0.5 * covariance + 0.5 * np.eye(6)  # of average variance 1
    unit = table.X.std(axis=0)[:, None]
    directions = np.linalg.solve(mixed, covariance @ (unit * plain.learner.coef_.T)) / unit
    others = shrunk.learner.coef_.T
    between = np.linalg.lstsq(directions, others, rcond=None)[0]
    np.testing.assert_allclose(directions @ between, others, atol=1e-4 * np.abs(others).max())
    # without any, or with as little as that, nothing changes
    little = learn_concepts(table, looked_for, shrinkage=[1e-9])
    assert mcc(plain.valuations, little.valuations) > 0.9999
    assert mcc(truth, shrunk.valuations) > 0.9


def test_shrinkage_knows_no_units_and_is_kept_in_a_file(tmp_path):
    _, table, looked_for = wide_table(1, rows=100)
    scale = np.exp(np.random.default_rng(0).normal(size=20) * 3)
    scale[:2] = 1e-6, 1e6
    labels = [table.names[e] for e in table.environment]
    moved = from_arrays(table.X * scale + 5 * scale, labels, "e0")
    for components in ([], [8, 20]):
        tried = {"components": components, "shrinkage": [0.3]}
        here, there = (learn_concepts(one, looked_for, **tried) for one in (table, moved))
        assert (here.components, here.shrinkage) == (there.components, there.shrinkage)
        assert mcc(here.valuations, there.valuations) > 0.999
    here.learner.save(tmp_path / "concepts.safetensors")
    loaded = ConceptLearner.load(tmp_path / "concepts.safetensors")
    np.testing.assert_allclose(loaded.transform(table.X), here.valuations, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bad", [0.1, None, "0.1", ["0.1"], [None], [[0.1]]])
def test_what_is_no_list_of_numbers_is_refused_by_name(learned, bad):
    for name in ("shrinkage", "components"):
        with pytest.raises(TypeError, match=f"{name}=.* must be a list of numbers"):
            learn_concepts(learned[2].table, examples.LOOKED_FOR, **{name: bad})


@pytest.mark.parametrize("bad", [[], [1], [-0.1], [0, np.nan]])
def test_shares_that_shrink_nothing_or_all_are_refused(learned, bad):
    with pytest.raises(ValueError, match=r"shrinkage=.* must be shares in \[0, 1\)"):
        learn_concepts(learned[2].table, examples.LOOKED_FOR, shrinkage=bad)
    with pytest.raises(ValueError, match="needs encoder='linear'"):
        learn_concepts(learned[2].table, examples.LOOKED_FOR, encoder="mlp", shrinkage=[0.1])


def test_starts_are_those_of_a_network(learned, monkeypatch):
    table = learned[2].table
    with pytest.raises(ValueError, match="leave n_starts"):
        learn_concepts(table, examples.LOOKED_FOR, starts=3)
    tried = []
    monkeypatch.setattr(ConceptLearner, "fit_along", lambda self, *_: tried.append(self))
    with pytest.raises(AttributeError):
        learn_concepts(table, examples.LOOKED_FOR, encoder="mlp", starts=3)
    assert [learner.n_starts for learner in tried] == [3]


def test_constant_columns_change_nothing():
    _, table, looked_for = wide_table(2, rows=100, columns=8)
    labels = [table.names[e] for e in table.environment]
    more = from_arrays(np.hstack([table.X, np.ones((len(table.X), 3))]), labels, "e0")
    here, there = (learn_concepts(one, looked_for, shrinkage=[0.3]) for one in (table, more))
    assert mcc(here.valuations, there.valuations) > 0.9999
    np.testing.assert_allclose(here.learner.held_out_loss_, there.learner.held_out_loss_, rtol=1e-4)


def test_environments_that_are_wider_than_the_base_have_no_valuation_in_common():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(400, 2))] + [rng.normal(size=(400, 2)) * [2, 1] for _ in range(3)]
    table = from_arrays(np.vstack(X), np.repeat(["any", "e1", "e2", "e3"], 400), "any")
    report = learn_concepts(table, {name: ["u"] for name in ("e1", "e2", "e3")})
    assert not any("nearly the same valuation" in line for line in report.warnings)


@pytest.mark.slow
def test_a_real_table_leads_to_a_right_decision(tmp_path):
    """Chapter 18: with components use height and not ink, with shrinkage both, as rough ones."""
    measured = examples.write_digits(tmp_path / "digits.csv")
    table = read_environments(tmp_path / "digits.csv", base="any")
    assert table.counts == {"any": 900} | dict.fromkeys(["dark", "light", "high", "low"], 600)
    looked_for = {"dark": ["ink"], "light": ["ink"], "high": ["height"], "low": ["height"]}

    def found(report):
        pairs = zip(*match_columns(measured, report.valuations), strict=True)
        return {measured.columns[i]: abs(r) for i, _, r in pairs}

    few = learn_concepts(table, looked_for, components=[5, 10, 20])
    [said] = few.warnings
    assert said.startswith("Two halves disagree about 'ink'") and "do not use" in said
    assert found(few)["height"] > 0.9 > found(few)["ink"]
    shrunk = learn_concepts(table, looked_for, shrinkage=[0, 0.1, 0.3, 0.6])
    assert shrunk.learner.held_out_loss_ < few.learner.held_out_loss_
    assert min(shrunk.agreement.values()) > 0.7
    assert min(found(shrunk).values()) > 0.95


def test_as_many_components_as_columns_change_nothing(learned):
    _, _, report = learned
    every = learn_concepts(report.table, examples.LOOKED_FOR, components=[6])
    assert mcc(report.valuations, every.valuations) > 0.9999
    moved = from_arrays(
        report.table.X * 1000 + 5, [report.table.names[e] for e in report.table.environment], "any"
    )
    again = learn_concepts(moved, examples.LOOKED_FOR, components=[3])
    here = learn_concepts(report.table, examples.LOOKED_FOR, components=[3])
    assert mcc(here.valuations, again.valuations) > 0.9999
    for wrong in (1, 7):
        with pytest.raises(
            ValueError, match=rf"components=\[{wrong}\] must lie between 2 .* and 6"
        ):
            learn_concepts(report.table, examples.LOOKED_FOR, components=[3, wrong])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: x + 1e13, r"\['b'\] lie more than 100,000,000,000"),
        (lambda x: x * 1e150, r"\['b'\] hold up to"),
        (lambda x: x * 1e-150, r"\['b'\] vary by less than 1e-100"),
    ],
)
def test_columns_that_single_precision_cannot_hold_are_named(change, said):
    rows = np.random.default_rng(0).normal(size=(90, 3))
    environment = ["base", "one", "two"] * 30
    looked_for = {"one": ["a"], "two": ["b"]}
    rows[:, 2] = 1e8  # a constant
    moved = rows + np.array([0, 1e5, 0])
    learn_concepts(from_arrays(moved, environment, "base"), looked_for)
    rows[:, 1] = change(rows[:, 1])
    with pytest.raises(ValueError, match=said):
        learn_concepts(from_arrays(rows, environment, "base", columns=["a", "b", "c"]), looked_for)
    with pytest.raises(ValueError, match=r"columns \[1\]"):
        learn_concepts(from_arrays(rows, environment, "base"), looked_for)
