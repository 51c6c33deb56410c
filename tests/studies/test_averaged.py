"""Averages over two kinds of coordinates on the rows of Tables 1 and 7."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from conceptnb.core.problems import Setting, draw_problem  # noqa: E402
from conceptnb.core.scores import r2  # noqa: E402
from conceptnb.learning.averaging import GatedWhitening  # noqa: E402
from conceptnb.learning.data import stack  # noqa: E402
from conceptnb.studies import averaged as study  # noqa: E402

SETTING = ["nonlinear", 2, 3, 4]


def problems_of(plan):
    return [
        (task.arguments["estimator"], task.arguments["setting"][2], seed)
        for task in plan.tasks
        for seed in task.arguments["seeds"]
    ]


def test_plans_hold_the_problems_that_were_named_before_the_run():
    third, fourth = study.plans(None)
    problems = problems_of(third)
    sizes = (3, 4, 8, 15, 20, 25)
    wanted = {("averaged", d_z, seed) for d_z in sizes for seed in range(200, 220)}
    assert len(problems) == len(wanted) == 120
    assert set(problems) == wanted
    named = problems_of(fourth)
    assert len(named) == len(set(named)) == 80
    assert {seed for _, _, seed in named} == set(range(400, 420))
    assert {d_z for _, d_z, _ in named} == {20, 25}


@pytest.mark.slow
def test_rows_name_the_control_of_their_own_problem(monkeypatch):
    monkeypatch.setattr(study, "PAPER_SAMPLES", 300)
    runs = study._rows(SETTING, [5, 6], "averaged")
    for run in runs:
        problem = draw_problem(Setting(*SETTING), run["seed"], samples=300)
        Z = problem.fresh(5000)
        data = stack([problem.X], problem.environment)
        own = GatedWhitening.fit_clusters(data, 3, [run["seed"]])
        found = own.coordinates(torch.as_tensor(problem.mixing(Z)[None]).to(own.mean))
        control = r2(problem.valuations(Z), found[0].double().numpy())
        assert run["r2_coordinates"] == pytest.approx(control, abs=1e-3)
    assert {run["seed"] for run in runs} == {5, 6}
    others = study._rows(SETTING, [5], "clustered")
    assert "r2_coordinates" not in others[0]
    mean, alone = study._summary([*runs, *others])
    assert (mean["estimator"], alone["estimator"]) == ("averaged", "clustered")
    assert mean["r2_fresh_mean"] == pytest.approx(
        np.mean([run["r2_fresh"] for run in runs]), abs=1e-4
    )
    assert alone["mcc_mean"] == pytest.approx(others[0]["mcc"], abs=1e-4)
