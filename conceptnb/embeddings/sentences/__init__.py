"""Sentences in a full grid of factors, and what a real sentence model makes of them.

The model is all-MiniLM-L6-v2; nobody here trained it. Its embeddings of our sentences come
with the package (`load_embeddings`), those of other sentences from the weights
(`embed_sentences`).
"""

from conceptnb.embeddings.arithmetic import nearest
from conceptnb.embeddings.sentences.grid import CONCEPTS, FACTORS, Grid, grid
from conceptnb.embeddings.sentences.stored import embed_sentences, load_embeddings
from conceptnb.embeddings.sentences.transfer import (
    SHRINKAGE,
    STEPS,
    CarriedOver,
    arithmetic,
    carry_over,
    carry_over_from,
    counterparts,
    differences,
    moved,
    shared,
)

__all__ = [
    "CONCEPTS",
    "FACTORS",
    "SHRINKAGE",
    "STEPS",
    "CarriedOver",
    "Grid",
    "arithmetic",
    "carry_over",
    "carry_over_from",
    "counterparts",
    "differences",
    "embed_sentences",
    "grid",
    "load_embeddings",
    "moved",
    "nearest",
    "shared",
]
