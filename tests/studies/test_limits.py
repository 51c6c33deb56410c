"""Studies of what limits identifiability: bounds, cells and the stored table."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from conceptnb import cli, results  # noqa: E402
from conceptnb.core.design import EnvironmentDesign, paper_design  # noqa: E402
from conceptnb.core.planner import propose_design, tree_design  # noqa: E402
from conceptnb.core.problems import Setting  # noqa: E402
from conceptnb.core.scores import mcc  # noqa: E402
from conceptnb.learning.data import stack  # noqa: E402
from conceptnb.learning.model import contrastive_loss  # noqa: E402
from conceptnb.studies import limits_samples as samples  # noqa: E402
from conceptnb.studies import limits_studies as studies  # noqa: E402
from conceptnb.studies.commands import reproduce_limits  # noqa: E402
from conceptnb.studies.limits_cells import Cell, draw, sized_design  # noqa: E402
from conceptnb.studies.limits_report import study_rows, study_table  # noqa: E402
from conceptnb.studies.limits_studies import SEEDS, STUDIES, Study, run_cell, run_study  # noqa: E402
from conceptnb.theory.read_off import (  # noqa: E402
    peeling_order,
    read_valuations,
)

SMALL = Setting("linear", 2, 3, 4)


def quadratic(design, v):
    gaps = v[:, None, :] - design.B * design.variance
    return -0.5 * (design.M * gaps**2).sum(axis=2)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 5))
def test_log_odds_of_a_tree_determine_the_valuations(seed, n):
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=(n, 2))
    design = tree_design("star", pairs, 0.1)
    assert design.check().assumption4.all()
    v = rng.normal(size=(40, n))
    np.testing.assert_allclose(read_valuations(design, quadratic(design, v)), v, atol=1e-5)


def test_log_odds_of_a_lone_environment_fold_its_atom():
    """The authors' n = 2: atom 0 occurs once, so the reading is |v - b| + b; atom 1 twice."""
    design = paper_design(2)
    v = np.random.default_rng(0).normal(size=(200, 2))
    read = read_valuations(design, quadratic(design, v))
    np.testing.assert_allclose(read[:, 0], 0.2 + np.abs(v[:, 0] - 0.2), atol=1e-6)
    np.testing.assert_allclose(read[:, 1], v[:, 1], atol=1e-6)


def test_designs_that_cannot_be_peeled_are_refused():
    design = sized_design(3, 2)
    assert peeling_order(design) is None
    with pytest.raises(ValueError, match="only together"):
        read_valuations(design, np.zeros((1, 2)))
    with pytest.raises(ValueError, match="quadratic must have shape"):
        read_valuations(paper_design(2), np.zeros((1, 5)))
    many = EnvironmentDesign([[i] for i in range(9)], [[0.0]] * 9, 1.0)
    with pytest.raises(ValueError, match="at most 8"):
        read_valuations(many, np.zeros((1, 9)))


@pytest.mark.parametrize("m", range(2, 8))
def test_sized_designs_have_the_conditions_of_their_size(m):
    design = sized_design(3, m)
    report = design.check()
    assert design.n_environments == m
    assert bool(report.assumption4.all()) == (m >= 4)
    assert report.theorem2 == (m >= 6)


def test_sized_designs_refuse_other_sizes():
    with pytest.raises(ValueError, match="m must lie between 2 and 7"):
        sized_design(3, 8)


def test_cells_of_a_seed_share_base_atoms_and_mixing():
    first = draw(Cell(SMALL, 0, "", "authors", samples=50), 4)
    second = draw(Cell(SMALL, 0, "", "path", samples=70, variance=0.1), 4)
    np.testing.assert_array_equal(first.problem.base.means, second.problem.base.means)
    np.testing.assert_array_equal(first.problem.atoms, second.problem.atoms)
    np.testing.assert_array_equal(first.X_fresh, second.X_fresh)
    planned = propose_design(2, 0.1, second.problem.base, second.problem.atoms)
    np.testing.assert_allclose(second.problem.design.B, planned.B)


def test_noise_leaves_exact_log_odds_of_linear_mixing():
    """They reweight noisy base observations into each environment, as without noise."""
    drawn = draw(Cell(SMALL, 0, "", samples=4000, noise=0.3), 5)
    environment = drawn.problem.environment
    weights = np.exp(drawn.log_odds[environment == 0])
    np.testing.assert_allclose(weights.mean(axis=0), 1, atol=0.15)
    for e in range(3):
        expected = drawn.X[environment == e + 1].mean(axis=0)
        found = (weights[:, [e]] * drawn.X[environment == 0]).mean(axis=0)
        np.testing.assert_allclose(found, expected, atol=0.1)


def test_a_cell_has_its_bounds_in_order():
    row = run_cell(Cell(SMALL, 1.0, "star", samples=400), [6])
    assert row["supervised_r2_mean"] == pytest.approx(1, abs=1e-5)
    assert row["read_mcc_mean"] == pytest.approx(1, abs=1e-5)
    assert row["chance_mcc_mean"] < 0.1 < row["mcc_mean"] <= 1
    assert row["loss_mean"] > row["oracle_loss_mean"] - 0.05
    assert row["by_seed"]["mcc"] == [pytest.approx(row["mcc_mean"])]


def test_a_study_goes_on_where_it_stopped(tmp_path, monkeypatch):
    computed = []

    def count(cell, seeds, fit):
        computed.append((cell.level, list(seeds)))
        return {"level": cell.level}

    monkeypatch.setattr(studies, "run_cell", count)
    first, second = (Cell(SMALL, level, "star", variance=level) for level in (1.0, 2.0))
    one, both = (Study("tiny", "?", "level", cells) for cells in ((first,), (first, second)))
    run_study(one, [6], checkpoints=tmp_path, progress=False)
    rows = run_study(both, [6], checkpoints=tmp_path, progress=False)
    assert rows == [{"study": "tiny", "level": 1.0}, {"study": "tiny", "level": 2.0}]
    run_study(one, [5], checkpoints=tmp_path, progress=False)
    monkeypatch.setattr(studies, "source_hash", lambda modules: "other code")
    run_study(one, [5], checkpoints=tmp_path, progress=False)
    assert computed == [(1.0, [6]), (2.0, [6]), (1.0, [5]), (1.0, [5])]


def test_command_writes_rows_with_provenance(tmp_path, monkeypatch, capsys):
    study = Study("tiny", "?", "level", (Cell(SMALL, 1.0, "star", samples=100),))
    monkeypatch.setitem(STUDIES, "design", study)
    out = tmp_path / "some.json"
    words = ["reproduce", "limits", "--study", "design", "--seeds", "1", "--out", str(out)]
    assert cli.main(words) == 0
    kept = json.loads(out.read_text())
    assert kept["rows"][0]["study"] == "tiny"
    assert kept["notes"]["by_seed"][0]["mcc"]
    assert "supervised" in capsys.readouterr().out
    assert cli.main(["reproduce", "limits", "--seeds", "0"]) == 1


def test_every_study_has_lines_over_levels():
    assert reproduce_limits.SEEDS == SEEDS == (3, 4, 5, 6, 7)
    for study in STUDIES.values():
        levels = [(cell.series, cell.level) for cell in study.cells]
        assert len(set(levels)) == len(levels) == len(set(study.cells))
        assert all([line for line, _ in levels].count(line) > 1 for line, _ in levels)


def test_a_fit_in_parts_is_judged_on_rows_that_it_did_not_see():
    problem = draw(Cell(Setting("nonlinear", 2, 3, 4), 1, "star", samples=300), 6).problem
    fit = samples.fit_in_parts(problem)
    assert len(np.unique(fit.held)) == len(fit.held) == len(problem.Z) // 5
    h = fit.valuations(problem.X)
    assert mcc(problem.valuations(), h) > 0.9
    beta, gamma = (c[0].detach().numpy() for c in fit.model.head.coefficients())
    odds = fit.model.head.alpha[0].detach().numpy() - h**2 @ beta + h @ gamma
    again = samples._loss(odds[fit.held], problem, fit.held)
    assert again == pytest.approx(fit.loss, abs=1e-4)


def test_oracles_loss_on_all_rows_is_the_stacks():
    problem = draw(Cell(SMALL, 1, "star", samples=100), 6).problem
    data = stack([problem.log_odds()], problem.environment, dtype=torch.float64)
    expected = contrastive_loss(data.x, data, "softmax").item()
    rows = np.arange(len(problem.Z))
    assert samples._loss(problem.log_odds(), problem, rows) == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
def test_a_cell_in_parts_has_what_other_cells_have():
    cell = Cell(Setting("nonlinear", 2, 3, 4), 300, "star", samples=300)
    row = run_cell(cell, [6], samples.measure_in_parts)
    assert row.keys() == run_cell(replace(cell, samples=100), [6]).keys()
    assert row["chance_mcc_mean"] < 0.1 < row["projection_mcc_mean"] < row["mcc_mean"]
    assert row["mcc_mean"] < row["supervised_mcc_mean"] + 0.01
    assert row["read_mcc_mean"] == pytest.approx(1, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("study", ["design", "environments", "variance", "spread", "noise"])
def test_stored_row_is_what_the_code_computes(study):
    """The first cell of each study, one of its seeds alone; it was computed in a stack."""
    stored = results.load("synthetic_limits")
    index = next(i for i, row in enumerate(stored.rows) if row["study"] == study)
    row = run_cell(STUDIES[study].cells[0], [stored.seeds[3]])
    # Starts and directions of the bounds depend on the place in the stack.
    bounds = ("projection", "chance", "supervised")
    for name, values in stored.notes["by_seed"][index].items():
        if values is not None and not name.startswith(bounds):
            assert row["by_seed"][name][0] == pytest.approx(values[3], abs=5e-3), name


def test_a_study_is_shown_with_its_bounds(monkeypatch):
    keys = ("r2", "mcc", "read_mcc", "supervised_r2", "excess_loss")
    row = {f"{key}_{part}": 0.5 for key in keys for part in ("mean", "std")}
    row |= {"study": "noise", "series": "linear", "level": 0.1, "read_mcc_mean": None}
    monkeypatch.setattr(results, "load", lambda name: type("Stored", (), {"rows": [row]}))
    shown = study_table(study_rows("noise")).frame()
    assert shown.loc[0, "MCC"] == "0.500 ± 0.500"
    assert shown.loc[0, "MCC read off"] == ""
    with pytest.raises(ValueError, match="study must be one of noise, got 'design'"):
        study_rows("design")
