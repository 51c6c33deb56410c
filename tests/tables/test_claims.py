"""Every headline sentence is supported by its table, and a table that says otherwise refutes it."""

from __future__ import annotations

import copy
import dataclasses
import functools
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from conceptnb import results
from conceptnb.tables import claims
from conceptnb.tables.claims import registered_claims
from conceptnb.tables.synthetic_report import outside_two_std
from tools.book.project import Project

ROOT = Path(__file__).resolve().parents[2]

load = functools.cache(results.load)
EVERY = registered_claims(load=load)
NAMES = [f"{i}-{claim.entry['page']}" for i, claim in enumerate(EVERY)]
each_claim = pytest.mark.parametrize("claim", EVERY, ids=NAMES)


def page_of(claim):
    return f"notebooks/{claim.entry['page']}"


def words(text):
    """Return text without line breaks and mark-up, as a reader sees it."""
    return " ".join(re.sub(r"[`*$]", "", text).split())


@each_claim
def test_the_table_supports_the_sentence(claim):
    assert claim.holds, (
        f"results/{claim.entry['table']}.json no longer supports this sentence of "
        f"{page_of(claim)}: weaken it there and in claims.toml.\n"
        f"{claim.entry['sentence']}\n{claim.numbers}"
    )


@each_claim
def test_the_sentence_stands_where_the_register_says(claim):
    text = (ROOT / f"{page_of(claim)}.md").read_text(encoding="utf-8")
    assert words(claim.entry["sentence"]) in words(text), (
        f"{page_of(claim)}.md has changed: put its present sentence into claims.toml, "
        "with a condition on the interval that it needs"
    )


def refuting(entry):
    """Return a loader whose table says the opposite of what a claim needs."""
    table = copy.deepcopy(load(entry["table"]))
    away = -10.0 if "above" in entry else 10.0
    for run in claims._runs(entry, lambda _: table):
        if "kl" in entry:
            if run["method"] == entry["method"]:
                right = "0" if "above" in entry else "1"
                for point in run["curve"]:
                    point["right"] = right * len(point["right"])
            continue
        column = entry["column"]
        if isinstance(run[column], bool):
            run[column] = away > 0
        elif isinstance(run[column], list):
            run[column] = [run[column][0] + away, run[column][1]]
        else:
            run[column] += away
    return lambda name: table if name == entry["table"] else load(name)


@each_claim
def test_a_wrong_number_refutes_the_sentence(claim):
    wrong = claims._measured(claim.entry, refuting(claim.entry))
    assert not wrong.holds
    assert "Not supported" in wrong._repr_html_()


@each_claim
def test_an_entry_says_all_that_the_page_promises(claim):
    entry, project = claim.entry, Project(ROOT)
    assert page_of(claim) in project.pages_in_toc
    assert {"above", "below", "includes"} & set(entry), "no condition could ever fail"
    assert entry["choices"].startswith(claims.WHEN)
    assert len(entry["refuted"]) > 5
    shown = claim._repr_html_()
    assert claim.command in shown.replace("&#x27;", "'")
    assert "Not supported" not in shown


def test_the_page_shows_every_claim():
    text = (ROOT / "notebooks" / "notes" / "claims.md").read_text(encoding="utf-8")
    for page in {claim.entry["page"] for claim in EVERY}:
        assert f'"{page}"' in text, f"notes/claims.md shows no claim of {page}"


def test_the_overview_counts_every_claim_once_and_widens_intervals():
    table = claims.overview(load).rows
    counts = [sum(int(row[when.lower()]) for when in claims.WHEN) for row in table]
    assert counts == [int(row["numbers"]) for row in table]
    assert sum(counts) == len(EVERY)
    assert int(table[0]["supported all together"]) <= int(table[0]["supported"])
    wider = registered_claims(load=load, together=len(EVERY))
    for alone, together in zip(EVERY, wider, strict=True):
        for name, (mean, low, high, _) in alone.numbers.items():
            other, lower, higher, _ = together.numbers[name]
            assert other == mean
            assert lower <= low + 1e-12
            assert high <= higher + 1e-12


def test_most_cells_lie_within_two_of_the_papers_deviations():
    rows = [load(f"synthetic_{name}").rows for name in ("faithful", "best")]
    assert len(outside_two_std(*rows).rows) < len(rows[0])  # of two cells per row


def stored(**tables):
    some = load("synthetic_best")
    kept = {name: dataclasses.replace(some, runs=runs) for name, runs in tables.items()}
    return kept.__getitem__


ENTRY = {"table": "one", "column": "x", "unit": "seeds", "above": 0.0}


def numbers(entry, **tables):
    return claims._measured(ENTRY | entry, stored(**tables)).numbers


def test_intervals_are_those_of_the_t_test(rng):
    one, other = rng.normal(size=(2, 7))
    first = [{"seed": s, "x": x} for s, x in enumerate(one)]
    second = [{"seed": s, "x": x} for s, x in reversed(list(enumerate(other)))]
    expected = stats.ttest_1samp(one, 0).confidence_interval()
    np.testing.assert_allclose(numbers({}, one=first)[""][1:3], expected)
    expected = stats.ttest_rel(one, other).confidence_interval()
    paired = numbers({"minus": {"table": "two"}}, one=first, two=second)
    np.testing.assert_allclose(paired[""][1:3], expected)


def test_a_share_has_an_exact_interval():
    runs = [{"seed": s, "x": s < 18} for s in range(20)]
    mean, low, high, _ = numbers({}, one=runs)[""]
    assert mean == 0.9
    # Clopper-Pearson: at its ends, what was seen or more extreme has probability 1/40
    assert stats.binom.sf(17, 20, low) == pytest.approx(0.025)
    assert stats.binom.cdf(18, 20, high) == pytest.approx(0.025)


def test_the_spread_of_the_paper_widens_the_interval():
    setting = {"mixing": "nonlinear", "n": 4, "dz": 25, "dx": 30}
    row = next(
        r for r in results.paper.printed("table1_table7")["rows"] if r[:3] == ["nonlinear", 4, 25]
    )
    setting["dx"], (mean, std) = row[3], row[5]
    runs = [setting | {"seed": s, "mcc": mean + 0.5} for s in range(5)]
    entry = {"column": "mcc", "minus": "paper"}
    found, low, high, _ = numbers(entry, one=runs)[""]
    assert found == pytest.approx(0.5)
    error = std * np.sqrt(5 / 4) / np.sqrt(5)  # from a deviation of the population
    assert high - low == pytest.approx(2 * stats.t.ppf(0.975, 4) * error)


def test_runs_that_do_not_pair_one_to_one_are_refused():
    runs = [{"seed": 0, "n": n, "x": 1.0} for n in (2, 3)]
    with pytest.raises(ValueError, match="pair"):
        numbers({"minus": {"table": "two"}}, one=runs, two=runs)
    assert numbers({"minus": {"table": "two"}, "pair": ["n"]}, one=runs, two=runs)[""][0] == 0
    with pytest.raises(ValueError, match="selects no run"):
        numbers({"where": {"n": [9]}}, one=runs)


def test_models_that_differ_widen_an_interval_over_questions():
    """All questions of a model agree, so that questions alone would give no width."""

    def run(model, method, right):
        point = {"alpha": 1.0, "kl_asked": 0.1, "right": right * 8}
        tested = {"world": "w", "seed": 0, "fold": 0, "tested": "1" * 8, "chosen": True}
        return tested | {"model_seed": model, "method": method, "curve": [point]}

    def widths(gains):
        runs = [run(m, "baseline", "0") for m in range(len(gains))]
        runs += [run(m, "mine", gain) for m, gain in enumerate(gains)]
        runs += [run(m, "theirs", "0") for m in range(len(gains))]
        entry = {"method": "mine", "against": "theirs", "kl": 0.1}
        by_tried = (numbers(entry | {"tried": k}, one=runs)[""] for k in (1, 5))
        return [high - low for _, low, high, _ in by_tried]

    assert widths("111") == [0, 0]
    gains = np.array([1, 1, 0, 1, 0, 0, 1, 1, 0, 1])
    expected = [2 * stats.t.ppf(1 - 0.025 / k, 9) * stats.sem(gains) for k in (1, 5)]
    assert widths("1101001101") == pytest.approx(expected)


@pytest.mark.parametrize(
    ("values", "lost"), [([1.0, 1.1, 0.9, 1.0], []), ([9, 9.1, 9.2, 0.1], [3])]
)
def test_a_claim_that_rests_on_one_seed_is_told(values, lost):
    runs = [{"seed": seed, "mcc": value} for seed, value in enumerate(values)]
    entry = {"table": "x", "column": "mcc", "unit": "seeds", "includes": 0.0}
    stored = SimpleNamespace(runs=runs, command="none")
    claim = claims._measured(entry, lambda _: stored)
    expected = {}
    for out in range(len(values)):
        rest = [v for k, v in enumerate(values) if k != out]
        expected[f"seed {out}"] = bool(stats.ttest_1samp(rest, 0).pvalue > 0.05)
    assert claim.without == expected
    assert [k for k in expected if expected[k] != claim.holds] == [f"seed {k}" for k in lost]


def test_a_claim_about_one_model_is_told_what_each_split_decides():
    def run(split, method, right):
        point = {"alpha": 1.0, "kl_asked": 0.1, "right": right}
        tested = {"world": "w", "model_seed": 0, "fold": 0, "tested": "1" * 40, "chosen": True}
        return tested | {"seed": split, "method": method, "curve": [point]}

    gains = {0: "1" * 20 + "0" * 20, 1: "1" * 24 + "0" * 16, 2: "0" * 40}
    runs = [run(s, name, "0" * 40) for s in gains for name in ("baseline", "theirs")]
    runs += [run(split, "mine", gain) for split, gain in gains.items()]
    entry = {"table": "x", "method": "mine", "against": "theirs", "kl": 0.1, "tried": 1}
    stored = SimpleNamespace(runs=runs, command="none")
    claim = claims._measured(entry | {"above": 0.3}, lambda _: stored)
    assert claim.without == {"split 0": False, "split 1": False, "split 2": True}
    assert not claim.holds
