"""The analysis of Appendix D for one embedding: every factor, on held-out images."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.common.validation import Array, as_points
from conceptnb.embeddings.directions.estimator import ConceptDirections
from conceptnb.embeddings.directions.evaluation import (
    Reading,
    ValuationTable,
    half_split,
    held_out_reading,
    separation,
    valuation_table,
)
from conceptnb.embeddings.directions.pairwise import check_labels
from conceptnb.embeddings.directions.selection import proper_concept

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True, eq=False)
class FactorReport:
    """What one embedding knows of one factor; all numbers are of test images.

    Accuracies are of nearest-plane classification with `atom`, `plane` and `concept`.
    """

    factor: str
    paper: ConceptDirections  # the sign-aligned mean of Appendix D.1
    atom: ConceptDirections  # the order-free direction
    plane: ConceptDirections  # two discriminant directions, or one if there are but two values
    concept: ConceptDirections  # in the proper dimension, counted on training images alone
    table: ValuationTable  # valuations of the paper's direction by value, as in Tables 2-4
    eta2_paper: float  # between-class share of variance of `paper`
    eta2: float  # and of `atom`
    accuracy_atom: float
    accuracy_plane: float
    accuracy: float
    chance: float  # share of the most frequent value
    accuracy_shuffled: float  # mean, of labels of test images in random orders
    reading: Reading  # whether `concept` reads more than chance would
    valuations: Array  # of the test images, along `atom`
    labels: NDArray[np.generic]
    train: NDArray[np.intp]
    test: NDArray[np.intp]


def report_factors(
    Z: ArrayLike,
    labels: Mapping[str, ArrayLike],
    rng: np.random.Generator,
    *,
    split: Split | None = None,
    shrinkage: float = 1e-3,
    standardise: bool = False,
) -> dict[str, FactorReport]:
    """Learn the directions of factors and judge them on held-out images (Appendix D).

    Parameters
    ----------
    Z : array-like of shape (samples, dimensions)
        Embeddings.
    labels : mapping of str to array-like of shape (samples,)
        Values of each factor, whole numbers or text, by its name.
    rng : numpy.random.Generator
        Source of the random halves, which are the same for all factors, and for all embeddings
        that are reported with generators of the same seed.
    split : pair of ndarray of int, optional
        Positions of training and test images; random halves by default, as in the paper's text.
    shrinkage : float
        As in `ConceptDirections`.
    standardise : bool
        As there. By default the coordinates of an embedding have one unit in common; True for
        tables whose columns have units of their own.

    Raises
    ------
    ValueError
        If a value of a factor has no training image.
    """
    points, seed = as_points(Z, "Z"), rng.integers(2**32)
    as_in = {"shrinkage": shrinkage, "standardise": standardise}
    return {
        name: _report(name, points, given, np.random.default_rng(seed), split, as_in)
        for name, given in labels.items()
    }


def _report(
    factor: str,
    points: Array,
    labels: ArrayLike,
    rng: np.random.Generator,
    split: Split | None,
    as_in: dict[str, Any],
) -> FactorReport:
    given = check_labels(labels, len(points))
    train, test = split or half_split(len(points), rng)
    values = np.unique(given)
    if (unseen := np.setdiff1d(values, given[train])).size:
        raise ValueError(f"{factor}={unseen[0]} has no training image; embed more images")
    A, a, B, b = points[train], given[train], points[test], given[test]
    paper = ConceptDirections("paper", standardise=as_in["standardise"]).fit(A, a)
    atom = ConceptDirections(**as_in).fit(A, a)
    most = min(2, len(values) - 1, points.shape[1])
    plane = ConceptDirections(n_components=most, **as_in).fit(A, a)
    concept = proper_concept(A, a, rng, **as_in)
    reading = held_out_reading(concept.predict(B), b, rng)
    along_paper, along_atom = paper.transform(B), atom.transform(B)[:, 0]
    return FactorReport(
        factor,
        paper,
        atom,
        plane,
        concept,
        table=valuation_table(along_paper, b),
        eta2_paper=separation(along_paper, b),
        eta2=separation(along_atom, b),
        accuracy_atom=float(atom.score(B, b)),
        accuracy_plane=float(plane.score(B, b)),
        accuracy=float(concept.score(B, b)),
        chance=float(np.unique(b, return_counts=True)[1].max() / len(b)),
        accuracy_shuffled=reading.shuffled,
        reading=reading,
        valuations=along_atom,
        labels=b,
        train=train,
        test=test,
    )
