"""Read tables that people made, and name file, row and column of what is wrong in them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from conceptnb.common.validation import Array

_HUGE = 1e15
_FAR = 1e4  # interquartile ranges from the median beyond which a number is taken for a code


def read_table(path: str | Path, encoding: str = "utf-8-sig") -> pd.DataFrame:
    """Return the cells of a CSV file as text, with the columns of its first line.

    By default it is UTF-8, with or without the mark that spreadsheets put in front. ValueError if
    the file is empty, has a header only, is in another encoding, has a column twice, or a line with
    more or fewer cells than the header. The index is the line of the file at which a row begins,
    minus 2.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"{file} is no file: give the path of a table (CSV)")
    reader = csv.reader(io.StringIO(read_text(file, encoding), newline=""))
    rows, places, start = [], [], 1  # where each row begins in the file
    try:
        for line in reader:
            if line:
                rows.append(line)
                places.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"{file} is no CSV ({error}): is a quote not closed?") from None
    if not rows:
        raise ValueError(f"{file} is empty: the first line names the columns")
    header = [name.strip() for name in rows[0]]
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise ValueError(f"{file}: columns are separated by ';' or tabs: save it with commas")
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise ValueError(f"{file} has the columns {twice} twice: rename one of each")
    if len(rows) == 1:
        raise ValueError(f"{file} has a header and no rows: there is nothing to learn from")
    for number, line in zip(places[1:], rows[1:], strict=True):
        if len(line) != len(header):
            raise ValueError(
                f"{file}, row {number}: {len(line)} cells where the header has {len(header)}; "
                "is a separator missing, or a comma not in quotes?"
            )
    table = pd.DataFrame(rows[1:], columns=header, index=np.array(places[1:]) - 2)
    return table.apply(lambda column: column.str.strip())


def read_text(file: Path, encoding: str = "utf-8-sig") -> str:
    """Return the text of a file, or name the line that is in another encoding."""
    content = file.read_bytes()
    if encoding == "utf-8-sig" and content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(
            f"{file} is UTF-16: save it as UTF-8 (in a spreadsheet: CSV UTF-8); in Python, "
            "encoding='utf-16' reads it, too"
        )
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{file}, row {line}: byte 0x{content[error.start]:02x} is not {encoding}. Save the "
            "file as UTF-8, or say encoding='latin-1' (Western European) or 'utf-16'"
        ) from None


def require_columns(table: pd.DataFrame, wanted: Sequence[str], file: str | Path) -> None:
    """Raise ValueError where a table lacks columns; the message lists what it has."""
    if missing := [name for name in wanted if name not in table.columns]:
        raise ValueError(f"{file} lacks the columns {missing}; it has {list(table.columns)}")


def numbers(table: pd.DataFrame, columns: Sequence[str], file: str | Path) -> Array:
    """Return columns of text as numbers, shape (rows, columns).

    Raises
    ------
    ValueError
        If a cell is empty, NaN, no number, infinite or huge, or a column is constant; names
        file, column, row and the way out. Rows count as in the file: the header is row 1.
    """
    require_columns(table, columns, file)
    found = np.empty((len(table), len(columns)))
    for k, name in enumerate(columns):
        found[:, k] = _column(table[name], f"{file}, column {name!r}")
    if constant := [columns[k] for k in np.flatnonzero(np.ptp(found, axis=0) == 0).tolist()]:
        kept = [name for name in columns if name not in constant]
        raise ValueError(
            f"{file}: the columns {constant} hold one value only, from which nothing can be "
            f"learned; leave them out with features={kept}"
        )
    return found


def _column(cells: pd.Series, where: str) -> Array:
    values = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float)
    if (bad := np.flatnonzero(np.isnan(values))).size:
        cell = cells.iloc[bad[0]]
        missing = reads_as_missing(cell)
        what = f"is missing ({cell!r})" if missing else f"is no number: {cell!r}"
        raise ValueError(
            f"{where}, row {cells.index[bad[0]] + 2}: the value {what}; {len(bad)} of "
            f"{len(values)} are. Remove these rows or fill them in; nothing is dropped silently"
        )
    refuse_far(values, cells.index, where)
    return values


def refuse_far(values: Array, index: Sequence[int] | pd.Index, where: str) -> None:
    """Refuse a column with a number so far from the others that it may be a code for a missing one.

    `values` (rows,) are NaN where missing; `index` is each row's line in the file, minus 2.
    """
    low, middle, high = np.nanpercentile(values, [25, 50, 75])
    spread = high - low if high > low else np.inf
    far = (np.abs(values) > _HUGE) | (np.abs(values - middle) > _FAR * spread)
    if far.any():
        row = int(np.flatnonzero(far)[0])
        raise ValueError(
            f"{where}, row {index[row] + 2}: {values[row]:g} is huge beside the median "
            f"{middle:g}. Is it a code for a missing value, or another unit? Correct it or remove "
            "the row"
        )


def reads_as_missing(text: str) -> bool:
    """Return whether a cell, or the name of an environment, reads as a missing value."""
    return text.strip().lower() in ("", "na", "nan", "null", "none", "n/a", "<na>", "nat")
