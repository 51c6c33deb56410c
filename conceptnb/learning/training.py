"""Adam on the contrastive loss, for many models at once (Appendices F and G)."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from tqdm.auto import tqdm

from conceptnb.core.validation import as_count
from conceptnb.learning.data import Stack
from conceptnb.learning.model import ConceptModel, contrastive_loss, repeat_rows

__all__ = ["Trainer", "TrainingConfig"]


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
    """

    loss: Literal["binary", "softmax"] = "binary"
    epochs: int = 100
    batch_size: int = 2048
    encoder_rate: float = 0.005
    head_rate: float = 0.05
    l1: float = 1e-4
    decay: float = 0.0

    def __post_init__(self) -> None:
        as_count(self.epochs, "epochs")
        as_count(self.batch_size, "batch_size")
        if self.loss not in ("binary", "softmax"):
            raise ValueError(f"loss must be 'binary' or 'softmax', got {self.loss!r}")
        for name in ("encoder_rate", "head_rate", "l1", "decay"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")


class Trainer:
    """Train P models on D problems together, P a multiple of D.

    Model p learns problem p // (P / D). Losses are summed over models, Adam acts on each
    entry alone and rows are shuffled alike in all problems, so a model ends where it
    would end alone, up to rounding. Each model keeps the parameters of the epoch with
    its best held-out loss.

    Parameters
    ----------
    model : ConceptModel
        Trained in place.
    train, held_out : Stack
        Rows to fit and rows to choose the epoch by.
    config : TrainingConfig
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

    def run(self, checkpoint: Path | None = None, every: int = 10, progress: bool = True) -> None:
        """Train the remaining epochs, then give each model its best parameters.

        Parameters
        ----------
        checkpoint : Path, optional
            Resume from this file if it exists, and write it every `every` epochs.
            Training that was stopped goes on as if it had not been.
        every : int
        progress : bool
            Show a progress bar.
        """
        if checkpoint is not None and checkpoint.exists():
            self.load_state_dict(torch.load(checkpoint, weights_only=True))
        bar = tqdm(
            total=self.config.epochs,
            initial=self.epoch,
            disable=not progress,
            desc=f"training {self.model.n_models} models",
            unit="epoch",
        )
        with bar:
            while self.epoch < self.config.epochs:
                self.step_epoch()
                bar.update()
                if checkpoint is not None and (
                    self.epoch % every == 0 or self.epoch == self.config.epochs
                ):
                    self._write(checkpoint)
        self.model.load_state_dict(self.best_state, strict=False)

    def step_epoch(self) -> None:
        """Pass once over the shuffled rows, then judge by the held-out rows."""
        rows = len(self.train.environment)
        order = torch.randperm(rows, generator=self.generator).to(self.train.x.device)
        shuffled = self.train.rows(order)
        total = torch.zeros_like(self.best)
        for start in range(0, rows, self.config.batch_size):
            batch = shuffled.rows(slice(start, start + self.config.batch_size))
            loss = self._loss(batch)
            self.optimiser.zero_grad(set_to_none=True)
            (loss + self._penalty()).sum().backward()
            self.optimiser.step()
            total += loss.detach() * (len(batch.environment) / rows)
        self.schedule.step()
        self.train_curve.append(total)
        self._keep_best()

    def _loss(self, data: Stack) -> Tensor:
        x = repeat_rows(data.x, self.model.n_models)
        return contrastive_loss(self.model(x), data, self.config.loss)

    def _penalty(self) -> Tensor:
        penalty = self.config.l1 * self.model.head.penalty()
        if self.config.decay:
            penalty = penalty + self.config.decay * self.model.encoder.squared_norm()
        return penalty

    @torch.no_grad()
    def _keep_best(self) -> None:
        loss = evaluate(self.model, self.held_out, self.config.loss)
        self.held_out_curve.append(loss)
        better = loss < self.best
        self.best = torch.where(better, loss, self.best)
        for name, value in self.model.named_parameters():
            keep = better.view(-1, *[1] * (value.dim() - 1))
            self.best_state[name] = torch.where(keep, value, self.best_state[name])

    def state_dict(self) -> dict[str, Any]:
        """Return all that training needs to go on, as tensors and plain numbers."""
        return {
            "config": asdict(self.config),
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "generator": self.generator.get_state(),
            "best": self.best,
            "best_state": self.best_state,
            "train_curve": self.train_curve,
            "held_out_curve": self.held_out_curve,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state of :meth:`state_dict`.

        Raises
        ------
        ValueError
            If the state was written under another configuration.
        """
        if state["config"] != asdict(self.config):
            raise ValueError(
                f"the checkpoint was written with {state['config']}, not with "
                f"{asdict(self.config)}: delete it or use its configuration"
            )
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])
        self.generator.set_state(state["generator"])
        self.best, self.best_state = state["best"], state["best_state"]
        self.train_curve = list(state["train_curve"])
        self.held_out_curve = list(state["held_out_curve"])

    def _write(self, checkpoint: Path) -> None:
        # Through a second file: a run that is killed while writing leaves the old one whole.
        partial = checkpoint.with_suffix(".partial")
        torch.save(self.state_dict(), partial)
        partial.replace(checkpoint)


@torch.no_grad()
def evaluate(
    model: ConceptModel, data: Stack, kind: str = "binary", batch_size: int = 8192
) -> Tensor:
    """Contrastive loss of each model on all rows of a stack, shape (P,), in nats a row."""
    rows = len(data.environment)
    total = torch.zeros(model.n_models, device=data.x.device, dtype=data.x.dtype)
    for start in range(0, rows, batch_size):
        batch = data.rows(slice(start, start + batch_size))
        log_odds = model(repeat_rows(batch.x, model.n_models))
        total += contrastive_loss(log_odds, batch, kind) * (len(batch.environment) / rows)
    return total
