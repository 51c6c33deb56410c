"""``python -m benchmarks``: measure every ratio and keep the table in results/benchmarks.json."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import re
import sys
import time
from pathlib import Path
from typing import Any

import benchmarks
from benchmarks.measure import measured
from conceptnb import results

_TOOLS = ("measure", "__main__")


def main(arguments: list[str] | None = None) -> int:
    """Measure parts and print their rows; write the table where all were measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(_parts())}")
    parser.add_argument("--repeats", type=int, help="pairs per row, in place of each row's own")
    parser.add_argument("--out", type=Path, help="file to write, also where parts are named")
    options = parser.parse_args(arguments)
    parts = options.parts or _parts()
    if unknown := set(parts) - set(_parts()):  # not `choices`, which refuse that no part is named
        parser.error(f"PART: invalid choice: {', '.join(sorted(unknown))} (of {_parts()})")
    started = time.process_time()
    rows = _measure(parts, options.repeats)
    out = options.out or (None if options.parts else results.folder() / "benchmarks.json")
    if out is not None:
        kept = results.with_provenance(
            "benchmarks",
            rows,
            command="make bench",
            modules=_measured_modules(parts),
            seeds=[],
            cpu_seconds=time.process_time() - started,
            notes={
                "ratio": "cost of `against` divided by that of `what`, CPU seconds as a rule; "
                "median, least and largest of `repeats` pairs measured in turn",
                "rows_on_page": len(rows),
            },
        )
        print(f"wrote {results.save(kept, out)}")
    return 0


def _parts() -> list[str]:
    """Return the modules of this folder that have benchmarks."""
    found = (module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    return sorted(name for name in found if name not in _TOOLS)


def _measure(parts: list[str], repeats: int | None) -> list[dict[str, Any]]:
    rows = []
    for part in parts:
        for benchmark in importlib.import_module(f"benchmarks.{part}").benchmarks():
            row = measured(part, benchmark, repeats)
            below = " BELOW" if row["ratio_median"] < (row["at_least"] or 0) else ""
            print(
                f"{part}: {row['what']} against {row['against']}: {row['ratio_median']:g} "
                f"({row['ratio_min']:g} to {row['ratio_max']:g}){below}",
                flush=True,
            )
            rows.append(row)
    return rows


def _measured_modules(parts: list[str]) -> list[str]:
    """Return the modules of the package that the benchmarks import."""
    folder = Path(__file__).parent
    code = "\n".join((folder / f"{part}.py").read_text(encoding="utf-8") for part in parts)
    imported = re.findall(r"^from (conceptnb\.\S+) import", code, re.MULTILINE)
    return sorted({"conceptnb.common.validation", *imported})


if __name__ == "__main__":
    sys.exit(main())
