"""Whether two embeddings agree on a concept, and in which of its dimensions (Table 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.core.validation import Array, as_count, as_points
from conceptnb.embeddings.directions.estimator import ConceptDirections, Method
from conceptnb.embeddings.directions.evaluation import canonical_correlations, half_split
from conceptnb.embeddings.directions.factor_report import FactorReport
from conceptnb.embeddings.directions.pairwise import check_labels
from conceptnb.embeddings.directions.selection import proper_concept


@dataclass(frozen=True)
class Agreement:
    """How well two embeddings agree on a concept, on images that neither was fitted on.

    Parameters
    ----------
    dimensions : tuple of int
        Of the concept in the first and the second embedding.
    accuracies : tuple of float
        Of nearest-plane classification in each.
    canonical : ndarray of shape (smaller dimension,)
        Canonical correlations between the valuations, falling.
    paper : float, optional
        Correlation of the paper's directions, where they were fitted (Table 5); its sign is a
        convention.
    """

    dimensions: tuple[int, int]
    accuracies: tuple[float, float]
    canonical: Array
    paper: float | None = None


def agreement(
    first: FactorReport, first_Z: ArrayLike, second: FactorReport, second_Z: ArrayLike
) -> Agreement:
    """Compare the concepts of two embeddings of the same images, rows in the same order.

    The paper evaluates on all images, those of training included (Appendix D.2). Here
    only the images that neither report was fitted on count.

    Raises
    ------
    ValueError
        If the reports have no test image in common.
    """
    held = np.intersect1d(first.test, second.test)
    if not held.size:
        raise ValueError("first and second have no test image in common; report both alike")
    A, B = np.asarray(first_Z)[held], np.asarray(second_Z)[held]
    along_paper = first.paper.transform(A)[:, 0], second.paper.transform(B)[:, 0]
    return Agreement(
        (len(first.concept.directions_), len(second.concept.directions_)),
        (first.accuracy, second.accuracy),
        canonical_correlations(first.concept.transform(A), second.concept.transform(B)),
        float(np.corrcoef(*along_paper)[0, 1]),
    )


def agreement_over_splits(
    first_Z: ArrayLike,
    second_Z: ArrayLike,
    labels: ArrayLike,
    rng: np.random.Generator,
    *,
    n_splits: int = 5,
) -> Array:
    """Smallest canonical correlation in the proper dimension for several random halves (Table 5).

    What one split says of two embeddings has an error; their spread over splits shows it.

    Parameters
    ----------
    first_Z, second_Z : array-like of shape (samples, dimensions)
        Embeddings of the same images.
    labels : array-like of shape (samples,)
        Values of one factor.
    rng : numpy.random.Generator
        Source of the splits.
    n_splits : int

    Returns
    -------
    ndarray of shape (n_splits,)
        Each on the half that the concepts of that split were not fitted on.
    """
    A, B = as_points(first_Z, "first_Z"), as_points(second_Z, "second_Z")
    values = check_labels(labels, len(A))
    found = []
    for _ in range(as_count(n_splits, "n_splits")):
        train, test = half_split(len(A), rng)
        concepts = [proper_concept(Z[train], values[train], rng) for Z in (A, B)]
        valuations = [c.transform(Z[test]) for c, Z in zip(concepts, (A, B), strict=True)]
        found.append(canonical_correlations(*valuations)[-1])
    return np.array(found)


def cyclic_readings(
    first_Z: ArrayLike,
    second_Z: ArrayLike,
    labels: ArrayLike,
    rng: np.random.Generator,
    *,
    n_orders: int = 10,
) -> dict[str, Agreement]:
    """Read a cyclic concept such as hue in several ways from two embeddings (Definition 1).

    A concept of k dimensions fixes a k-dimensional space of valuations, and two embeddings
    can agree on one space and not on another. Five readings, by name:

    * *best plane*: the two directions that separate the values best in each embedding.
    * *wheel*: the cosine and the sine of each value's place on the wheel, by regression;
      nothing but the order of the values is put in.
    * *wheel, shuffled*: the same with the values in random cyclic orders, alike for both
      embeddings: the control. Where it does as well as the wheel, an embedding knows
      which value it sees, and not which values are neighbours. Means over `n_orders`.
    * *proper dimension*: in each embedding the space that `proper_concept` finds.
    * *all dimensions*: one fewer than values, room for any arrangement of them.

    Parameters
    ----------
    first_Z, second_Z : array-like of shape (samples, dimensions)
        Embeddings of the same images.
    labels : array-like of shape (samples,)
        Values, the last a neighbour of the first.
    rng : numpy.random.Generator
        Source of the random halves and of the orders; all is fitted on one half and judged
        on the other.
    n_orders : int
        Number of shuffled orders.

    Raises
    ------
    ValueError
        If the numbers of images differ or `n_orders` is below 1.
    """
    A, B = as_points(first_Z, "first_Z"), as_points(second_Z, "second_Z")
    if len(A) != len(B):
        raise ValueError(f"first_Z has {len(A)} images and second_Z has {len(B)}")
    if n_orders < 1:
        raise ValueError(f"n_orders={n_orders} must be at least 1")
    values, place = np.unique(check_labels(labels, len(A)), return_inverse=True)
    train, test = half_split(len(A), rng)

    def read(concepts: Sequence[ConceptDirections], places: NDArray[np.intp]) -> Agreement:
        found = [c.transform(Z[test]) for c, Z in zip(concepts, (A, B), strict=True)]
        scores = [
            float(c.score(Z[test], places[test])) for c, Z in zip(concepts, (A, B), strict=True)
        ]
        return Agreement(
            (found[0].shape[1], found[1].shape[1]),
            (scores[0], scores[1]),
            canonical_correlations(*found),
        )

    def fitted(places: NDArray[np.intp], method: Method, k: int) -> Agreement:
        concepts = [ConceptDirections(method, k).fit(Z[train], places[train]) for Z in (A, B)]
        return read(concepts, places)

    shuffled = [fitted(rng.permutation(len(values))[place], "circular", 2) for _ in range(n_orders)]
    every = min(len(values) - 1, A.shape[1], B.shape[1])
    return {
        "best plane": fitted(place, "discriminant", 2),
        "wheel": fitted(place, "circular", 2),
        "wheel, shuffled": _mean(shuffled),
        "proper dimension": read(
            [proper_concept(Z[train], place[train], rng) for Z in (A, B)], place
        ),
        "all dimensions": fitted(place, "discriminant", every),
    }


def _mean(several: Sequence[Agreement]) -> Agreement:
    """Average agreements of the same dimensions."""
    accuracies = np.mean([one.accuracies for one in several], axis=0)
    return Agreement(
        several[0].dimensions,
        (float(accuracies[0]), float(accuracies[1])),
        np.mean([one.canonical for one in several], axis=0),
    )
