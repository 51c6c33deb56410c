"""What a reader would try instead: baselines with one interface, from floor to ceiling."""

from conceptnb.learning.baselines.baseline import Baseline
from conceptnb.learning.baselines.classical import (
    IndependentComponents,
    PrincipalComponents,
    RandomProjection,
)
from conceptnb.learning.baselines.interventional import Interventional, InterventionalHead
from conceptnb.learning.baselines.ivae import IVAE, IVAENetwork
from conceptnb.learning.baselines.network_training import Budget
from conceptnb.learning.baselines.networks import EnvironmentClassifier, Supervised

__all__ = [
    "IVAE",
    "Baseline",
    "Budget",
    "EnvironmentClassifier",
    "IVAENetwork",
    "IndependentComponents",
    "Interventional",
    "InterventionalHead",
    "PrincipalComponents",
    "RandomProjection",
    "Supervised",
]
