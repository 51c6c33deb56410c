"""Exercises of the chapters: their form, and the two editions that are made from them."""

import ast
import builtins
import contextlib
import io
import re
from pathlib import Path

import jupytext
import nbformat
import pytest

from conceptnb import check, cli
from conceptnb.build import editions
from conceptnb.build.project import Project
from conceptnb.check.exercise import NOT_ANSWERED

PROJECT = Project(Path(__file__).resolve().parents[1])
EXERCISE = re.compile(
    r"^```\{exercise-start\}[^\n]*\n:label: (?P<label>[^\n]+)\n(?P<body>.*?)^```\{exercise-end\}",
    re.DOTALL | re.MULTILINE,
)
CELL = re.compile(
    r"^```\{code-cell\} ipython3\n(?P<tags>:tags: [^\n]*\n)?(?P<code>.*?)^```\n",
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
    assert len(exercises) >= 4
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


@each
def test_the_student_edition_keeps_what_it_needs_and_nothing_of_the_solutions(chapter):
    source = chapter.read_text(encoding="utf-8")
    edition = editions.student(source)
    assert "solution-" not in edition
    assert exercises_of(edition) == exercises_of(source)
    known = set(dir(builtins))
    cells = [
        c.source for c in jupytext.reads(edition, fmt="md:myst").cells if c.cell_type == "code"
    ]
    for code in cells:
        tree = ast.parse(re.sub(r"^[!%]", "#", code, flags=re.MULTILINE))
        bound, used = names(tree)
        missing = used - bound - known
        assert not missing, f"{missing} come from a solution, which students do not have"
        known |= bound


def names(tree):
    """Return the names that code binds, and those that it reads."""
    bound, used = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return bound, used


@each
def test_the_lecturers_edition_has_every_solution_and_no_starting_cell(chapter):
    source = chapter.read_text(encoding="utf-8")
    edition = editions.lecturer(source)
    assert solutions_of(edition) == solutions_of(source)
    assert "answer = ..." not in edition


def answers(edition, stem, folder):
    """Write an edition with the command, run its cells, and return what the checks said."""
    assert cli.main(["editions", edition, stem[:2], "--out", str(folder)]) == 0
    notebook = nbformat.read(folder / f"{stem}.ipynb", as_version=4)
    assert not any("{exercise" in c.source or "{dropdown} Hint" in c.source for c in notebook.cells)
    variables, said = {}, []
    for cell in notebook.cells:
        if cell.cell_type == "code" and "generated" not in cell.metadata.get("tags", []):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(cell.source, variables)
            if "check.ex_" in cell.source:
                said.append(printed.getvalue())
    return said


@pytest.mark.slow
@pytest.mark.parametrize("stem", ["01_concepts"])
def test_editions_run(stem, tmp_path, monkeypatch):
    """The other chapters' cells all run when the book is built, and a failing check stops it."""
    monkeypatch.chdir(PROJECT.root)
    asked = answers("student", stem, tmp_path / "student")
    assert asked == [f"{NOT_ANSWERED}\n"] * len(asked)
    solved = answers("lecturer", stem, tmp_path / "lecturer")
    assert len(solved) == len(asked) >= 4
    assert all("Right. " in text for text in solved)


def test_an_edition_of_a_chapter_that_is_not_there(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(PROJECT.root)
    assert cli.main(["editions", "student", "77", "--out", str(tmp_path)]) == 1
    assert "01_concepts" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_gates_become_headings_and_boxes():
    source = (
        "```{exercise-start} A title\n:label: ex-a\n:class: research\n```\nAsked.\n"
        ":::{dropdown} Hint\nThink.\n:::\n```{exercise-end}\n```\n\n"
        "````{solution-start} ex-a\n:class: dropdown\n````\nBecause.\n````{solution-end}\n````\n"
    )
    expected = (
        "### A title\n\nAsked.\n<details><summary>Hint</summary>\n\nThink.\n\n</details>\n\n"
        "**Solution.** Because.\n"
    )
    assert editions.plain(source) == expected
    assert "Because" not in editions.student(source)
