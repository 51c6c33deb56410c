"""What an exercise is: a right answer, the wrong ones that people give, and what to say to them.

Three kinds suffice. `value`: the answer is a number or an array. `choice`: it is one of a few
words. `construction`: it is anything that has a property, and there are many right ones. Each is
a decorator, so that an exercise is one function with what belongs to it above.
"""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises import diagnosis

NOT_ANSWERED = "Not answered yet: put your answer in place of the ... and run the cell again."


class WrongAnswerError(AssertionError):
    """An answer is wrong; the message says in which way."""

    def _render_traceback_(self) -> list[str]:
        """Show a notebook's reader the message, without the calls that led to it."""
        return [_lines(str(self))]


class Exercise(ABC):
    """One exercise: call it on an answer.

    Parameters
    ----------
    function : callable
        Named as the exercise; its docstring says what is asked and on which equation it rests.
    right : str
        What to say to a right answer: the point of the exercise.
    given : callable, optional
        Returns an example of the further arguments that a chapter passes beside the answer.
    """

    def __init__(
        self, function: Callable[..., Any], right: str, given: Callable[[], tuple[Any, ...]]
    ) -> None:
        self.function, self.right, self.given = function, right, given
        self.name = function.__name__
        self.__doc__ = function.__doc__

    def __call__(self, answer: Any, *given: Any) -> None:
        """Say whether `answer` is right, or that it is not there yet.

        Parameters
        ----------
        answer : object
            The learner's answer; ``...`` where there is none.
        *given : object
            What the answer was computed from, where the exercise asks for it.

        Raises
        ------
        WrongAnswerError
            If the answer is wrong; the message says what is wrong about it.
        """
        if is_missing(answer):
            print(NOT_ANSWERED)
            return
        if complaint := self.complaint(answer, *given):
            raise WrongAnswerError(f"Not yet. {complaint}")
        print(_lines(f"Right. {self.right}"))

    @abstractmethod
    def complaint(self, answer: Any, *given: Any) -> str | None:
        """Return what is wrong with `answer`, or None where it is right."""

    @abstractmethod
    def example(self) -> Any:
        """Return a right answer, for what `given` returns."""

    @abstractmethod
    def wrong_examples(self) -> Iterator[tuple[Any, str]]:
        """Yield wrong answers, each with words that the complaint about it contains."""


class Value(Exercise):
    """An exercise whose answer is a number or an array; made by `value`."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        right: str,
        mistakes: Mapping[str, Any],
        rtol: float,
        atol: float,
        entries: str,
        given: Callable[[], tuple[Any, ...]],
    ) -> None:
        super().__init__(function, right, given)
        self.mistakes, self.rtol, self.atol, self.entries = mistakes, rtol, atol, entries

    def complaint(self, answer: Any, *given: Any) -> str | None:
        """Compare with the right answer, then with the known mistakes, then by pattern."""
        solution = np.asarray(self.function(*given))
        mine, problem = diagnosis.read(answer, solution)
        if mine is None:
            return problem
        if self._agrees(mine, solution):
            return None
        for says, wrong in self.mistakes.items():
            if self._agrees(mine, _of(wrong, solution)):
                return says
        return diagnosis.difference(mine, solution, self._close, self.entries)

    def example(self) -> Any:
        """Return the right answer."""
        return self.function(*self.given())

    def wrong_examples(self) -> Iterator[tuple[Any, str]]:
        """Yield every known mistake."""
        for says, wrong in self.mistakes.items():
            yield _of(wrong, np.asarray(self.example())), says

    def _close(self, mine: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
        return np.isclose(mine, other, rtol=self.rtol, atol=self.atol)

    def _agrees(self, mine: NDArray[Any], other: NDArray[Any]) -> bool:
        if mine.dtype.kind == "b" or mine.shape != other.shape:
            return mine.shape == other.shape and bool((mine == other).all())
        return bool(self._close(mine, other).all())


class Choice(Exercise):
    """An exercise whose answer is one of a few words; made by `choice`."""

    def __init__(
        self,
        function: Callable[..., str],
        *,
        right: str,
        options: Mapping[str, str],
        given: Callable[[], tuple[Any, ...]],
    ) -> None:
        super().__init__(function, right, given)
        self.options = options

    def complaint(self, answer: Any, *given: Any) -> str | None:
        """Compare with the right word; say why another one is wrong."""
        offered = ", ".join(repr(option) for option in self.options)
        if not isinstance(answer, str):
            return f"The answer is one of {offered}; got {_kind(answer)}."
        word = answer.strip().lower()
        if word not in self.options:
            return f"{answer!r} is none of {offered}."
        return None if word == self.function(*given) else self.options[word]

    def example(self) -> str:
        """Return the right word."""
        return self.function(*self.given())

    def wrong_examples(self) -> Iterator[tuple[Any, str]]:
        """Yield every other word."""
        right = self.example()
        yield from ((word, says) for word, says in self.options.items() if word != right)


class Construction(Exercise):
    """An exercise whose answer is anything with a property; made by `construction`."""

    def __init__(
        self,
        function: Callable[..., str | None],
        *,
        right: str,
        kind: type | None,
        example: Callable[[], Any],
        wrong: Mapping[str, Callable[[], Any]],
        given: Callable[[], tuple[Any, ...]],
    ) -> None:
        super().__init__(function, right, given)
        self.kind, self._example, self.wrong = kind, example, wrong

    def complaint(self, answer: Any, *given: Any) -> str | None:
        """Look for the property."""
        if self.kind is not None and not isinstance(answer, self.kind):
            return f"The answer is of type {self.kind.__name__}; got {_kind(answer)}."
        return self.function(answer, *given)

    def example(self) -> Any:
        """Return one right answer."""
        return self._example()

    def wrong_examples(self) -> Iterator[tuple[Any, str]]:
        """Yield the declared wrong answers."""
        yield from ((make(), says) for says, make in self.wrong.items())


def value(
    *,
    right: str,
    mistakes: Mapping[str, Any],
    rtol: float = 0.01,
    atol: float = 1e-8,
    entries: str = "",
    given: Callable[[], tuple[Any, ...]] = tuple,
) -> Callable[[Callable[..., Any]], Value]:
    """Make the decorated function, which computes the right answer, an exercise.

    Parameters
    ----------
    right : str
        What to say to a right answer.
    mistakes : dict
        What to say to a common wrong answer -> that answer, or a function of the right one.
    rtol, atol : float
        Tolerance of `numpy.isclose`. 1 % by default: whoever rounds to three digits is right.
    entries : str
        What the rows, columns or entries of an array are ("rows are atoms"), for complaints.
    given : callable, optional
        Returns an example of the further arguments of the function.
    """
    return lambda function: Value(
        function,
        right=right,
        mistakes=mistakes,
        rtol=rtol,
        atol=atol,
        entries=entries,
        given=given,
    )


def choice(
    *,
    right: str,
    options: Mapping[str, str],
    given: Callable[[], tuple[Any, ...]] = tuple,
) -> Callable[[Callable[..., str]], Choice]:
    """Make the decorated function, which finds the right word, an exercise.

    Parameters
    ----------
    right : str
        What to say to a right answer.
    options : dict of str to str
        Each word on offer, in lower case -> what to say to those who choose it wrongly.
    given : callable, optional
        Returns an example of the further arguments of the function.
    """
    return lambda function: Choice(function, right=right, options=options, given=given)


def construction(
    *,
    right: str,
    example: Callable[[], Any],
    wrong: Mapping[str, Callable[[], Any]],
    kind: type | None = None,
    given: Callable[[], tuple[Any, ...]] = tuple,
) -> Callable[[Callable[..., str | None]], Construction]:
    """Make the decorated function, which returns a complaint or None, an exercise.

    Parameters
    ----------
    right : str
        What to say to a right answer.
    example : callable
        Returns one right answer.
    wrong : dict of str to callable
        Words of a complaint -> a function that returns a wrong answer that meets it.
    kind : type, optional
        What an answer has to be an instance of.
    given : callable, optional
        Returns an example of the further arguments of the function.
    """
    return lambda function: Construction(
        function, right=right, kind=kind, example=example, wrong=wrong, given=given
    )


def is_missing(answer: Any) -> bool:
    """Return whether an answer is ``...``, or holds one."""
    if isinstance(answer, (tuple, list)):
        return any(is_missing(part) for part in answer)
    return answer is ...


def _of(wrong: Any, solution: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(wrong(solution) if callable(wrong) else wrong)


def _lines(text: str) -> str:
    """Break a message as a page does, which a cell's output does not."""
    return textwrap.fill(text, width=88)


def _kind(answer: Any) -> str:
    return "None" if answer is None else type(answer).__name__
