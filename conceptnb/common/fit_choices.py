"""What one may try when concepts are learned from a table: checked before torch is loaded."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np


def as_components(value: Sequence[int], concepts: int, columns: int) -> list[int]:
    """Return numbers of principal components to try, each from `concepts` to `columns`."""
    if concepts > columns:
        raise ValueError(
            f"{concepts} concepts cannot be told apart in {columns} columns: look for fewer "
            "concepts, or learn from more columns"
        )
    found: list[int] = _as_list(value, "components", int)
    if bad := [k for k in found if not concepts <= k <= columns]:
        raise ValueError(
            f"components={bad} must lie between {concepts} (concepts) and {columns} (columns)"
        )
    return found


def as_shrinkage(value: Sequence[float], encoder: str) -> list[float]:
    """Return shares of shrinkage to try, in [0, 1), which need a linear encoder if not 0."""
    found: list[float] = _as_list(value, "shrinkage", float)
    if not found or not all(0 <= share < 1 for share in found):
        raise ValueError(f"shrinkage={found} must be shares in [0, 1), 0 for none")
    if any(found) and encoder != "linear":
        raise ValueError(f"shrinkage={found} needs encoder='linear': leave it [0]")
    return found


def _as_list(value: Sequence[float], name: str, kind: type[int | float]) -> list[Any]:
    given = np.asarray(value, dtype=object)
    accepted = Integral if kind is int else Real
    if given.ndim != 1 or not all(isinstance(entry, accepted) for entry in given):
        raise TypeError(f"{name}={value!r} must be a list of numbers ({kind.__name__})")
    return [kind(entry) for entry in given]
