"""What the encoders could do if they were told the truth: a bound for Tables 1 and 7."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm.auto import trange

from conceptnb.core.problems import PAPER_SAMPLES, PAPER_SEEDS, Problem, Setting, draw_problem
from conceptnb.learning.best import CORRECTION, WIDTH
from conceptnb.learning.data import stack
from conceptnb.learning.encoders import Encoder, LinearEncoder, MLPEncoder
from conceptnb.learning.model import Whitening
from conceptnb.studies.synthetic_tables import SCORED_SAMPLES, score

__all__ = ["fit_supervised", "supervised_row"]


def fit_supervised(
    problems: Sequence[Problem],
    *,
    held_out: float = 0.2,
    epochs: int = CORRECTION.epochs,
    progress: bool = True,
) -> tuple[Whitening, Encoder]:
    """Regress the true valuations on the observations, with the encoder of ``fit_best``.

    The same encoder, rows, whitening, linear start and schedule as
    :func:`~conceptnb.learning.fit_best`, but squared error in place of the contrastive
    loss (not in the paper): what it reaches, an estimator without labels can hope for.

    Parameters
    ----------
    problems : sequence of D Problem
        Of one setting and design.
    held_out : float
        Share of every environment that the fit does not see, as in ``fit_best``.
    epochs : int
        Of the network, for nonlinear mixing; a linear encoder is solved for.
    progress : bool

    Returns
    -------
    whitening : Whitening
    encoder : Encoder
        Maps whitened observations to valuations of mean 0 and variance 1.
    """
    environment = problems[0].environment
    data = stack([p.X for p in problems], environment)
    whitening = Whitening.fit(data)
    x = replace(data, x=whitening(data.x)).split(held_out)[0].x
    y = stack([p.valuations() for p in problems], environment).split(held_out)[0].x
    y = (y - y.mean(dim=1, keepdim=True)) / y.std(dim=1, keepdim=True)
    centred = x - x.mean(dim=1, keepdim=True)
    solution = torch.linalg.lstsq(centred, y).solution
    seeds = [p.seed for p in problems]
    if problems[0].setting.mixing == "linear":
        linear = LinearEncoder(x.shape[2], y.shape[2], seeds)
        linear.layer.weight.data = solution
        return whitening, linear
    network = MLPEncoder(x.shape[2], y.shape[2], seeds, width=WIDTH, depth=0, skip=True)
    network.start_linear(solution)
    _descend(network, x, y, epochs, progress)
    return whitening, network


def _descend(network: Encoder, x: Tensor, y: Tensor, epochs: int, progress: bool) -> None:
    optimiser = torch.optim.Adam(network.parameters(), lr=CORRECTION.encoder_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    generator = torch.Generator().manual_seed(0)
    for _ in trange(epochs, desc="supervised", disable=not progress):
        order = torch.randperm(x.shape[1], generator=generator)
        for batch in order.split(CORRECTION.batch_size):
            error = (network(x[:, batch]) - y[:, batch]).square().mean(dim=(1, 2))
            optimiser.zero_grad()
            error.sum().backward()
            optimiser.step()
        schedule.step()


def supervised_row(
    setting: Setting,
    *,
    seeds: Sequence[int] = PAPER_SEEDS,
    samples: int = PAPER_SAMPLES,
    epochs: int = CORRECTION.epochs,
    progress: bool = True,
) -> dict[str, Any]:
    """Compute the supervised bound for one row of Table 1 or 7.

    Parameters
    ----------
    setting : Setting
    seeds : sequence of int
        One problem each.
    samples : int
        Samples of each concept conditional environment.
    epochs : int
    progress : bool

    Returns
    -------
    dict
        The entries of :func:`~conceptnb.studies.synthetic_tables.reproduce_row`, without losses.
    """
    problems = [draw_problem(setting, seed, samples=samples) for seed in seeds]
    started = time.process_time()
    whitening, encoder = fit_supervised(problems, epochs=epochs, progress=progress)
    cpu_seconds = (time.process_time() - started) / len(problems)
    latents = {
        "": [p.Z[:SCORED_SAMPLES] for p in problems],
        "_fresh": [p.fresh(SCORED_SAMPLES) for p in problems],
    }
    row: dict[str, Any] = {
        "mixing": setting.mixing,
        "n": setting.n,
        "dz": setting.d_z,
        "dx": setting.d_x,
        "estimator": "supervised",
        "seeds": list(seeds),
        "cpu_seconds": round(cpu_seconds, 3),
    }
    for suffix, points in latents.items():
        x = np.stack([p.mixing(Z) for p, Z in zip(problems, points, strict=True)])
        with torch.no_grad():
            learned = encoder(whitening(torch.as_tensor(x, dtype=torch.float32)))
        scores = np.array(
            [score(*t) for t in zip(problems, learned.double().numpy(), points, strict=True)]
        )
        for name, values in zip(("r2", "mcc"), scores.T, strict=True):
            row[f"{name}{suffix}_mean"] = round(float(values.mean()), 4)
            row[f"{name}{suffix}_std"] = round(float(values.std()), 4)
            row[f"{name}{suffix}"] = values.round(4).tolist()
    return row
