"""``conceptnb reproduce synthetic``: Tables 1 and 7, ours beside the paper's."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch
from joblib import Parallel, delayed
from tqdm.auto import tqdm

from conceptnb import results
from conceptnb.core.problems import PAPER_SEEDS, TABLE_1, TABLE_7, Setting
from conceptnb.studies.supervised import supervised_row
from conceptnb.studies.synthetic_report import paper_row
from conceptnb.studies.synthetic_tables import Estimator, reproduce_row

_SHARED = [
    f"conceptnb.{name}"
    for name in ("concepts", "environments", "metrics", "mixing", "sampling", "synthetic")
] + [
    f"conceptnb.learning.{name}"
    for name in (
        "data",
        "encoders",
        "fitting",
        "heads",
        "losses",
        "model",
        "sides",
        "tables",
        "training",
    )
]
MODULES = {
    "faithful": _SHARED,
    "best": [*_SHARED, "conceptnb.learning.best", "conceptnb.learning.linear"],
    "clustered": [
        *_SHARED,
        *(f"conceptnb.learning.{name}" for name in ("best", "clusters", "linear", "variants")),
    ],
    "supervised": [*_SHARED, "conceptnb.learning.best", "conceptnb.studies.supervised"],
}
"""What the numbers of each estimator depend on."""
BY_SEED = ("r2", "mcc", "r2_fresh", "mcc_fresh", "mcc_sides", "held_out_loss", "oracle_loss")
"""What a row holds for every seed; kept beside the table, not in it."""
TABLES = {"1": TABLE_1, "7": TABLE_7, "all": TABLE_1 + TABLE_7}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--table", choices=TABLES, default="all", help="which of the paper's")
    parser.add_argument(
        "--estimator",
        choices=tuple(MODULES),
        default="faithful",
        help="the authors' protocol, the book's best, that for clustered bases (nonlinear rows), "
        "or regression on the truth as a bound",
    )
    parser.add_argument("--seeds", type=int, default=len(PAPER_SEEDS), help="problems a row")
    parser.add_argument(
        "--first-seed", type=int, default=PAPER_SEEDS[0], help="of consecutive seeds"
    )
    parser.add_argument(
        "--out", type=Path, help="JSON file; by default results/synthetic_ESTIMATOR.json"
    )
    parser.add_argument(
        "--jobs", type=int, default=2, help="rows computed at a time, one thread each"
    )


def run(args: argparse.Namespace) -> int:
    """Compute the rows, print them beside the paper's and write them with provenance."""
    if args.seeds < 1 or args.first_seed < 0:
        raise ValueError("--seeds must be at least 1 and --first-seed at least 0")
    if args.jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {args.jobs}")
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    wall, cpu_seconds = time.perf_counter(), 0.0
    rows: list[dict[str, Any]] = []
    print(_HEADER, flush=True)
    # Processes and not threads: small matrix products hardly gain from a second thread.
    parallel = Parallel(n_jobs=args.jobs, return_as="generator")
    settings = [
        setting
        for setting in TABLES[args.table]
        if args.estimator != "clustered" or setting.mixing == "nonlinear"
    ]
    tasks = (delayed(_timed_row)(s, args.estimator, seeds) for s in settings)
    for row, seconds in tqdm(parallel(tasks), total=len(settings), unit="row"):
        rows.append(row)
        cpu_seconds += seconds
        tqdm.write(format_row(row))
    name = f"synthetic_{args.estimator}" + ("" if args.table == "all" else f"_table{args.table}")
    out = args.out or results.folder() / f"{name}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    by_seed = [{name: row.pop(name) for name in BY_SEED if name in row} for row in rows]
    path = results.save(
        out.stem,
        rows,
        command=results.command_line(),
        modules=MODULES[args.estimator],
        seeds=seeds,
        cpu_seconds=cpu_seconds,
        notes={
            "paper_table": "table1_table7",
            "by_seed": by_seed,
            "data": "synthetic, drawn as in Appendix G by the exact sampler",
            "wall_seconds": round(time.perf_counter() - wall, 1),
            "problems": len(rows) * len(seeds),
        },
        where=out.parent,
    )
    print(f"wrote {path}")
    return 0


def _timed_row(
    setting: Setting, estimator: str, seeds: Sequence[int]
) -> tuple[dict[str, Any], float]:
    torch.set_num_threads(1)
    started = time.process_time()
    if estimator == "supervised":
        row = supervised_row(setting, seeds=seeds, progress=False)
    else:
        row = reproduce_row(setting, cast(Estimator, estimator), seeds=seeds, progress=False)
    return row, time.process_time() - started


_HEADER = (
    "mixing    (n, dz, dx)    R² paper     ours         fresh   MCC paper    ours         fresh"
    "   CPU s a problem"
)


def format_row(row: dict[str, Any]) -> str:
    """Return a row as a line of text: the paper's mean ± std, ours, ours on fresh samples."""
    printed = paper_row(row)
    cells = []
    for name, theirs in (("r2", printed[4]), ("mcc", printed[5])):
        cells += [
            f"{theirs[0]:.2f} ± {theirs[1]:.2f}",
            f"{row[f'{name}_mean']:.3f} ± {row[f'{name}_std']:.3f}",
            f"{row[f'{name}_fresh_mean']:.3f}",
        ]
    sizes = f"({row['n']}, {row['dz']}, {row['dx']})"
    return (
        f"{row['mixing']:<9} {sizes:<14} "
        + "  ".join(f"{c:<13}" for c in cells)
        + (f"{row['cpu_seconds']:.2f}")
    )
