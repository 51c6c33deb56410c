"""Concept directions in any embedding space, and what they are worth (Appendix D)."""

from conceptnb.embeddings.directions.agreement import (
    agreement,
    agreement_over_splits,
    cyclic_readings,
)
from conceptnb.embeddings.directions.estimator import METHODS, ConceptDirections
from conceptnb.embeddings.directions.evaluation import (
    canonical_correlations,
    canonical_variates,
    first_values_split,
    half_split,
    separation,
    valuation_table,
)
from conceptnb.embeddings.directions.factor_report import FactorReport, report_factors
from conceptnb.embeddings.directions.pairwise import (
    averaged_direction,
    leading_directions,
    order_dependence,
    pairwise_regressions,
)
from conceptnb.embeddings.directions.selection import (
    choose_dimension,
    proper_concept,
    spanned_dimensions,
)
