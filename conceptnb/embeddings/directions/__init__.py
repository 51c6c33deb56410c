"""Concept directions in an embedding space, and what they are worth (Appendix D).

Works on any embedding matrix (samples, dimensions) and labels; needs numpy,
scipy and scikit-learn only.
"""

from conceptnb.embeddings.directions.agreement import (
    Agreement,
    agreement,
    agreement_over_splits,
    cyclic_readings,
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
    separation,
    valuation_table,
)
from conceptnb.embeddings.directions.factor_report import FactorReport, report_factors
from conceptnb.embeddings.directions.pairwise import PairwiseRegressions, pairwise_regressions
from conceptnb.embeddings.directions.selection import (
    DimensionCount,
    choose_dimension,
    proper_concept,
    spanned_dimensions,
)

__all__ = [
    "METHODS",
    "Agreement",
    "ConceptDirections",
    "DimensionCount",
    "FactorReport",
    "PairwiseRegressions",
    "ValuationTable",
    "agreement",
    "agreement_over_splits",
    "averaged_direction",
    "canonical_correlations",
    "canonical_variates",
    "choose_dimension",
    "cyclic_readings",
    "first_values_split",
    "half_split",
    "leading_directions",
    "order_dependence",
    "pairwise_regressions",
    "proper_concept",
    "report_factors",
    "separation",
    "spanned_dimensions",
    "valuation_table",
]
