"""``conceptnb train-language-model``: train the small language models of the steering chapters."""

import argparse
from collections.abc import Sequence

from conceptnb.results.runner import _check_out, _refuse_outside
from conceptnb.steering.toy_corpora import CORPUS_KINDS, make_toy_corpus


def run(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Train and save each model asked for."""
    args = parser.parse_args(words)
    _refuse_outside("seeds", args.seeds, {})
    kinds = [args.corpus] if args.corpus else [*CORPUS_KINDS]
    wanted = {(kind, seed): args.out / f"{kind}-{seed}" for seed in args.seeds for kind in kinds}
    for folder in wanted.values():
        _check_out(folder / "model.safetensors", args.force)
    from conceptnb.steering.small_model_training import save_small_model, train_small_model  # noqa: PLC0415 - brings torch

    for (kind, seed), folder in wanted.items():
        model, tokenizer, record = train_small_model(make_toy_corpus(kind), seed)
        save_small_model(model, tokenizer, record, folder)
        print(f"{kind}-{seed}: loss {record['loss']:.3f}, {record['cpu_seconds']:.0f} CPU-s")
    return 0
