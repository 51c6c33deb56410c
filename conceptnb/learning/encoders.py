"""Encoders h: observation -> learned valuations, many at once (Appendices F and G).

Every parameter has a leading axis of P models. No operation mixes models: each trains as alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


class StackedLinear(nn.Module):
    """P linear layers side by side: (P, rows, fan_in) -> (P, rows, fan_out).

    Entries are drawn from U(-1/√fan_in, 1/√fan_in), torch's default, by a generator for each model,
    so that a model starts alike alone and in a stack.
    """

    def __init__(
        self, fan_in: int, fan_out: int, generators: Sequence[torch.Generator], bias: bool = True
    ) -> None:
        super().__init__()
        bound = fan_in**-0.5

        def draw(*shape: int) -> nn.Parameter:
            uniform = torch.stack([torch.rand(*shape, generator=g) for g in generators])
            return nn.Parameter((2 * uniform - 1) * bound)

        self.weight = draw(fan_in, fan_out)
        self.bias = draw(1, fan_out) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Apply layer p to x[p]."""
        product = torch.bmm(x, self.weight)
        # In place: baddbmm would first copy the bias to every row.
        return product if self.bias is None else product.add_(self.bias)


class StackedEncoder(nn.Module):
    """P encoders of one architecture; maps (P, rows, d_x) to (P, rows, n)."""

    def start_linear(self, weight: Tensor) -> None:
        """Make the encoder (nearly) the linear map x W, with W of shape (P, d_x, n)."""
        raise NotImplementedError

    def squared_norm(self) -> Tensor:
        """Return the sum of squared weights that decay shrinks, shape (P,).

        Biases do not count, nor does the linear skip: decay draws towards linear maps.
        """
        weights = [
            layer.weight
            for name, layer in self.named_modules()
            if isinstance(layer, StackedLinear) and name != "skip"
        ]
        return torch.stack([w.square().sum(dim=(1, 2)) for w in weights]).sum(dim=0)


class LinearEncoder(StackedEncoder):
    """h(x) = x W, the authors' encoder for linear mixing (Appendix G), with a seed per encoder."""

    def __init__(self, d_x: int, n: int, seeds: Sequence[int]) -> None:
        super().__init__()
        self.layer = StackedLinear(d_x, n, _generators(seeds), bias=False)

    @torch.no_grad()
    def start_linear(self, weight: Tensor) -> None:
        """Make the encoder the linear map x W, with W of shape (P, d_x, n)."""
        self.layer.weight.copy_(weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return learned valuations, shape (P, rows, n)."""
        return self.layer(x)


class MLPEncoder(StackedEncoder):
    """A residual network, the authors' encoder for nonlinear mixing (Appendix G).

    Linear(d_x, width), leaky ReLU(.2), `depth` residual layers h + leaky(V h + c), then
    Linear(width, n). The paper's is 32 wide with two residual layers. There is a seed for each of P
    encoders; `skip` adds a linear map of x beside the network (not in the paper).
    """

    def __init__(
        self,
        d_x: int,
        n: int,
        seeds: Sequence[int],
        *,
        width: int = 32,
        depth: int = 2,
        skip: bool = False,
    ) -> None:
        super().__init__()
        generators = _generators(seeds)
        self.first = StackedLinear(d_x, width, generators)
        self.residual = nn.ModuleList(StackedLinear(width, width, generators) for _ in range(depth))
        self.last = StackedLinear(width, n, generators)
        self.skip = StackedLinear(d_x, n, generators, bias=False) if skip else None

    @torch.no_grad()
    def start_linear(self, weight: Tensor) -> None:
        """Make the encoder nearly the linear map x W, with W of shape (P, d_x, n).

        The skip, which it needs, becomes W and the network's output shrinks to a tenth: small
        enough not to disturb it, large enough for gradients to reach every layer.
        """
        if self.skip is None:
            raise ValueError("start_linear needs an encoder with skip=True")
        self.skip.weight.copy_(weight)
        for parameter in self.last.parameters():
            parameter.mul_(0.1)

    def forward(self, x: Tensor) -> Tensor:
        """Return learned valuations, shape (P, rows, n)."""
        hidden = functional.leaky_relu(self.first(x), 0.2)
        for layer in self.residual:
            hidden = hidden + functional.leaky_relu(layer(hidden), 0.2)
        valuations = self.last(hidden)
        return valuations if self.skip is None else valuations + self.skip(x)


def _generators(seeds: Sequence[int]) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(int(seed)) for seed in seeds]
