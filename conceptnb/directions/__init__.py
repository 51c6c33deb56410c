"""Concept directions in an embedding space, and what they are worth (Appendix D).

Works on any embedding matrix (samples, dimensions) and labels; needs numpy,
scipy and scikit-learn only.
"""

from .averaging import averaged_direction, leading_directions, order_dependence
from .estimator import METHODS, ConceptDirections
from .evaluation import (
    ValuationTable,
    canonical_correlations,
    first_values_split,
    half_split,
    nearest_plane,
    separation,
    valuation_table,
)
from .pairwise import PairwiseRegressions, all_factors, pairwise_regressions
from .report import (
    PROPER_DIMENSIONS,
    Agreement,
    FactorReport,
    agreement,
    chosen_dimensions,
    proper_concept,
    report,
    report_factor,
)
from .selection import DimensionChoice, choose_dimension
from .tables import beside_paper, paper_columns

__all__ = [
    "METHODS",
    "PROPER_DIMENSIONS",
    "Agreement",
    "ConceptDirections",
    "DimensionChoice",
    "FactorReport",
    "PairwiseRegressions",
    "ValuationTable",
    "agreement",
    "all_factors",
    "averaged_direction",
    "beside_paper",
    "canonical_correlations",
    "choose_dimension",
    "chosen_dimensions",
    "first_values_split",
    "half_split",
    "leading_directions",
    "nearest_plane",
    "order_dependence",
    "pairwise_regressions",
    "paper_columns",
    "proper_concept",
    "report",
    "report_factor",
    "separation",
    "valuation_table",
]
