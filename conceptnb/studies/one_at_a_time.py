"""The same protocol, one problem at a time: what the stacked trainer is measured against."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from conceptnb.learning.data import Stack
from conceptnb.learning.training import TrainingConfig

__all__ = ["train_one_at_a_time"]


class _Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + functional.leaky_relu(self.layer(x), 0.2)


class _Classifier(nn.Module):
    """Encoder and head of the authors' protocol, for one problem with known targets."""

    def __init__(self, d_x: int, targets: Tensor, linear: bool) -> None:
        super().__init__()
        m, n = targets.shape
        self.target = targets.int().argmax(dim=1)
        self.encoder: nn.Module = (
            nn.Linear(d_x, n, bias=False)
            if linear
            else nn.Sequential(
                nn.Linear(d_x, 32),
                nn.LeakyReLU(0.2),
                _Residual(32),
                _Residual(32),
                nn.Linear(32, n),
            )
        )
        self.shift = nn.Parameter(torch.zeros(m))
        self.intercept = nn.Parameter(torch.ones(m))
        self.scale = nn.Parameter(torch.ones(m))

    def forward(self, x: Tensor, environment: Tensor) -> Tensor:
        """Return the log-odds of each row's own environment, shape (rows,)."""
        h = self.encoder(x).gather(1, self.target[environment][:, None])[:, 0]
        scaled = self.scale[environment] * h
        return self.shift[environment] + self.intercept[environment] * h - scaled.square()


def train_one_at_a_time(
    train: Stack,
    held_out: Stack,
    targets: Tensor,
    *,
    linear: bool,
    seed: int,
    config: TrainingConfig | None = None,
) -> tuple[nn.Module, float]:
    """Train the authors' model on one problem with an ordinary PyTorch loop.

    A ``DataLoader`` shuffles and collates rows, Adam with a cosine schedule trains, and
    the epoch with the best held-out loss is kept: the protocol of Tables 1 and 7 as a
    script would have it. It exists to be compared with :class:`Trainer`, in time and in
    what it learns.

    Parameters
    ----------
    train, held_out : Stack
        Of one problem.
    targets : bool tensor of shape (m, n)
        One atom an environment.
    linear : bool
        The linear encoder, or the network.
    seed : int
    config : TrainingConfig, optional

    Returns
    -------
    encoder : torch.nn.Module
        Maps (rows, d_x) to learned valuations (rows, n).
    held_out_loss : float
        Best held-out loss, in nats a row.
    """
    config = config or TrainingConfig()
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # nn.Linear draws from the global state, restored here
        model = _Classifier(train.d_x, targets, linear)
    loader, held_loader = (
        DataLoader(
            TensorDataset(data.x[0], data.partner - 1, (data.environment > 0).to(data.x)),
            batch_size=config.batch_size,
            shuffle=shuffle,
            generator=generator,
        )
        for data, shuffle in ((train, True), (held_out, False))
    )
    head = [model.shift, model.intercept, model.scale]
    optimiser = torch.optim.Adam(
        [
            {"params": model.encoder.parameters(), "lr": config.encoder_rate},
            {"params": head, "lr": config.head_rate},
        ]
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, config.epochs)
    best, best_state = float("inf"), {}
    for _ in range(config.epochs):
        for x, environment, label in loader:
            loss = functional.binary_cross_entropy_with_logits(model(x, environment), label)
            optimiser.zero_grad()
            (loss + config.l1 * model.scale.abs().sum()).backward()
            optimiser.step()
        schedule.step()
        judged = _held_out_loss(model, held_loader)
        if judged < best:
            best = judged
            best_state = {k: v.detach().clone() for k, v in model.encoder.state_dict().items()}
    model.encoder.load_state_dict(best_state)
    return model.encoder, best


@torch.no_grad()
def _held_out_loss(model: _Classifier, loader: DataLoader) -> float:
    total = rows = 0.0
    for x, environment, label in loader:
        odds = model(x, environment)
        total += functional.binary_cross_entropy_with_logits(odds, label, reduction="sum").item()
        rows += len(x)
    return total / rows
