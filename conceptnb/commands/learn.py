"""``conceptnb learn``: tables of one's own -> a report to read offline, and the fitted learner."""

import argparse
import html
import io
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from conceptnb import __version__
from conceptnb.common.files import write_text
from conceptnb.common.fit_choices import as_components, as_shrinkage
from conceptnb.common.table_checks import load_rows, refuse_environments
from conceptnb.common.table_files import reads_as_missing, refuse_far
from conceptnb.common.validation import Array
from conceptnb.results.registry import user_path
from conceptnb.results.runner import _check_out, _refuse_outside

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from conceptnb.learning.environment_tables import ConceptReport

_FILES = ("report.html", "concepts.safetensors", "apply.py", "valuations.csv")
_COMMON: dict[str, dict[str, Any]] = {
    "--out": {"help": "folder to write", "type": user_path, "required": True, "metavar": "DIR"},
    "--seed": {"help": "of the split and the fits (default 0)", "type": int, "default": 0},
    "--force": {"help": "replace the files in --out", "action": "store_true"},
}
"""Options of all reports."""


def run(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Read the tables, learn, and write report, learner, code that applies it, and valuations."""
    args = _parse(parser, words, _FILES)
    rows, environment, left_out = _read(args)
    base, looked_for = _asked(args, list(dict.fromkeys(environment)), rows.shape[1])
    from conceptnb.learning.environment_tables import from_arrays, learn_concepts  # noqa: PLC0415 - brings torch
    from conceptnb.learning.standard_errors import valuation_errors  # noqa: PLC0415 - as above

    source = ", ".join(path.name for path in args.tables)
    table = from_arrays(
        rows.to_numpy(float), environment, base, source=source, columns=list(rows.columns)
    )
    notes = [f"{left_out} rows with missing values were left out (--missing)."] if left_out else []
    if not args.looked_for:
        notes.append("Nothing says what was looked for: each environment is taken to have one "
            "concept of its own. Say it with --looked-for.")  # fmt: skip
    if args.base is None:
        notes.append(f"The first environment, {base!r}, is taken as the base. Say it with --base.")
    notes += table.suspicious_columns()
    print(*(f"warning: {line}\n" for line in notes), sep="", end="", flush=True)
    report = learn_concepts(
        table, looked_for, encoder=args.encoder, components=args.components,
        shrinkage=args.shrinkage, starts=args.starts, seed=args.seed,
    )  # fmt: skip
    report.learner.save(args.out / "concepts.safetensors")
    code = _fill(
        "apply.txt",
        columns=table.columns,
        concepts=report.concepts,
        new=f"NEW{args.tables[0].suffix}",
    )
    found = pd.DataFrame(report.valuations, columns=report.concepts)
    found.insert(0, "environment", environment, allow_duplicates=True)
    try:
        errors, none = valuation_errors(report), ""
    except ValueError as reason:
        errors, none = None, str(reason)
    else:
        found[[f"{concept} (standard error)" for concept in report.concepts]] = errors
    write_text(args.out / "valuations.csv", found.to_csv(index=False))
    found_since = [line for line in report.warnings if line not in notes]
    report.warnings[:] = notes + found_since
    return _write(
        args.out,
        _FILES,
        "report_learn.html",
        _shown(report, errors, none),
        title=f"Concepts learned from {source}",
        lead=f"{len(table.X):,} rows of {table.X.shape[1]} columns, in {len(table.names)} "
        f"environments; the base is {table.names[0]!r}. Learned from {_chosen(report)}.",
        warnings=report.warnings,
        not_yet_said=found_since,
        none="No warning. That does not prove that the concepts are right: both halves can lead to "
        "the same mixture of concepts.",
        code=code,
        command=shlex.join(["conceptnb", "learn", *words]),
    )


def _asked(
    args: argparse.Namespace, names: Sequence[str], columns: int
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
    _refuse_outside("starts", args.starts, {})
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


def _chosen(report: "ConceptReport") -> str:
    kept = f"{report.components} principal components" if report.components else "all columns"
    return f"{kept}, with a shrinkage of {report.shrinkage:g}" if report.shrinkage else kept


def _parse(
    parser: argparse.ArgumentParser, words: Sequence[str], files: Sequence[str]
) -> argparse.Namespace:
    """Parse the words of a report; refuse a seed, or files in --out, that would not do."""
    for name, settings in _COMMON.items():
        parser.add_argument(name, **settings)
    args = parser.parse_args(words)
    _refuse_outside("seed", args.seed, {})
    for file in files:
        _check_out(args.out / file, args.force)
    return args


def _read(args: argparse.Namespace) -> tuple[pd.DataFrame, list[str], int]:
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
        parts.append(_numbers(table[chosen], path, args.missing))
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


def _numbers(
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


def _shown(
    report: "ConceptReport", errors: Array | None, none: str
) -> dict[str, "pd.DataFrame | tuple[Figure, str] | str"]:
    """Return what the page of a report shows, by the name of its place there."""
    from conceptnb.plotting.reports import valuations_by_environment  # noqa: PLC0415 - matplotlib

    table = report.table
    targets = np.asarray(report.learner.targets)
    looked = [[n for e, n in enumerate(table.names[1:]) if targets[e, k]] for k in range(
        len(report.concepts))]  # fmt: skip
    concepts = pd.DataFrame({"concept": report.concepts, "looked for in": map(", ".join, looked)})
    concepts["agreement of halves"] = [round(report.agreement[c], 3) for c in report.concepts]
    if errors is not None:
        spread = report.valuations[table.environment == 0].std(axis=0)
        concepts["standard error"] = (np.median(errors, axis=0) / spread).round(3)
    means = report.summary().set_index("environment").filter(like="mean ")
    alt = "Median and quartiles of each learned valuation in each environment. Means: " + "; ".join(
        f"{name.removeprefix('mean ')} " + ", ".join(f"{e} {v:.2f}" for e, v in column.items())
        for name, column in means.items()
    )
    figure = valuations_by_environment(report)
    about = (
        f"There is none here: {none}."
        if none
        else ("valuations.csv has that of each row, in the unit of the valuations.")
    )
    shown = {"summary": report.summary(), "concepts": concepts, "figure": (figure, alt)}
    return shown | {"errors": about}


def _write(
    out: Path,
    files: Sequence[str],
    template: str,
    shown: Mapping[str, "pd.DataFrame | tuple[Figure, str] | str"],
    *,
    warnings: Sequence[str],
    not_yet_said: Sequence[str] | None = None,
    none: str,
    **text: str,
) -> int:
    """Write a report as one HTML file that needs no other, and its code; say so, and return 0.

    `shown` fills the `template`: tables, figures with what these show in words, and text; `none`
    is said where there are no warnings; `text` has ``title``, ``lead``, ``code`` and ``command``.
    """
    parts = {name: _as_html(what) for name, what in shown.items()}
    lines = "".join(f"<li>{html.escape(line)}</li>" for line in warnings)
    said = f'<ul class="said">{lines}</ul>' if lines else f'<p class="said none">{none}</p>'
    escaped = {key: html.escape(value) for key, value in text.items()}
    body = _fill(template, parts)
    page = _fill("report.html", escaped, warnings=said, body=body, version=__version__)
    write_text(out / "report.html", page)
    write_text(out / "apply.py", text["code"])
    news = warnings if not_yet_said is None else not_yet_said
    print(*(f"warning: {line}\n" for line in news), sep="", end="")
    print(f"wrote {', '.join(str(out / name) for name in files)}")
    return 0


def _fill(template: str, *given: Mapping[str, str], **more: object) -> str:
    """Return a file beside this module with its $names filled in."""
    file = Path(__file__).with_name(template)
    return Template(file.read_text(encoding="utf-8")).substitute(*given, **more)


def _as_html(what: "pd.DataFrame | tuple[Figure, str] | str") -> str:
    if isinstance(what, str):
        return html.escape(what)
    return _table(what) if isinstance(what, pd.DataFrame) else _svg(*what)


def _table(frame: pd.DataFrame) -> str:
    return frame.to_html(index=False, border=0, na_rep="–", float_format=lambda x: f"{x + 0.0:.3g}")


def _svg(figure: "Figure", alt: str) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    name = html.escape(alt, quote=True)
    drawn = out.getvalue()
    return drawn[drawn.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{name}"', 1)
