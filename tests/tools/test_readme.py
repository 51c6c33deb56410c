"""README: its numbers are those of results/, its snippet runs, its links lead to what is there."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from conceptnb import results
from conceptnb.core import example_data
from conceptnb.learning.environment_tables import learn_concepts, read_environments
from conceptnb.tables.scorecard import scorecard
from tools.book.project import Project

PROJECT = Project(Path(__file__).resolve().parents[2])
README = (PROJECT.root / "README.md").read_text(encoding="utf-8")
FINDINGS = " ".join(README.split("## What it found")[1].split("## Start")[0].split())
STATUS = README.split("## Where the reproduction stands")[1]


def rows_of(name):
    return pd.DataFrame(results.load(name).rows)


def scored(experiment, run_with, score):
    """Return the paper's number and ours of one row of the scorecard, as it shows them."""
    for row in scorecard().rows:
        named = row["experiment"] == experiment and row["run with"].startswith(run_with)
        if named and row["score"] == score:
            return row["paper"], row["ours"].replace("\N{NO-BREAK SPACE}", " "), row["status"]
    raise AssertionError(f"the scorecard has no row {experiment}, {run_with}, {score}")


def test_the_proof_in_numbers():
    drawn, nested = rows_of("theory_instances"), rows_of("theory_nested")
    said = re.search(r"of (\d+) random problems .* concept in (\d+), and in all (\d+) ", FINDINGS)
    assert [int(n) for n in said.groups()] == [
        drawn.instances.sum(), drawn.M_right.sum(), nested.M_right.sum(),
    ]  # fmt: skip
    assert nested.M_right.sum() == nested.instances.sum()


def test_the_search_in_numbers():
    means = [
        f"{rows_of(name).query('mixing == @mixing').mcc_mean.mean():.2f}"
        for name in ("synthetic_faithful", "synthetic_best")
        for mixing in ("linear", "nonlinear")
    ]
    said = r"of (\S+) with linear mixing and (\S+) with nonlinear; .* gives (\S+) and (\S+)\."
    assert list(re.search(said, FINDINGS).groups()) == means


def test_embeddings_and_steering_in_numbers():
    paper, ours, _ = scored("Tables 2 to 4, Figure 2", "small CLIP", "η²")
    share = [f"{float(value):.0%}".replace("%", " %") for value in (ours, paper)]
    assert re.findall(r"\d+ %", FINDINGS)[:2] == share
    for score in ("MC1, mass mean minus unsteered", "MC1, matrix minus mass mean"):
        assert scored("Table 6, a real model", "smollm2", score)[1] in FINDINGS


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("Table 1, linear, MCC", ("Table 1, linear", "authors", "MCC")),
        ("Table 1, nonlinear, MCC", ("Table 1, nonlinear", "authors", "MCC")),
        ("Table 7, beyond Table 1, MCC", ("Table 7, beyond Table 1", "authors", "MCC")),
        ("Tables 2 to 4, η²", ("Tables 2 to 4, Figure 2", "small CLIP", "η²")),
        (
            "Table 6, MC1, matrix minus vector",
            ("Table 6, a real model", "smollm2", "MC1, matrix minus mass mean"),
        ),
    ],
)
def test_the_status_is_that_of_the_scorecard(line, row):
    (cells,) = re.findall(rf"^\| {re.escape(line)} \|.*\|$", STATUS, re.MULTILINE)
    *_, paper, ours, status = [cell.strip() for cell in cells.strip("|").split("|")]
    assert (paper, ours, status) == scored(*row)


def test_the_snippet_prints_what_the_page_says():
    ((code, said),) = re.findall(r"```python\n(.*?)```\n\nIt prints (\S+):", README, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue().strip() == said


@pytest.mark.slow
def test_the_report_of_the_beans_is_what_the_page_shows(tmp_path):
    example_data.write_environments(tmp_path / "beans.csv")
    looked_for = {"dark": ["roast"], "light": ["roast"], "sour": ["acidity"]}
    looked_for["dark and mild"] = ["roast", "acidity"]
    table = read_environments(tmp_path / "beans.csv", base="any")
    report = learn_concepts(table, looked_for, encoder="linear")
    assert not report.warnings
    shown = re.findall(r"^\| ([\w ]+) \| (\d+) \| ([\d.–]+) \| (\S+) \| (\S+) \|$", README, re.M)
    summary = report.summary()
    assert [row[0] for row in shown] == list(summary.iloc[:, 0])
    numbers = pd.DataFrame(shown).iloc[1:, 1:].astype(float)
    ours = summary.iloc[1:, 1:].astype(float).to_numpy()
    assert np.allclose(numbers.to_numpy(), ours[:, : numbers.shape[1]], atol=0.03)


def test_links_are_whole_and_name_what_is_there():
    """They are read on a package index, too, where a relative one leads nowhere."""
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert all(link.startswith("https://") for link in links)
    repository, site = PROJECT.address, PROJECT.site_address
    raw = repository.replace("github.com", "raw.githubusercontent.com") + "/main/"
    colab = "https://colab.research.google.com/github/" + repository.split("github.com/")[1]
    for link in links:
        for start in (f"{repository}/blob/main/", raw, f"{colab}/blob/launch/"):
            if link.startswith(start):
                assert (PROJECT.root / link.removeprefix(start)).is_file(), link
        if link.startswith(site):
            assert link.removeprefix(site) in {"", f"{PROJECT.name}.pdf"}, link
    named = re.findall(r"https://github\.com/[\w-]+/[\w-]+", README)
    assert {*named} == {repository}
