"""What is wrong with an array, given the right one: shape, sign, factor, order, entries."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Close = Callable[[NDArray[Any], NDArray[Any]], NDArray[np.bool_]]

PATTERNS: dict[str, tuple[str, Callable[[NDArray[Any]], NDArray[Any]]]] = {
    "-x": ("The sign is reversed.", lambda x: -x),
    "2 x": ("It is twice what it should be.", lambda x: 2 * x),
    "x / 2": ("It is half of what it should be.", lambda x: x / 2),
    "100 x": ("It is a percentage; a share was asked for.", lambda x: 100 * x),
    "1 - x": ("It is one minus the right answer.", lambda x: 1 - x),
    "x²": ("It is the square of the right answer.", lambda x: x**2),
    "√x": ("It is the square root of the right answer.", lambda x: np.sqrt(np.abs(x))),
    "1 / x": ("It is one over the right answer.", lambda x: 1 / x),
    "log x": ("It is the logarithm of the right answer.", lambda x: np.log(np.abs(x))),
}
"""What answers do to the right one, x. Tried in this order: the first that agrees is named."""


def read_answer(answer: Any, solution: NDArray[Any]) -> tuple[NDArray[Any] | None, str]:
    """Return an answer as an array that can be compared, or None and what hinders it.

    Where the `solution` is one number, the answer may be wrapped in brackets.
    """
    wants = "True or False" if solution.dtype.kind == "b" else "a number"
    if solution.ndim:
        wants = f"an array of shape {solution.shape}"
    if answer is None:
        return None, f"The answer is None; expected {wants}. print() returns None."
    try:
        mine = np.asarray(answer)
    except ValueError:
        return None, f"The rows have different lengths; expected {wants}."
    if solution.dtype.kind == "b" and mine.dtype.kind != "b":
        return None, f"Expected {wants}, each entry True or False; got {mine.dtype}."
    if solution.dtype.kind != "b" and mine.dtype.kind not in "iuf":
        return None, f"Expected {wants}; got {type(answer).__name__}."
    if solution.ndim == 0 and mine.size == 1:
        mine = mine.reshape(())
    if mine.dtype.kind == "f" and (n_bad := int((~np.isfinite(mine)).sum())):
        return None, f"{n_bad} of {mine.size} entries are NaN or infinite."
    return mine, ""


def describe_difference(
    mine: NDArray[Any], solution: NDArray[Any], close: _Close, entries: str = ""
) -> str:
    """Return in which way an array, as `read_answer` returns it, differs from the right one.

    `close` says which entries agree, `entries` what rows, columns or entries are.
    """
    meaning = f": {entries}" if entries else ""
    if mine.shape != solution.shape:
        turned = mine.ndim == 2 and mine.T.shape == solution.shape
        hint = " It may be transposed." if turned else ""
        return f"The answer has shape {mine.shape}; expected {solution.shape}{meaning}.{hint}"
    if solution.dtype.kind == "b":
        return _entries(mine != solution, meaning)
    mine, solution = mine.astype(float), solution.astype(float)
    if pattern := _pattern(mine, solution, close):
        return pattern
    if solution.ndim == 0:
        return _one_number(float(mine), float(solution))
    if close(np.sort(mine, axis=None), np.sort(solution, axis=None)).all():
        return f"These are the right numbers in another order{meaning}."
    return _entries(~close(mine, solution), meaning)


def _pattern(mine: NDArray[Any], solution: NDArray[Any], close: _Close) -> str:
    with np.errstate(all="ignore"):
        for name, (says, pattern) in PATTERNS.items():
            if name == "100 x" and (np.abs(solution) > 1).any():
                continue  # no share, so its hundredfold is no percentage
            if close(mine, pattern(solution)).all():
                return says
    if solution.size < 2 or not solution.any():
        return ""
    factor = float((mine * solution).sum() / (solution**2).sum())
    if factor and close(mine, factor * solution).all():
        return f"Every entry is off by the same factor, {factor:.3g}."
    shift = float((mine - solution).mean())
    if close(mine - shift, solution).all():
        return f"Every entry is off by the same amount, {shift:.3g}."
    return ""


def _one_number(mine: float, solution: float) -> str:
    if mine == round(mine) and solution == round(solution) and abs(mine - solution) == 1:
        return f"Off by one: {mine:g} is one too {'many' if mine > solution else 'few'}."
    far = "much " if solution and abs(mine) > 10 * abs(solution) else ""
    return f"{mine:.6g} is {far}too {'large' if mine > solution else 'small'}."


def _entries(wrong: NDArray[np.bool_], meaning: str) -> str:
    if not wrong.ndim:
        return "It is the other one."
    if wrong.all():
        return f"None of the {wrong.size} entries is right{meaning}."
    first = np.argwhere(wrong)[0]
    place = int(first[0]) if wrong.ndim == 1 else tuple(first.tolist())
    others = f" and {wrong.sum() - 1} more are" if wrong.sum() > 1 else " is"
    return f"Entry {place} (counted from 0){others} wrong, the rest right{meaning}."
