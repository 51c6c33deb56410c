"""``python -m tools.book.editions_command``: the chapters as notebooks for students, or for their lecturer."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to its parser."""
    parser.add_argument(
        "edition", choices=["student", "lecturer"], help="with or without solutions"
    )
    parser.add_argument("chapters", nargs="*", help="01 or 01_concepts; all where none is named")
    parser.add_argument("--out", type=Path, help="folder (default: _build/editions/EDITION)")
    parser.add_argument(
        "--execute",
        action="store_true",
        help="run each notebook written, and see that its checks say what they should",
    )
    parser.add_argument("--root", type=Path, default=Path(), help="checkout of the book")


def run(args: argparse.Namespace) -> int:
    """Write the edition, say where it is, and with ``--execute`` whether it runs.

    Raises
    ------
    ValueError
        If a chapter that was named does not exist, or `--root` is no checkout of the book.
    """
    from tools.book import editions  # noqa: PLC0415 - jupytext is not needed elsewhere
    from tools.book.project import Project  # noqa: PLC0415

    project = Project(args.root.resolve())
    chosen = [
        chapter
        for chapter in project.chapters
        if not args.chapters or {chapter.stem, chapter.stem.split("_")[0]} & set(args.chapters)
    ]
    if args.chapters and len(chosen) < len(set(args.chapters)):
        there = ", ".join(chapter.stem for chapter in project.chapters)
        raise ValueError(f"chapters={args.chapters} are not all there; there are {there}")
    folder = args.out or project.built / "editions" / args.edition
    problems = []
    for path in editions.write(project, args.edition, folder, chosen):
        print(path, flush=True)
        if args.execute:
            problems += editions.run(path, args.edition, project)
    print("\n".join(problems), end="\n" if problems else "", file=sys.stderr)
    return 1 if problems else 0


def main(arguments: list[str] | None = None) -> int:
    """Run the command with what was typed."""
    parser = argparse.ArgumentParser(prog="python -m tools.book.editions_command")
    add_arguments(parser)
    return run(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
