"""Pages that a program writes: the reference of the package, and what the last build took."""

import ast
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "transformers", "jupyter-book", "nbmake")
_ANSWERS = "exercises"  # its modules hold answers: what the room itself offers is all that is shown
_INDEX, _TIMES = (
    Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("api.md", "times.md")
)


def api_pages(package: Path) -> dict[str, str]:
    """Return the reference of a package as MyST text by file: ``index.md``, and a page per room."""
    rooms = [room for room in _offered(package) if (package / room / "__init__.py").is_file()]
    rows = "\n".join(
        f"* - {{doc}}`{package.name}.{room} <{room}>`\n  - {_summary(package / room)}"
        for room in rooms
    )
    pages = {"index.md": _INDEX.format(rows=rows)}
    return pages | {f"{room}.md": _page(package, room) for room in rooms}


def times_page(seconds: Mapping[str, float]) -> str:
    """Return the page of execution times, given in seconds by page, as MyST text."""
    rows = "\n".join(
        f"* - {{doc}}`/{page}`\n  - {took:.1f}" for page, took in sorted(seconds.items())
    )
    return _TIMES.format(
        rows=rows,
        total=sum(seconds.values()),
        machine=f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        cores=os.cpu_count(),
        libraries=", ".join(f"{name} {version(name)}" for name in _LIBRARIES),
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
    return (ast.get_docstring(_tree(folder)) or "").split("\n", 1)[0]


def _offered(folder: Path) -> list[str]:
    """Return ``__all__`` of a package, in its order, or nothing."""
    for node in _tree(folder).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
    return []
