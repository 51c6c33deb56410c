"""The analysis of Appendix D for one embedding: every factor, on held-out images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb._validation import as_points
from conceptnb.shapes3d import FACTORS, SIZES, check_factors, factor_index

from .estimator import ConceptDirections
from .evaluation import (
    ValuationTable,
    canonical_correlations,
    first_values_split,
    half_split,
    separation,
    valuation_table,
)
from .selection import choose_dimension

Array = NDArray[np.float64]
Split = Literal["half", "first-values"]

PROPER_DIMENSIONS: Mapping[str, int] = {
    "floor_hue": 2,
    "wall_hue": 2,
    "object_hue": 2,
    "scale": 1,
    "shape": 1,
    "orientation": 1,
}
"""Dimensions in which a factor is a concept: hue is a circle, the others are ordered."""


@dataclass(frozen=True)
class FactorReport:
    """What one embedding knows of one factor; all numbers are of test images.

    Attributes
    ----------
    factor : name
    paper : ConceptDirections, the sign-aligned mean of Appendix D.1
    atom : ConceptDirections, the order-free direction
    concept : ConceptDirections in the proper dimension of the factor, see `proper_concept`
    table : valuations of the paper's direction by value, as in Tables 2-4
    eta2_paper, eta2 : between-class share of variance of `paper` and `atom`
    accuracy_atom, accuracy : of nearest-plane classification with `atom` and `concept`
    n_train, n_test : images
    """

    factor: str
    paper: ConceptDirections
    atom: ConceptDirections
    concept: ConceptDirections
    table: ValuationTable
    eta2_paper: float
    eta2: float
    accuracy_atom: float
    accuracy: float
    n_train: int
    n_test: int


def proper_concept(factor: str) -> ConceptDirections:
    """Return an unfitted concept of a factor in its proper dimension (Definition 1).

    Its values are asked for by their places: hues on a wheel, which takes two
    dimensions, all others on a line. A discriminant direction separates values as
    well or better, but in no order of its own, and which directions separate best
    is a matter of the embedding. Places on a wheel or a line are the same for all.
    """
    if PROPER_DIMENSIONS[FACTORS[factor_index(factor)]] == 2:
        return ConceptDirections("circular", n_components=2)
    return ConceptDirections("ordinal")


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
    concept = proper_concept(factor).fit(points[train], labels[train])
    paper_valuations, valuations = paper.transform(points[test]), atom.transform(points[test])
    return FactorReport(
        factor,
        paper,
        atom,
        concept,
        valuation_table(paper_valuations, labels[test]),
        separation(paper_valuations, labels[test]),
        separation(valuations, labels[test]),
        float(atom.score(points[test], labels[test])),
        float(concept.score(points[test], labels[test])),
        len(train),
        len(test),
    )


def report(
    Z: ArrayLike, factors: ArrayLike, rng: np.random.Generator, *, split: Split = "half"
) -> dict[str, FactorReport]:
    """Report all six factors by name; see `report_factor`."""
    return {name: report_factor(Z, factors, name, rng, split=split) for name in FACTORS}


@dataclass(frozen=True)
class Agreement:
    """How well the valuations of two embeddings agree on the same images (Table 5).

    Attributes
    ----------
    paper : correlation of the paper's directions; its sign is a convention
    canonical : canonical correlations of the concepts in their proper dimension, falling
    """

    paper: float
    canonical: Array


def agreement(
    first: FactorReport, first_Z: ArrayLike, second: FactorReport, second_Z: ArrayLike
) -> Agreement:
    """Compare the concepts of two embeddings of the same images, rows in the same order.

    The paper evaluates on the full data set, training images included; give only
    test rows to leave those out.
    """
    valuations = first.paper.transform(first_Z)[:, 0], second.paper.transform(second_Z)[:, 0]
    return Agreement(
        float(np.corrcoef(valuations[0], valuations[1])[0, 1]),
        canonical_correlations(
            first.concept.transform(first_Z), second.concept.transform(second_Z)
        ),
    )


def chosen_dimensions(Z: ArrayLike, factors: ArrayLike, rng: np.random.Generator) -> dict[str, int]:
    """Choose the dimension of each factor's concept on held-out images; see `choose_dimension`."""
    array = check_factors(factors)
    return {
        name: choose_dimension(Z, array[:, column], rng).chosen
        for column, name in enumerate(FACTORS)
    }
