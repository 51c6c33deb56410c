"""The two editions of the chapters: what each holds and leaves out, and that they run."""

import ast
import builtins
import contextlib
import io
import re
from collections import Counter
from pathlib import Path

import nbformat
import pytest

from conceptnb.exercises.engine import NOT_ANSWERED
from tools import clean
from tools.book import __main__ as command
from tools.book import editions, pairs, values
from tools.book.labels import Target
from tools.book.plain import Plain
from tools.book.project import Project

PROJECT = Project(Path(__file__).resolve().parents[2])
PLAIN = Plain(PROJECT)
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


def solutions_of(source, page):
    """Return the paragraphs of prose in the solutions of a chapter's source, in plain words."""
    found = []
    for inside in GATE.split(source)[2::4]:
        prose = re.sub(r"^```\{code-cell\}.*?^```$", "", inside, flags=re.DOTALL | re.MULTILINE)
        found += PLAIN.text(prose, page).split("\n\n")
    return [text.strip() for text in found if text.strip()]


def page_of(chapter):
    return PROJECT.relative(chapter.with_suffix(""))


def text_of(notebook):
    return "\n".join(cell.source for cell in notebook.cells)


@each
def test_the_student_edition_holds_nothing_of_the_solutions(chapter, written):
    source = chapter.read_text(encoding="utf-8")
    text = text_of(written["student"][chapter.stem])
    assert "Solution of" not in text
    paragraphs = solutions_of(source, page_of(chapter))
    assert paragraphs
    assert [words for words in paragraphs if words in text] == []


@each
def test_the_lecturers_edition_has_every_solution_and_no_starting_cell(chapter, written):
    source = chapter.read_text(encoding="utf-8")
    text = text_of(written["lecturer"][chapter.stem])
    assert [words for words in solutions_of(source, page_of(chapter)) if words not in text] == []
    assert text.count("**Solution of Exercise ") == source.count("{solution-start}")
    assert "answer = ..." not in text


@each
def test_the_readers_edition_has_every_solution_folded(chapter, written):
    source = chapter.read_text(encoding="utf-8")
    notebook = written["reader"][chapter.stem]
    assert not any("solution" in tags_of(cell) for cell in notebook.cells)
    start = "<details><summary>Solution of Exercise "
    folded = [cell.source for cell in notebook.cells if cell.source.startswith(start)]
    assert len(folded) == source.count("{solution-start}")
    assert all(text.endswith("</details>") for text in folded)
    missing = [t for t in solutions_of(source, page_of(chapter)) if t not in "\n".join(folded)]
    assert missing == []
    open_text = "\n".join(c.source for c in notebook.cells if not c.source.startswith(start))
    assert open_text == text_of(written["student"][chapter.stem])


@each
def test_no_gate_is_left_and_the_titles_of_exercises_are_headings(chapter, written):
    titles = re.findall(r"^```\{exercise-start\} *(.*)", chapter.read_text(), re.MULTILINE)
    for books in written.values():
        headings = re.findall(r"^### Exercise [\w.]+: (.*)$", text_of(books[chapter.stem]), re.M)
        assert headings == [PLAIN.text(title, page_of(chapter)) for title in titles]


RAW = re.compile(r"\{[a-zA-Z][\w:-]*\}`[^`]*`|^ *[`:]{3,} *\{.*|^\([\w-]+\)=$|^:\w+:", re.M)


@pytest.mark.parametrize("edition", editions.EDITIONS)
def test_no_role_and_no_directive_is_left(edition, written):
    raw = {
        stem: found
        for stem, notebook in written[edition].items()
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        if (found := RAW.findall(cell.source))
    }
    assert len(written[edition]) == len(PROJECT.chapters)
    assert raw == {}


def test_every_value_is_computed_in_one_chapter():
    named = [name for c in PROJECT.chapters for name in values.used(c.read_text(encoding="utf-8"))]
    assert [name for name, count in Counter(named).items() if count > 1] == []


@each
def test_the_editions_differ_in_the_solutions_alone(chapter, written):
    both = {edition: written[edition] for edition in ("student", "lecturer")}
    cells = {edition: code_of(books[chapter.stem]) for edition, books in both.items()}
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
        for books in both.values()
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
@pytest.mark.parametrize("stem", ["01_concepts", "04_which_data_sets", "06_failures"])
def test_editions_run(stem, tmp_path, monkeypatch):
    """Of all chapters ``editions ... --execute`` says it; the book runs their cells."""
    monkeypatch.chdir(PROJECT.root)
    asked = answers("student", stem, tmp_path / "student")
    assert asked == [f"{NOT_ANSWERED}\n"] * len(asked)
    solved = answers("lecturer", stem, tmp_path / "lecturer")
    assert len(solved) == len(asked) >= 3
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


LABELLED = {"ex-a": "Exercise 3.4", "eq-a": "(3.1)", "lem-a": "Lemma 3.2", "fig-a": "Figure 3.5"}


@pytest.fixture
def plain(monkeypatch):
    """A plain form that knows four labels."""
    form = Plain(PROJECT)
    kinds = {name: said.strip("()").split() for name, said in LABELLED.items()}
    targets = {
        name: Target(parts[0] if parts[1:] else "Equation", parts[-1], "", f"https://b.org/#{name}")
        for name, parts in kinds.items()
    }
    monkeypatch.setattr(form.labels, "_targets", targets)
    return form


def test_gates_become_headings_and_what_lies_between_them_goes_folds_or_stays(plain):
    asked = (
        "Before.\n\n### Exercise 3.4: A title\n\nAsked.\n\n"
        "<details><summary>Hint</summary>\n\nThink.\n\n</details>"
    )
    page = "notebooks/01_concepts"
    sources = {
        edition: [
            c.source
            for c in editions.edit(pairs.to_notebook(SOURCE, PROJECT), edition, plain, page).cells
        ]
        for edition in editions.EDITIONS
    }
    assert sources["student"][1:] == [asked, "After."]
    name = "Solution of Exercise 3.4"
    solved = [f"**{name}.**", "answer = 1", "Because.", "answer += 1"]
    assert sources["lecturer"][1:] == [asked, *solved, "After."]
    folded = (
        f"<details><summary>{name}</summary>\n\n\n\n```python\nanswer = 1\n```\n\nBecause.\n\n"
        "```python\nanswer += 1\n```\n\n</details>"
    )
    assert [re.sub("\n{3,}", "\n\n", text) for text in sources["reader"][1:]] == [
        asked, re.sub("\n{3,}", "\n\n", folded), "After.",
    ]  # fmt: skip


def test_boxes_are_said_in_words(plain):
    source = (
        "````{dropdown} Proof\n```{prf:proof}\nThus $x$.\n```\n````\n\n"
        "```{prf:lemma} A name\n:label: lem-a\n\n$$\ny\n$$ (eq-a)\n```\n- a\n- b\n\n"
        "```{note}\nSee `{doc}`.\n```\n```python\n{eq}`a`\n```\n"
    )
    assert plain.text(source, "notebooks/01_concepts") == (
        "<details><summary>Proof</summary>\n\n**Proof.**\n\nThus $x$.\n\n</details>\n\n"
        "> **Lemma 3.2** (A name)\n>\n> $$ y \\tag{3.1} $$\n\n- a\n- b\n\n"
        "**Note.**\n\nSee `{doc}`.\n\n```python\n{eq}`a`\n```"
    )


@pytest.mark.parametrize(
    ("said", "plainly"),
    [
        ("{prf:ref}`lem-a` and {eq}`eq-a`",
         "[Lemma 3.2](https://b.org/#lem-a) and [(3.1)](https://b.org/#eq-a)"),
        ("{numref}`Fig. %s <fig-a>`", "[Fig. 3.5](https://b.org/#fig-a)"),
        ("{ref}`it <ex-a>`", "[it](https://b.org/#ex-a)"),
        ("`x` {doc}`the next\npage <03_first_run>` `y`",
         f"`x` [the next page]({PROJECT.site_address}notebooks/03_first_run.html) `y`"),
        ("{term}`atoms <atom>`", f"[atoms]({PROJECT.site_address}book/glossary.html#term-atom)"),
        ("{cite}`khemakhem2020variational`", "([Khemakhem et al. 2020]("),
        ("{py:class}`~a.b.Recipe`", "`Recipe`"),
        ("{math}`x^2`", "$x^2$"),
        ("{download}`t.py <../book/templates/my_images.py>`",
         f"[t.py]({PROJECT.address}/raw/main/book/templates/my_images.py)"),
    ],
)  # fmt: skip
def test_references_are_links_to_the_site(plain, said, plainly):
    assert plain.text(said, "notebooks/01_concepts").startswith(plainly)


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("{unheard}`x`", r"the role \{unheard\} has no plain form"),
        ("{prf:ref}`lem-z`", "leads nowhere"),
        ("```{unheard}\nx\n```", r"the directive \{unheard\} has no plain form"),
    ],
)
def test_what_has_no_plain_form_is_named(plain, source, complaint):
    with pytest.raises(ValueError, match=f"notebooks/01_concepts.*{complaint}"):
        plain.text(source, "notebooks/01_concepts")


def test_there_are_three_editions_and_no_fourth(plain):
    notebook = pairs.to_notebook(SOURCE, PROJECT)
    with pytest.raises(ValueError, match=r"edition='teacher' is not known.*reader, student"):
        editions.edit(notebook, "teacher", plain, "notebooks/01_concepts")


# What a person has worked on ------------------------------------------------------------------


def work_on(path, how):
    """Do to a notebook what its reader might, and return what the file then holds."""
    book = nbformat.read(path, as_version=4)
    cell = next(c for c in reversed(book.cells) if c.cell_type == "code")
    if how == "answer":
        cell.source = "answer = 42"
    elif how == "run":
        cell.execution_count = 3
    elif how == "note":
        book.cells.append(nbformat.v4.new_markdown_cell("my note"))
    elif how == "delete":
        book.cells.remove(cell)
    nbformat.write(book, path)
    return path.read_bytes()


@pytest.mark.parametrize("how", ["answer", "run", "note"])
@pytest.mark.parametrize("step", [["lab"], ["editions", "student"]])
def test_what_was_worked_on_stays_and_the_rest_follows_the_chapters(make_book, tmp_path, how, step,
                                                                    capsys):  # fmt: skip
    project = make_book(tmp_path)
    run = ["--root", str(project.root), *step]
    assert command.main(run) == 0
    folder = project.root / ("lab" if step == ["lab"] else "_build/editions/student")
    mine, theirs = folder / "a.ipynb", folder / "b.ipynb"
    before = work_on(mine, how)
    own = folder / "my_experiment.ipynb"
    own.write_bytes(theirs.read_bytes())
    for name in ("a", "b"):
        project.write(name, text="New words.")
    capsys.readouterr()
    assert command.main(run) == 0
    assert "you have worked on a.ipynb" in capsys.readouterr().out
    assert mine.read_bytes() == before
    assert "New words." in theirs.read_text(encoding="utf-8")
    assert "New words." not in own.read_text(encoding="utf-8")
    clean.main(project.root)
    assert mine.read_bytes() == before
