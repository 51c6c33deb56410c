"""Editions of the chapters for a course, from the one source that the site is made from.

The *student edition* has exercises with their starting cells and checks, and no solutions. In
the *lecturer's edition* the solutions stand in place of the starting cells. Both are notebooks
for Jupyter without extensions: headings and foldable boxes take the place of the directives
that only the site can show.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import nbformat

from conceptnb.core.files import write_text
from conceptnb.exercises.exercise import NOT_ANSWERED
from tools.book import pairs
from tools.book.project import Project

EDITIONS = ("student", "lecturer")
_SAID = {"student": NOT_ANSWERED, "lecturer": "Right. "}  # by every check of the edition
_SECONDS_A_CELL = 600

_SOLUTION = re.compile(
    r"^(?P<start>`{3,})\{solution-start\}.*?^(?P<end>`{3,})\{solution-end\}\n(?P=end)\n*",
    re.DOTALL | re.MULTILINE,
)
_STARTING_CELL = re.compile(
    r"^```\{code-cell\} ipython3\n:tags: \[exercise[^\n]*\n.*?^```\n", re.DOTALL | re.MULTILINE
)
# What the site shows as boxes, and what stands for it in a notebook.
_PLAIN = (
    (r"^`{3,}\{exercise-start\} *(?P<title>[^\n]*)\n(?:^:[^\n]*\n)*^`{3,}\n", r"### \g<title>\n\n"),
    (r"^(?P<end>`{3,})\{exercise-end\}\n(?P=end)\n", ""),
    (r"^`{3,}\{solution-start\}[^\n]*\n(?:^:[^\n]*\n)*^`{3,}\n", "**Solution.** "),
    # A solution without words: its cell starts a line of its own.
    (r"^\*\*Solution\.\*\* (?=`{3,}\{)", "**Solution.**\n\n"),
    (r"^(?P<end>`{3,})\{solution-end\}\n(?P=end)\n", ""),
    (
        r"^:::\{dropdown\} *(?P<title>[^\n]*)\n(?P<body>.*?)^:::\n",
        r"<details><summary>\g<title></summary>\n\n\g<body>\n</details>\n",
    ),
)


def student(source: str) -> str:
    """Return a chapter's MyST source without its solutions."""
    return _SOLUTION.sub("", source)


def lecturer(source: str) -> str:
    """Return a chapter's MyST source with solutions in place of the starting cells."""
    return _STARTING_CELL.sub("", source)


def plain(source: str) -> str:
    """Return MyST source whose exercises read well where directives are not shown."""
    for pattern, replacement in _PLAIN:
        source = re.sub(pattern, replacement, source, flags=re.DOTALL | re.MULTILINE)
    return source


def write(project: Project, edition: str, folder: Path, chapters: list[Path]) -> list[Path]:
    """Write an edition of some chapters as notebooks without outputs.

    Parameters
    ----------
    project : Project
    edition : {"student", "lecturer"}
    folder : Path
        Where to; made where it is missing.
    chapters : list of Path
        Sources, ``notebooks/NAME.md``.

    Returns
    -------
    list of Path
        The notebooks, ``folder/NAME.ipynb``.

    Raises
    ------
    ValueError
        If there is no such edition.
    """
    if edition not in EDITIONS:
        raise ValueError(f"edition={edition!r} is not known; there are {', '.join(EDITIONS)}")
    make = student if edition == "student" else lecturer
    written = []
    for chapter in chapters:
        source = plain(make(chapter.read_text(encoding="utf-8")))
        target = folder / f"{chapter.stem}.ipynb"
        write_text(target, pairs.to_ipynb(source, project))
        written.append(target)
    return written


def run(notebook: Path, edition: str, project: Project) -> list[str]:
    """Run a notebook of an edition, and return what is wrong with it.

    In the student edition every check has to say that nobody has answered yet, in the
    lecturer's that the answer is right; and no cell may fail.

    Parameters
    ----------
    notebook : Path
        One that `write` wrote. It is not changed.
    edition : {"student", "lecturer"}
    project : Project
        Whose package it uses, and in whose ``notebooks/`` it runs.
    """
    from nbclient import NotebookClient  # noqa: PLC0415 - only this needs a kernel
    from nbclient.exceptions import CellExecutionError  # noqa: PLC0415

    from tools.book.execution import environment  # noqa: PLC0415 - brings pytest

    book = nbformat.read(notebook, as_version=4)
    where = {"metadata": {"path": str(project.root / "notebooks")}}
    client = NotebookClient(book, timeout=_SECONDS_A_CELL, resources=where)
    try:
        client.execute(env=os.environ | environment(project))
    except CellExecutionError as error:
        return [f"{notebook.name}: {error.ename}: {error.evalue}"]
    return [
        f"{notebook.name}: {check} says {said!r}"
        for check, said in _checks(book)
        if _SAID[edition] not in said
    ]


def _checks(book: nbformat.NotebookNode) -> list[tuple[str, str]]:
    """Return the calls of checks in an executed notebook, and what each cell printed."""
    return [
        (call, "".join(o.get("text", "") for o in cell.outputs if o.get("name") == "stdout"))
        for cell in book.cells
        if cell.cell_type == "code"
        for call in re.findall(r"check\.ex_\w+", cell.source)
    ]
