"""Whether a concept's direction, and its step, carry over to topics not learned from.

One linear map A reads a concept off *every* latent vector (Definition 1). In an embedding that can
fail: each topic may have a direction of its own. The functions take any embeddings (samples,
dimensions), labels of one factor, and groups (topics, templates) that it should not depend on.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import LeaveOneGroupOut

from conceptnb.common.validation import Array, as_points
from conceptnb.embeddings.arithmetic import nearest
from conceptnb.embeddings.directions.estimator import ConceptDirections
from conceptnb.embeddings.directions.evaluation import separation
from conceptnb.embeddings.sentences.grid import Grid

SHRINKAGE = 0.1
"""More than `ConceptDirections` has: a close fit to few topics learns what is special to them."""

STEPS = ("own topic's step", "other topics' step", "random step", "no step")
"""How `arithmetic` moves: the second is the test, the first its ceiling, the others controls."""


class _CarriedOver(NamedTuple):
    """What directions learned on all other groups are worth in each of the (n_groups,) groups."""

    eta2: Array  # share of the valuations' variance in the group that lies between values
    accuracy: Array  # of the nearest concept plane; the planes, too, come from other groups


def carry_over(
    Z: ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike,
    *,
    n_components: int = 1,
    shrinkage: float = SHRINKAGE,
) -> _CarriedOver:
    """Learn a concept on all groups but one and judge it on that one, for each group.

    Embeddings Z are (samples, dimensions), `labels` and `groups` (samples,); `n_components` and
    `shrinkage` are those of `conceptnb.embeddings.directions.ConceptDirections`.
    """
    points, values, where = _check_groups(Z, labels, groups)
    found = []
    for others, held in LeaveOneGroupOut().split(points, values, where):
        concept = ConceptDirections(
            n_components=n_components, shrinkage=shrinkage, standardise=False
        )
        concept.fit(points[others], values[others])
        valuations = concept.transform(points[held])
        accuracy = concept.score(points[held], values[held])
        found.append((separation(valuations, values[held]), accuracy))
    return _CarriedOver(*np.array(found).T)


def carry_over_from(
    Z: ArrayLike, labels: ArrayLike, groups: ArrayLike, n_groups: int, rng: np.random.Generator
) -> Array:
    """η² (6,) of a concept learned on `n_groups` groups, in another one, drawn anew each time."""
    points, values, where = _check_groups(Z, labels, groups)
    every = np.unique(where)
    if not 1 <= n_groups < len(every):
        raise ValueError(f"n_groups={n_groups} must lie between 1 and {len(every) - 1}")
    found = []
    for _ in range(6):
        *taken, last = rng.permutation(every)[: n_groups + 1]
        rows, held = np.isin(where, taken), where == last
        concept = ConceptDirections(shrinkage=SHRINKAGE, standardise=False)
        concept.fit(points[rows], values[rows])
        found.append(separation(concept.transform(points[held]), values[held]))
    return np.array(found)


def differences(Z: ArrayLike, labels: ArrayLike, groups: ArrayLike) -> Array:
    """Mean embedding of the last value minus that of the first, in each group.

    The vectors (n_groups, dimensions) lead from one concept plane to the other. They are equal if
    it is linear in the concept. Raises ValueError if a group lacks a value.
    """
    points, values, where = _check_groups(Z, labels, groups)
    rows = []
    for group in np.unique(where):
        of = where == group
        last, first = points[of & (values == values.max())], points[of & (values == values.min())]
        if not len(last) or not len(first):
            raise ValueError(f"groups: group {group} lacks the first or the last value of labels")
        rows.append(last.mean(axis=0) - first.mean(axis=0))
    return np.stack(rows)


def shared(vectors: ArrayLike) -> float:
    """Share of vectors' mean squared length that their mean has: ‖mean v‖² / mean ‖v‖².

    1 where all n vectors are one and the same; 1/n where they are orthogonal and equally long.
    """
    rows = as_points(vectors, "vectors")
    return float((rows.mean(axis=0) ** 2).sum() / (rows**2).sum(axis=1).mean())


def moved(
    Z: ArrayLike, labels: ArrayLike, groups: ArrayLike, rng: np.random.Generator
) -> dict[str, Array]:
    """Move the samples of the first value towards the last, by the name of the step in `STEPS`.

    The random steps, drawn from `rng`, are as long as those of the other topics.
    """
    points, values, where = _check_groups(Z, labels, groups)
    start = values == values.min()
    group = np.searchsorted(np.unique(where), where[start])
    own = differences(points, values, where)
    others = ((own.sum(axis=0) - own) / (len(own) - 1))[group]
    aimless = rng.normal(size=others.shape)
    aimless *= (np.linalg.norm(others, axis=1) / np.linalg.norm(aimless, axis=1))[:, None]
    steps = (own[group], others, aimless, np.zeros_like(others))
    return {name: points[start] + step for name, step in zip(STEPS, steps, strict=True)}


def counterparts(sentences: Grid, factor: str) -> NDArray[np.intp]:
    """Rows that differ from those of a factor's first value in that factor alone: its last."""
    column = sentences.column(factor)
    wanted = sentences.values[column == column.min()].copy()
    wanted[:, sentences.index(factor)] = column.max()
    rows = {tuple(values): row for row, values in enumerate(sentences.values)}
    return np.array([rows[tuple(values)] for values in wanted])


def arithmetic(
    Z: ArrayLike, sentences: Grid, factor: str, rng: np.random.Generator
) -> dict[str, float]:
    """Share of sentences, by step, whose nearest one after it differs in the factor alone.

    By linearity a step of `STEPS` leads to the other value's concept plane (Section 6); whether it
    leads to the *sentence* with that value is a sharper question. The gallery Z is the whole grid
    with the sentence itself, which is found again where the step is too short.
    """
    wanted = counterparts(sentences, factor)
    where = sentences.column("topic")
    return {
        name: float((nearest(points, Z) == wanted).mean())
        for name, points in moved(Z, sentences.column(factor), where, rng).items()
    }


def _check_groups(
    Z: ArrayLike, labels: ArrayLike, groups: ArrayLike
) -> tuple[Array, NDArray[np.intp], NDArray[np.intp]]:
    points, values, where = as_points(Z, "Z"), np.asarray(labels), np.asarray(groups)
    for name, array in (("labels", values), ("groups", where)):
        if array.shape != (len(points),):
            raise ValueError(f"{name} must have shape ({len(points)},), got {array.shape}")
    if len(np.unique(where)) < 2:
        raise ValueError("groups hold a single group: there is none to carry a concept over to")
    return points, values, where
