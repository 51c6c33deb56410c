"""What the book's labels stand for: their kind and number, their page, and the address of that.

Sphinx numbers them when it builds the site. Notebooks that are read elsewhere get the same numbers
from here, without a build; a test compares the two.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from tools.book.project import Project

_CHAPTER = re.compile(r"notebooks/(\d+)_")
_NOTES = "notebooks/notes/"
_LABELLED = re.compile(
    r"^\((?P<place>[\w-]+)\)=\n+#+ (?P<heading>[^\n]*)"
    r"|^(?P<fence>[`:]{3,})\{(?P<kind>[\w:-]+)\} *(?P<title>[^\n]*)\n"
    r"(?P<options>(?:[ \t]*:[^\n]*\n)*)"
    r"|^ {4}name: (?P<figure>[\w-]+)$"
    r"|\$\$(?P<mathematics>.*?)\$\$(?: *\((?P<equation>[\w:-]+)\))?",
    re.MULTILINE | re.DOTALL,
)
_NUMBERED = {"exercise-start": "Exercise", "exercise": "Exercise", "table": "Table",
             "list-table": "Table", "figure": "Figure"}  # fmt: skip
_NOT_NUMBERED = {"prf:proof"}


@dataclass(frozen=True)
class Target:
    """One thing that can be referred to."""

    kind: str  # Theorem, Equation, Figure; empty for a place in the text
    number: str
    title: str
    address: str

    @property
    def name(self) -> str:
        """Return what a reference says: Theorem 5.1, (5.2), or the heading of a section."""
        if self.kind == "Equation":
            return f"({self.number})"
        return f"{self.kind} {self.number}" if self.kind else self.title


class Labels:
    """All labels of a book; by label, a `Target`."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._notes = [page for page in project.pages_in_toc if page.startswith(_NOTES)]
        self._counts: dict[tuple[str, str], int] = defaultdict(int)
        self._targets = {
            label: target
            for page in project.pages_in_toc
            if (path := project.root / f"{page}.md").is_file()
            for label, target in self._of_page(page, path.read_text(encoding="utf-8"))
        }

    def __getitem__(self, label: str) -> Target:
        return self._targets[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self._targets)

    def address(self, page: str) -> str:
        """Return the public address of a page of the contents."""
        return f"{self._project.site_address}{page}.html"

    def number_of(self, page: str) -> str:
        """Return the number of a chapter (5), of a research note (N2), or A for another page."""
        if chapter := _CHAPTER.match(page):
            return str(int(chapter[1]))
        return f"N{self._notes.index(page) + 1}" if page in self._notes else "A"

    def title_of(self, page: str) -> str:
        """Return the first heading of a page."""
        path = self._project.root / f"{page}.md"
        return _heading(path) if path.is_file() else page.rsplit("/", 1)[-1]

    @cached_property
    def terms(self) -> dict[str, str]:
        """Return the address of each term of the glossary, in lower case."""
        text = (self._project.root / "book" / "glossary.md").read_text(encoding="utf-8")
        page = self.address("book/glossary")
        terms = re.findall(r"^(?![`#:\s])(.+)$", text, re.MULTILINE)
        return {term.lower(): f"{page}#{_anchor(term)}" for term in terms}

    def _of_page(self, page: str, text: str) -> Iterator[tuple[str, Target]]:
        for found in _LABELLED.finditer(text):
            if found["place"]:
                yield found["place"], self._target(page, "", found["place"], found["heading"])
            elif found["figure"]:
                yield found["figure"], self._target(page, "Figure", found["figure"])
            elif found["equation"]:
                yield found["equation"], self._target(page, "Equation", found["equation"])
            elif found["fence"]:
                kind = _kind(found["kind"])
                options = yaml.safe_load(
                    re.sub(r"^\s*:(.*?):", r"\1:", found["options"], flags=re.M)
                )
                label = (options or {}).get("label") or (options or {}).get("name")
                if kind and label:
                    yield label, self._target(page, kind, label, found["title"])

    def _target(self, page: str, kind: str, label: str, title: str = "") -> Target:
        part = self.number_of(page)
        self._counts[kind, part] += 1
        anchor = f"equation-{label}" if kind == "Equation" else label
        number = f"{part}.{self._counts[kind, part]}"
        return Target(kind, number, title.strip(), f"{self.address(page)}#{anchor.lower()}")


def _kind(directive: str) -> str:
    """Return how a directive's things are called where they are numbered, else nothing."""
    if directive.startswith("prf:") and directive not in _NOT_NUMBERED:
        return directive.removeprefix("prf:").capitalize()
    return _NUMBERED.get(directive, "")


def _anchor(term: str) -> str:
    """Return the anchor that Sphinx gives to a term of the glossary."""
    letters = unicodedata.normalize("NFKD", f"term-{term}").encode("ascii", "ignore").decode()
    return re.sub(r"[^a-zA-Z0-9._]+", "-", " ".join(letters.split())).strip("-")


def _heading(path: Path) -> str:
    found = re.search(r"^# (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else path.stem
