"""``python -m tools.book``: pair, check, execute, book, pdf, links."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tools.book import pairs
from tools.book.project import Project


def main(arguments: list[str] | None = None) -> int:
    """Run one step of the build; return 0, or 1 with a message on standard error."""
    parser = argparse.ArgumentParser(prog="python -m tools.book", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="checkout of the book")
    parser.add_argument("--workers", type=int, default=2, help="notebooks run at a time")
    steps = {
        "pair": _pair,
        "check": _check,
        "execute": _execute,
        "book": _book,
        "pdf": _pdf,
        "links": _links,
    }
    parser.add_argument("step", choices=steps)
    options = parser.parse_args(arguments)
    try:
        return steps[options.step](Project(options.root.resolve()), options.workers)
    except (RuntimeError, ValueError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1


def _pair(project: Project, _: int) -> int:
    """Generate the .ipynb of each chapter from its .md."""
    for notebook in pairs.pair(project):
        print(f"paired {project.relative(notebook)}")
    return 0


def _check(project: Project, _: int) -> int:
    """Fail, naming the chapter, where a pair differs or a chapter is in no contents."""
    problems = [
        f"{project.relative(path)} does not match {path.stem}.md: edit the .md, then `make pair`"
        for path in pairs.drifted(project)
    ]
    problems += [
        f"{project.relative(chapter)} is not in _toc.yml: no reader would find it"
        for chapter in project.chapters
        if f"notebooks/{chapter.stem}" not in project.pages_in_toc
    ]
    print("\n".join(problems) or f"{len(project.chapters)} pairs agree")
    return 1 if problems else 0


def _execute(project: Project, workers: int) -> int:
    """Execute the chapters that are stale."""
    from tools.book.execution import execute  # noqa: PLC0415 - brings pytest

    if _check(project, workers):
        return 1
    ran = execute(project, workers)
    print(f"{len(ran)} of {len(project.chapters)} chapters executed")
    return 0


def _book(project: Project, workers: int) -> int:
    """Execute what is stale, build the site, say where it is."""
    from tools.book.site import build  # noqa: PLC0415 - brings pytest and Sphinx

    start = time.monotonic()
    if _execute(project, workers):
        return 1
    built = build(project)
    state = f"built in {time.monotonic() - start:.0f} s" if built else "up to date"
    print(f"The book is {state}. Open {project.html / 'index.html'}, or run `make serve`.")
    return 0


def _pdf(project: Project, _: int) -> int:
    """Print the built book."""
    from tools.book.browser import chromium  # noqa: PLC0415 - brings a browser
    from tools.book.pdf import build  # noqa: PLC0415 - brings an HTML parser

    with chromium() as browser:
        print(f"The book on paper is {build(project, browser)}.")
    return 0


def _links(project: Project, _: int) -> int:
    """Check the addresses that the pages of the built book link to."""
    from tools.book.site import check_links  # noqa: PLC0415 - brings Sphinx

    check_links(project)
    return 0


if __name__ == "__main__":
    sys.exit(main())
