"""The map of the paper: every numbered item has a place, and every place exists."""

import re
from pathlib import Path

import pytest

from tools.book.project import Project

PROJECT = Project(Path(__file__).resolve().parents[2])
ROOT = PROJECT.root
TEXT = (ROOT / "book" / "map.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("| \n").split(" | ")]
    for line in TEXT.splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| in the paper"))
]
SINGLE = {"Definition": 4, "Assumption": 5, "Lemma": 4, "Theorem": 3, "Remark": 3, "Table": 7}
SINGLE |= {"Figure": 2, "Problem": 1, "Corollary": 1, "Algorithm": 1}
SECTIONS = ["4.1", "4.2", "4.3", "1", "2", "3", "5", "6", "7"]
APPENDICES = [
    "A.1",
    "A.2",
    "A.3",
    "B",
    "B.1",
    "B.2",
    "C",
    "D",
    "D.1",
    "D.2",
    "E",
    "E.1",
    "E.2",
    "E.3",
    "F",
    "G",
    "H",
]
WAYS = {"run", "proved", "stated", "stand-in"}


def numbers(kind, items):
    """Numbers of one kind in cells like "Tables 2, 3 and 4" or "Lemma 4, Corollary 1"."""
    lists = re.findall(rf"{kind}s?((?: and|,? ?[\d.]+)+)", items)
    return {number for found in lists for number in re.findall(r"[\d.]+\d|\d", found)}


@pytest.mark.parametrize(("kind", "count"), SINGLE.items())
def test_every_numbered_item_has_a_row(kind, count):
    found = set().union(*(numbers(kind, row[0]) for row in ROWS))
    assert found >= {str(k) for k in range(1, count + 1)}


def test_every_equation_has_a_row():
    found = set()
    for items, *_ in ROWS:
        part = re.search(r"[Ee]quations? (.*)", items)
        if part is None:
            continue
        for first, last in re.findall(r"\((\d+)\)(?: to \((\d+)\))?", part.group(1)):
            found |= set(range(int(first), int(last or first) + 1))
    assert found == set(range(1, 89))


def test_every_section_has_a_row():
    found = set().union(*(numbers("Section", row[0]) for row in ROWS))
    assert found >= set(SECTIONS)
    cells = {part for row in ROWS for part in row[0].split(", ")}
    assert cells >= set(APPENDICES)


def test_a_row_has_a_place_that_exists_and_says_how():
    pages = [*(ROOT / "book").glob("*.md"), *(ROOT / "notebooks").rglob("*.md")]
    labels = set(
        re.findall(r"^:label: (\S+)", "\n".join(p.read_text("utf-8") for p in pages), re.M)
    )
    for items, _, place, how in ROWS:
        assert set(how.split(", ")) <= WAYS, items
        links = re.findall(r"\{(doc|prf:ref)\}`([^`]+)`", place)
        assert links or place.startswith("not run"), items
        for role, target in links:
            if role == "doc":
                assert (ROOT / f"{target.lstrip('/')}.md").is_file(), target
            else:
                assert target in labels, target
