"""``conceptnb reproduce baselines``: what a reader would try instead, on Table 1's problems."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tqdm.auto import tqdm

from conceptnb import results
from conceptnb.core.problems import PAPER_SEEDS, TABLE_1
from conceptnb.learning.baselines.network_training import Budget
from conceptnb.studies.baseline_comparison import METHODS, SCORES, compare
from conceptnb.studies.limits_studies import kept_row

MODULES = [
    f"conceptnb.{package}{name}"
    for package, names in (
        ("", "baselines concepts disentanglement environments metrics mixing sampling synthetic"),
        ("contrastive.", "best data encoders fitting heads linear losses model training"),
    )
    for name in names.split()
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--method", choices=("all", *METHODS), default="all")
    parser.add_argument("--rows", type=int, default=2, help="of Table 1, from the first")
    parser.add_argument("--seeds", type=int, default=len(PAPER_SEEDS), help="problems a row")
    parser.add_argument(
        "--samples", type=int, default=1000, help="an environment; the paper's 5000"
    )
    parser.add_argument("--out", type=Path, help="by default results/synthetic_baselines.json")
    parser.add_argument("--checkpoints", type=Path, help="folder to keep finished rows in")
    parser.add_argument("--threads", type=int, default=1, help="of torch")


def run(args: argparse.Namespace) -> int:
    """Run every method on every setting of Table 1 and write the rows with provenance."""
    if args.seeds < 1 or args.samples < 10 or args.rows < 1:
        raise ValueError("--seeds and --rows must be at least 1, --samples at least 10")
    torch.set_num_threads(args.threads)
    seeds = range(PAPER_SEEDS[0], PAPER_SEEDS[0] + args.seeds)
    methods = METHODS if args.method == "all" else (args.method,)
    started = time.process_time()
    rows: list[dict[str, Any]] = []
    for setting in tqdm(TABLE_1[: args.rows], desc="settings", unit="setting"):
        for method in methods:
            key = f"{setting} {method} {seeds} {args.samples} {results.source_hash(MODULES)}"
            work = partial(compare, setting, method, seeds, samples=args.samples)
            rows.append(kept_row(args.checkpoints, key, work))
            print(format_row(rows[-1]), flush=True)
    out = args.out or results.folder() / "synthetic_baselines.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    by_seed = [{name: row.pop(name) for name in SCORES} for row in rows]
    path = results.save(
        out.stem,
        rows,
        command=results.command_line(),
        modules=MODULES,
        seeds=seeds,
        # Of this process or of the fits alone, where an earlier run computed rows.
        cpu_seconds=max(
            time.process_time() - started, len(seeds) * sum(row["cpu_seconds"] for row in rows)
        ),
        notes={
            "by_seed": by_seed,
            "samples": args.samples,
            "budget": asdict(Budget()),
            "data": "synthetic, drawn as in Appendix G by the exact sampler; authors' environments",
            "scores": "on 5000 fresh base samples",
        },
        where=out.parent,
    )
    print(f"wrote {path}")
    return 0


def format_row(row: dict[str, Any]) -> str:
    """Return a row as a line of text."""
    return (
        f"{row['mixing']:9} ({row['n']}, {row['dz']}, {row['dx']})  {row['method']:17} "
        f"{row['codes']:3} codes  R² {row['r2_mean']:.3f} ± {row['r2_std']:.3f}  "
        f"MCC {row['mcc_mean']:.3f} ± {row['mcc_std']:.3f}  "
        f"within {row['mcc_within_mean']:.3f}  "
        f"cross-fitted {row['r2_cross_mean']:.3f} / {row['mcc_cross_mean']:.3f}  "
        f"{row['cpu_seconds']:.2f} s"
    )
