"""The two editions of the chapters: what each holds and leaves out, and that they run."""

import ast
import builtins
import contextlib
import io
import re
from pathlib import Path

import nbformat
import pytest

from conceptnb.exercises.engine import NOT_ANSWERED
from tools.book import __main__ as command
from tools.book import editions, pairs
from tools.book.project import Project

PROJECT = Project(Path(__file__).resolve().parents[2])
CHAPTERS = [c for c in PROJECT.chapters if "check.ex_" in c.read_text(encoding="utf-8")]
each = pytest.mark.parametrize("chapter", CHAPTERS, ids=[c.stem for c in CHAPTERS])
GATE = re.compile(r"^(`{3,})\{solution-(?:start|end)\}[^\n]*\n(?:^:[^\n]*\n)*^\1\n", re.MULTILINE)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Both editions of every chapter, as the command writes them."""
    folder = tmp_path_factory.mktemp("editions")
    return {
        edition: {
            path.stem: nbformat.read(path, as_version=4)
            for path in editions.write(PROJECT, edition, folder / edition, PROJECT.chapters)
        }
        for edition in editions.EDITIONS
    }


def code_of(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tags_of(cell):
    return set(cell.metadata.get("tags", []))


def solutions_of(source):
    """Return the paragraphs of prose in the solutions of a chapter's source."""
    inside = "\n".join(GATE.split(source)[2::4])
    inside = re.sub(r"^```\{code-cell\}.*?^```$", "", inside, flags=re.DOTALL | re.MULTILINE)
    return [text.strip() for text in inside.split("\n\n") if text.strip()]


@each
def test_the_student_edition_holds_nothing_of_the_solutions(chapter, written):
    source = chapter.read_text(encoding="utf-8")
    text = "\n".join(cell.source for cell in written["student"][chapter.stem].cells)
    assert "**Solution.**" not in text
    paragraphs = solutions_of(source)
    assert paragraphs
    assert [words for words in paragraphs if words in text] == []


@each
def test_the_lecturers_edition_has_every_solution_and_no_starting_cell(chapter, written):
    source = chapter.read_text(encoding="utf-8")
    text = "\n".join(cell.source for cell in written["lecturer"][chapter.stem].cells)
    assert [words for words in solutions_of(source) if words not in text] == []
    assert text.count("**Solution.**") == source.count("{solution-start}")
    assert "answer = ..." not in text


@each
def test_no_gate_is_left_and_the_titles_of_exercises_are_headings(chapter, written):
    titles = re.findall(r"^```\{exercise-start\} *(.*)", chapter.read_text(), re.MULTILINE)
    for books in written.values():
        text = "\n".join(cell.source for cell in books[chapter.stem].cells)
        assert not re.search(r"\{(exercise|solution)-|\{dropdown\}|\{prf:\w+\}(?!`)", text)
        assert re.findall(r"^### (.*)", text, re.MULTILINE)
        assert [title for title in titles if f"### {title}\n" not in text] == []


@each
def test_the_editions_differ_in_the_solutions_alone(chapter, written):
    cells = {edition: code_of(books[chapter.stem]) for edition, books in written.items()}
    assert not any(c.outputs or c.execution_count for part in cells.values() for c in part)
    tags = {e: [t for c in part for t in c.metadata.get("tags", [])] for e, part in cells.items()}
    asked = tags["student"].count("exercise")
    assert asked == len(re.findall(r"^:tags: \[exercise", chapter.read_text(), re.MULTILINE))
    assert tags["lecturer"].count("exercise") == tags["student"].count("solution") == 0
    checks = {e: [c.source for c in part if "check.ex_" in c.source] for e, part in cells.items()}
    assert len(checks["student"]) == asked
    solved = {name for code in checks["lecturer"] for name in re.findall(r"ex_\w+", code)}
    assert {n for code in checks["student"] for n in re.findall(r"ex_\w+", code)} == solved
    common = [
        [c.source for c in books[chapter.stem].cells if not {"exercise", "solution"} & tags_of(c)]
        for books in written.values()
    ]
    assert common[0] == common[1]


@each
@pytest.mark.parametrize("edition", editions.EDITIONS)
def test_every_cell_of_an_edition_has_what_it_uses(chapter, edition, written):
    """No cell needs a name that only a solution, or a starting cell, would have defined."""
    known = set(dir(builtins))
    for cell in code_of(written[edition][chapter.stem]):
        if "generated" in tags_of(cell):
            continue
        tree = ast.parse(re.sub(r"^[!%]", "#", cell.source, flags=re.MULTILINE))
        bound, used = names(tree)
        missing = used - bound - known
        assert not missing, f"{missing} is defined in no cell before this one:\n{cell.source}"
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
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return bound, used


def answers(edition, stem, folder):
    """Write an edition with the command, run its cells, and return what the checks said."""
    root = ["--root", str(PROJECT.root)]
    assert command.main([*root, "editions", edition, stem[:2], "--out", str(folder)]) == 0
    notebook = nbformat.read(folder / f"{stem}.ipynb", as_version=4)
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
    """Of all chapters ``editions ... --execute`` says it; the book runs their cells."""
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


def test_an_edition_of_a_chapter_that_is_not_there(tmp_path, capsys):
    root = ["--root", str(PROJECT.root)]
    assert command.main([*root, "editions", "student", "77", "--out", str(tmp_path)]) == 1
    assert "01_concepts" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


SOURCE = """\
(sec-here)=
Before.
```{exercise-start} A title
:label: ex-a
:class: research
```
Asked.
:::{dropdown} Hint
Think.
:::
```{exercise-end}
```

````{solution-start} ex-a
:class: dropdown
````
```{code-cell} ipython3
:tags: [solution]
answer = 1
```
Because.
```{code-cell} ipython3
:tags: [solution]
answer += 1
```
````{solution-end}
````
After.
"""


def test_gates_become_headings_and_what_lies_between_them_goes_or_stays():
    asked = (
        "(sec-here)=\nBefore.\n\n### A title\n\nAsked.\n\n"
        "<details><summary>Hint</summary>\n\nThink.\n\n</details>"
    )
    sources = {
        edition: [
            c.source for c in editions.edit(pairs.to_notebook(SOURCE, PROJECT), edition).cells
        ]
        for edition in editions.EDITIONS
    }
    assert sources["student"][1:] == [asked, "After."]
    solved = ["**Solution.**", "answer = 1", "Because.", "answer += 1"]
    assert sources["lecturer"][1:] == [asked, *solved, "After."]


def test_boxes_are_said_in_words_and_what_is_not_known_stays():
    source = (
        "````{dropdown} Proof\n```{prf:proof}\nThus $x$.\n```\n````\n\n"
        "```{prf:lemma} A name\n:label: lem-a\n\n$y$\n```\n- a\n- b\n\n```{table} T\n1\n```\n"
    )
    assert editions.plain(source) == (
        "<details><summary>Proof</summary>\n\n**Proof.**\n\nThus $x$.\n\n</details>\n\n"
        "**Lemma** (A name)\n\n$y$\n\n- a\n- b\n\n```{table} T\n1\n```"
    )


def test_there_are_two_editions_and_no_third():
    with pytest.raises(ValueError, match=r"edition='teacher' is not known.*student, lecturer"):
        editions.edit(pairs.to_notebook(SOURCE, PROJECT), "teacher")
