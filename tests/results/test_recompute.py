"""Every computed table is of the present code, and sampled runs come out again on any processor.

Each plan names a sample of its runs and ways to compute it wrongly. What the sample may move by
between processors is measured (`conceptnb results --spread`) and kept in the table; a wrong
method has to move it by more.
"""

import pytest

from conceptnb import results
from conceptnb.results import spread
from conceptnb.results.provenance import changes
from conceptnb.results.runner import find_plan

COMPUTED = {name: results.load(name) for name in results.names()}
REPRODUCED = [n for n, t in COMPUTED.items() if t.command.startswith("conceptnb reproduce ")]
COSTLY = ("best", "clustered")  # estimators of which two seeds have to do
# These need an optional extra: the model, or the simulator of the light tunnel.
OF_AN_EXTRA = (
    "real_answers",
    "real_heads",
    "steering_real",
    "steering_real_matrices",
    "light_tunnel",
)


def few(task):
    """A task; of a costly estimator with its first two seeds alone."""
    costly = task.arguments.get("estimator") in COSTLY
    return task.but(seeds=task.arguments["seeds"][:2]) if costly else task


def sample_of(table):
    """The sample of a table's plan; skips where the one real model or its data cannot be had."""
    try:
        return find_plan(table.name, table.command).sample
    except (ImportError, OSError) as missing:  # no extra, or no network for the data
        if table.name not in OF_AN_EXTRA:
            raise
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", REPRODUCED)
def test_no_table_is_stale(name):
    table = COMPUTED[name]
    changed = changes(table.modules, table.code)
    assert not changed, f"run `{table.command}`: since {name} was computed, {changed} changed"
    assert table.runs, "runs are kept in the file"
    assert table.spread, f"run `conceptnb results --spread {name}`: it is not measured yet"


@pytest.mark.slow
@pytest.mark.parametrize("name", REPRODUCED)
def test_sampled_runs_come_out_again(name):
    table = COMPUTED[name]
    assert spread.outside(table, few(sample_of(table).task)()[0]) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", REPRODUCED)
def test_a_wrong_method_is_noticed(name):
    table = COMPUTED[name]
    wrong = sample_of(table).wrong
    assert wrong
    unnoticed = [what for what, task in wrong.items() if not spread.outside(table, few(task)()[0])]
    assert not unnoticed
