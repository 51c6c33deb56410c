"""A network that tells environments apart, and the training loop that it shares with iVAE."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from conceptnb.common.validation import Array, as_count
from conceptnb.learning.baselines.baseline import Baseline
from conceptnb.learning.encoders import MLPEncoder, StackedLinear


@dataclass(frozen=True)
class Budget:
    """What every network of a comparison may spend.

    Adam's `rate` follows a cosine to zero; the share `held_out` of the rows chooses the epoch.
    """

    epochs: int = 40
    batch_size: int = 1024
    rate: float = 0.005
    held_out: float = 0.2

    def __post_init__(self) -> None:
        as_count(self.epochs, "epochs")
        as_count(self.batch_size, "batch_size")
        if not self.rate > 0:
            raise ValueError(f"rate must be positive, got {self.rate}")
        if not 0 < self.held_out < 1:
            raise ValueError(f"held_out must lie in (0, 1), got {self.held_out}")


class NetworkBaseline(Baseline):
    """What the networks share: standardised observations, and one training loop with Adam.

    The `seed` fixes parameters, which rows are held out, and the order of the others.
    """

    def __init__(self, *, seed: int = 0, budget: Budget | None = None) -> None:
        self.seed = seed
        self.budget = budget

    @property
    def _budget(self) -> Budget:
        return self.budget or Budget()

    def _start(self, X: Array) -> Tensor:
        """Remember mean and deviation of each column of X, and return it standardised."""
        x = torch.as_tensor(X, dtype=torch.float32)
        self.mean_, scale = x.mean(dim=1, keepdim=True), x.std(dim=1, keepdim=True)
        # A constant column becomes zeros and not NaN.
        self.scale_ = torch.where(scale > 0, scale, torch.ones_like(scale))
        return self._scaled(X)

    def _scaled(self, X: Array) -> Tensor:
        return (torch.as_tensor(X, dtype=torch.float32) - self.mean_) / self.scale_

    def _seeds(self, n_problems: int, step: int = 1) -> list[int]:
        seed = as_count(self.seed, "seed", minimum=0)
        return [1000 * seed + step * i for i in range(n_problems)]

    def _train(self, module: nn.Module, loss: Callable[[Tensor], Tensor], rows: int) -> None:
        """Train models side by side; `loss` maps an index of rows to each one's mean loss, (D,)."""
        budget = self._budget
        generator = torch.Generator().manual_seed(self.seed)
        order = torch.randperm(rows, generator=generator)
        count = round(rows * budget.held_out)
        if not 0 < count < rows:
            raise ValueError(f"X has {rows} rows: too few to hold out {budget.held_out:.0%}")
        held, kept = order[:count], order[count:]
        optimiser = torch.optim.Adam(module.parameters(), lr=budget.rate)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, budget.epochs)
        best = torch.tensor(math.inf)
        state = {name: value.detach().clone() for name, value in module.named_parameters()}
        for _ in range(budget.epochs):
            shuffled = kept[torch.randperm(len(kept), generator=generator)]
            for batch in shuffled.split(budget.batch_size):
                optimiser.zero_grad(set_to_none=True)
                loss(batch).sum().backward()
                optimiser.step()
            schedule.step()
            with torch.no_grad():
                judged = loss(held)
                better = judged < best
                best = torch.where(better, judged, best)
                for name, value in module.named_parameters():
                    keep = better.view(-1, *[1] * (value.dim() - 1))
                    state[name] = torch.where(keep, value, state[name])
        module.load_state_dict(state, strict=False)


class EnvironmentClassifier(NetworkBaseline):
    """The penultimate layer of a network that tells the environments apart.

    It sees what the contrastive method sees, and is asked the same question; only the
    last layer, `n_components` wide, has no special form: environment logits are affine in it.
    """

    def __init__(
        self, n_components: int = 32, *, seed: int = 0, budget: Budget | None = None
    ) -> None:
        super().__init__(seed=seed, budget=budget)
        self.n_components = n_components

    def _fit(self, X: Array, environment: np.ndarray, valuations: Array | None) -> None:
        x, label = self._start(X), torch.as_tensor(environment)
        seeds = self._seeds(len(X))
        generators = [torch.Generator().manual_seed(seed + 500) for seed in seeds]
        width = as_count(self.n_components, "n_components")
        self.encoder_ = MLPEncoder(X.shape[2], width, seeds)
        last = StackedLinear(width, int(label.max()) + 1, generators)

        def loss(index: Tensor) -> Tensor:
            logits = last(self._codes(x[:, index]))
            target = label[index].expand(len(x), -1)
            losses = functional.cross_entropy(logits.transpose(1, 2), target, reduction="none")
            return losses.mean(dim=1)

        self._train(nn.ModuleList([self.encoder_, last]), loss, X.shape[1])

    def _codes(self, x: Tensor) -> Tensor:
        return functional.leaky_relu(self.encoder_(x), 0.2)

    @torch.no_grad()
    def _transform(self, X: Array) -> Array:
        return self._codes(self._scaled(X)).double().numpy()
