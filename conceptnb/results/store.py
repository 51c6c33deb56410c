"""Computed tables, ``results/NAME.json``, with their provenance: command, code, versions, seeds."""

import html
import json
import platform
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from conceptnb import __version__
from conceptnb.common.files import write_text
from conceptnb.results import paper
from conceptnb.results.ledger import Computed, Verified, marks_of, state_of
from conceptnb.results.provenance import code_of
from conceptnb.results.show import Table

_CHECKOUT = Path(__file__).resolve().parents[2]
_SHIPPED = Path(__file__).with_name("tables")  # of an installed package: see setup.py
_SHOWN_ROWS = 15  # more than the paper's longest table has; the file holds them all
_DOUBTED = ("unverified", "broken")
_VERSIONS = ("numpy", "scipy", "scikit-learn", "torch", "open_clip_torch", "transformers")


@dataclass(frozen=True)
class Result:
    """A computed table and its provenance, ``results/NAME.json``."""

    name: str
    rows: list[dict[str, Any]]
    """What pages show: one dict of plain JSON values per row."""
    command: str
    """What computes it again, as one would type it."""
    seeds: list[int]
    """The seeds over which means and deviations are taken."""
    computed: Computed
    """What computed it; written once."""
    runs: list[dict[str, Any]] = field(default_factory=list)
    """What the rows summarise: one dict per run, each with its seed."""
    marks: str = ""
    """The digest of the runs (of rows without runs), see `conceptnb.results.ledger.marks_of`."""
    verified: list[Verified] = field(default_factory=list)
    """What has been seen of it since, in the order of time."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Sizes, settings, what is synthetic; ``paper_table`` names the table that it stands beside."""
    spread: dict[str, Any] = field(default_factory=dict)
    """How far the sampled runs move, see `conceptnb.results.spread`; empty until measured."""

    @property
    def cpu_seconds(self) -> float:
        """What it took to compute."""
        return self.computed.cpu_seconds

    def state(self) -> tuple[str, str]:
        """Return "current", "verified", "moved", "unverified" or "broken", and why."""
        return state_of(self.computed, self.verified, self.runs or self.rows, self.marks)


def save(result: Result, path: Path) -> Path:
    """Write a computed table to `path`, which is replaced in one step.

    Raises ValueError where there are no rows, the note ``paper_table`` names no table of the paper,
    or a value is NaN (write None for what was not computed), and TypeError for what JSON lacks.
    """
    if not result.rows:
        raise ValueError("rows is empty: there is nothing to keep")
    if "paper_table" in result.notes:
        paper.printed(result.notes["paper_table"])  # refuses a table that is not there
    write_text(path, _as_text(asdict(result)))
    return path


def _as_text(content: Mapping[str, Any]) -> str:
    """Return JSON with a line for each row, run and check, so that a diff shows them whole."""
    entries = []
    for key, value in content.items():
        text = _as_line(value)
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(f"  {_as_line(each)}" for each in value) + "\n ]"
        entries.append(f" {_as_line(key)}: {text}")
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _as_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def with_provenance(
    name: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    runs: Sequence[Mapping[str, Any]] = (),
    command: str,
    modules: Sequence[str],
    seeds: Sequence[int],
    cpu_seconds: float,
    notes: Mapping[str, Any] | None = None,
) -> Result:
    """Return a `Result` with where it comes from: code, versions, processor and day."""
    return Result(
        name=name,
        rows=[dict(row) for row in rows],
        runs=[dict(run) for run in runs],
        marks=marks_of(runs or rows),
        command=command,
        computed=Computed(**signed(modules, cpu_seconds)),
        seeds=[int(seed) for seed in seeds],
        notes=dict(notes or {}),
    )


def signed(modules: Sequence[str], cpu_seconds: float) -> dict[str, Any]:
    """Return what an entry of the ledger says of today's code and machine: see `Computed`.

    Raises ValueError where a module is not there, or none is named.
    """
    code = code_of(modules)
    if not code:
        raise ValueError(f"modules: {', '.join(modules) or 'none'}: name modules that are there")
    return {
        "commit": _commit(),
        "modules": sorted(modules),
        "code": code,
        "versions": _versions(),
        "cpu": _processor(),
        "date": date.today().isoformat(),
        "cpu_seconds": round(float(cpu_seconds), 1),
    }


def _commit() -> str:
    words = ["git", "rev-parse", "HEAD"]
    with suppress(OSError):
        done = subprocess.run(words, cwd=_CHECKOUT, capture_output=True, text=True, check=False)
        return done.stdout.strip()
    return ""


def _processor() -> str:
    name = cpu_info().get("model name", platform.processor() or platform.machine())
    kernels = {pool.get("architecture") for pool in threadpool_info()} - {None}
    return f"{name} ({', '.join(sorted(map(str, kernels)))})" if kernels else name


def cpu_info() -> dict[str, str]:
    """Return what Linux says of a processor, such as its ``flags``; nothing elsewhere."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    named = (line.partition(":") for line in lines)
    return {name.strip(): said.strip() for name, _, said in named}


def load(name: str, where: Path | None = None) -> Result:
    """Read the computed table of a name, in `where` alone, or in `folder` or else as shipped.

    FileNotFoundError if there is none.
    """
    places = [where] if where else [folder(), _SHIPPED]
    found = [path for place in places if (path := place / f"{name}.json").is_file()]
    if not found:
        present = ", ".join(names(where)) or "none"
        raise FileNotFoundError(
            f"{name!r} is not among the computed tables ({present}): run "
            "`conceptnb reproduce --help` to see which command computes it"
        )
    return read(found[0])


def read(path: Path) -> Result:
    """Read a computed table from a file, whose name the error has if it is damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        known = {f.name for f in fields(Result)}
        content["computed"] = Computed(**content["computed"])
        content["verified"] = [Verified(**entry) for entry in content.get("verified", ())]
        return Result(**{key: value for key, value in content.items() if key in known})
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"{path} is no computed table ({error}): compute it again") from None


def names(where: Path | None = None) -> list[str]:
    """Return the names of the tables that `load` finds."""
    places = [where] if where else [folder(), _SHIPPED]
    return sorted({path.stem for place in places for path in place.glob("*.json")})


@dataclass(frozen=True)
class Shown:
    """Computed tables as a page shows them: each with its provenance, or a note that says none."""

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


def _html(result: Result) -> str:
    """Return the rows, of a long table the first ones, and below them where they come from."""
    rows = result.rows[: result.notes.get("rows_on_page", _SHOWN_ROWS)]
    table = Table(rows, ".3g")._repr_html_()
    left_out = len(result.rows) - len(rows)
    facts = [f"<strong>results/{html.escape(result.name)}.json</strong>"]
    if left_out > 0:
        facts.append(f"the first {len(rows)} of {len(result.rows):,} rows")
    facts += [
        f"<code>{html.escape(result.command)}</code>",
        f"{len(result.seeds)} seeds" if len(result.seeds) != 1 else "1 seed",
        f"{result.cpu_seconds:,.0f} CPU seconds",
        html.escape(result.computed.cpu),
        ", ".join(f"{library} {n}" for library, n in result.computed.versions.items()),
        f"commit {result.computed.commit[:7]}" if result.computed.commit else "",
        _doubt(result),
    ]
    facts = [fact for fact in facts if fact]
    return f'<div class="computed">{table}<p class="provenance">{" · ".join(facts)}</p></div>'


def _doubt(result: Result) -> str:
    """Return what a page says of a table that today's code does not give to the last bit."""
    state, why = result.state()
    if state == "moved":
        return f"<strong>computed on {result.computed.date}; by today's code {why}</strong>"
    return f"<strong>{state}: {html.escape(why)}</strong>" if state in _DOUBTED else ""


def folder() -> Path:
    """Return ``results/`` of the checkout, or of the working folder for an installed package."""
    return (_CHECKOUT if (_CHECKOUT / "pyproject.toml").is_file() else Path.cwd()) / "results"


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "conceptnb": __version__}
    for name in _VERSIONS:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
