"""Tables as the site shows them: one form for those of Markdown and those of pandas."""

from __future__ import annotations

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from tools.book.tables import legible

SCORES = pd.DataFrame({"mixing": ["linear", "linear"], "n": [2, 3], "r2_fresh": [0.5, 0.25]})


def made(frame, **settings):
    return BeautifulSoup(legible(frame.to_html(**settings)), "html.parser")


def test_every_cell_knows_the_heading_of_its_column():
    table = made(SCORES, index=False)
    labels = [cell["data-label"] for cell in table.select("tbody td")]
    assert labels == ["mixing", "n", "r2_fresh"] * 2
    assert table.get_text("|", strip=True).count("linear") == 2


def test_row_numbers_go_and_names_of_rows_stay():
    assert [th.get_text() for th in made(SCORES).select("th")] == ["mixing", "n", "r2_fresh"]
    named = made(SCORES.set_index(pd.Index(["first", "second"])))
    assert [th.get_text() for th in named.select("tbody th")] == ["first", "second"]
    alone = made(pd.DataFrame({"n": [3]}, index=[7]))
    assert alone.select_one("tbody th").get_text() == "7"


def test_the_name_of_the_index_is_a_heading_like_the_others():
    table = made(SCORES.set_index("mixing"))
    assert [th.get_text() for th in table.select("thead th")] == ["mixing", "n", "r2_fresh"]
    assert table.select_one("tbody th")["data-label"] == "mixing"


def test_two_levels_of_headings_are_kept_and_joined_in_a_label():
    levels = pd.MultiIndex.from_tuples([("best", "vit"), ("best", "rn"), ("mean", "vit")])
    table = made(pd.DataFrame([[1, 2, 3]], index=["shape"], columns=levels))
    assert len(table.select("thead tr")) == 2
    labels = [cell["data-label"] for cell in table.select("tbody td")]
    assert labels == ["best, vit", "best, rn", "mean, vit"]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("0.98 ± 0.01", "number"),
        ("-1e-05", "number"),
        ("[0.1, 0.4]", "number"),
        ("12 %", "number"),
        ("n = 2", None),
        ("A sentence of several words, as in a question.", "wordy"),
    ],
)
def test_numbers_and_sentences_are_told_apart(words, kind):
    cell = made(pd.DataFrame({"a": ["x"], "b": [words]}), index=False).select("td")[1]
    assert {"number", "wordy"} & set(cell.get("class", ())) == ({kind} if kind else set())


def test_the_columns_that_tell_rows_apart_are_marked():
    cells = made(SCORES, index=False).select("td.key")
    assert [cell.get_text() for cell in cells] == ["linear", "2", "linear", "3"]


def test_a_table_of_many_columns_is_cards_without_scripts():
    for columns in (14, 15):
        table = made(pd.DataFrame([[0] * columns], columns=[f"c{i}" for i in range(columns)]))
        assert ("stacked" in table.table["class"]) == (columns > 14)


def test_cells_break_before_a_deviation_and_behind_an_underscore():
    table = made(pd.DataFrame({"r2_fresh": ["0.9 ± 0.1"]}), index=False)
    assert "r2_<wbr/>fresh" in str(table.th)
    assert table.td.get_text() == "0.9 ±\N{NO-BREAK SPACE}0.1"


def test_the_rest_of_a_page_and_other_tables_stay_as_they_are():
    page = '<p>a &lt; b</p><br><pre>x\n  ± y</pre><table class="highlighttable"><tr><td>1</table>'
    assert legible(page) == page
    joined = "<table><thead><tr><th>a</th></tr></thead><tbody><tr><td rowspan='2'>1</td></tr>"
    assert legible(f"{joined}</tbody></table>") == f"{joined}</tbody></table>"
