"""Checks of exercises: right answers pass, every known and many other wrong ones do not."""

import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conceptnb import exercises as check
from conceptnb.exercises.engine import NOT_ANSWERED
from tests.exercises.examples import EXAMPLES, Example
from tools.book.project import Project

ROOT = Path(__file__).resolve().parents[2]
EXERCISES = check.exercises()
each = pytest.mark.parametrize("name", EXERCISES)


def right_answer(name):
    exercise, example = EXERCISES[name], EXAMPLES.get(name, Example())
    if isinstance(exercise, check.Value):
        return exercise.solution(*example.given)
    if isinstance(exercise, check.Choice):
        return next(word for word, says in exercise.options.items() if says.startswith("Right. "))
    return example.right


def wrong_answers(name):
    """Yield wrong answers, each with words that the complaint about it contains."""
    exercise, right = EXERCISES[name], right_answer(name)
    if isinstance(exercise, check.Value):
        for says, wrong in exercise.mistakes.items():
            answer = np.asarray(wrong(right) if callable(wrong) else wrong)
            yield answer.astype(bool) if right.dtype.kind == "b" else answer, says
    elif isinstance(exercise, check.Choice):
        yield from ((word, says) for word, says in exercise.options.items() if word != right)
    else:
        yield from ((answer, says) for says, answer in EXAMPLES[name].wrong.items())


def ask(name, answer):
    EXERCISES[name](answer, *EXAMPLES.get(name, Example()).given)


@each
def test_a_right_answer_passes(name, capsys):
    ask(name, right_answer(name))
    assert capsys.readouterr().out.startswith("Right. ")


@each
def test_an_answer_that_is_not_there_yet_is_not_wrong(name, capsys):
    EXERCISES[name](...)
    EXERCISES[name]((..., 1))
    assert capsys.readouterr().out.splitlines() == [NOT_ANSWERED] * 2


@each
def test_every_known_wrong_answer_is_rejected_and_told_why(name):
    wrong = list(wrong_answers(name))
    assert wrong, "an exercise without a wrong answer has not been tried"
    for answer, says in wrong:
        assert says, "a wrong option needs words"
        with pytest.raises(check.WrongAnswerError) as caught:
            ask(name, answer)
        assert says in str(caught.value)


def test_every_example_belongs_to_an_exercise():
    assert set(EXAMPLES) <= set(EXERCISES)


def mutants(right):
    """Yield wrong answers that any array can be mistaken into."""
    right = np.asarray(right)
    if right.dtype.kind == "b":
        yield ~right
        yield right.astype(float)
    else:
        numbers = right.astype(float)
        yield from (numbers + 1 + np.abs(numbers), -1 - 3 * numbers, np.full(right.shape, np.nan))
        yield right.astype(bool)
    if right.ndim:
        yield right[:-1]
        yield right[None]
        mutant = right.copy().reshape(-1)
        mutant[-1] = not mutant[-1] if right.dtype.kind == "b" else mutant[-1] + 1 + abs(mutant[-1])
        yield mutant.reshape(right.shape)
        if right.ndim == 2 and right.shape[0] != right.shape[1]:
            yield right.T
    yield from (np.append(right, right), right.astype(str))


@each
def test_any_other_wrong_answer_is_rejected_in_words(name):
    wrong = [None, object(), {"a": 1}]
    if isinstance(EXERCISES[name], check.Value):
        wrong += mutants(right_answer(name))
    if isinstance(EXERCISES[name], check.Choice):
        wrong += ["no such option", 3, ""]
    for answer in wrong:
        with pytest.raises(check.WrongAnswerError) as caught:
            ask(name, answer)
        assert len(str(caught.value)) > len("Not yet. ") + 10


MATRIX = np.array([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]])
ex_matrix = check.Value(
    lambda: MATRIX, right="Yes.", mistakes={}, entries="rows are atoms", rtol=1e-6
)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (MATRIX.T, "shape (3, 2); expected (2, 3): rows are atoms. It may be transposed"),
        (-MATRIX, "sign is reversed"),
        (2 * MATRIX, "twice"),
        (0.005 * MATRIX, "same factor, 0.005"),
        (MATRIX + 7, "same amount, 7"),
        (MATRIX[::-1], "another order: rows are atoms"),
        (MATRIX + np.eye(2, 3)[:, [0, 2, 1]] * [[1.0], [0.0]], "Entry (0, 0)"),
        (np.where(MATRIX > 8, 0.0, MATRIX), "Entry (1, 1) (counted from 0) and 1 more are wrong"),
        (np.zeros((2, 3)), "None of the 6 entries"),
        (np.where(MATRIX > 8, np.inf, MATRIX), "2 of 6 entries are NaN or infinite"),
        ([[1.0], [2.0, 3.0]], "different lengths"),
        (MATRIX > 3, "expected an array of shape (2, 3); got ndarray".capitalize()),
    ],
)
def test_a_matrix_is_told_what_is_wrong_with_it(answer, says):
    with pytest.raises(check.WrongAnswerError) as caught:
        ex_matrix(answer)
    assert says.lower() in str(caught.value).lower()


@given(st.floats(-100, 100).filter(lambda x: abs(x - 5) > 0.06))
def test_a_number_outside_the_tolerance_is_wrong(number):
    exercise = check.Value(5.0, right="Yes.", mistakes={})
    assert exercise.complaint(number)
    assert exercise.complaint([5.0]) is None
    assert exercise.complaint(np.float32(5.01)) is None


def test_counts_are_off_by_one():
    exercise = check.Value(7, right="Yes.", mistakes={})
    assert exercise.complaint(8) == "Off by one: 8 is one too many."
    assert exercise.complaint(6) == "Off by one: 6 is one too few."


def test_a_choice_has_one_right_word():
    with pytest.raises(ValueError, match="none of 'a', 'b'"):
        check.Choice({"a": "No.", "b": "Neither."})
    with pytest.raises(ValueError, match="more than one of 'a', 'b'"):
        check.Choice({"a": "Right. Yes.", "b": "Right. So is this."})
    choice = check.Choice({"a": "No.", "b": "Right. Yes."})
    assert choice.complaint(" B ") is None
    assert choice.complaint("a") == "No."
    assert choice.complaint("c") == "'c' is none of 'a', 'b'."


def test_mistakes_of_yes_and_no_may_be_written_as_ones_and_zeros():
    exercise = check.Value([True, False], right="Yes.", mistakes={"Both?": [1, 1]})
    assert exercise.complaint([True, True]) == "Both?"
    assert exercise.complaint([1, 0]).startswith("Expected an array of shape (2,)")


def parts_with_exercises():
    """Return the parts of the contents, research notes aside, whose chapters have checks."""
    pages = [[c["file"] for c in part["chapters"]] for part in Project(ROOT).contents["parts"]]
    chapters = [[ROOT / f"{page}.md" for page in part if "notebooks/" in page] for part in pages]
    return [c for c in chapters if any("check.ex_" in page.read_text("utf-8") for page in c)]


def test_the_names_read_off_the_sources_are_those_that_the_parts_declare():
    folder = Path(check.__file__).parent
    texts = {p.stem: tomllib.loads(p.read_text(encoding="utf-8")) for p in folder.glob("*.toml")}
    computed = [
        (module.name, name.removeprefix("_"))
        for module in pkgutil.iter_modules(check.__path__)
        for name in vars(importlib.import_module(f"{check.__name__}.{module.name}"))
        if name.startswith("_ex_")
    ]
    words = [texts[part].pop(name) for part, name in computed if name in texts.get(part, {})]
    kept = {"right", "entries", "rtol", "atol", "mistakes"}
    assert {key for said in words for key in said} == kept
    declared = [name for _, name in computed] + [name for part in texts.values() for name in part]
    assert len(texts) == len(parts_with_exercises())
    assert len(declared) == len(set(declared))
    assert set(declared) == set(EXERCISES)


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()


def test_using_an_exercise_imports_its_part_alone():
    loaded = run(
        "import sys; from conceptnb import exercises as check; check.ex_plan(...)\n"
        "print(*(m for m in sys.modules if m.startswith(check.__name__ + '.')))"
    )[-1]
    parts = {name.rpartition(".")[2] for name in loaded.split()}
    assert parts == {"engine", "_diagnosis", "your_data"}


def test_the_checks_of_the_theory_need_no_torch():
    chapters = [f"{chapter:02d}" for chapter in (1, 2, 4, 5, 6, 7)]
    pages = [page for page in (ROOT / "notebooks").glob("*.md") if page.name[:2] in chapters]
    names = {
        page.name[:2]: sorted(set(re.findall(r"check\.(ex_\w+)", page.read_text("utf-8"))))
        for page in sorted(pages)
    }
    assert list(names) == chapters
    assert all(len(of_chapter) >= 3 for of_chapter in names.values())
    said = run(
        "import sys; from tests.exercises.test_check import ask, right_answer\n"
        f"for chapter, names in {names}.items():\n"
        "    for name in names:\n"
        "        ask(name, right_answer(name))\n"
        "    print(chapter, 'torch' in sys.modules)"
    )
    assert [line for line in said if line[:2] in chapters] == [f"{c} False" for c in chapters]


def test_an_unknown_exercise_names_the_known_ones():
    with pytest.raises(AttributeError, match="ex_distance"):
        assert check.ex_nothing
    with pytest.raises(AttributeError, match="no attribute"):
        assert check.nothing
    assert "ex_distance" in dir(check)


def test_a_notebook_shows_the_message_alone():
    assert check.WrongAnswerError("Not yet.")._render_traceback_() == ["Not yet."]


@pytest.mark.parametrize(("right", "shares"), [(0.2, True), (2.0, False)])
def test_a_hundredfold_is_called_a_percentage_where_a_share_was_asked_for(right, shares):
    complaint = check.Value(right, right="So it is.", mistakes={}).complaint(100 * right)
    assert ("percentage" in complaint) == shares
