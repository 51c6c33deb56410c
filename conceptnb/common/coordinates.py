"""Origin and scale of observations, taken out in double precision before anything is learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from conceptnb.common.validation import Array

_LARGEST = 1e100
"""A number whose square can be summed."""
_FAR_FROM_ZERO = 100_000_000_000
"""Standard deviations from zero at which double precision keeps five digits of a column."""
_CONSTANT = 1e-9
"""Of a column's spread, below which the base's own counts as none."""


@dataclass(frozen=True, eq=False)
class Coordinates:
    """An affine map of observations (samples, d_x): (X - origin) @ axes.

    `origin` is (d_x,); `axes` (d_x, k), or (d_x,) for a factor of each column.
    """

    origin: Array
    axes: Array

    @classmethod
    def standard(cls, X: Array, base: NDArray[np.bool_]) -> Self:
        """Return coordinates in which each column has mean 0 and variance 1 over the base rows.

        So no fit depends on the units of columns. A column that is constant in the base is
        measured in its standard deviations over all rows, and one that is constant in 1.
        """
        spread, own = X.std(axis=0), X[base].std(axis=0)
        scale = np.where(own > _CONSTANT * spread, own, spread)
        return cls(X[base].mean(axis=0), 1 / np.where(np.ptp(X, axis=0) > 0, scale, 1.0))

    @classmethod
    def raw(cls, columns: int) -> Self:
        """Return coordinates that change nothing: the columns have one unit in common."""
        return cls(np.zeros(columns), np.ones(columns))

    def __call__(self, X: Array) -> Array:
        """Return observations (samples, d_x) in these coordinates, (samples, k)."""
        moved = X - self.origin
        return moved * self.axes if self.axes.ndim == 1 else moved @ self.axes

    def weights(self, inner: Array) -> Array:
        """Return what weights (k, n) of these coordinates are of columns, (d_x, n)."""
        return self.axes[:, None] * inner if self.axes.ndim == 1 else self.axes @ inner


def refuse_sizes(X: Array, names: Sequence[str] = ()) -> None:
    """Refuse columns of X (samples, d_x), by their `names` or numbers, that no fit can hold.

    ValueError for numbers too large to be squared, for a spread too small, and for one that is lost
    in the digits of a double beside the distance from zero.
    """
    named = np.array([*names] or [*range(X.shape[1])], dtype=object)
    spread = np.ptp(X / 2, axis=0)
    if (large := (np.abs(X) > _LARGEST).any(axis=0)).any():
        raise ValueError(
            f"columns {named[large].tolist()} hold up to {np.abs(X).max():g}: correct that, leave "
            "its row out, or give the column in another unit"
        )
    if (small := (spread > 0) & (spread < 1 / _LARGEST)).any():
        raise ValueError(
            f"columns {named[small].tolist()} vary by less than {1 / _LARGEST:g}: give them in "
            "another unit, or leave them out"
        )
    if (far := (spread > 0) & (np.abs(X.mean(axis=0)) > _FAR_FROM_ZERO * X.std(axis=0))).any():
        raise ValueError(
            f"columns {named[far].tolist()} lie more than {_FAR_FROM_ZERO:,} standard deviations "
            "from zero: subtract a constant from them, or leave them out"
        )
