r"""The contrastive interventional method that the paper's algorithm grew from (Appendix F).

Buchholz et al. (2023) intervene on one node of a linear Gaussian causal model at a time. With
precision matrix :math:`\sum_j s_j s_j^\top` of the observed distribution, an intervention
on node t replaces the term of t: its mechanism's row :math:`s_t` goes and the new noise
comes, so that

.. math:: \ln p^e(z) - \ln p^0(z) = \alpha_e - \beta_e z_t^2 + \gamma_e z_t
          + \tfrac12 \langle s_t, z \rangle^2.

The last term belongs to the node and not to the environment: every environment that
intervenes on t shares it. Conditioning (86) is the case s = 0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from conceptnb.core.validation import Array, as_count
from conceptnb.learning.baselines.baseline import Baseline
from conceptnb.learning.data import stack
from conceptnb.learning.encoders import Encoder, LinearEncoder, MLPEncoder
from conceptnb.learning.fitting import check_targets
from conceptnb.learning.heads import TargetHead
from conceptnb.learning.model import ConceptModel, Whitening
from conceptnb.learning.training import Trainer, TrainingConfig

__all__ = ["Interventional", "InterventionalHead"]


class InterventionalHead(TargetHead):
    """Log-odds of single-node interventions: the target's parabola and a shared square.

    Parameters
    ----------
    n_models : int
    targets : bool tensor of shape (m, n)
        Which nodes each environment intervenes on.
    """

    def __init__(self, n_models: int, targets: Tensor) -> None:
        super().__init__(n_models, targets)
        n = targets.shape[1]
        # Small and not zero: the gradient of a square vanishes at zero.
        self.shared = nn.Parameter(0.05 * torch.eye(n).repeat(n_models, 1, 1))

    def forward(self, h: Tensor) -> Tensor:
        """Return log-odds, shape (P, rows, m)."""
        squares = torch.bmm(h, self.shared).square()
        return super().forward(h) + 0.5 * squares @ self.mask

    def quadratic_form(self) -> Tensor:
        """Return Q of each environment, with log-odds -½ hᵀQh + ..., shape (P, m, n, n).

        For single-node interventions it is the difference of precision matrices,
        intervened less observed.
        """
        beta, _ = self.coefficients()
        own = torch.diag_embed(2 * beta.transpose(1, 2))
        squares = torch.einsum("pkt,plt,te->pekl", self.shared, self.shared, self.mask)
        return own - squares


class Interventional(Baseline):
    """Contrastive learning with the interventional head, several starts.

    Parameters
    ----------
    targets : bool array of shape (m, n)
        Which nodes each environment intervenes on, known as in the paper's protocol.
    encoder : {"linear", "mlp"}
    starts : int
        Random starts a problem; that with the lowest held-out loss is kept.
    seed : int
    config : TrainingConfig, optional
    """

    def __init__(
        self,
        targets: ArrayLike,
        *,
        encoder: Literal["linear", "mlp"] = "mlp",
        starts: int = 2,
        seed: int = 0,
        config: TrainingConfig | None = None,
    ) -> None:
        if encoder not in ("linear", "mlp"):
            raise ValueError(f"encoder must be 'linear' or 'mlp', got {encoder!r}")
        self.targets = np.asarray(targets)
        self.encoder = encoder
        self.starts = as_count(starts, "starts")
        self.seed = as_count(seed, "seed", minimum=0)
        self.config = config or TrainingConfig(loss="softmax", epochs=40, batch_size=1024)

    def _fit(self, X: Array, environment: np.ndarray, valuations: Array | None) -> None:
        data = stack(list(X), environment)
        mask = torch.as_tensor(check_targets(self.targets, data.n_environments))
        self.whitening = Whitening.fit(data)
        data = replace(data, x=self.whitening(data.x))
        seeds = [1000 * self.seed + i for i in range(self.starts * len(X))]
        encoder: Encoder
        if self.encoder == "linear":
            encoder = LinearEncoder(data.d_x, mask.shape[1], seeds)
        else:
            encoder = MLPEncoder(data.d_x, mask.shape[1], seeds, skip=True)
        self.model = ConceptModel(encoder, InterventionalHead(len(seeds), mask))
        trainer = Trainer(self.model, *data.split(), self.config, shuffle_seed=self.seed)
        trainer.run(progress=False)
        self.held_out_loss = trainer.best.view(len(X), self.starts).double().numpy()
        self.chosen = self.held_out_loss.argmin(axis=1)

    @torch.no_grad()
    def _transform(self, X: Array) -> Array:
        x = self.whitening(torch.as_tensor(X, dtype=torch.float32))
        codes = self.model.encoder(x.repeat_interleave(self.starts, dim=0))
        every = codes.view(len(X), self.starts, *codes.shape[1:])
        return every[torch.arange(len(X)), torch.as_tensor(self.chosen)].double().numpy()
