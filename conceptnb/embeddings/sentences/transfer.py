"""Whether a concept's direction carries over to topics that it was not learned from.

The paper's premise is that one linear map A reads a concept off *every* latent vector
(Definition 1), and that its valuations mean the same everywhere. In an embedding that claim can
fail: each topic may have a direction of its own for what people call one concept. The functions
here take any embeddings, labels of one factor, and groups to carry it over to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.core.validation import as_points
from conceptnb.embeddings.directions.estimator import ConceptDirections
from conceptnb.embeddings.directions.evaluation import separation

Array = NDArray[np.float64]

SHRINKAGE = 0.1
"""Share of average variance mixed into the within-class covariance.

A direction fitted closely to a few topics heeds what is special in them. The chapter shows what
other shares do.
"""


@dataclass(frozen=True)
class CarriedOver:
    """What directions learned on all other groups are worth in each group.

    Attributes
    ----------
    eta2 : (n_groups,) share of the valuations' variance in the group that lies between values
    accuracy : (n_groups,) of the nearest concept plane; the planes, too, come from other groups
    """

    eta2: Array
    accuracy: Array


def carry_over(
    Z: ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike,
    *,
    n_components: int = 1,
    shrinkage: float = SHRINKAGE,
) -> CarriedOver:
    """Learn a concept on all groups but one and judge it on that one, for each group.

    Parameters
    ----------
    Z : (samples, dimensions) embeddings
    labels : (samples,) value of the factor
    groups : (samples,) topic, template, or whatever a concept should not depend on
    n_components : dimensions of the concept
    shrinkage : as in `conceptnb.embeddings.directions.ConceptDirections`

    Raises
    ------
    ValueError
        If there are fewer than two groups, or lengths differ.
    """
    points, values, where = check_groups(Z, labels, groups)
    found = []
    for group in np.unique(where):
        held = where == group
        concept = ConceptDirections(n_components=n_components, shrinkage=shrinkage)
        concept.fit(points[~held], values[~held])
        valuations = concept.transform(points[held])
        found.append(
            (separation(valuations, values[held]), concept.score(points[held], values[held]))
        )
    eta2, accuracy = np.array(found).T
    return CarriedOver(eta2, accuracy)


def carry_over_from(
    Z: ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike,
    n_groups: int,
    rng: np.random.Generator,
    *,
    repeats: int = 6,
) -> Array:
    """Learn a concept on a few groups and judge it on another, `repeats` times.

    Parameters
    ----------
    Z, labels, groups
        As in `carry_over`.
    n_groups : groups to learn from, drawn anew each time
    rng : source of the draws

    Returns
    -------
    (repeats,) η² in the group that follows those drawn

    Raises
    ------
    ValueError
        If `n_groups` leaves no group over, or is below one.
    """
    points, values, where = check_groups(Z, labels, groups)
    every = np.unique(where)
    if not 1 <= n_groups < len(every):
        raise ValueError(
            f"n_groups={n_groups} must lie between 1 and {len(every) - 1}: one is for testing"
        )
    found = []
    for _ in range(repeats):
        *taken, last = rng.permutation(every)[: n_groups + 1]
        rows, held = np.isin(where, taken), where == last
        concept = ConceptDirections(shrinkage=SHRINKAGE).fit(points[rows], values[rows])
        found.append(separation(concept.transform(points[held]), values[held]))
    return np.array(found)


def split_combinations(
    codes: ArrayLike, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Split samples so that no combination of values is on both sides.

    Parameters
    ----------
    codes : (samples, factors)
        The factors whose combinations are to be new; half of those that occur are held out.
    rng : source of the split

    Returns
    -------
    train, test : rows

    Raises
    ------
    ValueError
        If fewer than two combinations occur.
    """
    _, combination = np.unique(np.asarray(codes), axis=0, return_inverse=True)
    combination = combination.reshape(-1)
    n = int(combination.max()) + 1
    if n < 2:
        raise ValueError("codes hold a single combination: there is nothing to hold out")
    held = np.isin(combination, rng.permutation(n)[: n // 2])
    return np.flatnonzero(~held), np.flatnonzero(held)


def differences(Z: ArrayLike, labels: ArrayLike, groups: ArrayLike) -> Array:
    """Mean embedding of the last value less that of the first, in each group.

    In the paper's words: the vector that leads from one concept plane to the other. If the
    embedding were linear in the concept it would be the same in each group.

    Returns
    -------
    (n_groups, dimensions)

    Raises
    ------
    ValueError
        If a group lacks one of the two values, there are fewer than two groups, or lengths
        differ.
    """
    points, values, where = check_groups(Z, labels, groups)
    rows = []
    for group in np.unique(where):
        ends = [
            points[(where == group) & (values == value)] for value in (values.max(), values.min())
        ]
        if not all(map(len, ends)):
            raise ValueError(f"groups: group {group} lacks the first or the last value of labels")
        rows.append(ends[0].mean(axis=0) - ends[1].mean(axis=0))
    return np.stack(rows)


def cosines(vectors: ArrayLike) -> Array:
    """Cosine (n, n) between every two rows."""
    rows = as_points(vectors, "vectors")
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


def shared(vectors: ArrayLike) -> float:
    """Share of vectors' mean squared length that their mean has: ‖mean v‖² / mean ‖v‖².

    1 where all n vectors are one and the same; 1/n where they are orthogonal and equally long.
    """
    rows = as_points(vectors, "vectors")
    return float((rows.mean(axis=0) ** 2).sum() / (rows**2).sum(axis=1).mean())


def check_groups(
    Z: ArrayLike, labels: ArrayLike, groups: ArrayLike
) -> tuple[Array, NDArray[np.intp], NDArray[np.intp]]:
    """Return embeddings, labels and groups as arrays, or raise.

    Raises
    ------
    ValueError
        If lengths differ, or there are fewer than two groups.
    """
    points, values, where = as_points(Z, "Z"), np.asarray(labels), np.asarray(groups)
    for name, array in (("labels", values), ("groups", where)):
        if array.shape != (len(points),):
            raise ValueError(f"{name} must have shape ({len(points)},), got {array.shape}")
    if len(np.unique(where)) < 2:
        raise ValueError("groups hold a single group: there is none to carry a concept over to")
    return points, values, where
