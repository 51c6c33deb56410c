"""Pages that a program writes: the reference of the package, and what the last build took."""

from __future__ import annotations

import ast
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "transformers", "jupyter-book", "nbmake")
_ANSWERS = "exercises"  # its modules hold answers: what the room itself offers is all that is shown


def api_pages(package: Path) -> dict[str, str]:
    """Return the reference of a package, a page per room, as MyST text by file name.

    Parameters
    ----------
    package : Path
        The package's folder. Nothing of it is imported: Sphinx does that.

    Returns
    -------
    pages : dict of str to str
        ``{"index.md": ..., "core.md": ..., ...}``: the list of rooms, then each room in the
        order in which the package names them, with a section for each of its modules.
    """
    offered = _offered(package)
    rooms = sorted(
        (init.parent.name for init in package.glob("[!_]*/__init__.py")),
        key=lambda name: offered.index(name) if name in offered else len(offered),
    )
    rows = "\n".join(
        f"* - {{doc}}`{package.name}.{room} <{room}>`\n  - {_summary(package / room)}"
        for room in rooms
    )
    index = (
        "# Reference\n\nEvery public function and class, from its docstring: shapes, units, "
        "errors, and the equation, section or table of the paper that it implements. "
        "[source] opens the code.\n\n"
        f"```{{list-table}}\n:header-rows: 1\n:widths: 30 70\n\n* - room\n  - what it holds\n"
        f"{rows}\n```\n"
    )
    return {"index.md": index, **{f"{room}.md": _page(package, room) for room in rooms}}


def times_page(seconds: Mapping[str, float]) -> str:
    """Return the page of execution times as MyST text.

    Parameters
    ----------
    seconds : mapping of str to float
        Wall time of each chapter's run that this site shows, by the stem of its file.
    """
    rows = "\n".join(
        f"* - {{doc}}`/notebooks/{stem}`\n  - {took:.1f}" for stem, took in sorted(seconds.items())
    )
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    return (
        "# Execution times\n\nEvery chapter on this site was executed from its first cell to its "
        "last, without an error, by the build that made the site. Seconds on the clock, two "
        "chapters at a time and each on one thread; starting a kernel and importing the libraries "
        "count.\n\n"
        "```{list-table}\n:header-rows: 1\n:widths: 80 20\n\n* - chapter\n  - seconds\n"
        f"{rows}\n* - **together**\n  - **{sum(seconds.values()):.1f}**\n```\n\n"
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()} with "
        f"{os.cpu_count()} cores; {libraries}. The lock file in the repository pins the rest.\n\n"
        "What is faster than what is measured by `make bench` in ratios, which travel further than "
        "seconds: {doc}`/notebooks/90_results` shows the table `benchmarks`.\n"
    )


def _page(package: Path, room: str) -> str:
    """Return the page of one room: what its own file defines, then a section per module."""
    sections = []
    for path in sorted((package / room).rglob("*.py")):
        *folders, last = path.relative_to(package).with_suffix("").parts
        names = folders if last == "__init__" else [*folders, last]
        inside = len(names) > 1
        if any(name.startswith("_") for name in names) or (inside and room == _ANSWERS):
            continue
        title = ".".join([package.name, *names])
        once = "" if room == _ANSWERS else "   :ignore-module-all:\n"  # where it is defined
        sections.append(
            f"{'##' if inside else '#'} {title}\n\n"
            f"```{{eval-rst}}\n.. automodule:: {title}\n   :members:\n{once}```\n"
        )
    return "\n".join(sections)


def _tree(folder: Path) -> ast.Module:
    return ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))


def _summary(folder: Path) -> str:
    """Return the first line of a package's docstring."""
    return (ast.get_docstring(_tree(folder)) or "").split("\n", 1)[0]


def _offered(folder: Path) -> list[str]:
    """Return ``__all__`` of a package, in its order, or nothing."""
    for node in _tree(folder).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
    return []
