"""Sphinx extension: every table of the book in one form, which fits a desktop and a phone.

Tables of Markdown and of pandas lose what says nothing (row numbers, a second row of headings) and
gain what a narrow page needs: the heading of each cell, and where a cell may break.
"""

import re
from typing import Any

from bs4 import BeautifulSoup, NavigableString, Tag
from sphinx.application import Sphinx

_TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
_NUMBER = re.compile(r"[-+−±<>]?\s?[\d.,]+([eE][-+]?\d+)?( ?[%×])?")
_STYLE = re.compile(r"<style scoped>.*?</style>\s*", re.DOTALL)  # pandas' own, for notebooks
_WORDY = 26  # characters from which a cell is read as text, over the whole width of a phone
_MANY_COLUMNS = 14  # beyond, a row is a card from the start: on paper, too, and without scripts


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("html-page-context", _lay_out, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _lay_out(app: Sphinx, page: str, template: str, context: dict[str, Any], _: Any) -> None:
    if "<table" in context.get("body", ""):
        context["body"] = legible(context["body"])


def legible(page: str) -> str:
    """Return HTML with its tables changed and everything else as it was."""
    return _TABLE.sub(lambda match: _legible(match[0]), _STYLE.sub("", page))


def _legible(text: str) -> str:
    soup = BeautifulSoup(text, "html.parser")
    table = soup.table
    if table is None or table.thead is None or table.tbody is None or table.select("[rowspan]"):
        return text
    head, body = table.thead, table.tbody
    _one_row_of_headings(head)
    _without_row_numbers(head, body)
    labels = _labels(head)
    rows = [_cells(row) for row in body.find_all("tr")]
    keys = _keys(rows)
    for row in rows:
        for cell in row[:keys]:
            _mark(cell, "key")
        for label, cell in zip(labels, row, strict=False):
            words = cell.get_text(" ", strip=True)
            if label:
                cell["data-label"] = label
            if _is_number(words):
                _mark(cell, "number")
            elif len(words) >= _WORDY:
                _mark(cell, "wordy")
            _let_break(cell)
    for heading in head.find_all(["td", "th"]):
        heading.name = heading.name if heading.get_text(strip=True) else "td"  # names nothing
        _let_break(heading)
    if len(labels) > 2 and table.select_one("tbody .wordy"):
        _mark(table, "wordy-table")
    if len(labels) > _MANY_COLUMNS:
        _mark(table, "stacked")
    return str(soup)


def _cells(row: Tag) -> list[Tag]:
    return list(row.find_all(["td", "th"], recursive=False))


def _one_row_of_headings(head: Tag) -> None:
    """Move pandas' name of the index into the row of the columns' names."""
    rows = head.find_all("tr")
    if len(rows) != 2 or head.select("[colspan]:not([colspan='1'])"):
        return
    upper, lower = map(_cells, rows)
    named = [cell for cell in lower if cell.get_text(strip=True)]
    if len(upper) == len(lower) and named == lower[: len(named)]:
        for above, below in zip(upper, named, strict=False):
            above.string = below.get_text(strip=True)
        rows[1].decompose()


def _without_row_numbers(head: Tag, body: Tag) -> None:
    """Remove a first column without a heading that counts from 0."""
    rows = [_cells(row) for row in head.find_all("tr")]
    if len(rows) != 1 or not rows[0] or rows[0][0].get_text(strip=True):
        return
    first = [cells[0] for row in body.find_all("tr") if (cells := _cells(row))]
    if [cell.get_text(strip=True) for cell in first] == [str(n) for n in range(len(first))]:
        for cell in (rows[0][0], *first):
            cell.decompose()


def _labels(head: Tag) -> list[str]:
    """Return for each column its heading, of several rows of headings joined."""
    columns: list[list[str]] = []
    for row in head.find_all("tr"):
        wide = []
        for cell in _cells(row):
            wide += [cell.get_text(" ", strip=True)] * int(str(cell.get("colspan") or 1))
        columns += [[] for _ in range(len(wide) - len(columns))]
        for words, column in zip(wide, columns, strict=False):
            if words and words not in column:
                column.append(words)
    return [", ".join(parts) for parts in columns]


def _keys(rows: list[list[Tag]]) -> int:
    """Return how many of the first columns it takes to tell the rows apart; 1 where none do."""
    words = [[cell.get_text(" ", strip=True) for cell in row] for row in rows]
    for count in range(1, min(map(len, words), default=0)):
        if len({tuple(row[:count]) for row in words}) == len(words):
            return count
    return 1


def _is_number(words: str) -> bool:
    """Tell whether a cell holds a number, or ``mean ± std``, or an interval."""
    parts = re.split(r"\s*(?:±|,| to )\s*", words.strip("[]() "))
    return bool(words) and all(_NUMBER.fullmatch(part) for part in parts if part)


def _mark(tag: Tag, name: str) -> None:
    tag["class"] = " ".join(filter(None, [*tag.get_attribute_list("class"), name]))


def _let_break(cell: Tag) -> None:
    """Let a cell break before ``±``, not behind it, and behind an underscore."""
    for text in list(cell.find_all(string=True)):
        said = re.sub(r"\s*± ", " ±\N{NO-BREAK SPACE}", str(text))
        parts = re.split(r"(?<=\w_)(?=\w)", said)
        if text.find_parent("a") is not None or (len(parts) == 1 and said == text):
            continue
        new: list[Any] = [NavigableString(parts[0])]
        for part in parts[1:]:
            new += [Tag(name="wbr", is_xml=False, can_be_empty_element=True), NavigableString(part)]
        text.replace_with(*new)
