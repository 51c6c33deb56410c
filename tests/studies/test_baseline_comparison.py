"""The comparison with baselines: what each method is told, and how its codes are scored."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from conceptnb.commands import cli  # noqa: E402
from conceptnb.core.problems import TABLE_1, draw_problem  # noqa: E402
from conceptnb.studies import baseline_comparison as study  # noqa: E402


@pytest.mark.parametrize("name", study.METHODS)
def test_every_method_has_the_interface(name):
    problems = [draw_problem(TABLE_1[0], seed, samples=100) for seed in (5, 6)]
    learner = study.fit_method(name, problems, epochs=2)
    codes = learner.transform(np.stack([p.X[:7] for p in problems]))
    assert codes.shape[:2] == (2, 7)
    assert np.isfinite(codes).all()


def test_a_method_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="name must be one of"):
        study.fit_method("magic", [draw_problem(TABLE_1[0], 5, samples=50)])


def test_cross_fitted_scores_are_those_of_unseen_halves():
    [row] = study._compare(["linear", 2, 3, 4], "PCA", [3], 100)
    assert row["dimensions"] == 3
    assert row["r2_cross"] == pytest.approx(1, abs=1e-6)  # linear mixing, all of z
    assert row["mcc_cross"] <= row["mcc"] + 0.01


def test_command_writes_rows_with_provenance(tmp_path, capsys):
    out = tmp_path / "few.json"
    words = ["reproduce", "baselines", "--method", "PCA", "--rows", "1", "--seeds", "2"]
    words += ["--samples", "100", "--jobs", "1", "--out", str(out)]
    assert cli.main(words) == 0
    kept = json.loads(out.read_text())
    [row] = kept["rows"]
    assert row["dimensions"] == 3
    assert row["mcc_mean"] == pytest.approx(np.mean([run["mcc"] for run in kept["runs"]]), abs=1e-4)
    assert cli.main(["reproduce", "baselines", "--seeds", "0"]) == 2
    assert "--seeds must be at least 1" in capsys.readouterr().err
