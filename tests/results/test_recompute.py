"""Every computed table holds: its digest, its rows, its ledger, and a random part of its runs.

Which runs are computed again is drawn by the code of the package, so that every commit draws others
and no author chooses. A wrong method has to move a sample by more than the table's stored spread.
"""

import importlib
import json
import random

import pytest

from conceptnb import results
from conceptnb.results import spread
from conceptnb.results.ledger import changed_rows, changed_runs
from conceptnb.results.provenance import closure
from conceptnb.results.runner import find_plan
from conceptnb.results.strata import strata
from conceptnb.results.tolerances import differences_in_tolerances, stored_runs
from conceptnb.results.verify import run_seconds

NAMES = results.names()
REPRODUCED = [n for n in NAMES if results.load(n).command.startswith("conceptnb reproduce ")]
# The runs of these need what is no requirement: a model, or the simulator of the light tunnel.
OF_AN_EXTRA = {
    "clip_openai": "clip:_summarise",
    "real_answers": "real_heads:_answers_rows",
    "real_heads": "real_heads:_heads_rows",
    "steering_real": "steering_rows:table6_rows",
    "steering_real_matrices": "steering_rows:table6_rows",
    "light_tunnel": "light_tunnel:_summarise",
}
PARTS, SECONDS = 6, 20.0
"""How many tests share the random part, and the CPU seconds of each."""
LOOSE = 10.0
"""Of single runs, in tolerances: another processor may flip what a run converges to."""
DRAW = repr(sorted(closure(["conceptnb.results.verify"]).items())) + repr(
    [results.load(name).computed.code for name in NAMES]
)


def summarise_of(name):
    """The function that makes a table's rows, without the extra that its runs need."""
    if name in OF_AN_EXTRA:
        module, _, function = OF_AN_EXTRA[name].partition(":")
        return getattr(importlib.import_module(f"conceptnb.studies.{module}"), function)
    return find_plan(name, results.load(name).command).summarise


@pytest.mark.parametrize("name", NAMES)
def test_runs_are_those_that_were_computed(name):
    table = results.load(name)
    assert changed_runs(table.runs or table.rows, table.marks) == [], f"results/{name}.json"


@pytest.mark.parametrize("name", REPRODUCED)
def test_rows_follow_from_their_runs(name):
    table = results.load(name)
    derived = json.loads(json.dumps(summarise_of(name)(table.runs)))
    assert changed_rows(table.rows, derived) == [], f"results/{name}.json"


@pytest.mark.parametrize("name", REPRODUCED)
def test_the_ledger_knows_todays_code(name):
    state, why = results.load(name).state()
    way = f"run `conceptnb results verify {name}`"
    assert state in ("current", "verified", "moved"), f"{name} is {state}, {why}: {way}"


def drawn(part):
    """Runs of tables, drawn by the code, that take the part's share of the time."""
    rng = random.Random(f"{DRAW} {part}")
    names = [name for name in REPRODUCED if name not in OF_AN_EXTRA][part::PARTS]
    rng.shuffle(names)
    left, found = SECONDS, []
    for name in names:
        table = results.load(name)
        plan = find_plan(name, table.command)
        cells = [c for c in strata(plan) if run_seconds(table, c, plan) <= left]
        if cells:
            cell = rng.choice(cells)
            left -= run_seconds(table, cell, plan)
            found.append((table, cell.one_run(rng)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_drawn_runs_come_out_again(part):
    outside = {}
    for table, task in drawn(part):
        rows, _ = task()
        gaps = differences_in_tolerances(table, rows, stored_runs(table, rows))
        if too_far := {column: gap for column, gap in gaps.items() if gap > LOOSE}:
            outside[table.name, str(task.arguments)] = too_far
    assert not outside


@pytest.mark.slow
def test_wrong_methods_are_noticed():
    rng = random.Random(DRAW)
    known = [name for name in REPRODUCED if name not in OF_AN_EXTRA]
    tried = []
    for name in rng.sample(known, len(known)):
        table, plan = results.load(name), find_plan(name, results.load(name).command)
        cells = strata(plan)
        cell = next((cell for cell in cells if cell.sampled), cells[0])
        if run_seconds(table, cell, plan) > 3:
            continue
        what, task = rng.choice(sorted(plan.sample.wrong.items()))
        assert spread.outside(table, task()[0]), f"{name}: {what} went unnoticed"
        tried.append(name)
        if len(tried) == 4:
            break
    assert tried
