"""What a reader would try instead: baselines with one interface, from floor to ceiling."""

from conceptnb.learning.baselines.baseline import Baseline, EachProblem, RandomProjection
from conceptnb.learning.baselines.ivae import IVAE
from conceptnb.learning.baselines.networks import Budget, EnvironmentClassifier, NetworkBaseline
from conceptnb.learning.baselines.supervised import Supervised

__all__ = [
    "IVAE",
    "Baseline",
    "Budget",
    "EachProblem",
    "EnvironmentClassifier",
    "NetworkBaseline",
    "RandomProjection",
    "Supervised",
]
