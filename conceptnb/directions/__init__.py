"""Concept directions in an embedding space, and what they are worth (Appendix D).

Works on any embedding matrix (samples, dimensions) and labels; needs numpy,
scipy and scikit-learn only.
"""

from .agreement import Agreement, Reading, agreement, agreement_over_splits, readings
from .averaging import averaged_direction, leading_directions, order_dependence
from .estimator import METHODS, ConceptDirections
from .evaluation import (
    ValuationTable,
    canonical_correlations,
    canonical_variates,
    first_values_split,
    half_split,
    nearest_plane,
    separation,
    valuation_table,
)
from .pairwise import PairwiseRegressions, all_factors, pairwise_regressions
from .report import FactorReport, report, report_factor
from .selection import (
    DimensionChoice,
    Span,
    choose_dimension,
    proper_concept,
    spanned_dimensions,
)
from .tables import beside_paper, paper_columns

__all__ = [
    "METHODS",
    "Agreement",
    "ConceptDirections",
    "DimensionChoice",
    "FactorReport",
    "PairwiseRegressions",
    "Reading",
    "Span",
    "ValuationTable",
    "agreement",
    "agreement_over_splits",
    "all_factors",
    "averaged_direction",
    "beside_paper",
    "canonical_correlations",
    "canonical_variates",
    "choose_dimension",
    "first_values_split",
    "half_split",
    "leading_directions",
    "nearest_plane",
    "order_dependence",
    "pairwise_regressions",
    "paper_columns",
    "proper_concept",
    "readings",
    "report",
    "report_factor",
    "separation",
    "spanned_dimensions",
    "valuation_table",
]
