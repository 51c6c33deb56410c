"""Pairs: ``notebooks/NAME.md`` is what people edit, ``NAME.ipynb`` is generated from it.

The ``.ipynb`` holds no outputs, and one cell more than its source: the first one, which fetches
the book where the package is missing (on Colab). The same source always gives the same bytes.
"""

import subprocess
from collections import Counter
from pathlib import Path

import jupytext
import nbformat
from jupytext.config import load_jupytext_configuration_file

from conceptnb.common.files import write_text
from tools.book.generated import cell_id, is_untouched
from tools.book.project import Project

_KEPT_METADATA = ("kernelspec", "execution", "mystnb")
_SETUP_CELL = """\
# Fetch the book and its package where they are missing (Colab); elsewhere this does nothing.
import importlib.util, sys
if importlib.util.find_spec("conceptnb") is None:
    !git clone -q --depth 1 {address} {name}
    !{{sys.executable}} -m pip install -q -e "./{name}[notebooks]"
    sys.path.insert(0, "{name}")"""


def normal(source: str, project: Project) -> str:
    """Return a chapter's source as Jupyter saves it, with the same cells."""
    config = load_jupytext_configuration_file(str(project.root / "jupytext.toml"))
    notebook = jupytext.reads(source, fmt="md:myst", config=config)
    return str(jupytext.writes(notebook, fmt="md:myst", config=config))


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
        cell["id"] = cell_id(cell["cell_type"] + cell["source"], seen)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return nbformat.writes(nbformat.from_dict(notebook), version=4) + "\n"


def _belongs(source: str, project: Project) -> str:
    """Return the text of the ``.ipynb`` that belongs to a chapter's source."""
    return to_text(to_notebook(source, project))


def pair(project: Project) -> list[Path]:
    """Write the ``.ipynb`` of every chapter whose pair differs; return those written.

    Sources take the form in which Jupyter saves them, unless that would change a cell.

    What a person has changed or run is nobody's to overwrite: it is left, and `kept` names it.
    """
    for chapter in project.chapters:
        source = chapter.read_text(encoding="utf-8")
        form = normal(source, project)
        if source != form and _belongs(source, project) == _belongs(form, project):
            write_text(chapter, form)
    stale = {path: text for path, text in drifted(project).items() if text and _may_write(path)}
    for notebook, text in stale.items():
        write_text(notebook, text)
    return list(stale)


def kept(project: Project) -> list[Path]:
    """Return the notebooks that differ from their source because a person has been at work."""
    return [path for path, text in drifted(project).items() if text and not _may_write(path)]


def drifted(project: Project) -> dict[Path, str | None]:
    """Return each ``.ipynb`` that is not what it has to be, with that; None is no file at all.

    One without a source counts where git knows it; any other is somebody's own notebook.
    """
    present = sorted(path for folder in project.folders for path in folder.glob("*.ipynb"))
    sources = {chapter.with_suffix(".ipynb"): chapter for chapter in project.chapters}
    orphans = _tracked(project.root, [path for path in present if path not in sources])
    wanted: dict[Path, str | None] = dict.fromkeys(orphans)
    for path, chapter in sources.items():
        wanted[path] = _belongs(chapter.read_text(encoding="utf-8"), project)
    there = {notebook: notebook.read_text(encoding="utf-8") for notebook in present}
    return {path: text for path, text in sorted(wanted.items()) if text != there.get(path, "")}


def _may_write(notebook: Path) -> bool:
    return not notebook.exists() or is_untouched(notebook)


def _tracked(root: Path, files: list[Path]) -> list[Path]:
    """Return the files of a checkout that git knows; none where there is no git."""
    names = [path.relative_to(root).as_posix() for path in files]
    command = ["git", "ls-files", "-z", "--", *names]
    if not files or not (root / ".git").exists():
        return []
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout
    return [path for path, name in zip(files, names, strict=True) if name in listed.split("\0")]
