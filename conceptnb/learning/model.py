"""An encoder and a head together: the classifiers g_e of (87)."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from conceptnb.learning.data import Stack
from conceptnb.learning.encoders import StackedEncoder
from conceptnb.learning.heads import Head
from conceptnb.learning.losses import contrastive_loss

_BATCH = 8192


class ConceptModel(nn.Module):
    """P models g_e(x) = α_e − Σ β h(x)² + Σ γ h(x), fitted side by side (87)."""

    def __init__(self, encoder: StackedEncoder, head: Head) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    @property
    def n_models(self) -> int:
        """Number P of models."""
        return len(self.head.alpha)

    def encode(self, x: Tensor) -> Tensor:
        """Return learned valuations, shape (P, rows, n), of observations (D, rows, d_x).

        Model p sees problem p // (P / D): P is a multiple of D.
        """
        starts = self.n_models // len(x)
        return self.encoder(x if starts == 1 else x.repeat_interleave(starts, dim=0))

    def forward(self, x: Tensor) -> Tensor:
        """Return log-odds, shape (P, rows, m), of observations (D, rows, d_x)."""
        return self.head(self.encode(x))

    @torch.no_grad()
    def loss(self, data: Stack, kind: str = "binary") -> Tensor:
        """Return the contrastive loss of each model on all rows, shape (P,), in nats per row."""
        rows = len(data.environment)
        total = torch.zeros(self.n_models, device=data.x.device, dtype=data.x.dtype)
        for start in range(0, rows, _BATCH):
            batch = data.rows(slice(start, start + _BATCH))
            total += contrastive_loss(self(batch.x), batch, kind) * (len(batch.environment) / rows)
        return total

    @torch.no_grad()
    def choose(self, index: Tensor) -> ConceptModel:
        """Return a model that holds some of the P models."""
        chosen = copy.deepcopy(self)
        for parameter in chosen.parameters():
            parameter.data = parameter.data[index]
        return chosen


class Whitening(nn.Module):
    """Affine map that gives the base sample of each problem mean 0 and covariance I.

    Directions in which a problem's base does not vary are dropped; a stack keeps as many as its
    problems have in common. `mean` is (D, 1, d_x) and `matrix` (D, d_x, r).
    """

    mean: Tensor
    matrix: Tensor

    def __init__(self, mean: Tensor, matrix: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("matrix", matrix)

    @classmethod
    def fit(cls, data: Stack, rtol: float = 1e-8) -> Whitening:
        """Estimate from the rows of environment 0 of every problem.

        Directions with less than `rtol` of the largest variance count as constant.
        """
        x = data.x[:, data.environment == 0].double()
        mean = x.mean(dim=1, keepdim=True)
        covariance = (x - mean).transpose(1, 2) @ (x - mean) / (x.shape[1] - 1)
        values, vectors = torch.linalg.eigh(covariance)
        rank = int((values > rtol * values[:, -1:]).sum(dim=1).min())
        if rank == 0:
            raise ValueError(
                "X: all rows of environment 0 are the same, so there is nothing to learn from: "
                "give a base whose samples differ"
            )
        matrix = vectors[:, :, -rank:] / values[:, None, -rank:].sqrt()
        return cls(mean.to(data.x), matrix.to(data.x))

    def forward(self, x: Tensor) -> Tensor:
        """Whiten observations of shape (D, rows, d_x)."""
        return (x - self.mean) @ self.matrix
