"""Adam on the contrastive loss, for many models at once (Appendices F and G)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from tqdm.auto import tqdm

from conceptnb.common.validation import as_count
from conceptnb.learning.data import Stack
from conceptnb.learning.losses import contrastive_loss
from conceptnb.learning.model import ConceptModel


@dataclass(frozen=True)
class TrainingConfig:
    """How to train. The defaults are the authors' (protocol of Tables 1 and 7).

    Parameters
    ----------
    loss : {"binary", "softmax"}
        (88), or one softmax over all environments.
    epochs, batch_size : int
    encoder_rate, head_rate : float
        Adam's learning rates at the start; both follow a cosine to zero, by epoch. The
        authors' code has .05 for the head where the paper's text says .5.
    l1 : float
        η of (88).
    decay : float
        Squared-norm penalty on the encoder's weights; the paper has none.
    rows : int, optional
        Rows that an epoch sees at most, the next ones in turn; by default all. For millions of
        rows, which need not be passed over dozens of times.
    """

    loss: Literal["binary", "softmax"] = "binary"
    epochs: int = 100
    batch_size: int = 2048
    encoder_rate: float = 0.005
    head_rate: float = 0.05
    l1: float = 1e-4
    decay: float = 0.0
    rows: int | None = None

    def __post_init__(self) -> None:
        as_count(self.epochs, "epochs")
        as_count(self.batch_size, "batch_size")
        if self.rows is not None:
            as_count(self.rows, "rows")
        if self.loss not in ("binary", "softmax"):
            raise ValueError(f"loss must be 'binary' or 'softmax', got {self.loss!r}")
        for name in ("encoder_rate", "head_rate", "l1", "decay"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")


class StackTrainer:
    """Train P models on D problems together, P a multiple of D.

    Model p learns problem p // (P / D). Losses are summed over models, Adam acts on each entry
    alone and rows are shuffled alike in all problems, so a model ends where it would end alone, up
    to rounding. Each model keeps the parameters of the epoch with its best held-out loss.

    Parameters
    ----------
    model : ConceptModel
        Trained in place.
    train, held_out : Stack
        Rows to fit and rows to choose the epoch by.
    shuffle_seed : int
        Fixes the order of the rows.
    """

    def __init__(
        self,
        model: ConceptModel,
        train: Stack,
        held_out: Stack,
        config: TrainingConfig | None = None,
        shuffle_seed: int = 0,
    ) -> None:
        if model.n_models % train.n_problems:
            raise ValueError(
                f"{model.n_models} models cannot share {train.n_problems} problems evenly"
            )
        self.model, self.train, self.held_out = model, train, held_out
        self.config = config or TrainingConfig()
        self.generator = torch.Generator().manual_seed(shuffle_seed)
        self.optimiser = torch.optim.Adam(
            [
                {"params": list(model.encoder.parameters()), "lr": self.config.encoder_rate},
                {"params": list(model.head.parameters()), "lr": self.config.head_rate},
            ]
        )
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
            self.optimiser, self.config.epochs
        )
        self.best = torch.full((model.n_models,), math.inf, device=train.x.device)
        self.best_state = {k: v.detach().clone() for k, v in model.named_parameters()}
        self.train_curve: list[Tensor] = []
        self.held_out_curve: list[Tensor] = []

    @property
    def epoch(self) -> int:
        """Number of epochs that are done."""
        return len(self.train_curve)

    def run(self, progress: bool = False) -> None:
        """Train the remaining epochs, then give each model its best parameters."""
        left = range(self.epoch, self.config.epochs)
        label = f"training {self.model.n_models} models"
        for _ in tqdm(left, desc=label, unit="epoch", disable=not progress):
            self.step_epoch()
        self.model.load_state_dict(self.best_state, strict=False)

    def step_epoch(self) -> None:
        """Pass once over the shuffled rows, then judge by the held-out rows."""
        seen = self._rows_of_epoch()
        rows = len(seen)
        order = torch.randperm(rows, generator=self.generator)
        shuffled = self.train.rows(seen[order].to(self.train.x.device))
        total = torch.zeros_like(self.best)
        for start in range(0, rows, self.config.batch_size):
            batch = shuffled.rows(slice(start, start + self.config.batch_size))
            loss = contrastive_loss(self.model(batch.x), batch, self.config.loss)
            self.optimiser.zero_grad(set_to_none=True)
            (loss + self._penalty()).sum().backward()
            self.optimiser.step()
            total += loss.detach() * (len(batch.environment) / rows)
        self.schedule.step()
        self.train_curve.append(total)
        self._keep_best()

    def _rows_of_epoch(self) -> Tensor:
        """Return the next rows in turn, from the first again after the last."""
        count = len(self.train.environment)
        most = self.config.rows or count
        return torch.arange(self.epoch * most, self.epoch * most + min(most, count)) % count

    def _penalty(self) -> Tensor:
        penalty = self.config.l1 * self.model.head.penalty()
        if self.config.decay:
            penalty = penalty + self.config.decay * self.model.encoder.squared_norm()
        return penalty

    @torch.no_grad()
    def _keep_best(self) -> None:
        loss = self.model.loss(self.held_out, self.config.loss)
        self.held_out_curve.append(loss)
        better = loss < self.best
        self.best = torch.where(better, loss, self.best)
        for name, value in self.model.named_parameters():
            keep = better.view(-1, *[1] * (value.dim() - 1))
            self.best_state[name] = torch.where(keep, value, self.best_state[name])
