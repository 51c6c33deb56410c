"""Exercises of chapter 34: controls, text and arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises.exercise import construction, value

Array = NDArray[np.float64]


@construction(
    right="Nothing ties a random image tower to a random text tower. Training does.",
    example=lambda: np.array([0.05, -0.1, 0.1, 0.0, 0.12, -0.02]),
    wrong={
        "six cosines": lambda: np.zeros(15),
        "cosines of the trained tower": lambda: np.full(6, 0.7),
        "between -1 and 1": lambda: np.full(6, 3.0),
        "far from zero": lambda: np.full(6, 0.9),
    },
    given=lambda: (np.full(6, 0.7),),
)
def ex_untrained_text(answer: Any, trained: Array) -> str | None:
    """Look for cosines of unrelated directions: near zero, and not the trained tower's."""
    cosines = np.asarray(answer)
    if cosines.dtype.kind not in "iuf" or cosines.shape != trained.shape:
        return "The answer is six cosines, one a pair of shapes: the attribute same."
    if not (np.abs(cosines) <= 1).all():
        return "Cosines lie between -1 and 1."
    if np.allclose(cosines, trained):
        return "Those are the cosines of the trained tower."
    if abs(cosines.mean()) > 0.5:
        return (
            f"A mean of {cosines.mean():.2f} is far from zero: are tower and embeddings untrained?"
        )
    return None


def _shapes() -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    wanted = np.zeros((40, 6), dtype=int)
    wanted[:, 4] = np.arange(40) % 4
    wanted[:, 3] = np.arange(40) % 8
    seen = wanted[:, 4].copy()
    seen[:6] = (seen[:6] + 3) % 4
    return seen, wanted


@value(
    atol=0.002,
    right="A move found from images is understood by captions: both sides share the concept.",
    mistakes={
        "Column 3 is the scale; the shape is column 4.": float(
            np.mean(_shapes()[0] == _shapes()[1][:, 3])
        ),
        "That is the share of errors.": lambda right: 1 - right,
    },
    given=_shapes,
)
def ex_captions_move(seen: NDArray[np.intp], wanted: NDArray[np.intp]) -> float:
    """Return the share of the diagonal of the table of seen against wanted shapes."""
    table = np.zeros((4, 4))
    np.add.at(table, (seen, wanted[:, 4]), 1)
    return float(np.trace(table) / table.sum())


@value(
    rtol=0.035,
    right="With 2,000 images chance stays below one in a hundred; trained towers exceed it.",
    mistakes={
        "That is what the best of 64 dimensions could do on its own images.": 64 * 14 / 1999,
        "The fifteen means have a grand mean in common: fourteen are free.": 15 / 2000,
        "Independent of the values does not mean exactly zero in a sample.": 0.0,
        "Degrees of freedom: fifteen means less one, not a share 1/15.": 1 / 15,
    },
)
def ex_shuffled_bound() -> float:
    """Return the mean η² of independent valuations, by simulation."""
    rng = np.random.default_rng(0)
    labels = np.arange(2000) % 15
    indicators = (labels == np.arange(15)[:, None]) / np.bincount(labels)[:, None]
    x = rng.normal(size=(2000, 1000))
    means = indicators @ x
    between = np.bincount(labels) / 2000 @ (means - x.mean(axis=0)) ** 2
    return float((between / x.var(axis=0)).mean())


def _moves() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    start = rng.normal(size=(200, 8))
    return start, start + rng.normal(size=(4, 8))[np.arange(200) % 4]


def _moved_by(steps: Array) -> Array:
    start, moved = _moves()
    length = np.linalg.norm(moved - start, axis=1, keepdims=True)
    return start + length * steps / np.linalg.norm(steps, axis=1, keepdims=True)


@construction(
    right="Of all moves of this length only one direction changes the shape and nothing else.",
    example=lambda: _moved_by(np.random.default_rng(1).normal(size=(200, 8))),
    wrong={
        "shape (200, 8)": lambda: np.zeros(3),
        "as far as": lambda: _moves()[0] + np.random.default_rng(1).normal(size=(200, 8)),
        "still the old move": lambda: _moves()[1],
        "of its own": lambda: _moved_by(np.ones((200, 8))),
    },
    given=_moves,
)
def ex_random_move(answer: Any, start: Array, moved: Array) -> str | None:
    """Look for moves of the same lengths in independent directions."""
    mine = np.asarray(answer)
    if mine.dtype.kind not in "iuf" or mine.shape != start.shape:
        return f"The answer is an array of shape {start.shape}: embeddings after the move."
    steps, old = mine - start, moved - start
    lengths = np.linalg.norm(steps, axis=1)
    if not np.allclose(lengths, np.linalg.norm(old, axis=1), rtol=0.01):
        return "Each embedding has to move as far as it did before."
    unit = steps / lengths[:, None]
    if np.mean(np.sum(steps * old, axis=1)) > 0.5 * np.mean(np.sum(old * old, axis=1)):
        return "That is still the old move, or close to it."
    if np.linalg.norm(unit.mean(axis=0)) > 0.5:
        return "All move in one direction; each needs a random direction of its own."
    return None
