"""Pages that a program writes: the reference of the package, and what the last build took."""

from __future__ import annotations

import ast
import os
import pkgutil
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "transformers", "jupyter-book", "nbmake")
# Rooms of the workshop, not of the library: the command line documents itself.
_NOT_FOR_READERS = ("build", "cli", "commands")


def api_pages(package: Path) -> dict[str, str]:
    """Return the reference pages of a package, as MyST text by file name.

    Parameters
    ----------
    package : Path
        The package's folder. Nothing of it is imported: Sphinx does that.

    Returns
    -------
    pages : dict of str to str
        ``{"index.md": ..., "concepts.md": ..., ...}``: the list of modules, then each module
        in the order of the paper.
    """
    modules = [name for name in _public(package) if name not in _NOT_FOR_READERS]
    order = {name: place for place, name in enumerate(_offered(package))}
    modules.sort(key=lambda name: (order.get(name, len(order)), name))
    rows = "\n".join(
        f"* - {{doc}}`{package.name}.{name} <{name}>`\n  - {_summary(package, name)}"
        for name in modules
    )
    index = (
        "# Reference\n\nEvery public function and class, from its docstring: shapes, units, "
        "errors, and the equation, section or table of the paper that it implements. "
        "[source] opens the code.\n\n"
        f"```{{list-table}}\n:header-rows: 1\n:widths: 30 70\n\n* - module\n  - what it holds\n"
        f"{rows}\n```\n"
    )
    return {"index.md": index, **{f"{name}.md": _page(package, name) for name in modules}}


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
        f"{os.cpu_count()} cores; {libraries}. The lock file in the repository pins the rest.\n"
    )


def _page(package: Path, name: str) -> str:
    """Return the page of one module.

    A folder whose ``__init__`` offers functions and classes is documented by what it
    offers; one that only holds modules has a section for each of them.
    """
    title = f"{package.name}.{name}"
    page = f"# {title}\n\n"
    inner = _public(package / name) if (package / name).is_dir() else []
    if set(_offered(package / name)) - set(inner) or not inner:
        return page + _automodule(title, members=True)
    sections = [f"## {title}.{i}\n\n{_automodule(f'{title}.{i}', members=True)}" for i in inner]
    return "\n".join([page + _automodule(title, members=False), *sections])


def _automodule(name: str, members: bool) -> str:
    options = "   :members:\n" if members else ""
    return f"```{{eval-rst}}\n.. automodule:: {name}\n{options}```\n"


def _public(package: Path) -> list[str]:
    """Return the names of the public modules directly in a package's folder."""
    found = pkgutil.iter_modules([str(package)])
    return sorted(module.name for module in found if not module.name.startswith("_"))


def _tree(package: Path, name: str) -> ast.Module:
    folder = package / name
    path = folder / "__init__.py" if folder.is_dir() else package / f"{name}.py"
    return ast.parse(path.read_text(encoding="utf-8"))


def _summary(package: Path, name: str) -> str:
    """Return the first line of a module's docstring."""
    return (ast.get_docstring(_tree(package, name)) or "").split("\n", 1)[0]


def _offered(package: Path) -> list[str]:
    """Return ``__all__`` of a package's folder, in its order, or nothing."""
    init = package / "__init__.py"
    text = init.read_text(encoding="utf-8") if init.is_file() else ""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
    return []
