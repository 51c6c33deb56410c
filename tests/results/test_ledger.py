"""The ledger of a table: states, digests, and two trees that are compared."""

from __future__ import annotations

import copy
import dataclasses
import json
import random
import subprocess

import numpy as np
import pytest

from conceptnb import results
from conceptnb.results import ledger, store, verify
from conceptnb.results.ledger import Computed, Verified, changed_rows, changed_runs, marks_of
from conceptnb.results.runner import find_plan
from conceptnb.results.strata import strata
from conceptnb.results.tolerances import differences_in_tolerances, key_columns, stored_runs

NAMES = results.names()
MODULES = ["conceptnb.core.scores"]


def entry(how="equal", **changed):
    known = {**store.signed(MODULES, 1.0), "against": "abc", "strata": {"0": 1.0}, "of": 2}
    return Verified(**{**known, "how": how, **changed})


def state(*verified, **changed):
    computed = Computed(**{**store.signed(MODULES, 1.0), **changed})
    return ledger.state_of(computed, verified, [{"seed": 1}], marks_of([{"seed": 1}]))[0]


def test_a_state_says_how_todays_code_relates_to_the_code_that_computed():
    earlier = {"code": "0" * 16}
    assert state() == "current"
    assert state(**earlier) == "unverified"
    assert state(entry(), **earlier) == "verified"
    assert state(entry("within"), **earlier) == "moved"
    assert state(entry("outside", named=["r2"]), **earlier) == "broken"
    assert state(entry("within", code="1"), entry("equal"), **earlier) == "moved", "it adds up"
    assert state(entry(code="1"), **earlier) == "unverified"
    assert state(entry(modules=["conceptnb.core.gone"])) == "unverified"


def test_other_versions_of_numerical_libraries_count_as_changed_code():
    versions = store.signed(MODULES, 1.0)["versions"]
    assert state(versions=versions | {"numpy": "1.0"}) == "unverified"
    assert state(versions=versions | {"transformers": "1.0"}) == "current"


@pytest.mark.parametrize("name", NAMES)
def test_a_run_or_a_row_changed_by_hand_is_found_in_every_file(name):
    """Any number of any run, and any number of any row, moved by less than it would help."""
    rng = random.Random(name)
    table = results.load(name)
    for where in ("runs", "rows"):
        content = copy.deepcopy(getattr(table, where))
        if not content:
            continue
        at = rng.randrange(len(content))
        numbers = [k for k, v in content[at].items() if isinstance(v, float)]
        if not numbers:
            numbers = [k for k, v in content[at].items() if isinstance(v, int | bool)]
        column = rng.choice(numbers)
        content[at][column] = content[at][column] * 1.01 + 0.001
        if where == "runs" or not table.runs:
            found = changed_runs(content, table.marks)
        else:
            found = changed_rows(content, table.rows)
        assert len(found) == 1
        assert found[0].startswith(f"{'row' if where == 'rows' and table.runs else 'run'} {at}: ")


def test_runs_that_are_taken_away_or_added_are_counted():
    runs = [{"seed": i} for i in range(3)]
    assert changed_runs(runs[:2], marks_of(runs)) == ["2 runs, and the digest is of 3"]
    assert changed_rows(runs, runs[:2]) == ["3 rows, and the runs give 2"]


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith(("synthetic", "theory"))])
def test_strata_share_out_all_runs_and_a_run_is_one_of_the_stored(name):
    table = results.load(name)
    plan = find_plan(name, table.command)
    cells = strata(plan)
    assert [cell.number for cell in cells] == list(range(len(cells)))
    assert sum(len(cell.tasks) for cell in cells) == len(plan.tasks)
    assert sum(cell.sampled for cell in cells) <= 1
    rng = random.Random(0)
    drawn = {json.dumps(cells[0].one_run(rng).arguments) for _ in range(200)}
    assert len(drawn) == min(cells[0].runs, len(drawn))
    assert len(drawn) >= min(cells[0].runs, 10), "every seed has its turn"
    key = key_columns(table.runs)
    assert len({json.dumps([run.get(c) for c in key]) for run in table.runs}) == len(table.runs)
    assert stored_runs(table, table.runs[:5]) == table.runs[:5]


def test_differences_are_in_units_of_the_spread():
    runs = [{"seed": s, "r2": 0.9 + 0.01 * s, "right": "0101010101"} for s in range(4)]
    table = dataclasses.replace(results.load("synthetic_best"), runs=runs, spread={})
    half = 0.5 * np.std([run["r2"] for run in runs], ddof=1) + 1e-4 * 0.915
    moved = [{**runs[0], "r2": runs[0]["r2"] + 2 * half, "right": "0101010100"}]
    found = differences_in_tolerances(table, moved, runs[:1])
    assert found["r2"] == pytest.approx(2, rel=1e-6)
    assert found["right"] == pytest.approx(1)
    assert differences_in_tolerances(table, runs, runs) == {}
    assert differences_in_tolerances(table, runs[:1], runs[:2]) != {}
    assert (
        differences_in_tolerances(
            table, [{**runs[0], "cpu_seconds": 3}], [{**runs[0], "cpu_seconds": 9}]
        )
        == {}
    )


def test_another_choice_counts_alike_whether_it_is_a_name_or_a_number():
    runs = [{"seed": s, "setting": {"fun": "exp", "weight": 0.3, "start": s}} for s in range(2)]
    table = dataclasses.replace(results.load("synthetic_best"), runs=runs, spread={})
    for changed in ({"fun": "cube"}, {"weight": 1000.0}):
        moved = [{**runs[0], "setting": {**runs[0]["setting"], **changed}}]
        assert differences_in_tolerances(table, moved, runs[:1]) == {"setting": 2.0}


# Two trees ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def other_tree(tmp_path_factory):
    """A copy of the package that a test may change."""
    folder = tmp_path_factory.mktemp("tree")
    names = ["conceptnb", "pyproject.toml", "results"]
    subprocess.run(["cp", "-r", *names, str(folder)], cwd=verify._ROOT, check=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "old", "new", "how"),
    [
        ("common/validation.py", "must", "has to", {"equal"}),
        ("core/design.py", "self.variance", "(1.5 * self.variance)", {"within", "outside"}),
    ],
)
def test_a_refactoring_is_equal_and_another_method_is_not(other_tree, file, old, new, how):
    path = other_tree / "conceptnb" / file
    before = path.read_text(encoding="utf-8")
    assert old in before
    path.write_text(before.replace(old, new), encoding="utf-8")
    table = results.load("theory_nested")
    plan = find_plan(table.name, table.command)
    job = verify.Job(table, plan, strata(plan)[0], 1, "other", 1.0)
    try:
        with verify.worker(verify._ROOT) as here, verify.worker(other_tree) as there:
            found = verify.compare_stratum(job, {"": here, "other": there})
    finally:
        path.write_text(before, encoding="utf-8")
    assert found is not None
    assert found.how in how


def test_what_git_lacks_is_said_in_one_line(tmp_path):
    with pytest.raises(ValueError, match=r"commit 0000000 cannot be read .*--against"):
        verify.export("0" * 40, tmp_path / "x")
