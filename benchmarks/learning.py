"""Ratios of `conceptnb.learning`: one problem at a time against many as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.measure import Benchmark, cpu_seconds
from conceptnb.core.problems import PAPER_SEEDS, TABLE_1, Setting, draw_problem
from conceptnb.learning.data import Stack, stack
from conceptnb.learning.fitting import fit
from conceptnb.learning.recipes import AUTHORS
from conceptnb.learning.training import TrainingConfig


def benchmarks() -> list[Benchmark]:
    """Return the comparisons of this part, per problem and epoch of the authors' protocol."""
    return [
        Benchmark(
            f"five problems as one, {setting}",
            against,
            _stacked(setting, PAPER_SEEDS),
            _alone(setting, loader=loader),
            repeats=3,
            at_least=least,
        )
        for setting in TABLE_1[:2]
        for against, loader, least in (
            ("one at a time, rows by DataLoader", True, 5),
            ("one at a time, rows by slicing", False, None),
        )
    ]


def train_one_at_a_time(
    data: Stack, *, linear: bool, seed: int, config: TrainingConfig, loader: bool = True
) -> tuple[nn.Module, float]:
    """Train the authors' model on one problem with an ordinary PyTorch loop (Tables 1 and 7).

    Returns the encoder, from (rows, d_x) to (rows, n), and the best held-out loss in nats per row.
    A ``DataLoader`` shuffles and collates rows, or they are sliced.
    """
    assert data.targets is not None
    train, held_out = data.split()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # nn.Linear draws from the global state, restored here
        model = _Classifier(data.d_x, data.targets, linear)
    head = [model.shift, model.intercept, model.scale]
    optimiser = torch.optim.Adam(
        [
            {"params": model.encoder.parameters(), "lr": config.encoder_rate},
            {"params": head, "lr": config.head_rate},
        ]
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, config.epochs)
    generator = torch.Generator().manual_seed(seed)
    best, best_state = float("inf"), {}
    for _ in range(config.epochs):
        for x, environment, label in _batches(train, config.batch_size, generator, loader):
            loss = functional.binary_cross_entropy_with_logits(model(x, environment), label)
            optimiser.zero_grad()
            (loss + config.l1 * model.scale.abs().sum()).backward()
            optimiser.step()
        schedule.step()
        judged = _held_out_loss(model, _batches(held_out, config.batch_size, None, loader))
        if judged < best:
            best = judged
            best_state = {k: v.detach().clone() for k, v in model.encoder.state_dict().items()}
    model.encoder.load_state_dict(best_state)
    return model.encoder, best


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


def _batches(
    data: Stack, size: int, generator: torch.Generator | None, loader: bool
) -> Iterator[Sequence[Tensor]]:
    """Yield observations, environments and labels; shuffled if there is a generator."""
    tensors = (data.x[0], data.partner - 1, (data.environment > 0).to(data.x))
    if loader:
        shuffle = generator is not None
        yield from DataLoader(TensorDataset(*tensors), size, shuffle, generator=generator)
        return
    order = torch.arange(len(tensors[0]))
    if generator is not None:
        order = torch.randperm(len(order), generator=generator)
    for rows in order.split(size):
        yield [tensor[rows] for tensor in tensors]


@torch.no_grad()
def _held_out_loss(model: _Classifier, batches: Iterator[Sequence[Tensor]]) -> float:
    total = rows = 0.0
    for x, environment, label in batches:
        odds = model(x, environment)
        total += functional.binary_cross_entropy_with_logits(odds, label, reduction="sum").item()
        rows += len(x)
    return total / rows


def _stacked(setting: Setting, seeds: Sequence[int], epochs: int = 2) -> Callable[[], float]:
    problems = [draw_problem(setting, seed) for seed in seeds]
    data = stack([p.X for p in problems], problems[0].environment, problems[0].design.M > 0)
    encoder: Any = "linear" if setting.mixing == "linear" else "mlp"
    recipe = replace(AUTHORS, encoder=encoder, training=TrainingConfig(epochs=epochs))
    return cpu_seconds(lambda: fit(data, recipe), len(seeds) * epochs)


def _alone(setting: Setting, *, loader: bool) -> Callable[[], float]:
    problem = draw_problem(setting, PAPER_SEEDS[0])
    data = stack([problem.X], problem.environment, problem.design.M > 0)
    config = TrainingConfig(epochs=1)
    linear = setting.mixing == "linear"
    return cpu_seconds(
        lambda: train_one_at_a_time(data, linear=linear, seed=3, config=config, loader=loader)
    )
