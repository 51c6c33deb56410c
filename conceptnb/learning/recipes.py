"""Recipes as data: everything about a fit but the observations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from torch import Tensor

from conceptnb.common.validation import as_count
from conceptnb.learning.encoders import LinearEncoder, MLPEncoder, StackedEncoder
from conceptnb.learning.heads import GeneralHead, Head, InterventionalHead, TargetHead, TiedHead
from conceptnb.learning.model import ConceptModel
from conceptnb.learning.training import TrainingConfig

_CHOICES = {
    "head": ("general", "targets", "tied", "interventional"),
    "encoder": ("linear", "mlp", None),
    "whitening": ("none", "plain", "clusters"),
    "selection": ("loss", "slopes"),
}


@dataclass(frozen=True)
class Recipe:
    """How concept models are fitted. The defaults are the authors' (protocol of Tables 1 and 7).

    Parameters
    ----------
    head : {"general", "targets", "tied", "interventional"}
        :class:`~conceptnb.learning.GeneralHead` as printed in (87), for unknown targets;
        :class:`~conceptnb.learning.TargetHead`, :class:`~conceptnb.learning.TiedHead` or
        :class:`~conceptnb.learning.InterventionalHead` for known ones.
    encoder : {"linear", "mlp"}, optional
        By default as the problems' mixing: a matrix if linear, else, and for arrays, a network.
    width, depth : int
        Of the network, see :class:`~conceptnb.learning.MLPEncoder`.
    skip : bool
        Add a linear map of x beside the network (not in the paper).
    whitening : {"none", "plain", "clusters"}
        What observations go through before the encoder (nothing in the paper): whitening by the
        base sample, or :class:`~conceptnb.learning.ClusterWhitening`.
    n_clusters : int
        Clusters of the base, if `whitening` is "clusters"; the paper's experiments have three.
    search : bool
        Find linear encoders first, by :func:`~conceptnb.learning.linear.fit_linear`. They are
        all if the encoder is linear; else a network starts at each of them. Needs the tied head.
    starts : int
        Models per problem: random starts or, with `search`, at equally good linear encoders.
    training : TrainingConfig
        Of no effect for a searched linear encoder but for its `loss`.
    selection : {"loss", "slopes"}
        Which start is kept: the one with the lowest held-out loss or, of those between which
        held-out losses do not decide, the one whose valuations have the same slopes in all
        clusters (:func:`~conceptnb.learning.slope_disagreement`).
    held_out : float
        Share of every environment that chooses epoch and start.
    """

    head: Literal["general", "targets", "tied", "interventional"] = "targets"
    encoder: Literal["linear", "mlp"] | None = None
    width: int = 32
    depth: int = 2
    skip: bool = False
    whitening: Literal["none", "plain", "clusters"] = "none"
    n_clusters: int = 3
    search: bool = False
    starts: int = 1
    training: TrainingConfig = field(default_factory=TrainingConfig)
    selection: Literal["loss", "slopes"] = "loss"
    held_out: float = 0.2

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {choices}, got {getattr(self, name)!r}")
        for name in ("width", "n_clusters", "starts"):
            as_count(getattr(self, name), name)
        as_count(self.depth, "depth", minimum=0)
        if self.whitening == "clusters" and self.encoder == "linear":
            raise ValueError("whitening='clusters' bends observations: it needs encoder='mlp'")
        if self.selection == "slopes" and self.whitening != "clusters":
            raise ValueError("selection='slopes' needs whitening='clusters'")
        if self.search and self.head != "tied":
            raise ValueError(f"search needs head='tied', got {self.head!r}")
        if self.search and self.encoder != "linear" and not self.skip:
            raise ValueError("search needs skip=True: a network starts at a linear encoder")

    def build(
        self, d_x: int, n: int, m: int, targets: Tensor | None, seeds: Sequence[int]
    ) -> ConceptModel:
        """Return untrained models, one per seed.

        The counts are those of inputs after whitening, concepts and environments; `targets`, of
        shape (m, n), are needed by a head for known targets.
        """
        encoder: StackedEncoder = (
            LinearEncoder(d_x, n, seeds)
            if self.encoder == "linear"
            else MLPEncoder(d_x, n, seeds, width=self.width, depth=self.depth, skip=self.skip)
        )
        head: Head
        if self.head == "general":
            head = GeneralHead(len(seeds), n, m)
        else:
            assert targets is not None  # `fit` has seen to it
            kinds = {"targets": TargetHead, "tied": TiedHead, "interventional": InterventionalHead}
            head = kinds[self.head](len(seeds), targets)
        return ConceptModel(encoder, head)


AUTHORS = Recipe()
"""The authors' protocol for Tables 1 and 7: known targets, one random start, Adam (Appendix G)."""

BEST = Recipe(
    head="tied",
    width=64,
    depth=0,
    skip=True,
    whitening="plain",
    search=True,
    starts=2,
    training=TrainingConfig(
        loss="softmax",
        epochs=30,
        batch_size=1024,
        encoder_rate=0.01,
        head_rate=0.02,
        l1=0.0,
        decay=3e-5,
    ),
)
"""The book's best: whitened, β tied, linear encoders searched first, then networks beside them.

A network starts near zero and so inherits the signs and the order that the linear encoder found.
"""

CLUSTER_WHITENED = replace(
    BEST,
    whitening="clusters",
    starts=3,
    selection="slopes",
    # The networks see twice as many inputs, and want more decay.
    training=replace(BEST.training, decay=1e-4),
)
"""As BEST, where the base falls into clusters of one covariance in latent space.

The paper does not assume that, though its experiments nearly satisfy it (Appendix G). Results
change if columns of x are rescaled, unlike those of BEST.
"""

UNKNOWN_TARGETS = Recipe(
    head="general",
    skip=True,
    whitening="plain",
    starts=4,
    training=TrainingConfig(loss="softmax", epochs=60, batch_size=1024),
)
"""The head as printed in (87), with dense β and γ, where nothing says who conditions on what."""

INTERVENTIONAL = Recipe(
    head="interventional",
    skip=True,
    whitening="plain",
    starts=2,
    training=TrainingConfig(loss="softmax", epochs=40, batch_size=1024),
)
"""The contrastive interventional method that the paper's algorithm grew from (Appendix F)."""
