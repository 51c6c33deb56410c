"""Concept directions in an embedding space, and what they are worth (Appendix D).

Works on any embedding matrix (samples, dimensions) and labels; needs numpy,
scipy and scikit-learn only.
"""

from conceptnb.embeddings.directions.agreement import (
    Agreement,
    Reading,
    agreement,
    agreement_over_splits,
    readings,
)
from conceptnb.embeddings.directions.averaging import (
    averaged_direction,
    leading_directions,
    order_dependence,
)
from conceptnb.embeddings.directions.estimator import METHODS, ConceptDirections
from conceptnb.embeddings.directions.evaluation import (
    ValuationTable,
    canonical_correlations,
    canonical_variates,
    first_values_split,
    half_split,
    nearest_plane,
    separation,
    valuation_table,
)
from conceptnb.embeddings.directions.factor_report import FactorReport, report, report_factor
from conceptnb.embeddings.directions.pairwise import (
    PairwiseRegressions,
    all_factors,
    pairwise_regressions,
)
from conceptnb.embeddings.directions.selection import (
    DimensionChoice,
    Span,
    choose_dimension,
    proper_concept,
    spanned_dimensions,
)

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
    "canonical_correlations",
    "canonical_variates",
    "choose_dimension",
    "first_values_split",
    "half_split",
    "leading_directions",
    "nearest_plane",
    "order_dependence",
    "pairwise_regressions",
    "proper_concept",
    "readings",
    "report",
    "report_factor",
    "separation",
    "spanned_dimensions",
    "valuation_table",
]
