"""Tables 1 and 7: a row, its report, and the control that chooses signs by the truth."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from conceptnb.commands import cli  # noqa: E402
from conceptnb.core.problems import TABLE_1, Setting, draw_problem  # noqa: E402
from conceptnb.core.scores import mcc  # noqa: E402
from conceptnb.learning.fitting import fit  # noqa: E402
from conceptnb.learning.recipes import AUTHORS  # noqa: E402
from conceptnb.studies import scored_fits  # noqa: E402
from conceptnb.studies import synthetic_tables as study  # noqa: E402
from conceptnb.tables.synthetic_report import (  # noqa: E402
    below_paper,
    comparison,
    five_of_twenty,
    outside_two_std,
    paired_scores,
    runs_above_oracle,
    score_table,
    slopes_of_the_truth,
)


def test_a_row_has_the_columns_of_the_tables():
    runs = study._fit_setting(["linear", 2, 3, 4], "best", [5, 6], samples=1000)
    [row] = study._rows(runs)
    assert row["mcc_mean"] == pytest.approx(np.mean([run["mcc"] for run in runs]), abs=1e-4)
    assert row["r2_fresh_std"] == pytest.approx(np.std([run["r2_fresh"] for run in runs]), abs=1e-4)
    wanted = "mixing n dz dx estimator r2_mean r2_std mcc_mean mcc_std seeds cpu_seconds"
    assert set(wanted.split()) < set(row)
    assert row["seeds"] == [run["seed"] for run in runs] == [5, 6]
    for run in runs:
        assert run["mcc"] == pytest.approx(1, abs=0.01)
        assert run["held_out_loss"] == pytest.approx(run["oracle_loss"], abs=0.05)


def test_unknown_estimator_is_refused():
    with pytest.raises(ValueError, match="estimator must be one of"):
        study.table_row(TABLE_1[0], "oracle", seeds=[5], samples=50)


@pytest.mark.parametrize("estimator", ["faithful", "best", "clustered", "supervised"])
def test_command_writes_rows_with_provenance(tmp_path, monkeypatch, capsys, estimator):
    monkeypatch.setitem(study._TABLES, "1", (Setting("nonlinear", 2, 3, 4),))
    monkeypatch.setattr(
        scored_fits, "draw_problem", lambda s, seed, samples: draw_problem(s, seed, samples=50)
    )
    out = tmp_path / "rows.json"
    words = ["reproduce", "synthetic", "--table", "1", "--estimator", estimator]
    words += ["--seeds", "1", "--first-seed", "5", "--jobs", "1", "--out", str(out)]
    assert cli.main(words) == 0
    written = json.loads(out.read_text())
    assert [row["estimator"] for row in written["rows"]] == [estimator]
    assert written["seeds"] == written["rows"][0]["seeds"] == [5]
    assert len(written["runs"]) == 1
    assert cli.main([*words, "--force", "--seeds", "0"]) == 2
    assert "--seeds must be at least 1" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["labels", "targets"])
def test_what_is_spoilt_for_a_learner_shows_in_the_loss(wrong):
    arguments = (["linear", 2, 3, 4], "best", [5])
    [right] = study._fit_setting(*arguments, samples=300)
    [spoilt] = study._fit_setting(*arguments, samples=300, wrong=wrong)
    assert spoilt["oracle_loss"] == pytest.approx(right["oracle_loss"], abs=0.2)
    assert spoilt["excess_loss"] > right["excess_loss"] + 0.005
    with pytest.raises(ValueError, match="wrong must be"):
        study._fit_setting(*arguments, samples=300, wrong="all")


def test_report_names_cells_beyond_the_papers_interval():
    row = {"mixing": "linear", "n": 3, "dz": 4, "dx": 6, "r2_mean": 0.98, "mcc_mean": 0.6}
    row |= {"r2_std": 0.0, "mcc_std": 0.1}
    outside = outside_two_std([row], [row | {"mcc_mean": 0.99, "mcc_std": 0.01}]).frame()
    assert outside["cell"].tolist() == ["linear (3, 4, 6) MCC"]
    assert outside.loc[0, "ours"] == "0.60 ± 0.10"
    assert outside.loc[0, "same problems, best"] == "0.99 ± 0.01"
    expected = (0.6 - 0.86) / np.hypot(0.1, 0.08) * 2
    assert float(outside.loc[0, "standard errors"]) == pytest.approx(expected, abs=0.006)
    assert len(below_paper([row])) == 2
    shown = comparison(ours=[row]).frame()
    assert shown.loc[0, "MCC paper"] == "0.86 ± 0.08"
    assert shown.loc[0, "MCC ours"] == "0.60 ± 0.10"


def test_excess_losses_leave_out_runs_that_cannot_reach_the_oracle():
    runs = [
        {"mixing": "nonlinear", "dz": d_z, "excess_loss": d_z / 100, "mcc": 0.8} for d_z in (15, 20)
    ]
    excess, scores = runs_above_oracle(runs, "nonlinear")
    np.testing.assert_allclose(excess, [0.15])
    np.testing.assert_allclose(scores, [0.8])


def test_scores_are_shown_by_seed_and_summarised():
    rows = [{"seed": 3, "r2": 0.5, "mcc": 1.0}, {"seed": 4, "r2": 0.7, "mcc": 0.0}]
    shown = score_table(rows).frame()
    assert shown["seed"].tolist() == ["3", "4", "mean", "std"]
    assert shown["R²"].tolist() == ["0.500", "0.700", "0.600", "0.100"]


def test_signs_change_no_log_odds_and_only_atoms_of_one_environment():
    problem = draw_problem(Setting("nonlinear", 2, 3, 4), 6, samples=300)
    found = fit([problem], AUTHORS)
    Z, truth = problem.Z, problem.valuations()
    [k] = [k for k in range(2) if (problem.design.M[:, k] > 0).sum() == 1]
    [e] = np.flatnonzero(problem.design.M[:, k])
    beta, gamma = (c[0].detach().numpy() for c in found.model.head.coefficients())
    # Learned valuations that are the truth in the head's units, but mirrored on one component.
    mirrored = found.transform([problem.X])[0]
    plane = gamma[k, e] / (2 * beta[k, e])
    gap = (truth[:, k] - problem.design.B[e, k] * problem.design.variance) / np.sqrt(beta[k, e])
    last = problem.base.component_log_density(Z).argmax(axis=1) == 2
    mirrored[:, k] = plane + np.where(last, -gap, gap)
    assert mcc(truth[:, [k]], mirrored[:, [k]]) < 0.999
    turned = study.with_true_signs(problem, found, 0, Z, mirrored)
    assert mcc(truth[:, [k]], turned[:, [k]]) == pytest.approx(1, abs=1e-9)

    def odds(h):
        return -(h**2) @ beta + h @ gamma

    np.testing.assert_allclose(odds(turned), odds(mirrored), atol=1e-4)
    np.testing.assert_array_equal(turned[:, 1 - k], mirrored[:, 1 - k])


def test_truth_has_one_slope_where_mixing_is_linear_and_hardly_where_it_is_not():
    straight, bent = (
        slopes_of_the_truth(draw_problem(Setting(mixing, 3, 4, 6), 3, samples=1000))
        for mixing in ("linear", "nonlinear")
    )
    assert straight["whitened"] == pytest.approx(0, abs=1e-6)
    assert straight["clusters"] < 0.02  # clusters have nearly one covariance: estimated apart
    assert bent["clusters"] < bent["whitened"]


def test_pairs_are_compared_on_the_rows_and_seeds_that_both_have():
    def result(estimator, sizes, scores, seeds=(1, 2)):
        rows = [
            {"mixing": "nonlinear", "n": 2, "dz": d_z, "dx": 9, "estimator": estimator}
            for d_z in sizes
        ]
        runs = [
            row | {"mcc_fresh": score}
            for row, own in zip(rows, scores, strict=True)
            for score in own
        ]
        return SimpleNamespace(rows=rows, runs=runs, seeds=list(seeds))

    first = result("best", [3, 4], [[0.5, 0.6], [0.8, 0.9]])
    second = result("clustered", [4], [[0.9, 0.8]])
    [line] = paired_scores(first, second, "mcc").frame().to_dict("records")
    assert line == {
        "(n, d_z, d_x)": "(2, 4, 9)",
        "best": "0.850 ± 0.050",
        "clustered": "0.850 ± 0.050",
        "difference": "0.000 ± 0.100",
        "higher in": "1 of 2",
    }
    with pytest.raises(ValueError, match="other seeds"):
        paired_scores(first, result("clustered", [4], [[0.9]], seeds=[3]), "mcc")


def test_five_of_many_problems_are_drawn_as_a_simulation_draws_them(rng):
    setting = {"mixing": "linear", "n": 4, "dz": 15, "dx": 18}
    runs = [setting | {"r2": 0.95, "mcc": value} for value in rng.uniform(0.8, 1.0, size=7)]
    row = five_of_twenty(runs).rows[0]
    drawn = rng.choice([run["mcc"] for run in runs], size=(200_000, 5)).mean(axis=1)
    paper = row["MCC, paper"][0]
    assert row["MCC, probability"] == pytest.approx((drawn >= paper - 0.005).mean(), abs=0.005)
    assert row["R², probability"] == 0
    assert row["MCC, 7 problems"][0] == pytest.approx(np.mean([run["mcc"] for run in runs]))
