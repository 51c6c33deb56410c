"""The analysis of Appendix D for one embedding: every factor, on held-out images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.core.validation import as_points
from conceptnb.embeddings.directions.estimator import ConceptDirections
from conceptnb.embeddings.directions.evaluation import (
    ValuationTable,
    first_values_split,
    half_split,
    separation,
    valuation_table,
)
from conceptnb.embeddings.directions.selection import proper_concept
from conceptnb.embeddings.shapes3d.factors import FACTORS, SIZES, check_factors, factor_index

Array = NDArray[np.float64]
Split = Literal["half", "first-values"]


@dataclass(frozen=True)
class FactorReport:
    """What one embedding knows of one factor; all numbers are of test images.

    Attributes
    ----------
    factor : name
    paper : ConceptDirections, the sign-aligned mean of Appendix D.1
    atom : ConceptDirections, the order-free direction
    plane : ConceptDirections, the two discriminant directions
    concept : ConceptDirections in the proper dimension, counted on training images alone
    table : valuations of the paper's direction by value, as in Tables 2-4
    eta2_paper, eta2 : between-class share of variance of `paper` and `atom`
    accuracy_atom, accuracy_plane, accuracy : of nearest-plane classification with
        `atom`, `plane` and `concept`
    train, test : positions of the images
    """

    factor: str
    paper: ConceptDirections
    atom: ConceptDirections
    plane: ConceptDirections
    concept: ConceptDirections
    table: ValuationTable
    eta2_paper: float
    eta2: float
    accuracy_atom: float
    accuracy_plane: float
    accuracy: float
    train: NDArray[np.intp]
    test: NDArray[np.intp]


def report_factor(
    Z: ArrayLike,
    factors: ArrayLike,
    factor: str,
    rng: np.random.Generator,
    *,
    split: Split = "half",
) -> FactorReport:
    """Learn the directions of one factor and judge them on held-out images (Appendix D).

    Parameters
    ----------
    Z : (samples, dimensions) embeddings
    factors : (samples, 6) value indices
    factor : name of the factor
    rng : source of the random halves
    split : "half" as in the paper's text, or "first-values" as in the released code

    Raises
    ------
    ValueError
        If the split is unknown, or leaves a value of the factor without training images.
    """
    points, array = as_points(Z, "Z"), check_factors(factors)
    column = factor_index(factor)
    if split == "half":
        train, test = half_split(len(points), rng)
    elif split == "first-values":
        train, test = first_values_split(array, column, SIZES)
    else:
        raise ValueError(f"split={split!r} must be 'half' or 'first-values'")
    labels = array[:, column]
    counts = np.bincount(labels[train], minlength=SIZES[column])
    if not counts.all():
        raise ValueError(f"{factor}={counts.argmin()} has no training image; embed more images")
    paper = ConceptDirections("paper").fit(points[train], labels[train])
    atom = ConceptDirections().fit(points[train], labels[train])
    plane = ConceptDirections(n_components=2).fit(points[train], labels[train])
    concept = proper_concept(points[train], labels[train], rng)
    paper_valuations, valuations = paper.transform(points[test]), atom.transform(points[test])
    return FactorReport(
        factor,
        paper,
        atom,
        plane,
        concept,
        valuation_table(paper_valuations, labels[test]),
        separation(paper_valuations, labels[test]),
        separation(valuations, labels[test]),
        float(atom.score(points[test], labels[test])),
        float(plane.score(points[test], labels[test])),
        float(concept.score(points[test], labels[test])),
        train,
        test,
    )


def report(
    Z: ArrayLike, factors: ArrayLike, rng: np.random.Generator, *, split: Split = "half"
) -> dict[str, FactorReport]:
    """Report all six factors by name; see `report_factor`.

    Random halves are the same for all factors, and for all embeddings that are reported
    with generators of the same seed.
    """
    seed = rng.integers(2**32)
    return {
        name: report_factor(Z, factors, name, np.random.default_rng(seed), split=split)
        for name in FACTORS
    }
