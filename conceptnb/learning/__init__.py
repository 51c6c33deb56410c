"""Contrastive concept learning: encoder, log-odds head and loss of Appendix F, stacked."""

from conceptnb.learning.cluster_whitening import ClusterWhitening, slope_disagreement
from conceptnb.learning.data import Stack, stack
from conceptnb.learning.encoders import LinearEncoder, MLPEncoder, StackedEncoder
from conceptnb.learning.fitting import ConceptFit, fit, oracle_loss
from conceptnb.learning.heads import GeneralHead, Head, InterventionalHead, TargetHead, TiedHead
from conceptnb.learning.interventions import InterventionLearner
from conceptnb.learning.learner import ConceptLearner
from conceptnb.learning.losses import contrastive_loss
from conceptnb.learning.model import ConceptModel, Whitening
from conceptnb.learning.problem_scores import evaluate
from conceptnb.learning.recipes import (
    AUTHORS,
    BEST,
    CLUSTER_WHITENED,
    INTERVENTIONAL,
    UNKNOWN_TARGETS,
    Recipe,
)
from conceptnb.learning.training import StackTrainer, TrainingConfig

__all__ = [
    "AUTHORS",
    "BEST",
    "CLUSTER_WHITENED",
    "INTERVENTIONAL",
    "UNKNOWN_TARGETS",
    "ClusterWhitening",
    "ConceptFit",
    "ConceptLearner",
    "ConceptModel",
    "GeneralHead",
    "Head",
    "InterventionLearner",
    "InterventionalHead",
    "LinearEncoder",
    "MLPEncoder",
    "Recipe",
    "Stack",
    "StackTrainer",
    "StackedEncoder",
    "TargetHead",
    "TiedHead",
    "TrainingConfig",
    "Whitening",
    "contrastive_loss",
    "evaluate",
    "fit",
    "oracle_loss",
    "slope_disagreement",
    "stack",
]
