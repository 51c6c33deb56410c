"""Studies of what limits identifiability: bounds, cells and the stored table."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from conceptnb import results  # noqa: E402
from conceptnb.commands import cli  # noqa: E402
from conceptnb.core.design import EnvironmentDesign, paper_design  # noqa: E402
from conceptnb.core.planner import propose_design, tree_design  # noqa: E402
from conceptnb.core.problems import Setting  # noqa: E402
from conceptnb.studies.limits_cells import Cell, cell_row, draw, sized_design  # noqa: E402
from conceptnb.studies.limits_studies import LIMITS  # noqa: E402
from conceptnb.tables.limits_report import study_rows, study_table  # noqa: E402
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
    np.testing.assert_array_equal(first.base.means, second.base.means)
    np.testing.assert_array_equal(first.atoms, second.atoms)
    np.testing.assert_array_equal(first.fresh_observations, second.fresh_observations)
    planned = propose_design(2, 0.1, second.base, second.atoms)
    np.testing.assert_allclose(second.design.B, planned.B)


def test_noise_leaves_exact_log_odds_of_linear_mixing():
    """They reweight noisy base observations into each environment, as without noise."""
    drawn = draw(Cell(SMALL, 0, "", samples=4000, noise=0.3), 5)
    environment = drawn.environment
    weights = np.exp(drawn.log_odds()[environment == 0])
    np.testing.assert_allclose(weights.mean(axis=0), 1, atol=0.15)
    for e in range(3):
        expected = drawn.X[environment == e + 1].mean(axis=0)
        found = (weights[:, [e]] * drawn.X[environment == 0]).mean(axis=0)
        np.testing.assert_allclose(found, expected, atol=0.1)


def test_other_conditioning_has_its_own_log_odds_and_the_same_base():
    plain = draw(Cell(SMALL, 0, "", "path", samples=100), 5)
    window = draw(Cell(SMALL, 0, "", "path", samples=100, conditioning="window"), 5)
    base = plain.environment == 0
    np.testing.assert_array_equal(plain.Z[base], window.Z[base])
    assert np.ptp(window.log_odds()[~base].max(axis=1)) < np.ptp(
        plain.log_odds()[~base].max(axis=1)
    )
    np.testing.assert_array_equal(plain.log_odds(), plain.log_odds(plain.Z))


def test_a_cell_has_its_bounds_in_order():
    row = cell_row(Cell(SMALL, 1.0, "star", samples=400), [6])
    assert row["supervised_r2_mean"] == pytest.approx(1, abs=1e-4)
    assert row["read_mcc_mean"] == pytest.approx(1, abs=1e-4)
    assert row["chance_mcc_mean"] < 0.1 < row["mcc_mean"] <= 1
    assert row["held_out_loss_mean"] > row["oracle_loss_mean"] - 0.05
    assert row["mcc_std"] == 0
    assert row["peak_gb"] > 0.05


def test_what_does_not_apply_is_none():
    row = cell_row(Cell(SMALL, 0.5, "noisy", samples=100, noise=0.5), [6])
    assert row["read_mcc_mean"] is None
    assert row["supervised_r2_mean"] < 1


def test_command_writes_rows_with_provenance(tmp_path, monkeypatch, capsys):
    cells = (
        Cell(SMALL, 1.0, "star", samples=100),
        Cell(SMALL, 2.0, "star", samples=100, rows_per_epoch=1000),
    )
    monkeypatch.setitem(LIMITS, "design", replace(LIMITS["design"], cells=cells))
    out = tmp_path / "some.json"
    words = ["reproduce", "limits", "--study", "design", "--seeds", "2", "--jobs", "1"]
    assert cli.main([*words, "--out", str(out)]) == 0
    kept = json.loads(out.read_text())
    assert [row["level"] for row in kept["rows"]] == [1.0, 2.0]
    assert [row["seeds"] for row in kept["rows"]] == [2, 2]
    assert len(kept["runs"]) == 4
    assert cli.main(["reproduce", "limits", "--seeds", "0"]) == 2
    assert "--seeds must be at least 1" in capsys.readouterr().err


def test_every_study_has_lines_over_levels():
    for study in LIMITS.values():
        levels = [(cell.series, cell.level) for cell in study.cells]
        assert len(set(levels)) == len(levels) == len(set(study.cells))
        assert all([line for line, _ in levels].count(line) > 1 for line, _ in levels)


@pytest.mark.slow
def test_a_cell_in_parts_has_what_other_cells_have():
    cell = Cell(Setting("nonlinear", 2, 3, 4), 300, "star", samples=300, rows_per_epoch=100_000)
    row = cell_row(cell, [6])
    assert row.keys() == cell_row(replace(cell, samples=100, rows_per_epoch=None), [6]).keys()
    assert row["chance_mcc_mean"] < 0.1 < row["projection_mcc_mean"] < row["mcc_mean"]
    assert row["mcc_mean"] < row["supervised_mcc_mean"] + 0.01
    assert row["read_mcc_mean"] == pytest.approx(1, abs=1e-4)


def test_a_study_is_shown_with_its_bounds(monkeypatch):
    keys = ("r2", "mcc", "read_mcc", "supervised_r2", "excess_loss")
    row = {f"{key}_{part}": 0.5 for key in keys for part in ("mean", "std")}
    row |= {"study": "noise", "series": "linear", "level": 0.1}
    row |= {"read_mcc_mean": None, "read_mcc_std": None}
    monkeypatch.setattr(results, "load", lambda name: type("Stored", (), {"rows": [row]}))
    shown = study_table(study_rows("noise")).frame()
    assert shown.loc[0, "MCC"] == "0.500 ± 0.500"
    assert shown.loc[0, "MCC read off"] == ""
    with pytest.raises(ValueError, match="study must be one of noise, got 'design'"):
        study_rows("design")
