"""Checks of exercises: right answers pass, every declared and many undeclared wrong ones do not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conceptnb import exercises as check
from conceptnb.exercises.engine import NOT_ANSWERED

EXERCISES = check.exercises()
each = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)


@each
def test_a_right_answer_passes(exercise, capsys):
    exercise(exercise.example(), *exercise.given())
    assert capsys.readouterr().out.startswith("Right. ")


@each
def test_an_answer_that_is_not_there_yet_is_not_wrong(exercise, capsys):
    exercise(...)
    exercise((..., 1))
    assert capsys.readouterr().out.splitlines() == [NOT_ANSWERED] * 2


@each
def test_every_declared_wrong_answer_is_rejected_and_told_why(exercise):
    wrong = list(exercise.wrong_examples())
    assert wrong, "an exercise without a wrong answer has not been tried"
    for answer, says in wrong:
        assert says, "a wrong option needs words"
        with pytest.raises(check.WrongAnswerError) as caught:
            exercise(answer, *exercise.given())
        assert says in str(caught.value)


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
def test_any_other_wrong_answer_is_rejected_in_words(exercise):
    wrong = [None, object(), {"a": 1}]
    if isinstance(exercise, check.Value):
        wrong += mutants(exercise.example())
    if isinstance(exercise, check.Choice):
        wrong += ["no such option", 3, ""]
    for answer in wrong:
        with pytest.raises(check.WrongAnswerError) as caught:
            exercise(answer, *exercise.given())
        assert len(str(caught.value)) > len("Not yet. ") + 10


@check.value(right="Yes.", mistakes={}, entries="rows are atoms", rtol=1e-6)
def ex_matrix():
    """A matrix of two atoms in three dimensions."""
    return np.array([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]])


MATRIX = ex_matrix.example()


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
    exercise = check.value(right="Yes.", mistakes={})(lambda: 5.0)
    assert exercise.complaint(number)
    assert exercise.complaint([5.0]) is None
    assert exercise.complaint(np.float32(5.01)) is None


def test_counts_are_off_by_one():
    exercise = check.value(right="Yes.", mistakes={})(lambda: 7)
    assert exercise.complaint(8) == "Off by one: 8 is one too many."
    assert exercise.complaint(6) == "Off by one: 6 is one too few."


def test_an_unknown_exercise_names_the_known_ones():
    with pytest.raises(AttributeError, match="ex_distance"):
        assert check.ex_nothing
    with pytest.raises(AttributeError, match="no attribute"):
        assert check.nothing
    assert "ex_distance" in dir(check)


def test_a_notebook_shows_the_message_alone():
    assert check.WrongAnswerError("Not yet.")._render_traceback_() == ["Not yet."]
