"""Contrastive concept learning: encoder, log-odds head and loss of Appendix F, stacked."""

from conceptnb.contrastive.best import fit_best
from conceptnb.contrastive.clusters import ClusterWhitening, fit_clustered
from conceptnb.contrastive.data import Stack, stack
from conceptnb.contrastive.encoders import Encoder, LinearEncoder, MLPEncoder
from conceptnb.contrastive.fitting import ConceptFit, fit_concepts, oracle_loss
from conceptnb.contrastive.heads import GeneralHead, Head, TargetHead, TiedHead
from conceptnb.contrastive.learner import ConceptLearner
from conceptnb.contrastive.model import ConceptModel, Whitening, contrastive_loss
from conceptnb.contrastive.training import Trainer, TrainingConfig, evaluate

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
