"""Checks of the exercises: they say what is wrong with an answer, not only that it is.

The exercise with the label ``ex-NAME`` has the check ``check.ex_NAME``::

    from conceptnb import exercises as check

    answer = ...
    check.ex_distance(answer)

Each part of the book has a file PART.toml here: exercises that are words and numbers alone, and the
words and tolerances of those that compute something, as ``_ex_NAME`` in PART.py. That one is
imported when the first of its exercises is used, so that the first parts need no torch.
"""

import importlib
import re
import tomllib
from functools import cache
from pathlib import Path

from conceptnb.exercises._diagnosis import PATTERNS
from conceptnb.exercises.engine import Choice, Construction, Exercise, Value, WrongAnswerError

__all__ = ["Choice", "Construction", "Exercise", "Value", "WrongAnswerError", "exercises"]


def exercises() -> dict[str, Exercise]:
    """Return the exercises of the whole book, by name (``ex_distance``)."""
    return {name: _load(name) for name in _parts()}


@cache
def _parts() -> dict[str, Path]:
    """Return the file that declares each exercise, read off the sources, importing none."""
    found: dict[str, Path] = {}
    for path in sorted(Path(__file__).parent.glob("*.*")):
        if path.suffix in (".py", ".toml"):
            text = path.read_text(encoding="utf-8")
            for name in re.findall(r"^(?:\[|_|def _)(ex_\w+)", text, re.MULTILINE):
                if name in found and path != found[name].with_suffix(".toml"):
                    raise RuntimeError(f"{name} is declared in {found[name].name} and {path.name}")
                found.setdefault(name, path)
    return found


@cache
def _load(name: str) -> Exercise:
    path = _parts()[name]
    declared = tomllib.loads(path.with_suffix(".toml").read_text(encoding="utf-8")).get(name, {})
    if "mistakes" in declared:
        declared["mistakes"] = {
            says: PATTERNS[wrong][1] if isinstance(wrong, str) else wrong
            for wrong, says in declared["mistakes"]
        }
    if path.suffix == ".py":
        exercise = getattr(importlib.import_module(f"{__name__}.{path.stem}"), f"_{name}")
        vars(exercise).update(declared)
        return exercise
    if "answer" not in declared:
        return Choice(declared)
    return Value(declared.pop("answer"), **declared)


def __getattr__(name: str) -> Exercise:
    """Look an exercise up the first time it is used (PEP 562)."""
    if name in _parts():
        return _load(name)
    if name.startswith("ex_"):
        raise AttributeError(f"no exercise {name}; there are {', '.join(sorted(_parts()))}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_parts()]
