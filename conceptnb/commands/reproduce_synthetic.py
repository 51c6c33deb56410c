"""``conceptnb reproduce synthetic``: Tables 1 and 7, ours beside the paper's."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import torch

from conceptnb import results
from conceptnb.contrastive.report import paper_row
from conceptnb.contrastive.tables import reproduce_row
from conceptnb.synthetic import PAPER_SEEDS, TABLE_1, TABLE_7

MODULES = [
    f"conceptnb.{name}"
    for name in ("concepts", "environments", "metrics", "mixing", "sampling", "synthetic")
] + [
    f"conceptnb.contrastive.{name}"
    for name in (
        *("best", "data", "encoders", "fitting", "heads", "linear"),
        *("losses", "model", "tables", "training"),
    )
]
BY_SEED = ("r2", "mcc", "r2_fresh", "mcc_fresh", "held_out_loss", "oracle_loss")
"""What a row holds for every seed; kept beside the table, not in it."""
TABLES = {"1": TABLE_1, "7": TABLE_7, "all": TABLE_1 + TABLE_7}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--table", choices=TABLES, default="all", help="which of the paper's")
    parser.add_argument(
        "--estimator",
        choices=("faithful", "best"),
        default="faithful",
        help="the authors' protocol, or the book's best estimator",
    )
    parser.add_argument("--seeds", type=int, default=len(PAPER_SEEDS), help="problems a row")
    parser.add_argument(
        "--first-seed", type=int, default=PAPER_SEEDS[0], help="of consecutive seeds"
    )
    parser.add_argument(
        "--out", type=Path, help="JSON file; by default results/synthetic_ESTIMATOR.json"
    )
    parser.add_argument("--threads", type=int, default=2, help="of torch")


def run(args: argparse.Namespace) -> int:
    """Compute the rows, print them beside the paper's and write them with provenance."""
    if args.seeds < 1 or args.first_seed < 0:
        raise ValueError("--seeds must be at least 1 and --first-seed at least 0")
    torch.set_num_threads(args.threads)
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    started, wall = time.process_time(), time.perf_counter()
    rows: list[dict[str, Any]] = []
    print(_HEADER)
    for setting in TABLES[args.table]:
        rows.append(reproduce_row(setting, args.estimator, seeds=seeds))
        print(format_row(rows[-1]), flush=True)
    name = f"synthetic_{args.estimator}" + ("" if args.table == "all" else f"_table{args.table}")
    out = args.out or results.folder() / f"{name}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    by_seed = [{name: row.pop(name) for name in BY_SEED} for row in rows]
    path = results.save(
        out.stem,
        rows,
        command="conceptnb " + " ".join(sys.argv[1:]),
        modules=MODULES,
        seeds=seeds,
        cpu_seconds=time.process_time() - started,
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
