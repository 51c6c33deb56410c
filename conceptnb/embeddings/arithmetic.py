"""Concept arithmetic in any embedding: means of values, moves between them, what lies nearest."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.common.validation import Array, as_points
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
    """Move embeddings Z (n, dimensions) between values of a factor: z + mean(end) - mean(start).

    `start` and `end` (n,) are rows of `means` (n_values, dimensions), as from `value_means`. By
    linearity the valuation A z moves from one concept plane to the other (Section 6).
    """
    centres = np.asarray(means)
    return np.asarray(Z) + centres[np.asarray(end)] - centres[np.asarray(start)]
