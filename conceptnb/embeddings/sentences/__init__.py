"""Sentences in a full grid of factors, and what a real model, all-MiniLM-L6-v2, makes of them."""

from conceptnb.embeddings.arithmetic import nearest
from conceptnb.embeddings.sentences.grid import CONCEPTS, FACTORS, grid
from conceptnb.embeddings.sentences.stored import embed_sentences, load_embeddings
from conceptnb.embeddings.sentences.transfer import (
    SHRINKAGE,
    STEPS,
    arithmetic,
    carry_over,
    carry_over_from,
    counterparts,
    differences,
    moved,
    shared,
)
