"""Editions of the chapters for a course, for Jupyter without extensions.

The *student edition* has no solutions; in the *lecturer's* they replace the starting cells.
"""

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import nbformat
from markdown_it import MarkdownIt
from mdit_py_plugins.colon_fence import colon_fence_plugin
from nbconvert.preprocessors import TagRemovePreprocessor
from nbformat import NotebookNode

from conceptnb.common.files import write_text
from conceptnb.exercises.engine import NOT_ANSWERED
from tools.book import pairs
from tools.book.project import Project

EDITIONS = {"student": "solution", "lecturer": "exercise"}  # the tag of the cells left out
_SAID = {"student": NOT_ANSWERED, "lecturer": "Right. "}  # by every check of the edition
_SECONDS_PER_CELL = 600
_MARKDOWN = MarkdownIt().use(colon_fence_plugin)
_DIRECTIVE = re.compile(r"\{(?P<name>[\w:-]+)\} *(?P<title>.*)")
_IN_WORDS = tomllib.loads(Path(__file__).with_name("directives.toml").read_text(encoding="utf-8"))


def edit(notebook: NotebookNode, edition: str) -> NotebookNode:
    """Return an edition of a chapter's notebook, which is changed."""
    if edition not in EDITIONS:
        raise ValueError(f"edition={edition!r} is not known; there are {', '.join(EDITIONS)}")
    cells, solving = [], False
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            cells.append(cell)
            continue
        pieces: list[tuple[bool, list[str]]] = [(solving, [])]
        for directive, text in _parts(cell.source):
            if directive.startswith("solution-"):
                solving = directive == "solution-start"
                pieces.append((solving, []))
            pieces[-1][1].append(text.strip())
        for inside, texts in pieces:
            if words := "\n\n".join(filter(None, texts)):
                metadata = {"tags": ["solution"]} if inside else {}
                cells.append(nbformat.v4.new_markdown_cell(words, metadata=metadata))
    notebook.cells = cells
    remove = TagRemovePreprocessor(enabled=True, remove_cell_tags={EDITIONS[edition]})
    return remove.preprocess(notebook, {})[0]


def plain(source: str) -> str:
    """Return MyST text that reads well where directives are not shown."""
    return "\n\n".join(filter(None, (text.strip() for _, text in _parts(source))))


def _parts(source: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each directive and its text in plain words; other text without a name."""
    lines, done = source.splitlines(), 0
    for token in _MARKDOWN.parse(source):
        directive = _DIRECTIVE.match(token.info)
        if directive is None or token.map is None or token.level:
            continue
        start, end = token.map
        yield "", "\n".join(lines[done:start])
        name, title = directive.groups()
        text = _IN_WORDS.get(name, _IN_WORDS["prf:"] if name.startswith("prf:") else None)
        if text is None:
            yield name, "\n".join(lines[start:end])
        else:
            body = plain(re.sub(r"\A(?::[^\n]*\n)*", "", token.content))
            kind = name.removeprefix("prf:").capitalize()
            yield name, text.format(kind=kind, title=title, body=body)
        done = end
    yield "", "\n".join(lines[done:])


def write(project: Project, edition: str, folder: Path, chapters: list[Path]) -> list[Path]:
    """Write an edition of some ``notebooks/NAME.md`` as ``folder/NAME.ipynb``, without outputs."""
    written = []
    for chapter in chapters:
        notebook = pairs.to_notebook(chapter.read_text(encoding="utf-8"), project)
        target = folder / f"{chapter.stem}.ipynb"
        write_text(target, pairs.to_text(edit(notebook, edition)))
        written.append(target)
    return written


def run(notebook: Path, edition: str, project: Project) -> list[str]:
    """Run a notebook of an edition in the project's ``notebooks/``; return what is wrong with it.

    In the student edition every check has to say that the question is not answered yet.
    """
    from nbclient import NotebookClient  # noqa: PLC0415 - only this needs a kernel
    from nbclient.exceptions import CellExecutionError  # noqa: PLC0415

    from tools.book.execution import environment  # noqa: PLC0415 - brings pytest

    book = nbformat.read(notebook, as_version=4)
    where = {"metadata": {"path": str(project.root / "notebooks")}}
    client = NotebookClient(book, timeout=_SECONDS_PER_CELL, resources=where)
    try:
        client.execute(env=os.environ | environment(project))
    except CellExecutionError as error:
        return [f"{notebook.name}: {error.ename}: {error.evalue}"]
    problems = []
    for cell in book.cells:
        checks = re.findall(r"check\.ex_\w+", cell.source) if cell.cell_type == "code" else []
        said = "".join(o.text for o in cell.get("outputs", []) if o.get("name") == "stdout")
        if _SAID[edition] not in said:
            problems += [f"{notebook.name}: {check} says {said!r}" for check in checks]
    return problems
