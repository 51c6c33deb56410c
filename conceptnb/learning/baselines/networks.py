"""A classifier's penultimate layer, and supervised regression as the ceiling."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from conceptnb.core.validation import Array, as_count
from conceptnb.learning.baselines.baseline import Baseline
from conceptnb.learning.baselines.network_training import Budget, Standardisation, train
from conceptnb.learning.encoders import Encoder, LinearEncoder, MLPEncoder, StackedLinear

__all__ = ["EnvironmentClassifier", "Supervised"]


class EnvironmentClassifier(Baseline):
    """The penultimate layer of a network that tells the environments apart.

    It sees what the contrastive method sees, and is asked the same question; only the
    last layer has no special form: environment logits are affine in its codes.

    Parameters
    ----------
    n_components : int
        Width k of the penultimate layer.
    seed : int
    budget : Budget, optional
    """

    def __init__(
        self, n_components: int = 32, *, seed: int = 0, budget: Budget | None = None
    ) -> None:
        self.n_components = as_count(n_components, "n_components")
        self.seed = as_count(seed, "seed", minimum=0)
        self.budget = budget or Budget()

    def _fit(self, X: Array, environment: np.ndarray, valuations: Array | None) -> None:
        self.scaled = Standardisation(X)
        x, label = self.scaled(X), torch.as_tensor(environment)
        seeds = [1000 * self.seed + i for i in range(len(X))]
        generators = [torch.Generator().manual_seed(seed + 500) for seed in seeds]
        self.encoder = MLPEncoder(X.shape[2], self.n_components, seeds)
        last = StackedLinear(self.n_components, int(label.max()) + 1, generators)

        def loss(index: Tensor) -> Tensor:
            logits = last(self._codes(x[:, index]))
            target = label[index].expand(len(x), -1)
            losses = functional.cross_entropy(logits.transpose(1, 2), target, reduction="none")
            return losses.mean(dim=1)

        module = nn.ModuleList([self.encoder, last])
        self.held_out_loss = train(module, loss, X.shape[1], self.budget, self.seed).numpy()

    def _codes(self, x: Tensor) -> Tensor:
        return functional.leaky_relu(self.encoder(x), 0.2)

    @torch.no_grad()
    def _transform(self, X: Array) -> Array:
        return self._codes(self.scaled(X)).double().numpy()


class Supervised(Baseline):
    """Regression of the true valuations on all observations: the ceiling of an encoder.

    Parameters
    ----------
    encoder : {"linear", "mlp"}
        Least squares in closed form, or a network of the authors' size that corrects it.
    seed : int
    budget : Budget, optional
        Of the network.
    """

    needs_valuations = True

    def __init__(
        self,
        encoder: Literal["linear", "mlp"] = "mlp",
        *,
        seed: int = 0,
        budget: Budget | None = None,
    ) -> None:
        if encoder not in ("linear", "mlp"):
            raise ValueError(f"encoder must be 'linear' or 'mlp', got {encoder!r}")
        self.encoder = encoder
        self.seed = as_count(seed, "seed", minimum=0)
        self.budget = budget or Budget()

    def _fit(self, X: Array, environment: np.ndarray, valuations: Array | None) -> None:
        assert valuations is not None  # Baseline.fit has seen to it
        truth = valuations
        self.scaled = Standardisation(X)
        x = self.scaled(X)
        start = np.stack([_least_squares(a, b) for a, b in zip(x.numpy(), truth, strict=True)])
        weight = torch.as_tensor(start, dtype=torch.float32)
        seeds = [1000 * self.seed + i for i in range(len(X))]
        self.network: Encoder
        if self.encoder == "linear":
            linear = LinearEncoder(X.shape[2], truth.shape[2], seeds)
            linear.layer.weight.data = weight
            self.network = linear
            return
        # As the book's best estimator does: from the linear solution, which it corrects.
        network = MLPEncoder(X.shape[2], truth.shape[2], seeds, skip=True)
        unit = truth.std(axis=1, keepdims=True)
        target = torch.as_tensor((truth - truth.mean(axis=1, keepdims=True)) / unit).float()
        network.start_linear(weight / torch.as_tensor(unit).float())
        self.network = network

        def loss(index: Tensor) -> Tensor:
            return (network(x[:, index]) - target[:, index]).square().mean(dim=(1, 2))

        self.held_out_loss = train(network, loss, X.shape[1], self.budget, self.seed).numpy()

    @torch.no_grad()
    def _transform(self, X: Array) -> Array:
        return self.network(self.scaled(X)).double().numpy()


def _least_squares(X: Array, valuations: Array) -> Array:
    """Return the weights of the regression on centred columns, shape (d_x, n)."""
    return np.linalg.lstsq(X.astype(np.float64), valuations - valuations.mean(axis=0), rcond=1e-7)[
        0
    ]
