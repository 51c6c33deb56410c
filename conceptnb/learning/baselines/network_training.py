"""One training loop for the networks of this folder: Adam, many problems at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from conceptnb.core.validation import Array, as_count

__all__ = ["Budget", "Standardisation", "train"]


@dataclass(frozen=True)
class Budget:
    """What every network of a comparison may spend.

    Parameters
    ----------
    epochs : int
        Passes over the training rows.
    batch_size : int
    rate : float
        Adam's learning rate at the start; it follows a cosine to zero.
    held_out : float
        Share of the rows that chooses the epoch.
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


def train(
    module: nn.Module,
    loss: Callable[[Tensor], Tensor],
    rows: int,
    budget: Budget,
    seed: int,
    *,
    progress: bool = False,
) -> Tensor:
    """Train D models side by side and give each the parameters of its best epoch.

    Parameters
    ----------
    module : torch.nn.Module
        Every parameter has a leading axis of D models.
    loss : callable
        Maps an index of rows to the mean loss of each model on them, shape (D,).
    rows : int
        Number of rows.
    budget : Budget
    seed : int
        Fixes which rows are held out and the order of the others.
    progress : bool

    Returns
    -------
    tensor of shape (D,)
        Best loss on the held-out rows.

    Raises
    ------
    ValueError
        If there are too few rows to hold some out.
    """
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(rows, generator=generator)
    count = round(rows * budget.held_out)
    if not 0 < count < rows:
        raise ValueError(f"rows is {rows}: too few to hold out {budget.held_out:.0%}")
    held, kept = order[:count], order[count:]
    optimiser = torch.optim.Adam(module.parameters(), lr=budget.rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, budget.epochs)
    best = torch.tensor(math.inf)
    state = {name: value.detach().clone() for name, value in module.named_parameters()}
    for _ in tqdm(range(budget.epochs), disable=not progress, desc="training", unit="epoch"):
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
    return best


class Standardisation:
    """Give each column of each problem mean 0 and standard deviation 1.

    A constant column becomes zeros and not NaN.

    Parameters
    ----------
    X : array of shape (D, samples, columns)
        What means and deviations are taken of.
    """

    def __init__(self, X: Array) -> None:
        x = torch.as_tensor(X, dtype=torch.float32)
        self.mean, scale = x.mean(dim=1, keepdim=True), x.std(dim=1, keepdim=True)
        self.scale = torch.where(scale > 0, scale, torch.ones_like(scale))

    def __call__(self, X: Array) -> Tensor:
        """Standardise rows of the same D problems, (D, rows, columns)."""
        return (torch.as_tensor(X, dtype=torch.float32) - self.mean) / self.scale
