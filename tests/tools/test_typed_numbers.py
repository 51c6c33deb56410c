"""No result is typed into prose: a number there is computed (glue), or a list says what it is.

Looked at are the text and the captions of chapters and pages, without code, formulas, citations,
links and what an exercise asks, for decimals, percentages, deviations (±) and tenths in words.
``typed_numbers.toml`` lists what may stand: pieces of each page's text, by what their numbers are.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tools.book.project import Project
from tools.prose import prose

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*Project(ROOT).chapters, *sorted(ROOT.glob("book/*.md"))]  # README: test_readme.py
KINDS = {
    "setting": "chosen by us or by the authors, and not measured",
    "paper": "a number of the paper or of another cited work, called theirs",
    "exact": "follows from a definition, or from what an exercise gives, by arithmetic",
    "name": "part of a version or a licence",
}

WORDS = "one|two|three|four|five|six|seven|eight|nine|few|several"
NUMBER = re.compile(
    rf"""(?<![\w.])\d*\.\d+(?![\w]|\.\d)     # 0.95, .95
      | \d+(?:\.\d+)?\s?(?:%|percent|per\ cent)
      | ±\s?\d
      | \b(?:{WORDS})\ (?:tenths?|hundredths?|thousandths?)\b""",
    re.VERBOSE,
)


def typed(text, allowed=()):
    """Return every number that is left, with the words around it."""
    for piece in sorted(allowed, key=len, reverse=True):
        text = text.replace(piece, "…")
    return [text[max(0, m.start() - 50) : m.end() + 30] for m in NUMBER.finditer(text)]


def allowlist():
    return tomllib.loads((Path(__file__).parent / "typed_numbers.toml").read_text("utf-8"))


def pieces(name):
    """Return the pieces of text that a page may contain: its own and those of every page."""
    listed = allowlist()
    mine = [*listed.get(name, {}).values(), *listed["every page"].values()]
    return [piece for pieces in mine for piece in pieces]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_result_is_typed(page):
    found = typed(prose(page.read_text(encoding="utf-8")), pieces(page.stem))
    assert not found, (
        "compute these numbers in a cell (glue), or say in tests/tools/typed_numbers.toml that "
        f"they are one of {', '.join(KINDS)}: {found}"
    )


def test_the_allowlist_says_what_each_number_is_and_holds_nothing_else():
    pages = {page.stem: page for page in PAGES}
    for name, by_kind in allowlist().items():
        assert name == "every page" or name in pages, name
        assert set(by_kind) <= set(KINDS), (name, set(by_kind) - set(KINDS))
        if name == "every page":
            continue
        text = prose(pages[name].read_text(encoding="utf-8"))
        for piece in (piece for pieces in by_kind.values() for piece in pieces):
            assert piece in text, f"{name} no longer says {piece!r}: take it off the list"
            assert NUMBER.search(piece), f"{piece!r} has no number that needs the list"
            assert len(piece) > len(NUMBER.search(piece)[0]), f"{piece!r}: name words around it"


@pytest.mark.parametrize(
    "text",
    [
        "The MCC is .95 here.",
        "The MCC is 0.95.",
        "It rises by 12 % on this corpus.",
        "It rises by 12.5 percent.",
        "The mean is 3 ± 1 over seeds.",
        "It is seven tenths or more.",
        '```{code-cell} ipython3\n---\nmystnb:\n  figure:\n    caption: "An MCC of 0.95."\n---\n'
        "f(1)\n```",
    ],
)
def test_typed_results_are_found(text):
    assert len(typed(prose(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "The MCC is {glue:}`mcc` here.",
        "With $\\alpha = 0.5$ it is\n\n$$\n0.25 x\n$$\n",
        "```{exercise-start} E\n:label: e\n```\nLet it be 0.95.\n```{exercise-end}\n```",
        "Call `fit(rate=0.05)` as in {doc}`a_1.5`.",
        "```{code-cell} ipython3\nx = 0.95\n```",
        "```bash\npip install 'x>=1.2'\n```",
        "See [the paper](https://example.org/2402.09236).",
        "Theorem 5.1 is this book's.",
        "Two of three models; 96 questions; chapters 4-7.",
    ],
)
def test_other_numbers_are_not(text):
    assert typed(prose(text)) == []
