"""Whether two embeddings agree on a concept, and in which of its dimensions (Table 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.core.validation import as_count, as_points
from conceptnb.embeddings.directions.estimator import ConceptDirections
from conceptnb.embeddings.directions.evaluation import canonical_correlations, half_split
from conceptnb.embeddings.directions.factor_report import FactorReport
from conceptnb.embeddings.directions.pairwise import check_labels
from conceptnb.embeddings.directions.selection import proper_concept

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Agreement:
    """How well the valuations of two embeddings agree on the same images (Table 5).

    Attributes
    ----------
    paper : correlation of the paper's directions; its sign is a convention
    canonical : canonical correlations of the concepts in their proper dimensions, falling
    dimensions : proper dimensions in the first and the second embedding
    """

    paper: float
    canonical: Array
    dimensions: tuple[int, int]


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
    valuations = first.paper.transform(A)[:, 0], second.paper.transform(B)[:, 0]
    return Agreement(
        float(np.corrcoef(valuations[0], valuations[1])[0, 1]),
        canonical_correlations(first.concept.transform(A), second.concept.transform(B)),
        (len(first.concept.directions_), len(second.concept.directions_)),
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
    first_Z, second_Z : (samples, dimensions) embeddings of the same images
    labels : (samples,) values of one factor
    rng : source of the splits

    Returns
    -------
    (n_splits,) array
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


@dataclass(frozen=True)
class Reading:
    """One way to read a concept from two embeddings, judged on held-out images.

    Attributes
    ----------
    name : what was read
    dimensions : in the first and the second embedding
    accuracies : of nearest-plane classification in each
    canonical : canonical correlations between the two, falling
    """

    name: str
    dimensions: tuple[int, int]
    accuracies: tuple[float, float]
    canonical: Array


def readings(
    first_Z: ArrayLike,
    second_Z: ArrayLike,
    labels: ArrayLike,
    rng: np.random.Generator,
    *,
    n_orders: int = 10,
) -> list[Reading]:
    """Read a cyclic concept such as hue in several ways from two embeddings (Definition 1).

    A concept of k dimensions fixes a k-dimensional space of valuations, and two embeddings
    can agree on one space and not on another. Five readings:

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
    first_Z, second_Z : (samples, dimensions) embeddings of the same images
    labels : (samples,) values, the last a neighbour of the first
    rng : source of the random halves and of the orders; all is fitted on one half and
        judged on the other
    n_orders : number of shuffled orders

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
    values, codes = np.unique(check_labels(labels, len(A)), return_inverse=True)
    train, test = half_split(len(A), rng)

    def read(name: str, order: NDArray[np.intp], fits: Iterator[ConceptDirections]) -> Reading:
        found, scores = [], []
        for fit, Z in zip(fits, (A, B), strict=True):
            found.append(fit.transform(Z[test]))
            scores.append(float(fit.score(Z[test], order[codes[test]])))
        return Reading(
            name,
            (found[0].shape[1], found[1].shape[1]),
            (scores[0], scores[1]),
            canonical_correlations(*found),
        )

    def fits(concept: ConceptDirections, order: NDArray[np.intp]) -> Iterator[ConceptDirections]:
        for Z in (A, B):
            yield ConceptDirections(**concept.get_params()).fit(Z[train], order[codes[train]])

    as_given = np.arange(len(values))
    wheel = ConceptDirections("circular", n_components=2)
    shuffled = []
    for _ in range(n_orders):
        order = rng.permutation(len(values))
        shuffled.append(read("", order, fits(wheel, order)))
    proper = (proper_concept(Z[train], codes[train], rng) for Z in (A, B))
    every = min(len(values) - 1, A.shape[1], B.shape[1])
    return [
        read("best plane", as_given, fits(ConceptDirections(n_components=2), as_given)),
        read("wheel", as_given, fits(wheel, as_given)),
        _mean("wheel, shuffled", shuffled),
        read("proper dimension", as_given, proper),
        read("all dimensions", as_given, fits(ConceptDirections(n_components=every), as_given)),
    ]


def _mean(name: str, several: list[Reading]) -> Reading:
    """Average readings of the same dimensions."""
    accuracies = np.mean([reading.accuracies for reading in several], axis=0)
    return Reading(
        name,
        several[0].dimensions,
        (float(accuracies[0]), float(accuracies[1])),
        np.mean([reading.canonical for reading in several], axis=0),
    )
