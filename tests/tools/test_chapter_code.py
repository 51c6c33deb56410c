"""The code of the chapters and of the other pages, as readers see it."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tools.book import pairs
from tools.book.project import Project

PROJECT = Project(Path(__file__).resolve().parents[2])
PAGES = sorted((PROJECT.root / "book").rglob("*.md"))
UNSEEN = {"remove-cell", "remove-input"}
COLUMNS = 79  # what a page shows of a line at 1440 px; a test of the site looks there


def fenced(text):
    """Yield the blocks of code between fences, also of those inside directives."""
    for token in MarkdownIt().parse(text):
        if token.type == "fence" and token.info.startswith("{"):
            yield from fenced(token.content)
        elif token.type == "fence":
            yield token.content


def cells(text):
    for cell in pairs.to_notebook(text, PROJECT).cells:
        if cell.cell_type == "code" and not UNSEEN & set(cell.metadata.get("tags", ())):
            yield cell.source


@pytest.mark.parametrize("page", [*PROJECT.chapters, *PAGES], ids=lambda page: page.stem)
def test_no_line_of_code_is_wider_than_the_page(page):
    text = page.read_text(encoding="utf-8")
    blocks = [*fenced(text), *(cells(text) if page in PROJECT.chapters else ())]
    wide = [line for block in blocks for line in block.splitlines() if len(line) > COLUMNS]
    assert not wide, "\n".join(wide)
