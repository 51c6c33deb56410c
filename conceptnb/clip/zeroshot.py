"""Zero-shot classification: which caption fits an image best.

The class of a value is the mean embedding of captions that name it and draw all
other attributes at random, as CLIP's prompt ensembles average over templates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.shapes3d import FACTORS, SIZES, captions, check_factors, factor_index

from .towers import Tower

TOLERANCE = {"scale": 1, "orientation": 2}
"""Steps on the grid that a prediction may be off: neighbours hardly differ in an image."""


def unit(vectors: NDArray[np.floating]) -> NDArray[np.floating]:
    """Rows of unit length."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def class_embeddings(
    tower: Tower, factor: str, rng: np.random.Generator, *, n_captions: int = 100
) -> NDArray[np.floating]:
    """Embed the values of a factor as unit text vectors (n_values, dimension).

    All values share the same captions but for the factor's own word, so that
    their differences are due to that word.
    """
    column = factor_index(factor)
    contexts = np.stack([rng.integers(0, size, n_captions) for size in SIZES], axis=1)
    rows = []
    for value in range(SIZES[column]):
        contexts[:, column] = value
        rows.append(unit(tower.embed_texts(captions(contexts))).mean(axis=0))
    return unit(np.stack(rows))


def zero_shot(
    tower: Tower, embeddings: NDArray[np.floating], factor: str, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Predicted value (n,) of a factor for image embeddings (n, dimension)."""
    return (unit(embeddings) @ class_embeddings(tower, factor, rng).T).argmax(axis=1)


def zero_shot_accuracies(
    tower: Tower, embeddings: NDArray[np.floating], factors: ArrayLike, rng: np.random.Generator
) -> dict[str, float]:
    """Share of right predictions for each factor, within `TOLERANCE` steps."""
    array = check_factors(factors)
    result: dict[str, float] = {}
    for column, name in enumerate(FACTORS):
        off = np.abs(zero_shot(tower, embeddings, name, rng) - array[:, column])
        result[name] = float((off <= TOLERANCE.get(name, 0)).mean())
    return result
