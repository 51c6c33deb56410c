"""Computed tables that take longer than a chapter may, kept with where they came from.

``conceptnb reproduce ...`` computes one and `save` writes it to ``results/NAME.json`` with
its provenance: the command, a hash of the modules it used, versions, seeds and CPU seconds.
`load` reads it back and `is_stale` says whether those modules have changed since.
"""

from __future__ import annotations

import html
import json
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from conceptnb import __version__
from conceptnb.core.files import digest, tracked_files, write_text
from conceptnb.results import paper
from conceptnb.results.show import Table

__all__ = [
    "Result",
    "Shown",
    "beside",
    "command_line",
    "folder",
    "is_stale",
    "load",
    "names",
    "save",
    "shown",
    "source_hash",
]

_PACKAGE = Path(__file__).resolve().parents[1]
_SHOWN_ROWS = 15  # more than the paper's longest table has; the file holds them all
_VERSIONS = ("numpy", "scipy", "scikit-learn", "torch", "open_clip_torch", "transformers")


@dataclass(frozen=True)
class Result:
    """A computed table and its provenance.

    Parameters
    ----------
    name : str
        Stem of its file under ``results/``.
    rows : list of dict
        One dict of plain JSON values a row.
    command : str
        What computes it again, as one would type it.
    modules : list of str
        The package's modules that the numbers depend on, such as ``"conceptnb.core.scores"``.
    source_hash : str
        SHA-256 over the files of `modules` when the table was computed.
    seeds : list of int
        The seeds over which means and deviations are taken.
    cpu_seconds : float
        ``time.process_time`` that the computation took.
    versions : dict of str to str
        Versions of Python, the package and the libraries under it.
    notes : dict
        Anything else that belongs to the table: sizes, settings, what is synthetic. A
        note ``paper_table`` names the table of `conceptnb.results.paper` that it stands beside; a
        note ``summarised_in`` names the computed table that stands on pages in its place.
    """

    name: str
    rows: list[dict[str, Any]]
    command: str
    modules: list[str]
    source_hash: str
    seeds: list[int]
    cpu_seconds: float
    versions: dict[str, str]
    notes: dict[str, Any] = field(default_factory=dict)


def save(
    name: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    command: str,
    modules: Sequence[str],
    seeds: Sequence[int],
    cpu_seconds: float,
    notes: Mapping[str, Any] | None = None,
    where: Path | None = None,
) -> Path:
    """Write a computed table with its provenance to ``results/NAME.json``.

    Parameters
    ----------
    name : str
        Stem of the file: letters, digits, ``-`` and ``_``.
    rows : sequence of mapping
        Plain JSON values only: convert arrays and NumPy scalars first.
    command, modules, seeds, cpu_seconds, notes
        As in `Result`.
    where : Path, optional
        Another folder than ``results/`` of the checkout.

    Returns
    -------
    path : Path
        The file, which is replaced in one step: no reader sees half of it.

    Raises
    ------
    ValueError
        If `name` is no plain file name, `rows` is empty, a module does not exist, the note
        ``paper_table`` names no table of the paper, or a value is not JSON (NaN included:
        write None for what was not computed).
    TypeError
        If a value in `rows` or `notes` is not a plain JSON value.
    """
    if not name or not all(letter.isalnum() or letter in "-_" for letter in name):
        raise ValueError(f"name={name!r} has to be letters, digits, '-' and '_': it names a file")
    if "paper_table" in (notes or {}):
        paper.table(dict(notes or {})["paper_table"])  # refuses a table that is not there
    if not rows:
        raise ValueError("rows is empty: there is nothing to keep")
    result = Result(
        name=name,
        rows=[dict(row) for row in rows],
        command=command,
        modules=sorted(modules),
        source_hash=source_hash(modules),
        seeds=[int(seed) for seed in seeds],
        cpu_seconds=round(float(cpu_seconds), 1),
        versions=_versions(),
        notes=dict(notes or {}),
    )
    text = json.dumps(asdict(result), indent=1, ensure_ascii=False, allow_nan=False)
    path = (where or folder()) / f"{name}.json"
    write_text(path, text + "\n")
    return path


def command_line() -> str:
    """Return the running command, for `save`.

    The folder of finished stages is left out: it is of this machine and changes no number.
    """
    words = sys.argv[1:]
    if "--checkpoints" in words:
        where = words.index("--checkpoints")
        words = words[:where] + words[where + 2 :]
    return " ".join(["conceptnb", *words])


def load(name: str, where: Path | None = None) -> Result:
    """Read a computed table.

    Raises
    ------
    FileNotFoundError
        If it has not been computed here; the message lists what has been.
    """
    path = (where or folder()) / f"{name}.json"
    if not path.is_file():
        present = ", ".join(names(where)) or "none"
        raise FileNotFoundError(
            f"{name!r} is not among the computed tables ({present}): run "
            "`conceptnb reproduce --help` to see which command computes it"
        )
    return Result(**json.loads(path.read_text(encoding="utf-8")))


def names(where: Path | None = None) -> list[str]:
    """Return the names of the tables that have been computed."""
    return sorted(path.stem for path in (where or folder()).glob("*.json"))


def is_stale(result: Result) -> bool:
    """Return whether a module that the table depends on has changed since, or is gone."""
    try:
        return source_hash(result.modules) != result.source_hash
    except ValueError:
        return True


@dataclass(frozen=True)
class Shown:
    """Computed tables as a page shows them: each with its provenance, or a note that says none.

    Parameters
    ----------
    results : tuple of Result
    """

    results: tuple[Result, ...]

    def _repr_html_(self) -> str:
        if not self.results:
            return "<p><em>Not yet computed in this repository.</em></p>"
        return "\n".join(_html(result) for result in self.results)

    def __repr__(self) -> str:
        return f"Shown({', '.join(result.name for result in self.results) or 'not yet computed'})"


def shown(name: str) -> Shown:
    """Return one computed table for display, or a note that it is not yet computed."""
    return Shown((load(name),) if name in names() else ())


def beside(paper_table: str | None) -> Shown:
    """Return the computed tables that stand beside one of the paper's.

    Parameters
    ----------
    paper_table : str or None
        A name that `conceptnb.results.paper.table` knows; None for the tables that the paper has
        no counterpart of.

    Raises
    ------
    ValueError
        If the paper has no such table.
    """
    if paper_table is not None:
        paper.table(paper_table)
    every = [load(name) for name in names()]
    mine = (r for r in every if r.notes.get("paper_table") == paper_table)
    return Shown(tuple(r for r in mine if "summarised_in" not in r.notes))


def _html(result: Result) -> str:
    """Return a computed table as HTML: the rows, and below them where they come from.

    Of a long table the first rows, as many as its note ``rows_on_page`` says.
    """
    rows = result.rows[: result.notes.get("rows_on_page", _SHOWN_ROWS)]
    table = Table([_means_with_deviations(row) for row in rows], ".3g")._repr_html_()
    left_out = len(result.rows) - len(rows)
    facts = [f"<strong>results/{html.escape(result.name)}.json</strong>"]
    if left_out > 0:
        facts.append(f"the first {len(rows)} of {len(result.rows):,} rows")
    facts += [
        f"<code>{html.escape(result.command)}</code>",
        f"{len(result.seeds)} seeds" if len(result.seeds) != 1 else "1 seed",
        f"{result.cpu_seconds:,.0f} CPU seconds",
        ", ".join(f"{library} {number}" for library, number in result.versions.items()),
    ]
    if is_stale(result):
        facts.append("<strong>computed by an earlier version of the code</strong>")
    return f'<div class="computed">{table}<p class="provenance">{" · ".join(facts)}</p></div>'


def _means_with_deviations(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with ``x_mean`` and ``x_std`` as one pair, ``x``."""
    joined = {}
    for key, value in row.items():
        stem = key.removesuffix("_mean")
        if stem != key and f"{stem}_std" in row:
            joined[stem] = [value, row[f"{stem}_std"]]
        elif not (key.endswith("_std") and f"{key.removesuffix('_std')}_mean" in row):
            joined[key] = value
    return joined


def source_hash(modules: Sequence[str]) -> str:
    """Return the SHA-256 over the source and data files of modules of this package.

    Parameters
    ----------
    modules : sequence of str
        Full names, such as ``"conceptnb.core.scores"``; of a folder, every file in it counts.

    Raises
    ------
    ValueError
        If `modules` is empty or names what is no module of this package.
    """
    if not modules:
        raise ValueError("modules is empty: name the modules that the numbers depend on")
    return digest(_PACKAGE, [path for name in sorted(set(modules)) for path in _files_of(name)])


def folder() -> Path:
    """Return ``results/`` of the checkout that this package is imported from."""
    return _PACKAGE.parent / "results"


def _files_of(module: str) -> list[Path]:
    first, *rest = module.split(".")
    path = _PACKAGE.joinpath(*rest)
    if first == _PACKAGE.name and rest:
        if path.is_dir():
            return tracked_files(path)
        if path.with_suffix(".py").is_file():
            return [path.with_suffix(".py")]
    raise ValueError(f"modules: {module!r} is no module of {_PACKAGE.name}")


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "conceptnb": __version__}
    for name in _VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
