"""``conceptnb embed-sentences``: embeddings of the book's sentences by all-MiniLM-L6-v2."""

from __future__ import annotations

import argparse
from pathlib import Path

from conceptnb.embeddings.sentences import stored as embeddings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "--model",
        type=Path,
        help=f"directory of the model; by default that of the package {embeddings.EXTRA}",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the untrained control (default 0)")
    parser.add_argument(
        "--out", type=Path, default=embeddings.FILE, help="file; by default the package's own"
    )


def run(args: argparse.Namespace) -> int:
    """Embed the sentences and say with which weights."""
    model = args.model or embeddings.packaged_model()
    record = embeddings.save(args.out, model, args.seed)
    same = record["weights_sha256"] == embeddings.WEIGHTS_SHA256
    print(f"weights: {'as published' if same else 'not those that were published'}")
    print(f"{args.out}: {record['cpu_seconds']} CPU-s")
    return 0
