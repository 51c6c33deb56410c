"""Checks of the exercises: they say what is wrong with an answer, not only that it is.

Every exercise with the label ``ex-NAME`` has a check ``check.ex_NAME``. A learner calls it on
an answer; an answer that is still ``...`` is not wrong, only not there yet::

    from conceptnb import check

    answer = ...
    check.ex_distance(answer)

The exercises of chapter NN stand in ``conceptnb/check/chapter_NN.py``: for each a function that
computes the right answer, by a way of its own where there is one, and the common wrong answers
with what to say to them.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from conceptnb.exercises.exercise import (
    Choice,
    Construction,
    Exercise,
    Value,
    WrongAnswerError,
    choice,
    construction,
    value,
)

__all__ = [
    "Choice",
    "Construction",
    "Exercise",
    "Value",
    "WrongAnswerError",
    "choice",
    "construction",
    "exercises",
    "value",
]


@cache
def exercises() -> dict[str, Exercise]:
    """Return the exercises of all chapters, by name (``ex_distance``).

    Raises
    ------
    RuntimeError
        If two chapters use one name: labels are unique in the whole book.
    """
    found: dict[str, Exercise] = {}
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("chapter_"):
            continue
        chapter = importlib.import_module(f"{__name__}.{module.name}")
        for name, exercise in vars(chapter).items():
            if isinstance(exercise, Exercise):
                if name in found:
                    raise RuntimeError(f"two exercises are called {name}")
                found[name] = exercise
    return found


def __getattr__(name: str) -> Exercise:
    """Look an exercise up the first time it is used (PEP 562)."""
    if name.startswith("ex_"):
        if name in exercises():
            return exercises()[name]
        near = ", ".join(sorted(exercises()))
        raise AttributeError(f"there is no exercise {name}; there are {near}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *exercises()]
