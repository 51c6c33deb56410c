"""Every computed table is of the present code, and sampled runs come out again on any processor.

Each plan names a sample of its runs and ways to compute it wrongly. What the sample may move by
between processors is measured (`conceptnb results --spread`) and kept in the table; a wrong
method has to move it by more.
"""

import pytest

from conceptnb import results
from conceptnb.results.provenance import changes
from conceptnb.studies import spread
from conceptnb.studies.runner import find_plan

COMPUTED = {name: results.load(name) for name in results.names()}
REPRODUCED = [n for n, t in COMPUTED.items() if t.command.startswith("conceptnb reproduce ")]


@pytest.fixture
def found(name):
    """A table; one that says itself that it is of earlier code is expected to fail."""
    if "computed_before" in COMPUTED[name].notes:
        pytest.xfail(COMPUTED[name].notes["computed_before"])
    return COMPUTED[name]


@pytest.fixture
def measured(found):
    """A current table whose spread has been measured."""
    if not found.spread:
        pytest.xfail(f"run `conceptnb results --spread {found.name}`: it is not measured yet")
    return found


@pytest.mark.parametrize("name", REPRODUCED)
def test_no_table_is_stale(name, found):
    changed = changes(found.modules, found.code)
    assert not changed, f"run `{found.command}`: since {name} was computed, {changed} changed"
    assert found.runs, "runs are kept in the file"


@pytest.mark.slow
@pytest.mark.parametrize("name", REPRODUCED)
def test_sampled_runs_come_out_again(name, measured):
    sample = find_plan(name, measured.command).sample
    assert spread.outside(measured, sample.task()[0]) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", REPRODUCED)
def test_a_wrong_method_is_noticed(name, measured):
    sample = find_plan(name, measured.command).sample
    assert sample.wrong
    unnoticed = [
        what for what, task in sample.wrong.items() if not spread.outside(measured, task()[0])
    ]
    assert not unnoticed
