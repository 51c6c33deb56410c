"""``conceptnb reproduce variants``: heads and losses compared, and n chosen."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from tqdm.auto import tqdm

from conceptnb import results
from conceptnb.core.problems import PAPER_SEEDS, TABLE_1
from conceptnb.studies.head_variants import STARTS, TRAINING, choose_n, compare_variants

MODULES = [
    f"conceptnb.{name}"
    for name in ("concepts", "environments", "metrics", "mixing", "sampling", "synthetic")
] + [
    f"conceptnb.learning.{name}"
    for name in ("data", "encoders", "fitting", "heads", "losses", "model", "training", "variants")
]
SETTINGS = (TABLE_1[2], TABLE_1[1])
"""Linear (3, 4, 6), where starts get stuck, and the smallest nonlinear row."""
CANDIDATES = range(1, 6)
"""Numbers of concepts to choose among, for the first of the settings."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--seeds", type=int, default=len(PAPER_SEEDS), help="problems a row")
    parser.add_argument("--samples", type=int, default=1000, help="an environment")
    parser.add_argument("--out", type=Path, help="by default results/synthetic_variants.json")


def run(args: argparse.Namespace) -> int:
    """Fit every variant to every setting and write the rows with provenance."""
    if args.seeds < 1 or args.samples < 10:
        raise ValueError("--seeds must be at least 1 and --samples at least 10")
    torch.set_num_threads(1)
    seeds = range(PAPER_SEEDS[0], PAPER_SEEDS[0] + args.seeds)
    started = time.process_time()
    rows: list[dict[str, Any]] = []
    for setting in tqdm(SETTINGS, unit="setting"):
        for row in compare_variants(setting, seeds, samples=args.samples):
            rows.append({"study": "variants"} | row)
            print(
                f"{row['mixing']:9} {row['variant']:26} R² {row['r2_mean']:.3f}  "
                f"MCC {row['mcc_mean']:.3f} ± {row['mcc_std']:.3f}  "
                f"excess loss {row['excess_loss_mean']:+.4f}",
                flush=True,
            )
    for row in choose_n(SETTINGS[0], seeds, CANDIDATES, samples=args.samples):
        rows.append({"study": "number"} | row)
        print(
            f"{row['variant']}  excess loss {row['excess_loss_mean']:+.4f}  chosen {row['chosen']}"
        )
    by_seed = [row.pop("by_seed") for row in rows]
    out = args.out or results.folder() / "synthetic_variants.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    path = results.save(
        out.stem,
        rows,
        command=results.command_line(),
        modules=MODULES,
        seeds=seeds,
        cpu_seconds=time.process_time() - started,
        notes={
            "by_seed": by_seed,
            "samples": args.samples,
            "starts": STARTS,
            "training": asdict(TRAINING),
            "data": "synthetic, drawn as in Appendix G by the exact sampler; authors' environments",
            "scores": "on 5000 fresh base samples",
        },
        where=out.parent,
    )
    print(f"wrote {path}")
    return 0
