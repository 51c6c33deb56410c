"""What an exercise is: a right answer, the wrong ones that people give, and what to say to them.

A `Value` is a number or an array, a `Choice` is one of a few words, and a `Construction` is
anything that has a property. Each is declared as data, with functions where something is computed.
"""

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises._diagnosis import describe_difference, read_answer

NOT_ANSWERED = "Not answered yet: put your answer in place of the ... and run the cell again."
_RIGHT = "Right. "


class WrongAnswerError(AssertionError):
    """An answer is wrong; the message says in which way."""

    def _render_traceback_(self) -> list[str]:
        """Show a notebook's reader the message, without the calls that led to it."""
        return [_lines(str(self))]


@dataclass(eq=False, repr=False, kw_only=True)
class Exercise(ABC):
    """One exercise: call it on an answer. `right` is what to say to a right one: the point."""

    right: str = ""

    @classmethod
    def declare(cls, **settings: Any) -> Callable[[Callable[..., Any]], Self]:
        """Decorate the function that computes the answer, or looks for the property."""
        return partial(cls, **settings)

    def __call__(self, answer: Any, *given: Any) -> None:
        """Say that `answer` is right, or not there yet (``...``), or raise WrongAnswerError.

        `given` is what the answer was computed from, where the exercise asks for it.
        """
        if _is_missing(answer):
            print(NOT_ANSWERED)
            return
        if complaint := self.complaint(answer, *given):
            raise WrongAnswerError(f"Not yet. {complaint}")
        print(_lines(_RIGHT + self.right))

    @abstractmethod
    def complaint(self, answer: Any, *given: Any) -> str | None:
        """Return what is wrong with `answer`, or None if it is right."""


@dataclass(eq=False, repr=False)
class Value(Exercise):
    """An exercise whose answer is a number or an array.

    Parameters
    ----------
    answer : number, array-like or callable
        The right answer, or a function that computes it from what a chapter passes.
    mistakes : dict
        What to say to a common wrong answer -> that answer, or a function of the right one; in
        PART.toml also a key of `PATTERNS`, such as ``"1 - x"``.
    rtol, atol : float
        Tolerance of `numpy.isclose`. 1 % by default, so that three digits are enough.
    entries : str
        What the rows, columns or entries of an array are ("rows are atoms"), for complaints.
    """

    answer: Any
    _: KW_ONLY
    mistakes: Mapping[str, Any] = field(default_factory=dict)
    rtol: float = 0.01
    atol: float = 1e-8
    entries: str = ""

    def complaint(self, answer: Any, *given: Any) -> str | None:
        """Compare with the right answer, then with the known mistakes, then by pattern."""
        solution = self.solution(*given)
        mine, problem = read_answer(answer, solution)
        if mine is None:
            return problem
        if self._agrees(mine, solution):
            return None
        for says, wrong in self.mistakes.items():
            if self._agrees(mine, np.asarray(wrong(solution) if callable(wrong) else wrong)):
                return says
        return describe_difference(mine, solution, self._close, self.entries)

    def solution(self, *given: Any) -> NDArray[Any]:
        """Return the right answer, given what a chapter passes."""
        return np.asarray(self.answer(*given) if callable(self.answer) else self.answer)

    def _close(self, mine: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
        return np.isclose(mine, other, rtol=self.rtol, atol=self.atol)

    def _agrees(self, mine: NDArray[Any], other: NDArray[Any]) -> bool:
        if mine.dtype.kind == "b" or mine.shape != other.shape:
            return mine.shape == other.shape and bool((mine == other).all())
        return bool(self._close(mine, other).all())


@dataclass(eq=False, repr=False)
class Choice(Exercise):
    """An exercise whose answer is one of a few words: each, in lower case -> what to say to it.

    To the right one that begins with "Right. ", to the others it says why they are wrong.
    """

    options: Mapping[str, str]

    def __post_init__(self) -> None:
        found = [word for word, says in self.options.items() if says.startswith(_RIGHT)]
        if len(found) != 1:
            which = f"{'more than one' if found else 'none'} of {_offered(self.options)}"
            raise ValueError(f"options: {which} begins with {_RIGHT!r}, as the right one does")
        self.right = self.options[found[0]].removeprefix(_RIGHT)

    def complaint(self, answer: Any, *given: Any) -> str | None:
        """Compare with the right word; say why another one is wrong."""
        offered = _offered(self.options)
        if not isinstance(answer, str):
            return f"The answer is one of {offered}; got {_kind(answer)}."
        word = answer.strip().lower()
        if word not in self.options:
            return f"{answer!r} is none of {offered}."
        says = self.options[word]
        return None if says.startswith(_RIGHT) else says


@dataclass(eq=False, repr=False)
class Construction(Exercise):
    """An exercise whose answer is anything with a property.

    Parameters
    ----------
    property : callable
        Given an answer and what a chapter passes, returns a complaint, or None if it is right.
    kind : type, optional
        What an answer has to be an instance of.
    shape : tuple of int or callable, optional
        Makes the answer an array of finite numbers: its shape, or a function that returns it, given
        what a chapter passes.
    entries : str
        What the rows, columns or entries of that array are.
    """

    property: Callable[..., str | None]
    _: KW_ONLY
    kind: type = object
    shape: tuple[int, ...] | Callable[..., tuple[int, ...]] | None = None
    entries: str = ""

    def complaint(self, answer: Any, *given: Any) -> str | None:
        """Look at type and shape, then for the property."""
        if not isinstance(answer, self.kind):
            return f"The answer is of type {self.kind.__name__}; got {_kind(answer)}."
        if self.shape is not None:
            wanted = np.zeros(self.shape(*given) if callable(self.shape) else self.shape)
            answer, problem = read_answer(answer, wanted)
            if answer is None:
                return problem
            if answer.shape != wanted.shape:
                return describe_difference(answer, wanted, np.isclose, self.entries)
        return self.property(answer, *given)


def _is_missing(answer: Any) -> bool:
    if isinstance(answer, tuple | list):
        return any(_is_missing(part) for part in answer)
    return answer is ...


def _offered(options: Mapping[str, str]) -> str:
    return ", ".join(repr(option) for option in options)


def _lines(text: str) -> str:
    """Break a message as a page does, which a cell's output does not."""
    return textwrap.fill(text, width=88)


def _kind(answer: Any) -> str:
    return "None" if answer is None else type(answer).__name__
