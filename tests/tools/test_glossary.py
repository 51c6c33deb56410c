"""The glossary: every term is linked from a chapter, and every link names a term."""

import re
from pathlib import Path

import pytest

from tools.book.project import Project

PROJECT = Project(Path(__file__).resolve().parents[2])
GLOSSARY = (PROJECT.root / "book" / "glossary.md").read_text(encoding="utf-8")
ENTRIES = re.search(r"```\{glossary\}\n(.*?)\n```", GLOSSARY, re.DOTALL).group(1)
TERMS = [line for line in ENTRIES.splitlines() if line and not line.startswith(" ")]
LINK = re.compile(r"\{term\}`(?:[^`<]*<)?(?P<term>[^`<>]+)>?`")
CHAPTERS = {path.stem: path.read_text(encoding="utf-8") for path in PROJECT.chapters}
LINKED = {stem: set(found) for stem, text in CHAPTERS.items() if (found := LINK.findall(text))}


def test_a_term_stands_in_the_glossary_once_and_is_explained():
    assert len(TERMS) == len(set(TERMS)) > 20
    for term in TERMS:
        assert re.search(rf"^{re.escape(term)}\n  \S", ENTRIES, re.MULTILINE), term


def test_terms_are_in_alphabetical_order():
    spelt = [term.casefold().replace("η", "eta").replace("²", "2") for term in TERMS]
    assert spelt == sorted(spelt)


@pytest.mark.parametrize("term", TERMS)
def test_a_term_is_linked_from_a_chapter_that_uses_it(term):
    assert any(term in links for links in LINKED.values()), (
        f"write {{term}}`{term}` where a chapter first uses it"
    )


def test_every_link_names_a_term():
    unknown = {stem: links - set(TERMS) for stem, links in LINKED.items() if links - set(TERMS)}
    assert not unknown
