"""Pairs: ``notebooks/NAME.md`` is what people edit, ``NAME.ipynb`` is generated from it.

The ``.ipynb`` holds no outputs, and one cell more than its source: the first one, which fetches
the book where the package is missing (on Colab). The same source always gives the same bytes.
"""

import hashlib
from collections import Counter
from pathlib import Path

import jupytext
import nbformat

from conceptnb.common.files import write_text
from tools.book.project import Project

_KEPT_METADATA = ("kernelspec", "execution", "mystnb")
_SETUP_CELL = """\
# Fetch the book and its package where they are missing (Colab); elsewhere this does nothing.
import importlib.util, sys
if importlib.util.find_spec("conceptnb") is None:
    !git clone -q --depth 1 {address} {name}
    !{{sys.executable}} -m pip install -q -e "./{name}[notebooks]"
    sys.path.insert(0, "{name}")"""


def to_notebook(source: str, project: Project) -> nbformat.NotebookNode:
    """Return the notebook that belongs to a chapter's MyST source, the text of its ``.md``."""
    notebook = jupytext.reads(source, fmt="md:myst")
    notebook.metadata = nbformat.NotebookNode(
        {key: notebook.metadata[key] for key in _KEPT_METADATA if key in notebook.metadata}
    )
    notebook.metadata["language_info"] = {"name": "python"}
    setup = _SETUP_CELL.format(address=project.address, name=project.name)
    notebook.cells.insert(
        0, nbformat.v4.new_code_cell(setup, metadata={"tags": ["remove-cell", "generated"]})
    )
    return notebook


def to_text(notebook: nbformat.NotebookNode) -> str:
    """Return a notebook as the text of its file: equal cells give equal bytes."""
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        cell["id"] = _cell_id(cell["cell_type"] + cell["source"], seen)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return nbformat.writes(nbformat.from_dict(notebook), version=4) + "\n"


def pair(project: Project) -> list[Path]:
    """Write the ``.ipynb`` of every chapter whose pair differs; return those written."""
    stale = drifted(project)
    for notebook, text in stale.items():
        if text is None:
            notebook.unlink()
        else:
            write_text(notebook, text)
    return list(stale)


def drifted(project: Project) -> dict[Path, str | None]:
    """Return each ``.ipynb`` that is not what it has to be, with that; None is no file at all."""
    present = sorted((project.root / "notebooks").glob("*.ipynb"))
    wanted: dict[Path, str | None] = dict.fromkeys(present)
    for chapter in project.chapters:
        notebook = to_notebook(chapter.read_text(encoding="utf-8"), project)
        wanted[chapter.with_suffix(".ipynb")] = to_text(notebook)
    there = {notebook: notebook.read_text(encoding="utf-8") for notebook in present}
    return {path: text for path, text in sorted(wanted.items()) if text != there.get(path, "")}


def _cell_id(content: str, seen: Counter[str]) -> str:
    """Return an identity that survives the insertion of cells before this one."""
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    seen[digest] += 1
    return digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
