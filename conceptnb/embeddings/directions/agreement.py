"""Whether two embeddings agree on a concept, and in which of its dimensions (Table 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.common.validation import Array, as_count, as_points
from conceptnb.embeddings.directions.estimator import ConceptDirections, Method
from conceptnb.embeddings.directions.evaluation import canonical_correlations, half_split
from conceptnb.embeddings.directions.factor_report import FactorReport
from conceptnb.embeddings.directions.pairwise import check_labels
from conceptnb.embeddings.directions.selection import proper_concept


@dataclass(frozen=True)
class _Agreement:
    """How well two embeddings agree on a concept, on images that neither was fitted on."""

    dimensions: tuple[int, int]
    """Of the concept in the first and the second embedding."""
    accuracies: tuple[float, float]
    """Of nearest-plane classification in each."""
    canonical: Array
    """Canonical correlations (smaller dimension,) between the valuations, falling."""
    paper: float | None = None
    """Correlation of the paper's directions, where fitted (Table 5); its sign is a convention."""


def agreement(
    first: FactorReport, first_Z: ArrayLike, second: FactorReport, second_Z: ArrayLike
) -> _Agreement:
    """Compare the concepts of two embeddings of the same images, rows in the same order.

    The paper evaluates on all images, those of training included (Appendix D.2). Here only the
    images count that neither report was fitted on; ValueError if there are none.
    """
    held = np.intersect1d(first.test, second.test)
    if not held.size:
        raise ValueError("first and second have no test image in common; report both alike")
    A, B = np.asarray(first_Z)[held], np.asarray(second_Z)[held]
    along_paper = first.paper.transform(A)[:, 0], second.paper.transform(B)[:, 0]
    return _Agreement(
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

    Each of the (n_splits,) numbers is of the half that its concepts were not fitted on. Their
    spread shows the error of what one split says of two embeddings of the same images.
    """
    A, B = as_points(first_Z, "first_Z"), as_points(second_Z, "second_Z")
    values = check_labels(labels, len(A))
    found = []
    for _ in range(n_splits):
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
) -> dict[str, _Agreement]:
    """Read a cyclic concept such as hue in several ways from two embeddings (Definition 1).

    Two embeddings can agree on one space of valuations and not on another. Five readings:

    * *best plane*: the two directions that separate the values best in each embedding.
    * *wheel*: the cosine and the sine of each value's place on the wheel, by regression.
    * *wheel, shuffled*: the same with the values in `n_orders` random cyclic orders, alike for
      both embeddings (means): the control. Where it does as well as the wheel, an embedding
      knows which value it sees, and not which values are neighbours.
    * *proper dimension*: in each embedding the space that `proper_concept` finds.
    * *all dimensions*: one fewer than values, room for any arrangement of them.

    Embeddings (samples, dimensions) are of the same images; the last of the values `labels`
    (samples,) is a neighbour of the first. Readings are fitted on a random half of the images and
    judged on the other.
    """
    A, B = as_points(first_Z, "first_Z"), as_points(second_Z, "second_Z")
    if len(A) != len(B):
        raise ValueError(f"first_Z has {len(A)} images and second_Z has {len(B)}")
    as_count(n_orders, "n_orders")
    values, place = np.unique(check_labels(labels, len(A)), return_inverse=True)
    train, test = half_split(len(A), rng)

    def read(concepts: Sequence[ConceptDirections], places: NDArray[np.intp]) -> _Agreement:
        pairs = list(zip(concepts, (A[test], B[test]), strict=True))
        found = [concept.transform(Z) for concept, Z in pairs]
        first, second = (float(concept.score(Z, places[test])) for concept, Z in pairs)
        dimensions = found[0].shape[1], found[1].shape[1]
        return _Agreement(dimensions, (first, second), canonical_correlations(*found))

    def fitted(places: NDArray[np.intp], method: Method, k: int) -> _Agreement:
        concepts = [
            ConceptDirections(method, k, standardise=False).fit(Z[train], places[train])
            for Z in (A, B)
        ]
        return read(concepts, places)

    orders = [rng.permutation(len(values)) for _ in range(n_orders)]
    shuffled = [fitted(order[place], "circular", 2) for order in orders]
    every = min(len(values) - 1, A.shape[1], B.shape[1])
    return {
        "best plane": fitted(place, "discriminant", 2),
        "wheel": fitted(place, "circular", 2),
        "wheel, shuffled": replace(
            shuffled[0],
            accuracies=tuple(np.mean([one.accuracies for one in shuffled], axis=0).tolist()),
            canonical=np.mean([one.canonical for one in shuffled], axis=0),
        ),
        "proper dimension": read(
            [proper_concept(Z[train], place[train], rng) for Z in (A, B)], place
        ),
        "all dimensions": fitted(place, "discriminant", every),
    }
