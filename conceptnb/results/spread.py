"""How far a table moves between seeds and processors, and whether sampled runs stay within.

Sums depend on the kernels of the processor's BLAS, and training amplifies the difference: one seed
of Table 7 moves by .01 in MCC. ``OPENBLAS_CORETYPE`` simulates other processors.
"""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from conceptnb import results
from conceptnb.results.runner import Row, Sample, find_plan
from conceptnb.results.store import cpu_info
from conceptnb.results.summarise import grouped

_KERNELS = {"Haswell": "avx2", "SkylakeX": "avx512f", "Prescott": "pni"}
"""Kernels of OpenBLAS, each with the processor's flag that it needs."""
_SETTING = ("mixing", "n", "dz", "dx")  # columns of the argument ``setting``


def measure_spread(result: results.Result) -> dict[str, Any]:
    """Compute a table's sampled runs under every kernel, and return how far they move.

    The tolerance of a group's mean is four standard deviations of the difference that two kernels
    make, half a standard error of the seeds, and the rounding of stored numbers.
    """
    sample = _sample(result.name, result.command)
    flags = cpu_info().get("flags", "").split()
    used = [name for name, flag in _KERNELS.items() if flag in flags]
    by_kernel = {name: _rows_under(name, result) for name in ["", *used]}
    columns = []
    for key in grouped(by_kernel[""], sample.by):
        for column in sample.columns:
            groups = [grouped(rows, sample.by)[key] for rows in by_kernel.values()]
            values = np.array([[run[column] for run in group] for group in groups])  # by kernel
            n = values.shape[1]
            over_kernels = float(np.sqrt(values.var(axis=0, ddof=1).mean()))
            over_seeds = float(values.mean(axis=0).std(ddof=1)) if n > 1 else 0.0
            rounding = 1e-4 * max(float(np.abs(values).mean()), 1e-2)
            tolerance = (4 * np.sqrt(2) * over_kernels + 0.5 * over_seeds) / np.sqrt(n) + rounding
            found = {"std_over_seeds": over_seeds, "std_over_kernels": over_kernels}
            found["tolerance"] = float(tolerance)
            columns.append(
                {"group": dict(zip(sample.by, key, strict=True)), "column": column, "runs": n}
                | {name: round(value, 6) for name, value in found.items()}
            )
    spread = {
        "kernels": ["native", *used],
        "skipped": [f"{name}: no {_KERNELS[name]}" for name in _KERNELS if name not in used],
        "columns": columns,
    }
    outside(dataclasses.replace(result, spread=spread), by_kernel[""])  # refuses a foreign sample
    return spread


def outside(result: results.Result, runs: Sequence[Row]) -> list[str]:
    """Return where the means of a sample's runs differ from a table's by more than its spread."""
    if not result.spread:
        raise ValueError(
            f"{result.name} has no measured spread: run `conceptnb results --spread {result.name}`"
        )
    sample = _sample(result.name, result.command)
    groups = grouped(runs, sample.by)
    stored = grouped(_asked_for(sample.task.arguments, result.runs), sample.by)
    found = []
    for entry in result.spread["columns"]:
        key = tuple(entry["group"][name] for name in sample.by)
        seeds = {run["seed"] for run in groups[key]}
        kept = [run for run in stored.get(key, []) if run["seed"] in seeds]
        if len(kept) != len(groups[key]):
            raise ValueError(
                f"{result.name}: the sample has {len(groups[key])} runs of {entry['group']} and "
                f"seeds {sorted(seeds)}, the table {len(kept)}"
            )
        column = entry["column"]
        mine, theirs = (np.mean([run[column] for run in r]) for r in (groups[key], kept))
        # The tolerance is of the mean of all sampled runs; that of fewer seeds varies more.
        tolerance = entry["tolerance"] * np.sqrt(max(1.0, entry["runs"] / len(kept)))
        if not abs(mine - theirs) <= tolerance:
            found.append(
                f"{column} of {entry['group'] or 'all runs'}: {mine:.6g}, stored {theirs:.6g}, "
                f"tolerance {tolerance:.2g}"
            )
    return found


def _asked_for(arguments: Mapping[str, Any], runs: Sequence[Row]) -> list[Row]:
    """Return the runs whose columns say what the arguments of the same names say."""
    asked = {**arguments, **dict(zip(_SETTING, arguments.get("setting", ()), strict=False))}
    plain = {name for name, value in asked.items() if isinstance(value, str | int | float)}
    names = plain - {"seed"}
    return [run for run in runs if all(run[k] == asked[k] for k in names & run.keys())]


def _sample(name: str, command: str) -> Sample:
    sample = find_plan(name, command).sample
    if sample is None:
        raise ValueError(f"{name}: its plan has no sample to compute again")
    return sample


def _rows_under(kernel: str, result: results.Result) -> list[Row]:
    environment = dict(os.environ) | ({"OPENBLAS_CORETYPE": kernel} if kernel else {})
    words = [sys.executable, "-m", __spec__.name, result.name, result.command]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"{result.name} under kernel {kernel or 'native'}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    print(json.dumps(_sample(*sys.argv[1:]).task()[0]))
