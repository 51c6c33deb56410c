"""Tables of one's own of any kind, and what they must be before anything is learned from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from conceptnb.common.table_files import read_table
from conceptnb.common.validation import Array

FEWEST_ROWS = 20
"""Rows that an environment needs, so that it can be split."""


def refuse_environments(rows: Mapping[str, int], source: str) -> None:
    """Refuse a table by the rows of each of its environments: one alone, or one of too few."""
    if len(rows) == 1:
        raise ValueError(
            f"{source}: all rows are of the environment {next(iter(rows))!r}. Concepts are learned "
            "from contrasts: give at least one more, collected by looking for something"
        )
    if small := {name: count for name, count in rows.items() if count < FEWEST_ROWS}:
        raise ValueError(
            f"{source}: {small} are too few rows; an environment needs {FEWEST_ROWS} to be split "
            "at all, and some hundreds to be learned from"
        )


def looks_like_index(column: Array, group: NDArray[np.intp]) -> bool:
    """Return whether a column (rows,) only numbers its rows, or is sorted within each group."""
    values = np.unique(column)
    whole = len(values) == len(column) and bool((values == np.round(values)).all())
    own = [column[group == name] for name in np.unique(group)]
    in_order = all(len({*np.sign(np.diff(part))}) == 1 for part in own)
    return len(values) > 1 and (whole or in_order)


def load_rows(path: str | Path) -> pd.DataFrame:
    """Read a table: CSV as text, and parquet, npy or safetensors with one array as they are.

    The index is that of `read_table`, a row's number in the file minus 2; only CSV has a header.
    Columns of arrays are called x0, x1 and so on. ValueError if there is no table.
    """
    file = Path(path)
    kind = file.suffix.lower()
    readers = {".parquet": pd.read_parquet, ".npy": np.load, ".safetensors": _only_array}
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "is no file"
        raise ValueError(f"{file} {what}: give the path of a table")
    if kind == ".csv":
        return read_table(file)
    if kind not in readers:
        known = ".csv, .parquet, .npy or .safetensors"
        raise ValueError(f"{file}: a table is {known}, not {kind or 'nameless'}")
    try:
        found = readers[kind](file)
    except ImportError:
        raise ValueError(
            f"{file}: parquet needs pyarrow (pip install pyarrow); or save it as CSV"
        ) from None
    except Exception as error:  # the reader's own
        raise ValueError(f"{file} cannot be read as a table ({error}): save it as CSV") from error
    if kind == ".parquet":
        found = found.rename(columns=str)
        return found.set_index(np.arange(len(found)) - 1)
    if found.ndim != 2:
        raise ValueError(f"{file} has shape {found.shape}: a table is (rows, columns)")
    return pd.DataFrame(found, index=np.arange(len(found)) - 1).rename(columns="x{}".format)


def _only_array(file: Path) -> Array:
    from safetensors.numpy import load_file  # noqa: PLC0415 - needed for this kind alone

    [found] = load_file(file).values()
    return found
