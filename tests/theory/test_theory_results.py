"""Rows of the tables under results/theory_*.json, computed again."""

from dataclasses import asdict

import numpy as np
import pytest

from conceptnb import results
from conceptnb.studies.commands import reproduce_theory as theory
from conceptnb.studies.theory_estimated import linear_world, recover_from_samples
from conceptnb.studies.theory_instances import recover_seed
from conceptnb.studies.theory_trials import check_violations, lemma1_trials, recover_nested
from conceptnb.theory.counterexamples import all_counterexamples


def rows_of(name, seed):
    return [row for row in results.load(f"theory_{name}").rows if row["seed"] == seed]


def same(kept, computed):
    fresh = asdict(computed)
    for key, value in fresh.items():
        if isinstance(value, float) and np.isfinite(value):
            # Errors of 1e-9 are rounding and differ between machines; sizes do not.
            assert kept[key] == pytest.approx(value, rel=0.05, abs=1e-6), key
        elif not isinstance(value, float):
            assert kept[key] == value, key


def test_instances_meet_their_bars():
    rows = results.load("theory_instances").rows
    assert len(rows) == 500
    assert all(row["M_right"] for row in rows)
    assert np.mean([row["B_error"] < 1e-4 for row in rows]) >= 0.99
    assert np.mean([row["correlation"] > 0.9999 for row in rows]) >= 0.99


def test_one_instance_again():
    same(rows_of("instances", 10)[0], recover_seed(10))


def test_violations_again():
    rows = results.load("theory_violations").rows
    assert len(rows) == 2500
    assert all(row["named"] for row in rows)
    for kept, computed in zip(rows_of("violations", 7), check_violations(7), strict=True):
        same(kept, computed)


def test_nested_again():
    rows = results.load("theory_nested").rows
    assert all(row["M_right"] for row in rows)
    same(rows_of("nested", 3)[0], recover_nested(3))


def test_one_estimate_again():
    kept = next(row for row in rows_of("estimated", 0) if row["samples"] == 3000)
    world = linear_world(np.random.default_rng([7, 0]))
    same(kept, recover_from_samples(world, 3000, np.random.default_rng([7, 0, 3000])))


def test_errors_of_estimates_fall_at_the_parametric_rate():
    rows = [row for row in results.load("theory_estimated").rows if row["M_right"]]
    for key in ("ratio_error", "B_error", "valuation_error"):
        x = np.log10([row["samples"] for row in rows])
        slope = np.polyfit(x, np.log10([row[key] for row in rows]), 1)[0]
        assert -0.65 < slope < -0.35, key


@pytest.mark.slow
def test_lemma1_again():
    assert not any(
        row["failures"]
        for row in results.load("theory_lemma1").rows
        if row["distribution"] == "normal"
    )
    for kept, computed in zip(rows_of("lemma1", 0), lemma1_trials(0), strict=True):
        same(kept, computed)


def test_pairs_are_not_told_apart_and_controls_are():
    rows = results.load("theory_pairs").rows
    assert {row["samples"] for row in rows} == {100_000}
    *equal, printed = rows
    assert min(row["p_projection"] for row in equal) > 0.01
    assert min(row["p_classifier"] for row in equal) > 0.01
    assert printed["p_projection"] < 1e-6  # the sign that (4) prints
    assert sum(row["p_control"] < 0.01 for row in equal) >= 5


@pytest.mark.slow
def test_first_pair_again():
    rng = np.random.default_rng([19, 0])
    pair = all_counterexamples(rng)[0]
    kept = rows_of("pairs", 0)[0]
    assert kept["pair"] == pair.name
    assert kept["p_projection"] == pytest.approx(pair.p_value(100_000, rng), rel=1e-6)


def test_every_part_can_be_computed():
    for part in theory.PARTS.values():
        assert callable(part.rows())
        assert results.source_hash(part.modules)
