"""Which rows, environments and concepts the arguments of ``conceptnb learn`` mean."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from conceptnb.common.fit_choices import as_components, as_shrinkage
from conceptnb.common.table_checks import load_rows, refuse_environments
from conceptnb.common.table_files import reads_as_missing, refuse_far


def environments_looked_for(
    args: SimpleNamespace, names: Sequence[str], columns: int
) -> tuple[str, dict[str, list[str]]]:
    """Return the base and what was looked for; refuse what the tables do not allow."""
    base = names[0] if args.base is None else args.base
    if base not in names:
        raise ValueError(f"--base {base!r} is no environment; there are {_few(names)}")
    for name in names:
        if reads_as_missing(name) and name != args.base:
            raise ValueError(
                f"an environment is called {name!r}, which reads as a missing value: leave its "
                "rows out, or give it another name"
            )
    named = _concepts(args.looked_for, [name for name in names if name != base])
    if named and (left := [name for name in names if name not in (base, *named)]):
        raise ValueError(
            f"--looked-for says nothing of {_few(left)}: give one for each environment but the "
            "base, or none at all"
        )
    looked_for = {name: named.get(name, [name]) for name in names if name != base}
    as_components(args.components, len({*chain(*looked_for.values())}), columns)
    as_shrinkage(args.shrinkage, args.encoder)
    if args.starts is not None and args.encoder == "linear":
        raise ValueError("--starts needs --encoder mlp: a linear encoder is searched")
    return base, looked_for


def _concepts(words: Sequence[str], environments: Sequence[str]) -> dict[str, list[str]]:
    """Return the concepts that --looked-for names, by environment."""
    found: dict[str, list[str]] = {}
    for word in words:
        name, equals, concepts = word.rpartition("=")
        if not equals or name not in environments:
            raise ValueError(
                f"--looked-for {word!r} has to be ENVIRONMENT=CONCEPT,..., for one of "
                f"{_few(environments)}"
            )
        if name in found:
            raise ValueError(f"--looked-for has {name!r} twice: NAME=CONCEPT,CONCEPT for both")
        found[name] = [concept.strip() for concept in concepts.split(",")]
        if "" in found[name]:
            raise ValueError(f"--looked-for {word!r}: a concept is without a name")
        if "environment" in found[name]:
            raise ValueError(
                f"--looked-for {word!r}: name the concept otherwise, since valuations.csv has a "
                "column 'environment'"
            )
    return found


def _few(names: Iterable[str]) -> list[str]:
    """Return the first names, for an error of one line."""
    names = sorted(names)
    return [*names[:5], f"... {len(names)} in all"] if len(names) > 5 else names


def read_rows(args: SimpleNamespace) -> tuple[pd.DataFrame, list[str], int]:
    """Return the numbers to learn from, each row's environment, and how many rows were left out."""
    tables = {path.stem: load_rows(path) for path in args.tables}
    if len(tables) < len(args.tables):
        raise ValueError(f"{[str(path) for path in args.tables]} have to have different names")
    column = args.environment or ("environment" if len(tables) == 1 else None)
    parts: list[pd.DataFrame] = []
    environment: list[str] = []
    header = list(tables[args.tables[0].stem])
    if column and column not in header:
        raise ValueError(
            f"{args.tables[0]} has no column {column!r} that names environments; it has {header}. "
            "Name it by --environment, or give a table for each environment"
        )
    if odd := {*args.ids} - {*header}:
        raise ValueError(
            f"{args.tables[0]}: --ids {sorted(odd)} are no columns of it; there are {header}"
        )
    for path, (name, table) in zip(args.tables, tables.items(), strict=True):
        if odd := {*header, *args.ids, *([column] if column else [])} ^ {*table}:
            raise ValueError(
                f"{path}: not every table has the columns {sorted(odd)}; it has {list(table)}"
            )
        chosen = [title for title in header if title != column and title not in args.ids]
        parts.append(as_numbers(table[chosen], path, args.missing))
        environment += table[column].astype(str).tolist() if column else [name] * len(table)
    rows = pd.concat(parts, ignore_index=True)
    whole = rows.notna().all(axis=1).to_numpy()
    if not whole.any() or not rows.shape[1]:
        raise ValueError(f"{args.tables[0]}: no row or no column is left to learn from")
    rows = rows[whole]
    counts = Counter(name for name, keep in zip(environment, whole, strict=True) if keep)
    if len(counts) > len(rows) / 2:
        raise ValueError(
            f"--environment {column}: nearly each of the {len(rows)} rows has one of its own, "
            f"{_few(counts)}: name the column that says how a row was collected"
        )
    lost = f", of whose rows {(~whole).sum()} were left out (--missing)" if not whole.all() else ""
    refuse_environments(counts, ", ".join(map(str, args.tables)) + lost)
    if constant := [name for name in rows if rows[name].nunique() == 1]:
        raise ValueError(f"{args.tables[0]}: the columns {constant} hold one value only: --ids "
            f"{shlex.join(map(str, constant))} leaves them out")  # fmt: skip
    kept = [name for name, keep in zip(environment, whole, strict=True) if keep]
    return rows, kept, int((~whole).sum())


def as_numbers(
    cells: pd.DataFrame, path: Path, codes: Sequence[str] | None, ids: bool = True
) -> pd.DataFrame:
    """Return cells as numbers, NaN where a value is missing and `codes` say that this may be.

    `ids` says whether the command has options that leave out columns and rows.
    """
    found = cells.apply(pd.to_numeric, errors="coerce").astype(float)
    if codes is not None or not np.isfinite(found.to_numpy()).all():
        found = _without_codes(cells, found, path, codes, ids)
    for name in found:
        if found[name].notna().any():
            refuse_far(found[name].to_numpy(), cells.index, f"{path}, column {name!r}")
    return found


def _without_codes(
    cells: pd.DataFrame,
    found: pd.DataFrame,
    path: Path,
    codes: Sequence[str] | None,
    ids: bool,
) -> pd.DataFrame:
    """Return numbers, NaN where cells are missing; refuse them, if there are no codes, and text."""
    text = cells.map(lambda cell: str(cell).strip())
    lost = text.map(reads_as_missing) & found.isna()
    given = lost | text.isin(codes or [])
    for code in pd.to_numeric(pd.Series(codes or [], dtype=object), errors="coerce").dropna():
        given |= found == code
    wrong = (found.isna() | np.isinf(found)) & ~given if codes is not None else ~np.isfinite(found)
    for name in found:
        if not wrong[name].any():
            continue
        row = int(np.flatnonzero(wrong[name])[0])
        cell, count = text[name].iloc[row], int(wrong[name].sum())
        hint = f"--ids {shlex.quote(name)} leaves the column out" if ids else "remove the column"
        if lost[name].iloc[row]:
            hint += ", --missing the rows with missing values" if ids else " or the row"
        elif re.fullmatch(r"[-+]?\d+,\d+", cell):
            hint = "write decimals with a point, 1.5 and not 1,5"
        raise ValueError(f"{path}, column {name!r}, row {cells.index[row] + 2}: {cell!r} is no "
            f"number that can be learned from, nor are {count - 1} others; {hint}")  # fmt: skip
    return found.mask(given)
