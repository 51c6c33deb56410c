"""The computed values of chapters, for text that is read where nothing was executed.

An executed chapter knows what it glued. For a clone in which none has run yet, ``book/values.json``
keeps what they were: ``python -m tools.book values`` writes it, a test of the site compares.
"""

import ast
import json
import re
from pathlib import Path

import nbformat

from conceptnb.common.files import write_text
from tools.book import execution
from tools.book.project import Project

_MIME = "application/papermill.record/text/plain"
_USED = re.compile(r"\{glue:(?:text)?\}`([^`:]+)(?::([^`]+))?`")


class Values:
    """What the chapters of a book have computed, as text."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known = known(project)

    def text(self, page: str, name: str, form: str = "") -> str:
        """Return a value that a page shows; a link to the page where it is not known here."""
        value = self._known.get(name)
        if value is None:
            return f"[(a value on the site)]({self._project.site_address}{page}.html)"
        return format(float(value), form) if form else value

    def filled_in(self, page: str, source: str) -> str:
        """Return a page with its values in their places; ValueError where one is not known."""
        if missing := ", ".join(sorted(used(source) - self._known.keys())):
            raise ValueError(f"{page}: no chapter computes a value named {missing}")
        return _USED.sub(lambda named: self.text(page, named[1], named[2] or ""), source)


def kept_in(project: Project) -> Path:
    """Return the file that keeps the values."""
    return project.root / "book" / "values.json"


def used(source: str) -> set[str]:
    """Return the names of the values that a text shows."""
    return {named[1] for named in _USED.finditer(source)}


def shown(project: Project) -> set[str]:
    """Return the names of the values that chapters and the pages without code show."""
    pages = [*project.chapters, *sorted((project.root / "book").glob("*.md"))]
    return {name for page in pages for name in used(page.read_text(encoding="utf-8"))}


def computed(project: Project, chapter: Path, names: set[str]) -> dict[str, str]:
    """Return the values of these names that an executed chapter has glued."""
    path, found = execution.executed(project, chapter), {}
    if names and path.is_file():
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                name = output.get("metadata", {}).get("scrapbook", {}).get("name")
                data = output.get("data", {})
                said = data.get(_MIME, data.get("text/plain"))
                if name and said is not None:
                    found[name] = _unquoted(said)
    return {name: found[name] for name in sorted(found.keys() & names)}


def known(project: Project) -> dict[str, str]:
    """Return the values that are shown: of chapters that have been executed here, else as kept."""
    path = kept_in(project)
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    named = shown(project)
    for chapter in project.chapters:
        kept |= computed(project, chapter, named)
    return {name: kept[name] for name in sorted(named & kept.keys())}


def keep(project: Project) -> Path:
    """Write the values of the chapters that have been executed; keep those of the others."""
    path = kept_in(project)
    write_text(path, json.dumps(known(project), indent=1, ensure_ascii=False) + "\n")
    return path


def _unquoted(said: str) -> str:
    """Return what a string or a number says, from its ``repr``."""
    try:
        return str(ast.literal_eval(said))
    except (SyntaxError, ValueError):
        return said
