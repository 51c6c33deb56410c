"""Computed tables keep where they come from, and the paper's numbers stay the paper's."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from conceptnb import results
from conceptnb.results import paper, store
from conceptnb.results.show import _show
from tests.conftest import without_times

PAPER = ("table1_table7", "table2", "table3", "table4", "table5_correlation_ViT_RN", "table6")


@pytest.fixture
def keep(tmp_path):
    def save(name="table", rows=({"n": 2, "R2": [0.98, 0.01]},), **changed):
        settings = {
            "command": "conceptnb reproduce table",
            "modules": ["conceptnb.core.scores"],
            "seeds": [1, 2],
            "cpu_seconds": 1.25,
        }
        table = results.with_provenance(name, rows, **{**settings, **changed})
        return results.save(table, tmp_path / f"{name}.json")

    return save


def test_what_is_saved_is_what_is_loaded(keep, tmp_path):
    keep(notes={"samples": 100}, runs=[{"seed": 1, "n": 2}])
    loaded = results.load("table", tmp_path)
    assert loaded.rows == [{"n": 2, "R2": [0.98, 0.01]}]
    assert loaded.runs == [{"seed": 1, "n": 2}]
    assert loaded.command == "conceptnb reproduce table"
    assert loaded.seeds == [1, 2]
    assert loaded.notes == {"samples": 100}
    assert {"python", "conceptnb", "numpy"} <= set(loaded.computed.versions)
    assert loaded.computed.date and loaded.computed.cpu and loaded.computed.code
    assert loaded.state()[0] == "current"
    assert results.names(tmp_path) == ["table"]


def test_a_diff_shows_each_row_and_each_run_on_a_line_of_its_own(keep):
    rows, runs = [{"n": n, "R2": [0.9, 0.1]} for n in (2, 3)], [{"seed": 1, "n": 2}]
    lines = keep(rows=rows, runs=runs).read_text(encoding="utf-8").splitlines()
    shown = [json.loads(line.strip(" ,")) for line in lines if line.startswith("  {")]
    assert [row for row in shown if row in rows + runs] == rows + runs


def test_times_are_all_that_may_differ_between_runs(keep, tmp_path):
    first = results.read(keep(rows=[{"n": 2, "cpu_seconds": 1.0}]))
    second = results.read(keep(rows=[{"n": 2, "cpu_seconds": 9.0}], cpu_seconds=7))
    third = results.read(keep(rows=[{"n": 3, "cpu_seconds": 1.0}]))
    assert first != second
    assert without_times(first) == without_times(second)
    assert without_times(first) != without_times(third)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rows": []}, "rows is empty"),
        ({"modules": []}, "modules: none"),
        ({"modules": ["conceptnb.nowhere"]}, "modules: conceptnb.nowhere"),
        ({"rows": [{"x": math.nan}]}, "JSON"),
        ({"notes": {"paper_table": "table99"}}, "table99"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_written(keep, tmp_path, changed, message):
    with pytest.raises(ValueError, match=message):
        keep(**changed)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"name": "x"}'])
def test_a_damaged_file_is_named(tmp_path, text):
    (tmp_path / "broken.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"broken\.json is no computed table"):
        results.load("broken", tmp_path)


def test_numpy_values_are_refused_rather_than_guessed_at(keep):
    with pytest.raises(TypeError):
        keep(rows=[{"x": np.float32(1.0)}])


def test_a_table_that_is_not_there_names_those_that_are(keep, tmp_path):
    keep("other")
    with pytest.raises(FileNotFoundError, match=r"'missing'.*\(other\)"):
        results.load("missing", tmp_path)


def test_a_reader_never_meets_half_a_file(keep, tmp_path, monkeypatch):
    path = keep()
    before = path.read_text(encoding="utf-8")
    monkeypatch.setattr("pathlib.Path.replace", _fail)
    with pytest.raises(OSError, match="disk"):
        keep(rows=[{"n": 3}])
    assert path.read_text(encoding="utf-8") == before
    assert [p.name for p in tmp_path.iterdir()] == ["table.json"], "no debris"


def _fail(*_):
    raise OSError("the disk is full")


def test_a_page_shows_a_table_with_where_it_comes_from(keep, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "folder", lambda: tmp_path)
    keep("ours", notes={"paper_table": "table6"})
    assert repr(results.shown("ours")) == "Shown(ours)"
    assert repr(results.shown("nothing")) == "Shown(not yet computed)"
    assert "Not yet computed" in results.shown("nothing")._repr_html_()
    page = results.shown("ours")._repr_html_()
    for part in ("0.98 ± 0.01", "conceptnb reproduce table", "2 seeds", "1 CPU seconds"):
        assert part in page
    assert "unverified" not in page
    stored = json.loads((tmp_path / "ours.json").read_text(encoding="utf-8"))
    stored["computed"]["code"] = "0"
    (tmp_path / "ours.json").write_text(json.dumps(stored), encoding="utf-8")
    assert "unverified" in results.shown("ours")._repr_html_()


def test_a_page_shows_the_head_of_a_long_table(keep, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "folder", lambda: tmp_path)
    keep("long", rows=[{"row": f"number {i}", "of": [1, 2, 3]} for i in range(40)])
    page = results.shown("long")._repr_html_()
    assert "1, 2, 3" in page
    assert "number 14" in page
    assert "number 15" not in page
    assert "the first 15 of 40 rows" in page
    keep("whole", rows=[{"n": n} for n in range(40)], notes={"rows_on_page": 40})
    assert "of 40 rows" not in results.shown("whole")._repr_html_()
    assert "results/long.json" in page


def test_tables_of_this_repository_can_be_read():
    for name in results.names():
        loaded = results.load(name)
        assert loaded.name == name
        assert loaded.rows
        assert loaded.cpu_seconds > 0


# The paper -------------------------------------------------------------------------------------


def test_the_papers_numbers_where_one_can_look_them_up():
    rows = paper.printed("table1_table7")["rows"]
    assert len(rows) == 12
    assert rows[0] == ["linear", 2, 3, 4, [0.98, 0.01], [0.98, 0.03]]
    steering = paper.printed("table6")["rows"]
    assert steering[0][2][0] == 0.257
    assert steering[-1][0].startswith("steering matrices")
    assert paper.printed("table5_correlation_ViT_RN")["shape"] == 0.95


def test_the_two_models_agree_in_their_means_at_least_as_well_as_image_by_image():
    """Table 5 correlates images; averaging over them (Tables 2-4) can only take noise away."""
    factors = {**paper.printed("table2"), **paper.printed("table3"), **paper.printed("table4")}
    for name, printed in paper.printed("table5_correlation_ViT_RN").items():
        factor = factors["orientation_deg" if name == "orientation" else name]
        vit, rn = (np.array(factor[model])[:, 0] for model in ("ViT-B/32", "RN101"))
        assert np.corrcoef(vit, rn)[0, 1] * np.sign(printed) >= abs(printed)
        assert len(factor["values"]) == len(vit) == len(rn)


def test_what_is_handed_out_is_a_copy():
    paper.printed("table6")["rows"].clear()
    assert paper.printed("table6")["rows"]


def test_an_unknown_table_is_refused_with_the_names_of_the_known():
    with pytest.raises(ValueError, match=r"table8.*table1_table7"):
        paper.printed("table8")


@pytest.mark.parametrize("name", PAPER)
def test_every_table_shows_all_its_numbers(name):
    page = paper.as_printed(name)._repr_html_()
    for number in _numbers(paper.printed(name)):
        assert f"{number:g}" in page
    assert page.count("<tr") == len(paper.as_printed(name).frame()) + 1, "and a line of names"


def _numbers(content):
    """Every number of a table, however deep; what is said about a table is not in it."""
    if isinstance(content, dict):
        kept = (value for key, value in content.items() if key not in ("seeds", "note", "model"))
        return [number for value in kept for number in _numbers(value)]
    if isinstance(content, list):
        return [number for value in content for number in _numbers(value)]
    return [content] if isinstance(content, int | float) else []


@pytest.mark.parametrize(
    ("value", "text"),
    [([0.98, 0.01], "0.98 ± 0.01"), ([0.262, None], "0.262"), (None, ""), ("cube", "cube"), (2, 2)],
)
def test_cells_read_as_people_read_them(value, text):
    assert _show(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.8, "0.800"),
        ([1.0, 0.0002], "1.000 ± < 0.001"),
        ([0.257, 5e-05], "0.257 ± < 0.001"),
        ([0.2, 0.0], "0.200 ± 0.000"),
        (-0.0001, "0.000"),
        (0.0005001, "0.001"),
        (10.0, "10.000"),
    ],
)
def test_fixed_decimals_never_round_something_to_nothing(value, text):
    assert _show(value, ".3f").replace("\N{NO-BREAK SPACE}", " ") == text


def test_an_installed_package_keeps_its_results_in_the_working_folder(tmp_path, monkeypatch):
    assert store.folder() == store._CHECKOUT / "results"
    monkeypatch.setattr(store, "_CHECKOUT", tmp_path / "site-packages")
    monkeypatch.chdir(tmp_path)
    assert store.folder() == tmp_path / "results"
