"""Means and deviations of runs, as pages show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

__all__ = ["grouped", "summary"]

Row = dict[str, Any]


def summary(
    runs: Iterable[Row], by: Sequence[str], columns: Sequence[str], shared: Sequence[str] = ()
) -> list[Row]:
    """Return the mean and the standard deviation over the runs of each group.

    The columns `by` make a group, and `shared` ones have one value in it. ``COLUMN_std`` is of the
    population, over the runs where `COLUMN` is not None.
    """
    rows: list[Row] = []
    for key, group in grouped(runs, by).items():
        row = dict(zip(by, key, strict=True))
        for column in columns:
            values = [run[column] for run in group if run[column] is not None]
            row[f"{column}_mean"] = round(float(np.mean(values)), 4) if values else None
            row[f"{column}_std"] = round(float(np.std(values)), 4) if values else None
        rows.append(row | {column: group[0][column] for column in shared})
    return rows


def grouped(runs: Iterable[Row], by: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Return runs by the values of some columns, in the order of their first run."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for one in runs:
        groups.setdefault(tuple(one[column] for column in by), []).append(one)
    return groups
