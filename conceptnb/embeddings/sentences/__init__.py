"""Sentences in a full grid of factors, and what a real sentence model makes of them.

The model is all-MiniLM-L6-v2; nobody here trained it. Its embeddings of our sentences come
with the package (`load`), those of other sentences from the weights (`embed`).
"""

from conceptnb.embeddings.sentences.arithmetic import (
    STEPS,
    arithmetic,
    counterparts,
    moved,
    nearest,
)
from conceptnb.embeddings.sentences.grid import (
    CONCEPTS,
    FACTORS,
    Grid,
    describe,
    factor_index,
    grid,
)
from conceptnb.embeddings.sentences.stored import bag_of_words, embed, load
from conceptnb.embeddings.sentences.transfer import (
    SHRINKAGE,
    CarriedOver,
    carry_over,
    carry_over_from,
    cosines,
    differences,
    shared,
    split_combinations,
)

__all__ = [
    "CONCEPTS",
    "FACTORS",
    "SHRINKAGE",
    "STEPS",
    "CarriedOver",
    "Grid",
    "arithmetic",
    "bag_of_words",
    "carry_over",
    "carry_over_from",
    "cosines",
    "counterparts",
    "describe",
    "differences",
    "embed",
    "factor_index",
    "grid",
    "load",
    "moved",
    "nearest",
    "shared",
    "split_combinations",
]
