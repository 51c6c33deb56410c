"""Contrastive concept learning: encoder, log-odds head and loss of Appendix F, stacked."""

from conceptnb.learning.best import fit_best
from conceptnb.learning.cluster_whitening import ClusterWhitening, fit_clustered
from conceptnb.learning.data import Stack, stack
from conceptnb.learning.encoders import Encoder, LinearEncoder, MLPEncoder
from conceptnb.learning.fitting import ConceptFit, fit_concepts, oracle_loss
from conceptnb.learning.heads import GeneralHead, Head, TargetHead, TiedHead
from conceptnb.learning.learner import ConceptLearner
from conceptnb.learning.model import ConceptModel, Whitening, contrastive_loss
from conceptnb.learning.training import Trainer, TrainingConfig, evaluate

__all__ = [
    "ClusterWhitening",
    "ConceptFit",
    "ConceptLearner",
    "ConceptModel",
    "Encoder",
    "GeneralHead",
    "Head",
    "LinearEncoder",
    "MLPEncoder",
    "Stack",
    "TargetHead",
    "TiedHead",
    "Trainer",
    "TrainingConfig",
    "Whitening",
    "contrastive_loss",
    "evaluate",
    "fit_best",
    "fit_clustered",
    "fit_concepts",
    "oracle_loss",
    "stack",
]
