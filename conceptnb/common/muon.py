"""The Muon optimiser in single precision, many matrices at once.

``torch.optim.Muon`` orthogonalises one matrix after another in bfloat16, which a CPU without
bfloat16 units emulates slowly: longer than the small models' gradients take.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor


class Muon(torch.optim.Optimizer):
    """Nesterov momentum whose update of every matrix is orthogonalised (Jordan et al., 2024).

    An update has singular values near ``lr · sqrt(max(1, rows / columns))``; weight decay is
    decoupled. Embeddings and vectors belong to another optimiser.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One update of every matrix that has a gradient."""
        for group in self.param_groups:
            same_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    same_shape[parameter.shape].append(parameter)
            for shape, parameters in same_shape.items():
                moved = torch.stack([self._momentum(p, group["momentum"]) for p in parameters])
                rate = group["lr"] * max(1.0, shape[0] / shape[1]) ** 0.5
                for parameter, update in zip(parameters, _orthogonalize(moved), strict=True):
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    parameter.add_(update, alpha=-rate)

    def _momentum(self, parameter: Tensor, momentum: float) -> Tensor:
        gradient = parameter.grad
        assert gradient is not None  # step() asks only where there is one
        state = self.state[parameter]
        if "velocity" not in state:
            state["velocity"] = torch.zeros_like(parameter)
        state["velocity"].lerp_(gradient, 1 - momentum)
        return gradient.lerp(state["velocity"], momentum)


def _orthogonalize(matrices: Tensor, steps: int = 5) -> Tensor:
    """Give every matrix singular values near one, by a quintic Newton-Schulz iteration."""
    wide = matrices.shape[-2] <= matrices.shape[-1]
    x = matrices if wide else matrices.mT
    x = x / x.flatten(1).norm(dim=1).clamp(min=1e-7)[:, None, None]
    for _ in range(steps):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x if wide else x.mT
