"""How many dimensions a concept has, counted on held-out images (Definition 1 allows any)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from conceptnb.common.validation import Array, as_count, as_points
from conceptnb.embeddings.directions.estimator import ConceptDirections
from conceptnb.embeddings.directions.evaluation import half_split, valuation_table
from conceptnb.embeddings.directions.pairwise import check_labels

_TOLERANCE = 0.02  # of accuracy, that a dimension less may cost


class _DimensionCount(NamedTuple):
    """What the first k = 1, 2, ... dimensions hold on held-out images, and how many suffice."""

    scores: Array  # accuracies, or shares of the variance between values
    chosen: int


def choose_dimension(
    Z: ArrayLike, labels: ArrayLike, rng: np.random.Generator, *, k_max: int = 4
) -> _DimensionCount:
    """Count the dimensions that are needed to tell the values apart.

    Directions are fitted on a random half and judged on the other by nearest-plane
    accuracy; the fewest dimensions, up to `k_max`, within .02 of the best win.
    """
    as_count(k_max, "k_max")
    points = as_points(Z, "Z")
    given = check_labels(labels, len(points))
    train, held = half_split(len(points), rng)
    most = min(k_max, len(np.unique(given)) - 1, points.shape[1])
    fits = [
        ConceptDirections(n_components=k + 1, standardise=False).fit(points[train], given[train])
        for k in range(most)
    ]
    accuracies = np.array([fit.score(points[held], given[held]) for fit in fits])
    return _fewest(accuracies, accuracies.max() - _TOLERANCE)


def spanned_dimensions(
    Z: ArrayLike,
    labels: ArrayLike,
    rng: np.random.Generator,
    *,
    share: float = 0.95,
    shrinkage: float = 1e-3,
    standardise: bool = False,
) -> _DimensionCount:
    """Count the dimensions in which an embedding keeps the values of a concept apart.

    The planes A z = b of a concept with k rows (Definition 1) lie at points b that span
    k dimensions at most, so k is to be read off the points. Discriminant directions are
    fitted on a random half; on the other half the variance between values along each
    is measured in units of that within values, minus what is expected from noise alone. The fewest
    dimensions that keep `share` of it, in (0, 1], are chosen. `shrinkage` and `standardise` are
    those of :class:`ConceptDirections`.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share={share} must lie in (0, 1]")
    points = as_points(Z, "Z")
    given = check_labels(labels, len(points))
    train, held = half_split(len(points), rng)
    most = min(len(np.unique(given[train])) - 1, points.shape[1])
    fitted = ConceptDirections(n_components=most, shrinkage=shrinkage, standardise=standardise)
    fitted.fit(points[train], given[train])
    between = _spread_between(fitted.transform(points[held]), given[held])
    if not between.any():  # nothing but noise
        return _DimensionCount(np.zeros(most), 1)
    return _fewest(np.cumsum(between) / between.sum(), share - 1e-12)


def proper_concept(
    Z: ArrayLike,
    labels: ArrayLike,
    rng: np.random.Generator,
    *,
    shrinkage: float = 1e-3,
    standardise: bool = False,
) -> ConceptDirections:
    """Fit a concept in its proper dimension: as many as `spanned_dimensions` counts."""
    as_in: dict[str, Any] = {"shrinkage": shrinkage, "standardise": standardise}
    k = spanned_dimensions(Z, labels, rng, **as_in).chosen
    return ConceptDirections(n_components=k, **as_in).fit(Z, labels)


def _fewest(scores: Array, enough: float) -> _DimensionCount:
    return _DimensionCount(scores, int(np.argmax(scores >= enough)) + 1)


def _spread_between(valuations: Array, labels: ArrayLike) -> Array:
    """Variance (k,) between values over that within them, minus what noise alone would give."""
    table = valuation_table(valuations, labels)
    shares = table.counts / len(valuations)
    between = shares @ (table.means - valuations.mean(axis=0)) ** 2
    within = shares @ table.stds**2
    noise = within * (len(table.values) - 1) / max(len(valuations) - len(table.values), 1)
    return np.maximum(between - noise, 0) / np.where(within > 0, within, 1)
