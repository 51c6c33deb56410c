"""What an encoder could do if it were told the truth: a ceiling."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from conceptnb.common.validation import Array
from conceptnb.learning.baselines.networks import Budget, NetworkBaseline
from conceptnb.learning.data import stack
from conceptnb.learning.encoders import LinearEncoder, MLPEncoder, StackedEncoder
from conceptnb.learning.model import Whitening
from conceptnb.learning.recipes import BEST


class Supervised(NetworkBaseline):
    """Regression of the true valuations on observations (not in the paper).

    Whitening, encoder, linear start, number of epochs and learning rate are those of
    :data:`~conceptnb.learning.BEST`, with squared error in place of the contrastive loss: what it
    reaches, an estimator without labels can hope for. The encoder is "linear", least squares in
    closed form, or "mlp", a network that starts there.
    """

    def __init__(
        self,
        encoder: Literal["linear", "mlp"] = "mlp",
        *,
        seed: int = 0,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(seed=seed, budget=budget)
        self.encoder = encoder

    @property
    def _budget(self) -> Budget:
        training = BEST.training
        own = Budget(training.epochs, training.batch_size, training.encoder_rate)
        return self.budget or own

    def _fit(self, X: Array, environment: np.ndarray, valuations: Array | None) -> None:
        if self.encoder not in ("linear", "mlp"):
            raise ValueError(f"encoder must be 'linear' or 'mlp', got {self.encoder!r}")
        if valuations is None:
            raise ValueError("valuations must be given: Supervised is a ceiling and sees them")
        data = stack(list(X), environment)
        self.whitening_ = Whitening.fit(data)
        x = self.whitening_(data.x)
        y = stack(list(valuations), environment).x
        y = (y - y.mean(dim=1, keepdim=True)) / y.std(dim=1, keepdim=True)
        sizes = (x.shape[2], y.shape[2], self._seeds(len(X)))
        network: StackedEncoder = (
            LinearEncoder(*sizes)
            if self.encoder == "linear"
            else MLPEncoder(*sizes, width=BEST.width, depth=BEST.depth, skip=True)
        )
        network.start_linear(torch.linalg.lstsq(x - x.mean(dim=1, keepdim=True), y).solution)

        def loss(index: Tensor) -> Tensor:
            return (network(x[:, index]) - y[:, index]).square().mean(dim=(1, 2))

        if self.encoder == "mlp":
            self._train(network, loss, x.shape[1])
        self.network_ = network

    @torch.no_grad()
    def _transform(self, X: Array) -> Array:
        x = self.whitening_(torch.as_tensor(X, dtype=torch.float32))
        return self.network_(x).double().numpy()
