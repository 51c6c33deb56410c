"""How far one run may lie from another that should be the same, by a table's stored spread."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from conceptnb.results.ledger import Row
from conceptnb.results.store import Result

TIMES = ("cpu_seconds", "seconds", "peak_gb")
"""Columns that differ from run to run of the same code."""
_TEXT = 0.1  # share of characters, or of entries, of a text that another kernel may change
_ANOTHER_CHOICE = 2.0  # tolerances, of what was chosen: a name, or an entry of a setting
_PLAIN = 0.02  # relative, of numbers whose spread is not stored
_SEEDS = ("seed", "model_seed")


def key_columns(runs: Sequence[Row]) -> list[str]:
    """Return the first columns that together tell all runs apart, floats last."""
    columns = list(dict.fromkeys(column for run in runs for column in run))
    kinds = {c: {type(run[c]) for run in runs if c in run and run[c] is not None} for c in columns}
    plain = [c for c in columns if not kinds[c] & {float, dict, list}]
    floats = [c for c in columns if float in kinds[c]]
    key: list[str] = []
    told = 1
    for column in [*plain, *floats]:
        if told == len(runs):
            break
        found = len({json.dumps([run.get(c) for c in [*key, column]]) for run in runs})
        if found > told:
            key, told = [*key, column], found
    return key


def stored_runs(result: Result, rows: Sequence[Row]) -> list[Row]:
    """Return the stored run of each computed row; ValueError where there is none."""
    key = key_columns(result.runs)
    by_key = {json.dumps([run.get(c) for c in key]): run for run in result.runs}
    found = []
    for row in rows:
        name = json.dumps([row.get(c) for c in key])
        if name not in by_key:
            raise ValueError(
                f"{result.name} has no run of {dict(zip(key, json.loads(name), strict=True))}"
            )
        found.append(by_key[name])
    return found


def without_times(rows: Sequence[Row]) -> list[Row]:
    """Return rows without what a clock says."""
    return [{k: v for k, v in row.items() if k not in TIMES} for row in rows]


def differences_in_tolerances(
    result: Result, rows: Sequence[Row], others: Sequence[Row]
) -> dict[str, float]:
    """Return the largest differences of rows that should be the same, in tolerances, by column.

    The tolerance of a number is four standard deviations of the difference that two kernels make,
    half a standard deviation of the seeds, and the rounding of stored numbers, as in
    `conceptnb.results.spread`; where a column's kernels were not measured, those of the others
    count, relative to the seeds.
    """
    if len(rows) != len(others):
        return {f"{len(rows)} rows for {len(others)}": np.inf}
    found: dict[str, float] = {}
    for row, other in zip(without_times(rows), without_times(others), strict=True):
        if row.keys() != other.keys():
            return {f"columns {sorted(row.keys() ^ other.keys())}": np.inf}
        for column in row:
            if row[column] != other[column]:
                allowed = _tolerance(result, row, column)
                size = max(_gaps(row[column], other[column], allowed), default=0.0)
                found[column] = max(found.get(column, 0.0), size)
    return found


def _gaps(one: Any, other: Any, allowed: float | None) -> Iterator[float]:
    """Yield differences in tolerances; `allowed` is None where no spread is stored."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:  # a setting: whatever differs in it was chosen, numbers too
            yield _ANOTHER_CHOICE if one[key] != other[key] else 0.0
    elif isinstance(one, str) and isinstance(other, str) and len(one) == len(other) > 1:
        yield float(np.mean([a != b for a, b in zip(one, other, strict=True)])) / _TEXT
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        if all(isinstance(each, str) for each in one):
            yield float(np.mean([a != b for a, b in zip(one, other, strict=True)])) / _TEXT
        else:
            for a, b in zip(one, other, strict=True):
                yield from _gaps(a, b, allowed)
    elif _is_number(one) and _is_number(other):
        gap = abs(float(one) - float(other))
        yield gap / (allowed or _PLAIN * max(abs(float(other)), 1e-2)) if gap else 0.0
    elif isinstance(one, str) and isinstance(other, str):
        yield _ANOTHER_CHOICE if one != other else 0.0
    elif one != other:
        yield np.inf


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _tolerance(result: Result, row: Row, column: str) -> float | None:
    """Return how far a number of a column may move, or None where nothing is known of it."""
    key = [c for c in key_columns(result.runs) if c not in _SEEDS]
    alike = [run for run in result.runs if all(run.get(c) == row.get(c) for c in key)]
    values = [run[column] for run in alike if _is_number(run.get(column))]
    if not values:
        return None
    over_seeds = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    measured = result.spread.get("columns", [])
    own = [entry for entry in measured if entry["column"] == column]
    over_kernels = max((entry["std_over_kernels"] for entry in own), default=0.0)
    shares = [
        entry["std_over_kernels"] / entry["std_over_seeds"]
        for entry in own or measured
        if entry["std_over_seeds"] > 0
    ]
    over_kernels = max(over_kernels, max(shares, default=0.0) * over_seeds)
    rounding = 1e-4 * max(float(np.abs(values).mean()), 1e-2)
    return 4 * np.sqrt(2) * over_kernels + 0.5 * over_seeds + rounding
