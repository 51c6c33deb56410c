"""How the book is built: one step per command, the steps before it included."""

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
    commands = parser.add_subparsers(required=True, metavar="STEP")
    for step in (_pair, _check, _execute, _book, _pdf, _links, _values, _lab, _editions):
        name = step.__name__.removeprefix("_")
        commands.add_parser(name, help=step.__doc__).set_defaults(step=step)
    editions = commands.choices["editions"]
    editions.add_argument("edition", choices=["reader", "student", "lecturer"])
    editions.add_argument("chapters", nargs="*", help="01 or 01_concepts; default: all")
    editions.add_argument("--out", type=Path, help="folder (default: _build/editions/EDITION)")
    said = "run what was written; its checks must be content"
    editions.add_argument("--execute", action="store_true", help=said)
    options = parser.parse_args(arguments)
    try:
        return options.step(Project(options.root.resolve()), options)
    except (RuntimeError, ValueError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1


def _pair(project: Project, _: argparse.Namespace) -> int:
    """Generate the .ipynb of each chapter from its .md."""
    for notebook in pairs.pair(project):
        print(f"paired {project.relative(notebook)}")
    left = pairs.kept(project)
    for notebook in left:
        print(
            f"{project.relative(notebook)} was changed or run, and is left as it is: move it away, "
            "for example to lab/, then `make pair` again",
            file=sys.stderr,
        )
    return 1 if left else 0


def _check(project: Project, options: argparse.Namespace) -> int:
    """Fail, naming the chapter, where a pair differs or a chapter is in no contents."""
    problems = [
        f"{project.relative(path)} does not match {path.stem}.md: edit the .md, then `make pair`"
        if text
        else f"{project.relative(path)} has no {path.stem}.md: `git rm` it, or write its source"
        for path, text in pairs.drifted(project).items()
    ]
    print("\n".join(problems) or f"{len(project.chapters)} pairs agree")
    return 1 if _check_contents(project, options) or problems else 0


def _check_contents(project: Project, _: argparse.Namespace) -> int:
    """Fail, naming the chapter, where one is in no contents."""
    missing = [
        f"{project.relative(chapter)} is not in _toc.yml: no reader would find it"
        for chapter in project.chapters
        if project.page(chapter) not in project.pages_in_toc
    ]
    print(*missing, sep="\n", end="\n" if missing else "")
    return 1 if missing else 0


def _execute(project: Project, options: argparse.Namespace) -> int:
    """Execute the chapters that are stale."""
    from tools.book.execution import execute  # noqa: PLC0415 - brings pytest

    if _check_contents(project, options):
        return 1
    ran = execute(project, options.workers)
    print(f"{len(ran)} of {len(project.chapters)} chapters executed")
    return 0


def _book(project: Project, options: argparse.Namespace) -> int:
    """Execute what is stale, build the site, say where it is."""
    from tools.book.site import build  # noqa: PLC0415 - brings pytest and Sphinx

    start = time.monotonic()
    if _execute(project, options):
        return 1
    built = build(project)
    state = f"built in {time.monotonic() - start:.0f} s" if built else "up to date"
    print(f"The book is {state}. Open {project.html / 'index.html'}, or run `make serve`.")
    return 0


def _pdf(project: Project, _: argparse.Namespace) -> int:
    """Print the built book."""
    from tools.book.browser import chromium  # noqa: PLC0415 - brings a browser
    from tools.book.pdf import build  # noqa: PLC0415 - brings an HTML parser

    with chromium() as browser:
        print(f"The book on paper is {build(project, browser)}.")
    return 0


def _links(project: Project, _: argparse.Namespace) -> int:
    """Ask every address that the built book links to whether it still answers."""
    from tools.book.site import check_links  # noqa: PLC0415 - brings Sphinx

    check_links(project)
    return 0


def _values(project: Project, _: argparse.Namespace) -> int:
    """Keep the computed values that chapters show, for notebooks that nothing has executed."""
    from tools.book.values import keep  # noqa: PLC0415 - brings pytest

    print(f"{project.relative(keep(project))} holds what the executed chapters computed")
    return 0


def _lab(project: Project, _: argparse.Namespace) -> int:
    """Bring the working copy of the chapters in lab/ up to date; leave what was worked on."""
    from tools.book import editions  # noqa: PLC0415 - brings nbconvert

    folder = project.root / "lab"
    editions.write(project, "reader", folder, project.chapters)
    _say_what_is_kept(project, folder, project.chapters)
    return 0


def _say_what_is_kept(project: Project, folder: Path, chapters: list[Path]) -> None:
    from tools.book import editions  # noqa: PLC0415 - brings nbconvert

    if mine := editions.kept(project, folder, chapters):
        names = ", ".join(path.name for path in mine)
        print(
            f"{folder}: you have worked on {names}, which stays as it is; "
            "to have the chapter anew beside it, rename yours"
        )


def _editions(project: Project, options: argparse.Namespace) -> int:
    """Write the chapters as notebooks for students or for their lecturer."""
    from tools.book import editions  # noqa: PLC0415 - brings nbconvert

    asked = set(options.chapters)
    named = {chapter: {chapter.stem, chapter.stem.split("_")[0]} for chapter in project.chapters}
    if unknown := asked.difference(*named.values()):
        there = ", ".join(chapter.stem for chapter in named)
        raise ValueError(f"chapters={sorted(unknown)} are not there; there are {there}")
    chosen = [chapter for chapter, names in named.items() if names & asked or not asked]
    folder = options.out or project.built / "editions" / options.edition
    failed = False
    for path in editions.write(project, options.edition, folder, chosen):
        print(path, flush=True)
        for problem in editions.run(path, options.edition, project) if options.execute else ():
            print(problem, file=sys.stderr)
            failed = True
    _say_what_is_kept(project, folder, chosen)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
