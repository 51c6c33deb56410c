"""``conceptnb train-language-model``: train the small language models of the steering chapters."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from conceptnb.steering.small_model_training import save_small_model, train_small_model
from conceptnb.steering.toy_corpora import CORPUS_KINDS, make_toy_corpus


def run(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Train and save each model asked for."""
    parser.add_argument("--corpus", choices=sorted(CORPUS_KINDS), help="by default all three")
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[0, 1, 2], help="training seeds (default 0 1 2)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path(), help="folder for the models (default: this one)"
    )
    args = parser.parse_args(words)
    for seed in args.seeds:
        for kind in [args.corpus] if args.corpus else CORPUS_KINDS:
            model, tokenizer, record = train_small_model(make_toy_corpus(kind), seed)
            save_small_model(model, tokenizer, record, args.out / f"{kind}-{seed}")
            print(f"{kind}-{seed}: loss {record['loss']:.3f}, {record['cpu_seconds']:.0f} CPU-s")
    return 0
