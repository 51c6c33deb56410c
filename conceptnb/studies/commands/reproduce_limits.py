"""``conceptnb reproduce limits``: what limits identifiability, one study a cause."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch

from conceptnb import results
from conceptnb.studies.limits_studies import MODULES, SEEDS, STUDIES, run_study


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--study", choices=("all", *STUDIES), default="all", help="which one")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="problems a cell")
    parser.add_argument(
        "--out", type=Path, help="JSON file; by default results/synthetic_limits[_STUDY].json"
    )
    parser.add_argument("--checkpoints", type=Path, help="folder to keep finished cells in")
    parser.add_argument("--threads", type=int, default=1, help="of torch")


def run(args: argparse.Namespace) -> int:
    """Run the studies, print their rows and write them with provenance."""
    if args.seeds < 1:
        raise ValueError("--seeds must be at least 1")
    torch.set_num_threads(args.threads)
    seeds = range(SEEDS[0], SEEDS[0] + args.seeds)
    chosen = list(STUDIES) if args.study == "all" else [args.study]
    started = time.process_time()
    rows: list[dict[str, Any]] = []
    for name in chosen:
        for row in run_study(STUDIES[name], seeds, checkpoints=args.checkpoints):
            rows.append(row)
            print(format_row(row), flush=True)
    suffix = "" if args.study == "all" else f"_{args.study}"
    out = args.out or results.folder() / f"synthetic_limits{suffix}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    fits = sum(row["cpu_seconds"] * row["seeds"] for row in rows)
    by_seed = [row.pop("by_seed") for row in rows]
    path = results.save(
        out.stem,
        rows,
        command=results.command_line(),
        modules=[*MODULES, *(module for name in chosen for module in STUDIES[name].modules)],
        seeds=seeds,
        # Of this process or of the fits alone, where cells ran elsewhere or before.
        cpu_seconds=max(time.process_time() - started, fits),
        notes={
            "by_seed": by_seed,
            "studies": {name: [STUDIES[name].question, STUDIES[name].axis] for name in chosen},
            "data": "synthetic, drawn as in Appendix G by the exact sampler",
            "losses": "softmax over environments, nats a row, on held-out rows",
            "scores": "on 5000 fresh base samples",
        },
        where=out.parent,
    )
    print(f"wrote {path}")
    return 0


def format_row(row: dict[str, Any]) -> str:
    """Return a row as a line of text."""
    read = "    -" if row["read_mcc_mean"] is None else f"{row['read_mcc_mean']:.3f}"
    memory = f"  {row['peak_gb']:.2f} GB" if "peak_gb" in row else ""
    return (
        f"{row['study']:12} {row['series']:20} {row['level']!s:9} "
        f"R² {row['r2_mean']:.3f} ± {row['r2_std']:.3f}  "
        f"MCC {row['mcc_mean']:.3f} ± {row['mcc_std']:.3f}  read {read}  "
        f"supervised R² {row['supervised_r2_mean']:.3f}  "
        f"loss above oracle {row['excess_loss_mean']:+.4f}  "
        f"{row['cpu_seconds']:.1f} s{memory}"
    )
