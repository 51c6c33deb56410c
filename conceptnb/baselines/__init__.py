"""What a reader would try instead: baselines with one interface, from floor to ceiling."""

from conceptnb.baselines.base import Baseline
from conceptnb.baselines.classical import (
    IndependentComponents,
    PrincipalComponents,
    RandomProjection,
)
from conceptnb.baselines.compare import (
    METHODS,
    Concepts,
    compare,
    comparison_table,
    make_method,
    mcc_within,
)
from conceptnb.baselines.interventional import Interventional, InterventionalHead
from conceptnb.baselines.ivae import IVAE, IVAENetwork
from conceptnb.baselines.networks import EnvironmentClassifier, Supervised
from conceptnb.baselines.training import Budget

__all__ = [
    "IVAE",
    "METHODS",
    "Baseline",
    "Budget",
    "Concepts",
    "EnvironmentClassifier",
    "IVAENetwork",
    "IndependentComponents",
    "Interventional",
    "InterventionalHead",
    "PrincipalComponents",
    "RandomProjection",
    "Supervised",
    "compare",
    "comparison_table",
    "make_method",
    "mcc_within",
]
