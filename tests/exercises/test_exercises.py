"""Exercises of the chapters: their form, and their starting cells."""

import builtins
import contextlib
import io
import re
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from conceptnb import exercises as check
from conceptnb.exercises.engine import NOT_ANSWERED
from tools.book.project import Project

PROJECT = Project(Path(__file__).resolve().parents[2])
EXERCISE = re.compile(
    r"^```\{exercise-start\}[^\n]*\n:label: (?P<label>[^\n]+)\n(?P<body>.*?)^```\{exercise-end\}",
    re.DOTALL | re.MULTILINE,
)
CELL = re.compile(
    r"^```\{code-cell\} ipython3\n(?P<tags>:tags: [^\n]*\n\n?)?(?P<code>.*?)^```\n",
    re.DOTALL | re.MULTILINE,
)
# Chapters that teach with checked exercises; the others have none, or none yet.
CHAPTERS = [c for c in PROJECT.chapters if "check.ex_" in c.read_text(encoding="utf-8")]
each = pytest.mark.parametrize("chapter", CHAPTERS, ids=[c.stem for c in CHAPTERS])


def exercises_of(source):
    return {found["label"]: found["body"] for found in EXERCISE.finditer(source)}


def solutions_of(source):
    found = re.finditer(
        r"\{solution-start\} (?P<label>\S+)\n(?P<body>.*?)\{solution-end\}", source, re.DOTALL
    )
    return {one["label"]: one["body"] for one in found}


@each
def test_an_exercise_has_a_starting_cell_with_a_check_a_hint_and_a_solution(chapter):
    source = chapter.read_text(encoding="utf-8")
    exercises, solutions = exercises_of(source), solutions_of(source)
    assert len(exercises) >= (1 if chapter.parent.name == "notes" else 2)
    for label, body in exercises.items():
        if body.startswith(":class: research\n"):
            assert "no check" in body, f"{label}: say that a research question has no check"
            continue
        name = label.replace("-", "_")
        assert name in check.exercises(), f"{label} has no check"
        starting = [c["code"] for c in CELL.finditer(body) if "exercise" in (c["tags"] or "")]
        assert len(starting) == 1, label
        assert re.fullmatch(rf"answer = .*\.\.\..*\ncheck\.{name}\(answer.*\)\n", starting[0])
        assert "remove-output" in body, f"{label}: the page need not say that nobody answered"
        assert ":::{dropdown} Hint\n" in body, label
        solved = [c["code"] for c in CELL.finditer(solutions[label]) if c["tags"]]
        assert solved and "check." + name in solved[-1], f"{label}: the solution is not checked"
        assert ":class: dropdown" in solutions[label], label


def test_every_check_belongs_to_an_exercise():
    asked = {label.replace("-", "_") for c in CHAPTERS for label in exercises_of(c.read_text())}
    assert set(check.exercises()) <= asked


class Anything(dict):
    """Variables of a chapter that was not run: each is there, whatever it is called."""

    def __missing__(self, name):
        if hasattr(builtins, name):
            raise KeyError(name)
        return MagicMock(name=name)


@each
def test_every_starting_cell_runs_and_says_that_nobody_has_answered(chapter):
    """A check looks at the answer before anything else, so what is beside it may be anything."""
    source = chapter.read_text(encoding="utf-8")
    cells = [c["code"] for c in CELL.finditer(source) if "exercise" in (c["tags"] or "")]
    assert cells
    for code in cells:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, {}, Anything(check=check))
        assert printed.getvalue() == f"{NOT_ANSWERED}\n", code


def test_no_label_stands_twice_in_the_book():
    pages = [*PROJECT.chapters, *sorted((PROJECT.root / "book").rglob("*.md"))]
    labels = [
        label
        for page in pages
        for label in re.findall(r"^:label: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(labels) > 100
    assert {label for label in labels if labels.count(label) > 1} == set()
