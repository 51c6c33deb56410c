"""``conceptnb embed-sentences``: embeddings of the book's sentences by all-MiniLM-L6-v2."""

import argparse
import hashlib
import time
from collections.abc import Sequence
from importlib.metadata import version

import numpy as np

from conceptnb.embeddings.sentences import stored
from conceptnb.results.runner import _check_out, _refuse_outside

_LIBRARIES = ("torch", "transformers", "numpy")
_PUBLISHED = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Hash of ``model.safetensors`` of sentence-transformers/all-MiniLM-L6-v2."""


def run(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Embed the sentences with and without training, and say by which weights."""
    args = parser.parse_args(words)
    _check_out(args.out, args.force)
    _refuse_outside("seed", args.seed, {})
    if args.model is not None and not (args.model / "model.safetensors").is_file():
        raise FileNotFoundError(f"--model {args.model} is no folder with a model.safetensors")
    from safetensors.numpy import save_file  # noqa: PLC0415 - of the extras, not of the core

    from conceptnb.common.sentence_bert import packaged_model  # noqa: PLC0415 - brings torch

    start, grid, model = time.process_time(), stored.grid(), args.model or packaged_model()
    found = {
        "minilm": stored.embed_sentences(grid.texts, model),
        "untrained": stored.embed_sentences(grid.texts, model, untrained_seed=args.seed),
    }
    weights = hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()
    record = {
        "model": "sentence-transformers/all-MiniLM-L6-v2",
        "weights_sha256": weights,
        "sentences_sha256": grid.sha256,
        "untrained_seed": str(args.seed),
        "cpu_seconds": f"{time.process_time() - start:.1f}",
        "versions": ", ".join(f"{name} {version(name)}" for name in _LIBRARIES),
        "command": "conceptnb embed-sentences",
    }
    kept = {name: np.ascontiguousarray(rows, dtype=np.float16) for name, rows in found.items()}
    save_file(kept, args.out, record)
    said = "as published" if weights == _PUBLISHED else "not those that were published"
    print(f"weights: {said}\n{args.out}: {record['cpu_seconds']} CPU-s")
    return 0
