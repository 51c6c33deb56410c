"""Whether a stored table can be trusted: what computed it, what has verified it since, its digest.

A table is computed once. Code that changes afterwards is compared with the code before it, on runs
of the table that both compute (`conceptnb.results.verify`), and what was seen is appended here. So
a table is

``current``
    computed by today's code;
``verified``
    computed by earlier code that gave the same bits where today's code computed it again;
``moved``
    computed by earlier code from which today's differs within the stored spread;
``unverified``
    computed by other code, and not yet compared;
``broken``
    changed by hand, or outside the spread.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from conceptnb.results.provenance import code_of

Row = dict[str, Any]
State = Literal["current", "verified", "moved", "unverified", "broken"]
How = Literal["equal", "within", "outside"]
NUMERIC = ("numpy", "scipy", "scikit-learn", "torch")
"""Libraries whose new versions count as changed code."""
_MARK = 6  # hexadecimal digits per run
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Computed:
    """What computed a table; written once.

    Parameters
    ----------
    commit : str
        The commit checked out then; empty outside a clone.
    modules, code : list of str, str
        The modules whose functions computed it, and the hash of their import closure.
    versions : dict of str to str
        Of Python, the package and the libraries under it.
    cpu, date, cpu_seconds : str, str, float
        The processor, the day as ``YYYY-MM-DD``, and what it took.
    """

    commit: str
    modules: list[str]
    code: str
    versions: dict[str, str]
    cpu: str
    date: str
    cpu_seconds: float


@dataclass(frozen=True)
class Verified:
    """What was seen when runs of a table were computed again by other code.

    Parameters
    ----------
    commit, modules, code, versions, cpu, date, cpu_seconds
        As of `Computed`, of the code that was checked.
    against : str
        The commit that it was compared with on the same machine, "stored" for the stored runs, or
        "unchanged" where the hash of the code, which a gate held fixed until November 2026, says
        that nothing that counts had changed since the table was computed.
    strata : dict of str to float
        Which strata were computed, by number, with the CPU seconds of one side.
    of : int
        How many strata the table has.
    how : {"equal", "within", "outside"}
        The same bits; within the stored spread; outside it.
    largest : float
        The largest difference, in tolerances.
    """

    commit: str
    modules: list[str]
    code: str
    versions: dict[str, str]
    cpu: str
    date: str
    cpu_seconds: float
    against: str
    strata: dict[str, float]
    of: int
    how: How
    largest: float = 0.0
    named: list[str] = field(default_factory=list)
    """What lies outside: column, run, both values."""


def marks_of(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the digest of runs: six hexadecimal digits for each, so that a change is found."""
    return "".join(_mark(run) for run in runs)


def _mark(run: Mapping[str, Any]) -> str:
    text = json.dumps(run, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_MARK]


def changed_runs(runs: Sequence[Mapping[str, Any]], marks: str) -> list[str]:
    """Return which runs differ from their digest: ``["run 3: {...}"]``."""
    kept = [marks[i : i + _MARK] for i in range(0, len(marks), _MARK)]
    if len(kept) != len(runs):
        return [f"{len(runs)} runs, and the digest is of {len(kept)}"]
    pairs = enumerate(zip(runs, kept, strict=True))
    return [f"run {i}: {_named(run)}" for i, (run, mark) in pairs if _mark(run) != mark]


def changed_rows(rows: Sequence[Row], derived: Sequence[Row]) -> list[str]:
    """Return which rows are not what their runs give, up to the rounding of floats."""
    if len(rows) != len(derived):
        return [f"{len(rows)} rows, and the runs give {len(derived)}"]
    pairs = enumerate(zip(rows, derived, strict=True))
    return [
        f"row {i}: {_named(row)} ({where})"
        for i, (row, own) in pairs
        for where in list(_differences(row, own))[:1]
    ]


def _named(row: Mapping[str, Any]) -> str:
    plain = {k: v for k, v in row.items() if isinstance(v, str | int | float)}
    return ", ".join(f"{key} {value}" for key, value in list(plain.items())[:6])


def _differences(one: Any, other: Any, where: str = "") -> Iterator[str]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if one.keys() != other.keys():
            yield f"{where or 'its columns'} differ: {sorted(one.keys() ^ other.keys())}"
        for key in one.keys() & other.keys():
            yield from _differences(one[key], other[key], f"{where}.{key}".lstrip("."))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from _differences(a, b, f"{where}[{i}]")
    elif isinstance(one, float) and isinstance(other, int | float):
        if not abs(one - other) <= 1e-9 * max(1.0, abs(other)):
            yield f"{where}: {one} is stored, {other} follows from the runs"
    elif one != other:
        yield f"{where}: {one!r} is stored, {other!r} follows from the runs"


def state_of(
    computed: Computed,
    verified: Sequence[Verified],
    runs: Sequence[Row],
    marks: str,
    root: Path = _ROOT,
) -> tuple[State, str]:
    """Return the state of a table, and why.

    Parameters
    ----------
    computed, verified : Computed, sequence of Verified
        The ledger of the table.
    runs, marks : sequence of dict, str
        The stored runs and their digest.
    root : Path
        The folder that holds the package whose code counts as today's.
    """
    last = verified[-1] if verified else computed
    if spoilt := changed_runs(runs, marks):
        return "broken", f"changed since it was computed: {spoilt[0]}"
    if isinstance(last, Verified) and last.how == "outside":
        return "broken", "; ".join(last.named[:2]) or "outside the spread"
    changed = last.code != code_of(last.modules, root)
    other = _other_versions(last.versions, root)
    if changed or other:
        why = f"its code has changed since {last.commit[:7] or last.date}" if changed else other
        return "unverified", why
    return _trusted(computed, verified)


def _trusted(computed: Computed, verified: Sequence[Verified]) -> tuple[State, str]:
    """Return the state of a table whose last entry is of today's code."""
    if not verified:
        return "current", f"computed on {computed.date}"
    last = verified[-1]
    done = {name for entry in verified if entry.code == last.code for name in entry.strata}
    seen = f"{len(done)} of {max(entry.of for entry in verified)} strata"
    if any(entry.how == "within" for entry in verified):
        return "moved", f"{seen} computed again on {last.date}, within the spread"
    if computed.code == last.code:
        return "current", f"computed on {computed.date}; {seen} computed again on {last.date}"
    return "verified", f"{seen} computed again on {last.date}, the same bits"


def _other_versions(versions: Mapping[str, str], root: Path) -> str:
    """Return which libraries have other versions: in the lock of a clone, or else installed."""
    lock = root / "requirements.lock"
    pinned = lock.read_text(encoding="utf-8").splitlines() if lock.is_file() else []
    found = []
    for name in NUMERIC:
        if name not in versions:
            continue
        now = {
            line.partition("==")[2].partition(";")[0].strip()
            for line in pinned
            if line.partition("==")[0].strip() == name
        }
        if not pinned:
            try:
                now = {version(name)}
            except PackageNotFoundError:
                continue
        if now and versions[name].partition("+")[0] not in now:
            found.append(f"{name} {versions[name]} then, {' or '.join(sorted(now))} now")
    return ", ".join(found)
