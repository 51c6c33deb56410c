"""How many dimensions a concept has, chosen on images that were held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb._validation import as_points

from .estimator import ConceptDirections, Method
from .evaluation import half_split
from .pairwise import check_labels


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
