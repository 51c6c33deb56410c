"""The results page: what its scorecard and its merged tables say, against files and the paper."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from conceptnb import results
from conceptnb.results import paper
from conceptnb.results.show import Table
from tools.book import pairs
from tools.book.project import Project

PROJECT = Project(Path(__file__).resolve().parents[2])
STATES = {"reproduced", "stand-in", "stand-in, null", "not run"}


@pytest.fixture(scope="module")
def shown():
    """What the cells of the page show, in their order."""
    source = (PROJECT.root / "notebooks" / "22_results.md").read_text(encoding="utf-8")
    names: dict = {}
    values = []
    for cell in pairs.to_notebook(source, PROJECT).cells[1:]:
        if cell.cell_type != "code" or "Colab" in cell.source:
            continue
        body = ast.parse(cell.source).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), "90", "exec"), names)
        if last is not None:
            values.append(eval(compile(ast.Expression(last.value), "90", "eval"), names))
    return [value for value in values if value is not None]


@pytest.fixture(scope="module")
def tables(shown):
    return [value.frame() for value in shown if isinstance(value, Table)]


def test_every_experiment_of_the_paper_has_a_line_and_a_status(tables):
    card = tables[0]
    for number in range(1, 8):
        assert card.experiment.str.contains(rf"{number}|2 to [45]").any(), number
    assert set(card.status) <= STATES
    assert len(card) <= 16, "one screen"
    run = card[card.status != "not run"]
    assert (run[["paper", "ours", "seeds"]] != "").all(axis=None)
    assert (card[card.status == "not run"][["paper", "ours"]] == "").all(axis=None)


def test_a_null_is_an_interval_that_holds_zero(tables):
    rows = tables[0][tables[0].ours.str.contains(r"\[")]
    assert len(rows) >= 4
    for ours, status in zip(rows.ours, rows.status, strict=True):
        low, high = (float(end) for end in ours.split("[")[1].strip("]").split(","))
        assert ("null" in status) == (low <= 0 <= high)


def test_the_scorecard_averages_what_is_stored(tables):
    card = tables[0].set_index(["experiment", "run with"])
    runs = results.load("synthetic_faithful").runs
    mcc = [r["mcc"] for r in runs if r["mixing"] == "linear" and r["n"] * r["dz"] in (6, 12, 32)]
    assert len(mcc) == 15
    line = card.loc[("Table 1, linear", "authors' protocol")]
    assert line.ours.startswith(f"{np.mean(mcc):.2f} ± ")
    assert line.paper == f"{(0.98 + 0.86 + 0.87) / 3:.2f}"


def test_paper_and_ours_stand_in_neighbouring_columns_with_the_same_decimals(tables):
    seen = 0
    for table in tables[1:]:
        columns = list(table.columns)
        for place, title in enumerate(columns):
            if "paper" not in title:
                continue
            seen += 1
            assert "paper" not in columns[place + 1], columns
            decimals = {
                len(number.split(".")[1])
                for column in columns[place : place + 2]
                for cell in table[column]
                for number in str(cell).replace("± ", "").replace("[", "").split()[:1]
                if "." in number and "<" not in number
            }
            assert len(decimals) == 1, (title, decimals)
    assert seen >= 18


def test_merged_tables_keep_every_number_of_the_paper(tables):
    text = " ".join(table.to_csv() for table in tables[1:])
    for name in ("table2", "table3", "table4"):
        for factor in paper.printed(name).values():
            for model in ("ViT-B/32", "RN101"):
                for mean, std in factor[model]:
                    assert f"{mean:.1f} ± {std:.1f}" in text
    for row in paper.printed("table6")["rows"]:
        assert f"{row[2][0]:.3f}" in text
    for row in paper.printed("table1_table7")["rows"]:
        assert f"{row[4][0]:.2f} ± {row[4][1]:.2f}" in text


def test_every_file_is_listed_with_a_link(shown):
    page = shown[-1].data
    for name in results.names():
        assert f"{PROJECT.address}/blob/main/results/{name}.json" in page


def test_headings_are_words(tables):
    raw = [c for table in tables for c in table.columns if "_" in c.replace("d_", "")]
    assert not raw
