"""Exercises of the chapters: their form, and the two editions that are made from them."""

import ast
import builtins
import contextlib
import io
import re
from pathlib import Path
from unittest.mock import MagicMock

import jupytext
import nbformat
import pytest

from conceptnb import cli
from conceptnb import exercises as check
from conceptnb.exercises.exercise import NOT_ANSWERED
from tools.book import editions
from tools.book.project import Project

PROJECT = Project(Path(__file__).resolve().parents[2])
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
def test_the_student_edition_keeps_the_exercises_and_nothing_of_the_solutions(chapter):
    source = chapter.read_text(encoding="utf-8")
    edition = editions.student(source)
    assert "solution-" not in edition
    assert exercises_of(edition) == exercises_of(source)


@each
@pytest.mark.parametrize("make", [editions.student, editions.lecturer])
def test_every_cell_of_an_edition_has_what_it_uses(chapter, make):
    """No cell needs a name that only a solution, or a starting cell, would have defined."""
    known = set(dir(builtins))
    for code in code_of(make(chapter.read_text(encoding="utf-8"))):
        tree = ast.parse(re.sub(r"^[!%]", "#", code, flags=re.MULTILINE))
        bound, used = names(tree)
        missing = used - bound - known
        assert not missing, f"{missing} is defined in no cell before this one:\n{code}"
        known |= bound


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


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Both editions of every chapter, as the command writes them."""
    folder = tmp_path_factory.mktemp("editions")
    for edition in editions.EDITIONS:
        editions.write(PROJECT, edition, folder / edition, PROJECT.chapters)
    return folder


@each
def test_the_written_editions_differ_in_the_solutions_alone(chapter, written):
    books = {
        edition: nbformat.read(written / edition / f"{chapter.stem}.ipynb", as_version=4)
        for edition in editions.EDITIONS
    }
    cells = {e: [c for c in b.cells if c.cell_type == "code"] for e, b in books.items()}
    assert not any(c.outputs or c.execution_count for part in cells.values() for c in part)
    tags = {e: [t for c in part for t in c.metadata.get("tags", [])] for e, part in cells.items()}
    asked = tags["student"].count("exercise")
    assert asked == len(re.findall(r"^:tags: \[exercise", chapter.read_text(), re.MULTILINE))
    assert tags["lecturer"].count("exercise") == tags["student"].count("solution") == 0
    checks = {e: [c.source for c in part if "check.ex_" in c.source] for e, part in cells.items()}
    assert len(checks["student"]) == asked
    solved = {name for code in checks["lecturer"] for name in re.findall(r"ex_\w+", code)}
    assert {n for code in checks["student"] for n in re.findall(r"ex_\w+", code)} == solved
    assert not any("answer = ..." in code for code in checks["lecturer"])
    common = [
        [c.source for c in part if not {"exercise", "solution"} & set(c.metadata.get("tags", []))]
        for part in cells.values()
    ]
    assert [code for code in common[0] if code not in common[1]] == []
    text = {e: "".join(c.source for c in b.cells) for e, b in books.items()}
    assert "**Solution.**" not in text["student"]
    assert text["lecturer"].count("**Solution.**") >= asked


def code_of(source):
    cells = jupytext.reads(source, fmt="md:myst").cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


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
@pytest.mark.parametrize("stem", ["01_concepts", "10_environments", "23_metrics"])
def test_editions_run(stem, tmp_path, monkeypatch):
    """Of all chapters `conceptnb editions ... --execute` says it; the book runs their cells."""
    monkeypatch.chdir(PROJECT.root)
    asked = answers("student", stem, tmp_path / "student")
    assert asked == [f"{NOT_ANSWERED}\n"] * len(asked)
    solved = answers("lecturer", stem, tmp_path / "lecturer")
    assert len(solved) == len(asked) >= 4
    assert all("Right. " in text for text in solved)


@pytest.mark.slow
def test_running_an_edition_tells_a_check_that_says_something_else(tmp_path):
    code = [
        "import types, conceptnb; check = types.SimpleNamespace(ex_a=print, ex_b=print)",
        f"check.ex_a({NOT_ANSWERED!r})",
        "check.ex_b('Right. So it is.')",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in code])
    nbformat.write(book, tmp_path / "one.ipynb")
    assert editions.run(tmp_path / "one.ipynb", "student", PROJECT) == [
        "one.ipynb: check.ex_b says 'Right. So it is.\\n'"
    ]
    book.cells.insert(1, nbformat.v4.new_code_cell("1 / 0"))
    nbformat.write(book, tmp_path / "two.ipynb")
    assert editions.run(tmp_path / "two.ipynb", "lecturer", PROJECT) == [
        "two.ipynb: ZeroDivisionError: division by zero"
    ]


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
    wordless = source.replace("Because.", "```{code-cell} ipython3\n1\n```")
    assert "**Solution.**\n\n```{code-cell} ipython3\n1\n```\n" in editions.plain(wordless)
    assert "Because" not in editions.student(source)


def test_no_label_stands_twice_in_the_book():
    pages = [*PROJECT.chapters, *sorted((PROJECT.root / "book").rglob("*.md"))]
    labels = [
        label
        for page in pages
        for label in re.findall(r"^:label: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(labels) > 100
    assert {label for label in labels if labels.count(label) > 1} == set()
