"""The tables under results/theory_*.json: their bars, and rows computed again."""

import numpy as np
import pytest

from conceptnb import results
from conceptnb.results.runner import find_plan
from conceptnb.studies.theory_tables import (
    check_violations,
    recover_nested,
    trial_pair,
)


def runs_of(name, **columns):
    runs = results.load(f"theory_{name}").runs
    return [run for run in runs if all(run[key] == value for key, value in columns.items())]


def same(kept, computed):
    """Errors of 1e-9 are rounding and differ between machines; sizes do not."""
    assert len(kept) == len(computed)
    for old, new in zip(kept, computed, strict=True):
        assert set(old) == set(new)
        for key, value in new.items():
            if isinstance(value, float):
                assert old[key] == pytest.approx(value, rel=0.05, abs=1e-6), key
            else:
                assert old[key] == value, key


def test_instances_meet_their_bars():
    runs = runs_of("instances")
    assert len(runs) == 500
    assert all(run["M_right"] for run in runs)
    assert np.mean([run["B_error"] < 1e-4 for run in runs]) >= 0.99
    assert np.mean([run["correlation"] > 0.9999 for run in runs]) >= 0.99


def test_violations_again():
    runs = runs_of("violations")
    assert len(runs) == 2500
    assert all(run["named"] for run in runs)
    same(runs_of("violations", seed=7), check_violations([7]))


def test_a_report_read_the_wrong_way_round_names_other_pairs():
    named = {run["kind"]: run["named"] for run in check_violations([7], transposed=True)}
    assert not named["nested"]
    assert named["always together"]


def test_nested_again():
    assert all(run["M_right"] for run in runs_of("nested"))
    same(runs_of("nested", seed=3), recover_nested([3]))


def test_errors_of_estimates_fall_at_the_parametric_rate():
    runs = runs_of("estimated", M_right=True)
    for key in ("ratio_error", "B_error", "valuation_error"):
        x = np.log10([run["samples"] for run in runs])
        slope = np.polyfit(x, np.log10([run[key] for run in runs]), 1)[0]
        assert -0.65 < slope < -0.35, key


def test_lemma1_holds_for_normal_valuations_and_not_for_two_values():
    rows = results.load("theory_lemma1").rows
    for row in rows:
        expected = 0 if row["distribution"] == "normal" else 1 - 0.5 ** row["n"]
        assert row["failures"] / row["designs"] == pytest.approx(expected, abs=0.03)


def test_pairs_are_not_told_apart_and_controls_are():
    rows = results.load("theory_pairs").rows
    assert {row["samples"] for row in rows} == {100_000}
    *equal, printed = rows
    assert min(row["p_projection"] for row in equal) > 0.01
    assert min(row["p_classifier"] for row in equal) > 0.01
    assert printed["p_projection"] < 1e-6  # the sign that (4) prints
    assert sum(row["p_control"] < 0.01 for row in equal) >= 5


def test_a_pair_at_few_samples():
    (row,) = trial_pair("always together", 0, samples=600)
    assert row["p_projection"] > 0.01
    assert row["agreement"] < 0.9
    (moved,) = trial_pair("always together", 0, samples=600, moved=3.0)
    assert moved["p_projection"] < 1e-6


@pytest.mark.parametrize(
    ("part", "tasks"),
    [
        ("instances", 50),
        ("estimated", 35),
        ("pairs", 7),
        ("violations", 10),
        ("nested", 5),
        ("lemma1", 5),
    ],
)
def test_every_part_is_a_plan_with_a_sample_and_wrong_methods(part, tasks):
    plan = find_plan(f"theory_{part}", f"conceptnb reproduce theory --part {part}")
    assert len({task.key() for task in plan.tasks}) == tasks
    assert plan.sample.wrong
    keys = {task.key() for task in [plan.sample.task, *plan.sample.wrong.values()]}
    assert len(keys) == 1 + len(plan.sample.wrong)
