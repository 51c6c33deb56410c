"""Checks of arguments, shared by every module, whose messages say what would do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def as_array(value: ArrayLike, name: str, ndim: int) -> Array:
    """Return `value` as a finite float array with `ndim` axes, or raise TypeError or ValueError."""
    if np.ma.isMaskedArray(value) and (n_masked := int(np.ma.count_masked(value))):
        raise ValueError(
            f"{name} holds {n_masked} masked entries: remove those samples first, or fill them in"
        )
    try:
        array = np.asarray(value)
    except ValueError as error:  # ragged rows
        raise ValueError(f"{name} must be rectangular: {error}") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    array = array.astype(np.float64)
    if array.ndim != ndim:
        hint = "; for one column use values.reshape(-1, 1)" if (array.ndim, ndim) == (1, 2) else ""
        raise ValueError(f"{name} must have {ndim} axes, got shape {array.shape}{hint}")
    if n_bad := int((~np.isfinite(array)).sum()):
        raise ValueError(
            f"{name} holds {n_bad} entries that are NaN or infinite: remove those samples first"
        )
    return array


def as_points(value: ArrayLike, name: str, n_columns: int | None = None) -> Array:
    """Return `value` as an array of shape (samples, n_columns), as `as_array` does."""
    array = as_array(value, name, ndim=2)
    if n_columns is not None and array.shape[1] != n_columns:
        raise ValueError(
            f"{name} must have shape (samples, {n_columns}), got {array.shape}; "
            "samples are rows and dimensions are columns"
        )
    return array


def as_positive(value: float, name: str) -> float:
    """Return `value` as a positive finite float, or raise TypeError or ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    if not np.isfinite(value) or value <= 0:
        raise ValueError(f"{name} must be positive and finite, got {value}")
    return float(value)


def as_count(value: int, name: str, minimum: int = 1) -> int:
    """Return `value` as an int of at least `minimum`, or raise TypeError or ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    return int(value)


def as_generator(value: Any) -> np.random.Generator:
    """Return a `numpy.random.Generator`, or raise TypeError: nothing draws from a global state."""
    if not isinstance(value, np.random.Generator):
        raise TypeError(
            "rng must be a numpy.random.Generator such as numpy.random.default_rng(0), "
            f"got {type(value).__name__}"
        )
    return value
