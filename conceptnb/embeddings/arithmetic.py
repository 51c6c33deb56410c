"""Concept arithmetic in any embedding: means of values, moves between them, what lies nearest."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.core.validation import Array, as_points
from conceptnb.embeddings.directions.pairwise import check_labels


def unit(vectors: ArrayLike) -> NDArray[np.floating]:
    """Return rows of unit length."""
    rows = np.asarray(vectors)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def nearest(points: ArrayLike, gallery: ArrayLike) -> NDArray[np.intp]:
    """Return the row (n,) of the gallery (m, dimensions) with the largest cosine to each point."""
    return (np.asarray(points) @ unit(gallery).T).argmax(axis=1)


def value_means(Z: ArrayLike, labels: ArrayLike) -> Array:
    """Return the mean embedding (n_values, dimensions) of each value that occurs, in order."""
    points = as_points(Z, "Z")
    given = check_labels(labels, len(points))
    return np.stack([points[given == value].mean(axis=0) for value in np.unique(given)])


def move(Z: ArrayLike, means: ArrayLike, start: ArrayLike, end: ArrayLike) -> Array:
    """Move embeddings from one value of a factor to another: z + mean(end) - mean(start).

    By linearity the valuation A z moves from one concept plane to the other (Section 6).

    Parameters
    ----------
    Z : array-like of shape (n, dimensions)
        Embeddings.
    means : array-like of shape (n_values, dimensions)
        As from `value_means`.
    start, end : array-like of shape (n,)
        Rows of `means` before and after.
    """
    centres = np.asarray(means)
    return np.asarray(Z) + centres[np.asarray(end)] - centres[np.asarray(start)]
