"""``conceptnb train-world``: train the small language models of the steering chapters."""

from __future__ import annotations

import argparse
from pathlib import Path

from conceptnb.steering.worlds.language_models import WORLDS_DIR, save_trained, train_world
from conceptnb.steering.worlds.toy_corpora import KINDS, make_world


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--world", choices=sorted(KINDS), help="one world; by default all three")
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[0, 1, 2], help="training seeds (default 0 1 2)"
    )
    parser.add_argument(
        "--out", type=Path, help="folder for the models; by default the package's own"
    )


def run(args: argparse.Namespace) -> int:
    """Train and save each model asked for."""
    folder = args.out or WORLDS_DIR
    for seed in args.seeds:
        for kind in [args.world] if args.world else KINDS:
            model, tokenizer, record = train_world(make_world(kind), seed)
            save_trained(model, tokenizer, record, folder / f"{kind}-{seed}")
            print(f"{kind}-{seed}: loss {record['loss']:.3f}, {record['cpu_seconds']:.0f} CPU-s")
    return 0
