"""What Tables 1 and 7 are read against: references of each row, and equal starts and decay."""

from dataclasses import fields, replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from conceptnb.learning.recipes import BEST, CLUSTER_WHITENED  # noqa: E402
from conceptnb.studies import references as study  # noqa: E402


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(study, "PAPER_SAMPLES", 100)


def test_matched_recipe_differs_in_coordinates_and_choice_alone():
    def different(recipe):
        names = [field.name for field in fields(recipe)]
        return {n for n in names if getattr(recipe, n) != getattr(CLUSTER_WHITENED, n)}

    assert different(study.MATCHED) == {"whitening", "selection"}
    assert different(BEST) == {"whitening", "selection", "starts", "training"}
    assert replace(study.MATCHED, starts=BEST.starts, training=BEST.training) == BEST


def test_references_of_a_row_lie_in_order():
    runs = study._references(["nonlinear", 2, 3, 4], [5], [2, 4])
    assert [(run["reference"], run["epochs"]) for run in runs] == [
        ("supervised", 2),
        ("supervised", 4),
        ("untrained", 0),
    ]
    told, untrained = runs[1], runs[2]
    for score in ("r2", "mcc", "r2_fresh", "mcc_fresh"):
        assert untrained[score] < told[score] <= 1
    assert untrained["mcc_chance"] < 0.1 < untrained["mcc"]
    assert 0 <= told["r2_chance"] < 0.01
    # Held out are other samples of the base that fresh scores are of, too.
    assert 1 - told["held_out"] == pytest.approx(told["r2_fresh"], abs=0.02)
    _, spoilt = study._references(["nonlinear", 2, 3, 4], [5], [2], "trained")
    assert spoilt["mcc"] > untrained["mcc"]


def test_linear_mixing_needs_no_epochs():
    told, untrained = study._references(["linear", 2, 3, 4], [5], [2, 4])
    assert (told["reference"], told["epochs"]) == ("supervised", 0)
    assert told["mcc"] == pytest.approx(1, abs=1e-4)
    assert told["held_out"] == pytest.approx(0, abs=1e-4)
    assert untrained["mcc"] < 0.99


def test_summary_keeps_the_fit_with_the_lowest_held_out_share():
    scores = dict.fromkeys(("r2", "mcc", "mcc_fresh", "r2_chance", "mcc_chance"), 0.5)
    common = {"mixing": "nonlinear", "n": 2, "dz": 3, "dx": 4, **scores}

    def run(seed, epochs, r2, held_out, reference="supervised"):
        own = {"reference": reference, "seed": seed, "epochs": epochs}
        return common | own | {"r2_fresh": r2, "held_out": held_out}

    runs = [run(3, 1, 0.7, 0.4), run(3, 2, 0.8, 0.2), run(4, 1, 0.9, 0.1), run(4, 2, 0.6, 0.3)]
    told, untrained = study._reference_rows([*runs, run(3, 0, 0.1, None, "untrained")])
    assert told["r2_fresh_mean"] == pytest.approx(np.mean([0.8, 0.9]))
    assert told["epochs_mean"] == 1.5
    assert told["r2_fresh_gain_mean"] == pytest.approx(np.mean([0.1, -0.3]))
    assert untrained["r2_fresh_mean"] == 0.1
    assert untrained["held_out_mean"] is untrained["r2_fresh_gain_mean"] is None


def test_matched_runs_pair_with_stored_ones():
    _, _, plan, more = study.plans(None)
    assert [task.arguments["setting"][2] for task in plan.tasks] == [3, 4, 8, 15, 20, 25]
    assert list(plan.seeds) == list(more.seeds) == list(range(200, 220))
    assert {task.arguments["setting"][2] for task in more.tasks} == {20, 25}
    runs = study._fitted(["nonlinear", 2, 3, 4], [5], "best, matched", 100)
    [row] = plan.summarise(runs)
    assert (row["estimator"], row["samples"]) == ("best, matched", 100)
    assert row["mcc_fresh_mean"] == pytest.approx(runs[0]["mcc_fresh"], abs=1e-4)
