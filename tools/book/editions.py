"""Editions of the chapters, for Jupyter, Colab and Binder without extensions.

The *reader's edition* has the solutions folded: `make lab` and the launch buttons open it. The
*student edition* has none; in the *lecturer's* they replace the starting cells.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbconvert.preprocessors import TagRemovePreprocessor
from nbformat import NotebookNode

from conceptnb.common.files import write_text
from conceptnb.exercises.engine import NOT_ANSWERED
from tools.book import pairs
from tools.book.generated import is_untouched
from tools.book.plain import Plain
from tools.book.project import Project

EDITIONS = {"reader": None, "student": "solution", "lecturer": "exercise"}  # the tag left out
_SAID = {"reader": NOT_ANSWERED, "student": NOT_ANSWERED, "lecturer": "Right. "}  # by each check
_SECONDS_PER_CELL = 600
_FOLDED = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
_SOLUTION = re.compile(r"\*\*(Solution of .*)\.\*\*")
_DETAILS = "<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def edit(notebook: NotebookNode, edition: str, plain: Plain, page: str) -> NotebookNode:
    """Return an edition of a chapter's notebook, which is changed; its text is in plain words."""
    if edition not in EDITIONS:
        raise ValueError(f"edition={edition!r} is not known; there are {', '.join(EDITIONS)}")
    cells: list[NotebookNode] = []
    solving = False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            solving = _append(cells, plain.parts(cell.source, page), solving)
        else:
            cells += _with_caption(cell, plain, page)
    _link_the_page(cells, plain, page)
    notebook.cells = list(_fold_solutions(cells)) if edition == "reader" else cells
    remove = TagRemovePreprocessor(enabled=True, remove_cell_tags={EDITIONS[edition]} - {None})
    return remove.preprocess(notebook, {})[0]


def _append(cells: list[NotebookNode], parts: Iterator[tuple[str, str]], solving: bool) -> bool:
    """Append what a cell of text says, solutions apart; return whether it ends within one."""
    pieces: list[tuple[bool, list[str]]] = [(solving, [])]
    for directive, text in parts:
        if directive.startswith("solution-"):
            pieces.append((directive == "solution-start", []))
        pieces[-1][1].append(text.strip())
    for inside, texts in pieces:
        if words := "\n\n".join(filter(None, texts)):
            cells.append(_markdown(words, ["solution"] if inside else []))
    return pieces[-1][0]


def _markdown(words: str, tags: list[str]) -> NotebookNode:
    return nbformat.v4.new_markdown_cell(words, metadata={"tags": tags} if tags else {})


def _with_caption(cell: NotebookNode, plain: Plain, page: str) -> Iterator[NotebookNode]:
    """Yield a cell of code, folded where the site folds it, and the caption of its figure."""
    tags = cell.metadata.get("tags", [])
    figure = cell.metadata.pop("mystnb", {}).get("figure", {})
    if _FOLDED & set(tags):
        cell.metadata["jupyter"] = {"source_hidden": True}
    yield cell
    if figure.get("caption"):
        label = figure.get("name", "")
        name = plain.labels[label].name if label in plain.labels else "Figure"
        words = f"*{name}.* {plain.text(figure['caption'], page)}"
        yield _markdown(words, [tag for tag in tags if tag in {"solution", "exercise"}])


def _link_the_page(cells: list[NotebookNode], plain: Plain, page: str) -> None:
    """Add a link to the site below the title."""
    first = next(
        (cell for cell in cells if cell.source.startswith("# ") and cell.cell_type == "markdown"),
        None,
    )
    if first is not None:
        title, _, rest = first.source.partition("\n")
        said = f"Chapter {plain.labels.number_of(page)} on the site"
        first.source = f"{title}\n\n*[{said}]({plain.labels.address(page)})*\n{rest}".rstrip()


def _fold_solutions(cells: list[NotebookNode]) -> Iterator[NotebookNode]:
    """Yield the cells with each solution, text and code, in one cell that opens on a click."""
    summary = ""
    body: list[str] = []

    def folded() -> Iterator[NotebookNode]:
        if body:
            words = _DETAILS.format(summary=summary, body="\n\n".join(body))
            yield nbformat.v4.new_markdown_cell(words)

    for cell in cells:
        inside = "solution" in cell.metadata.get("tags", [])
        start = _SOLUTION.match(cell.source) if cell.cell_type == "markdown" else None
        if body and (start or not inside):
            yield from folded()
            body = []
        if not inside:
            yield cell
        elif start:
            summary, body = start[1], [cell.source[start.end() :].strip()]
        else:
            code = cell.cell_type == "code"
            body.append(f"```python\n{cell.source}\n```" if code else cell.source)
    yield from folded()


def target(project: Project, folder: Path, chapter: Path) -> Path:
    """Return where the edition of ``notebooks/NAME.md`` lies in a folder: ``NAME.ipynb``."""
    return folder / chapter.relative_to(project.root / "notebooks").with_suffix(".ipynb")


def kept(project: Project, folder: Path, chapters: list[Path]) -> list[Path]:
    """Return the notebooks of an edition that somebody has changed or run: these stay."""
    there = [target(project, folder, chapter) for chapter in chapters]
    return [path for path in there if path.exists() and not is_untouched(path)]


def write(project: Project, edition: str, folder: Path, chapters: list[Path]) -> list[Path]:
    """Write an edition of some ``notebooks/NAME.md`` as ``folder/NAME.ipynb``, without outputs.

    A notebook that somebody has changed or run is left as it is, and is not among those returned.
    """
    plain, mine = Plain(project), set(kept(project, folder, chapters))
    written = []
    for chapter in chapters:
        path = target(project, folder, chapter)
        if path in mine:
            continue
        notebook = pairs.to_notebook(chapter.read_text(encoding="utf-8"), project)
        page = project.relative(chapter.with_suffix(""))
        write_text(path, pairs.to_text(edit(notebook, edition, plain, page)))
        written.append(path)
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
