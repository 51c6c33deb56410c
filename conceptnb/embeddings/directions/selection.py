"""How many dimensions a concept has, chosen on images that were held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.core.validation import as_points
from conceptnb.embeddings.directions.estimator import ConceptDirections, Method
from conceptnb.embeddings.directions.evaluation import half_split, spread_between
from conceptnb.embeddings.directions.pairwise import check_labels


@dataclass(frozen=True)
class DimensionChoice:
    """Held-out accuracy of nearest-plane classification for each number of dimensions.

    Attributes
    ----------
    accuracies : (k_max,) for k = 1, 2, ...
    chosen : the fewest dimensions within `tolerance` of the best accuracy
    """

    accuracies: NDArray[np.float64]
    chosen: int


def choose_dimension(
    Z: ArrayLike,
    labels: ArrayLike,
    rng: np.random.Generator,
    *,
    k_max: int = 4,
    tolerance: float = 0.02,
    method: Method = "discriminant",
) -> DimensionChoice:
    """Choose the dimension k of a concept (Definition 1 allows any k).

    Directions are fitted on a random half and judged on the other by nearest-plane
    accuracy; the fewest dimensions within `tolerance` of the best win.

    Raises
    ------
    ValueError
        If `k_max` is below 1 or `tolerance` is negative.
    """
    if k_max < 1 or tolerance < 0:
        raise ValueError(f"k_max={k_max} must be at least 1 and tolerance={tolerance} not negative")
    points = as_points(Z, "Z")
    whole = check_labels(labels, len(points))
    train, held = half_split(len(points), rng)
    most = min(k_max, len(np.unique(whole)) - 1, points.shape[1])
    accuracies = np.array(
        [
            ConceptDirections(method, n_components=k)
            .fit(points[train], whole[train])
            .score(points[held], whole[held])
            for k in range(1, most + 1)
        ]
    )
    enough = accuracies >= accuracies.max() - tolerance
    return DimensionChoice(accuracies, int(np.argmax(enough)) + 1)


@dataclass(frozen=True)
class Span:
    """How many dimensions the planes of a concept's values span, on held-out images.

    Attributes
    ----------
    shares : (k_max,) share of the variance between values within the first k dimensions
    chosen : the fewest dimensions with the share that was asked for
    """

    shares: NDArray[np.float64]
    chosen: int


def spanned_dimensions(
    Z: ArrayLike, labels: ArrayLike, rng: np.random.Generator, *, share: float = 0.95
) -> Span:
    """Count the dimensions in which an embedding keeps the values of a concept apart.

    The planes A z = b of a concept with k rows (Definition 1) lie at points b that span
    k dimensions at most, so k is to be read off the points. Discriminant directions are
    fitted on a random half; on the other half the variance between values along each
    is measured in units of that within values, less what is expected from noise alone.

    Parameters
    ----------
    Z : (samples, dimensions) embeddings
    labels : (samples,) values
    rng : source of the halves
    share : share in (0, 1] of the variance between values that is to be kept

    Raises
    ------
    ValueError
        If `share` is not in (0, 1].
    """
    if not 0 < share <= 1:
        raise ValueError(f"share={share} must lie in (0, 1]")
    points = as_points(Z, "Z")
    whole = check_labels(labels, len(points))
    train, held = half_split(len(points), rng)
    most = min(len(np.unique(whole[train])) - 1, points.shape[1])
    fitted = ConceptDirections(n_components=most).fit(points[train], whole[train])
    between = spread_between(fitted.transform(points[held]), whole[held])
    if not between.any():  # nothing but noise
        return Span(np.zeros(most), 1)
    shares = np.cumsum(between) / between.sum()
    return Span(shares, int(np.argmax(shares >= share - 1e-12)) + 1)


def proper_concept(Z: ArrayLike, labels: ArrayLike, rng: np.random.Generator) -> ConceptDirections:
    """Fit a concept in its proper dimension: as many as `spanned_dimensions` counts."""
    k = spanned_dimensions(Z, labels, rng).chosen
    return ConceptDirections(n_components=k).fit(Z, labels)
