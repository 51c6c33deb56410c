"""Concept arithmetic on sentences: move one along a step and look up where it arrives.

By linearity z + (mean of one value - mean of another) lies on the other value's concept plane
(Section 6 of the paper). Whether it lies near the *sentence* that has that value and is
otherwise the same, is a sharper question.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.embeddings.sentences.grid import Grid, factor_index
from conceptnb.embeddings.sentences.transfer import check_groups, differences

Array = NDArray[np.float64]

STEPS = ("own topic's step", "other topics' step", "random step", "no step")
"""How `arithmetic` moves: the second is the test, the first its ceiling, the others controls."""


def moved(
    Z: ArrayLike, labels: ArrayLike, groups: ArrayLike, rng: np.random.Generator
) -> dict[str, Array]:
    """Move the samples of the first value towards the last, in each of four ways.

    Parameters
    ----------
    Z : (samples, dimensions)
    labels : (samples,) values of the factor
    groups : (samples,) topics
    rng : source of the random steps, which are as long as those of the other topics

    Returns
    -------
    (samples of the first value, dimensions) by the name of the step, see `STEPS`
    """
    points, values, where = check_groups(Z, labels, groups)
    start = values == values.min()
    group = np.searchsorted(np.unique(where), where[start])
    own = differences(points, values, where)
    others = ((own.sum(axis=0) - own) / (len(own) - 1))[group]
    aimless = rng.normal(size=others.shape)
    aimless *= (np.linalg.norm(others, axis=1) / np.linalg.norm(aimless, axis=1))[:, None]
    steps = (own[group], others, aimless, np.zeros_like(others))
    return {name: points[start] + step for name, step in zip(STEPS, steps, strict=True)}


def nearest(points: ArrayLike, gallery: ArrayLike) -> NDArray[np.intp]:
    """Row (n,) of the gallery with the largest cosine to each point; both (n, dimensions)."""
    rows = np.asarray(gallery, dtype=float)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return (np.asarray(points, dtype=float) @ rows.T).argmax(axis=1)


def counterparts(sentences: Grid, factor: str) -> NDArray[np.intp]:
    """Rows that differ from those of a factor's first value in that factor alone: its last."""
    column = sentences.column(factor)
    wanted = sentences.codes[column == column.min()].copy()
    wanted[:, factor_index(factor)] = column.max()
    rows = {tuple(codes): row for row, codes in enumerate(sentences.codes)}
    return np.array([rows[tuple(codes)] for codes in wanted])


def arithmetic(
    Z: ArrayLike, sentences: Grid, factor: str, rng: np.random.Generator
) -> dict[str, float]:
    """Share of sentences whose nearest one, after a step, differs in the factor alone.

    The gallery is the whole grid with the sentence itself: who does not move far enough
    finds that again.

    Returns
    -------
    share by the name of the step, see `STEPS`
    """
    wanted = counterparts(sentences, factor)
    where = sentences.column("topic")
    return {
        name: float((nearest(points, Z) == wanted).mean())
        for name, points in moved(Z, sentences.column(factor), where, rng).items()
    }
