r"""Learning from single-node interventions with a known graph (Causal Component Analysis).

An intervention on node t of a structural causal model replaces one factor of the density, so that

.. math:: \ln p^t(z) - \ln p^0(z) = \ln \tilde p(z_t) - \ln p(z_t \mid z_{\mathrm{pa}(t)}).

With Gaussian mechanisms this is the quadratic of a concept conditional (86) in :math:`z_t` and a
square that involves the parents, so the contrastive loss (88) serves with another last layer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.preprocessing import QuantileTransformer
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.lr_scheduler import LambdaLR, OneCycleLR

from conceptnb.common.muon import Muon
from conceptnb.common.validation import Array, as_array, as_points
from conceptnb.learning.data import check_environment

_RATES = 6e-3, 0.03  # of Adam and of Muon


class InterventionLearner:
    """Learn one latent per node from samples before and after an intervention on each node.

    The learner of Appendix F with two changes: the log-odds of environment t are those of an
    intervention on node t, and observations pass through a normal quantile transform of each column
    before they reach a deeper network. It sees observations, environments and the graph, as the
    flows of Causal Component Analysis do (Liang et al., 2023), and neither latents nor mixing.

    Parameters
    ----------
    graph : array-like of shape (n, n)
        ``graph[i, j]`` is non-zero where node i is a parent of node j.
    width, depth : int
        Of the encoder: hidden units, and residual layers.
    epochs, batch_size : int
        Of the training.
    seed : int
        Of the start and of the order of rows.
    """

    def __init__(
        self,
        graph: ArrayLike,
        *,
        width: int = 64,
        depth: int = 6,
        epochs: int = 18,
        batch_size: int = 2048,
        seed: int = 0,
    ) -> None:
        parents = as_array(graph, "graph", ndim=2) != 0
        if parents.shape[0] != parents.shape[1]:
            raise ValueError(f"graph must be square, got {parents.shape}")
        if np.linalg.matrix_power(parents.astype(float), len(parents)).any():
            raise ValueError("graph has a cycle: no order of causes exists")
        self.parents, self.width, self.depth = parents, width, depth
        self.epochs, self.batch_size, self.seed = epochs, batch_size, seed

    def fit(
        self, X: ArrayLike, environment: ArrayLike, latents: ArrayLike | None = None
    ) -> InterventionLearner:
        """Fit to observations (N, d_x); environment is 0, or t where node t - 1 is set.

        With `latents`, the truth of shape (N, n), the encoder is fitted to them instead by squared
        error, in the same steps: a ceiling for what it can learn without.
        """
        x, labels = as_points(X, "X"), check_environment(environment)
        if len(x) != len(labels) or labels.max() != len(self.parents):
            raise ValueError(
                f"environment must have {len(x)} entries from 0 to {len(self.parents)}: "
                "one environment per node beside the base"
            )
        # Its own 100,000 rows are plenty for the quantiles of a column.
        self._columns = QuantileTransformer(
            output_distribution="normal", subsample=100_000, random_state=self.seed
        ).fit(x)
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            self._encoder = _encoder(x.shape[1], len(self.parents), self.width, self.depth)
            head = _Mechanisms(self.parents)
            kind, y = torch.as_tensor(labels), None
            if latents is not None:
                y = torch.as_tensor(as_points(latents, "latents"), dtype=torch.float32)

            def loss(h: Tensor, rows: Tensor) -> Tensor:
                if y is not None:
                    return functional.mse_loss(h, y[rows])
                return functional.cross_entropy(functional.pad(head(h), (1, 0)), kind[rows])

            self._train([*head.parameters()] if y is None else [], self._input(x), loss)
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return learned latents, shape (N, n), each up to an affine map of its own."""
        with torch.no_grad():
            return self._encoder(self._input(as_points(X, "X"))).double().numpy()

    def _input(self, x: Array) -> Tensor:
        return torch.as_tensor(self._columns.transform(x), dtype=torch.float32)

    def _train(
        self, head: list[nn.Parameter], x: Tensor, loss: Callable[[Tensor, Tensor], Tensor]
    ) -> None:
        """Minimise a loss of latents and rows, with rates that fall to zero."""
        matrices = [m.layer.weight for m in self._encoder if isinstance(m, _Residual)]
        hidden = {id(matrix) for matrix in matrices}
        others = [p for p in [*self._encoder.parameters(), *head] if id(p) not in hidden]
        steps = self.epochs * -(-len(x) // self.batch_size)
        adam, muon = torch.optim.Adam(others, _RATES[0]), Muon(matrices, _RATES[1])
        schedules = (
            OneCycleLR(adam, _RATES[0], total_steps=steps, cycle_momentum=False),
            LambdaLR(muon, lambda step: 1 - step / steps),
        )
        for _ in range(self.epochs):
            for rows in torch.randperm(len(x)).split(self.batch_size):
                adam.zero_grad()
                muon.zero_grad()
                loss(self._encoder(x[rows]), rows).backward()
                adam.step()
                muon.step()
                for schedule in schedules:
                    schedule.step()


class _Residual(nn.Module):
    """h + silu(V h + c)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, h: Tensor) -> Tensor:
        return h + functional.silu(self.layer(h))


def _encoder(d_x: int, n: int, width: int, depth: int) -> nn.Sequential:
    hidden = [_Residual(width) for _ in range(depth)]
    return nn.Sequential(nn.Linear(d_x, width), nn.SiLU(), *hidden, nn.Linear(width, n))


class _Mechanisms(nn.Module):
    """Latents (rows, n) -> log-odds (rows, n) of the interventions, in units of their noise."""

    def __init__(self, parents: np.ndarray) -> None:
        super().__init__()
        n = len(parents)
        self.mask = torch.as_tensor(parents, dtype=torch.float32)
        self.alpha = nn.Parameter(torch.zeros(n))
        self.gamma = nn.Parameter(torch.ones(n))
        self.effects = nn.Parameter(torch.zeros(n, n))
        self.log_scale = nn.Parameter(torch.zeros(n))

    def forward(self, h: Tensor) -> Tensor:
        before = (h - h @ (self.effects * self.mask)) * (-self.log_scale).exp()
        return self.alpha + (before.square() - (h - self.gamma).square()) / 2
