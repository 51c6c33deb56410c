"""From a thousand samples an environment to a million, at a bounded cost of fitting.

:func:`~conceptnb.learning.fit_best` passes thirty times over all rows, which a million
samples an environment do not need. Here it sees a share of the rows in each pass, and the
linear encoder and the bounds are found on a part of them. Otherwise the recipe is the same.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm

from conceptnb.core import scores as metrics
from conceptnb.core.concepts import random_atoms
from conceptnb.core.disentanglement import chance_mcc
from conceptnb.core.distributions import random_mixture
from conceptnb.core.problems import Problem, draw_problem
from conceptnb.core.validation import Array
from conceptnb.learning.baselines.classical import RandomProjection
from conceptnb.learning.baselines.networks import Supervised
from conceptnb.learning.best import CORRECTION, start_networks
from conceptnb.learning.data import stack
from conceptnb.learning.fitting import select_models
from conceptnb.learning.linear import fit_linear_rivals
from conceptnb.learning.model import ConceptModel, Whitening, contrastive_loss
from conceptnb.learning.training import Trainer
from conceptnb.studies.limits_cells import FRESH, READ, Cell, Drawn, build_design, read_off

__all__ = ["PartsFit", "fit_in_parts", "measure_in_parts"]

MOST_ROWS = 100_000
"""Rows that one pass of the network sees at most; half as many are held out at most."""
LINEAR_ROWS = 400_000
"""Rows that find the linear encoder, at most: from fewer, a weak atom's start is found by luck."""
FEW_ROWS = 50_000
"""Rows that find the supervised ceiling, at most."""


@dataclass(frozen=True, eq=False)
class PartsFit:
    """A network that was fitted in parts, and the rows that judged it.

    Parameters
    ----------
    whitening : Whitening
    model : ConceptModel
        One, with the best held-out loss.
    loss : float
        That loss, in nats a row.
    held : int array
        Which rows of the problem were held out.
    """

    whitening: Whitening
    model: ConceptModel
    loss: float
    held: np.ndarray

    @torch.no_grad()
    def valuations(self, X: Array) -> Array:
        """Return learned valuations, shape (samples, n), of observations (samples, d_x)."""
        x = self.whitening(torch.as_tensor(X[None], dtype=torch.float32))
        return self.model.encoder(x)[0].double().numpy()


def fit_in_parts(problem: Problem, starts: int = 2) -> PartsFit:
    """Learn a nonlinear problem by the recipe of ``fit_best``, each pass over a part of the rows.

    Parameters
    ----------
    problem : Problem
        Any number of samples; its truth is not looked at.
    starts : int
        Networks, one for each rival of the best linear encoder, at most this many.
    """
    data = stack([problem.X], problem.environment)
    whitening = Whitening.fit(data)
    data = replace(data, x=whitening(data.x))
    targets = problem.design.M > 0
    rng = np.random.default_rng((problem.seed, 6))
    # Rows of the stack are those of the problem: both are sorted by environment.
    held, kept = np.split(
        rng.permutation(len(problem.Z)), [min(len(problem.Z) // 5, MOST_ROWS // 2)]
    )
    start = data.rows(torch.as_tensor(kept[:LINEAR_ROWS]))
    fits = fit_linear_rivals(
        start.x[0].double().numpy(), start.environment.numpy(), targets, rng, keep=starts
    )
    seeds = [1000 * problem.seed + i for i in range(len(fits))]
    model = start_networks(fits, targets, seeds)
    trainer = Trainer(model, start, data.rows(torch.as_tensor(held)), CORRECTION)
    for epoch in range(CORRECTION.epochs):
        # The next rows in turn, from the first again after the last.
        part = np.arange(epoch * MOST_ROWS, epoch * MOST_ROWS + min(MOST_ROWS, len(kept)))
        trainer.train = data.rows(torch.as_tensor(kept[part % len(kept)]))
        trainer.step_epoch()
    trainer.run(progress=False)  # nothing is left to train: it takes the best epoch's parameters
    best = trainer.best.argmin()
    return PartsFit(whitening, select_models(model, best[None]), float(trainer.best[best]), held)


def measure_in_parts(cell: Cell, seeds: Sequence[int]) -> dict[str, Any]:
    """Fit a cell's problems one after the other, and measure what ``cells.measure`` does.

    Parameters
    ----------
    cell : Cell
        With nonlinear mixing, Gaussian q, no noise, and any number of samples.
    seeds : sequence of int

    Returns
    -------
    dict
        As of :func:`~conceptnb.studies.limits_cells.measure`. The supervised ceiling is fitted to
        50,000 rows at most.
    """
    cpu_seconds, scores = 0.0, []
    for seed in tqdm(seeds, desc=f"{cell.samples} samples", unit="problem"):
        problem = _draw(cell, seed)
        started = time.process_time()
        fit = fit_in_parts(problem)
        cpu_seconds += time.process_time() - started
        scores.append(_score(cell, problem, fit))
    values = {name: [row[name] for row in scores] for name in scores[0]}
    return {"values": values, "cpu_seconds": cpu_seconds / len(seeds)}


def _draw(cell: Cell, seed: int) -> Problem:
    """Draw as :func:`~conceptnb.studies.limits_cells.draw`, but no log-odds of millions of rows."""
    rng = np.random.default_rng(seed)
    base = random_mixture(cell.setting.d_z, rng, spread=cell.spread)
    design = build_design(cell, base, random_atoms(cell.setting.n, cell.setting.d_z, rng))
    return draw_problem(cell.setting, seed, samples=cell.samples, design=design, spread=cell.spread)


def _score(cell: Cell, problem: Problem, fit: PartsFit) -> dict[str, float | None]:
    rng = np.random.default_rng((problem.seed, 7))
    few = np.sort(rng.permutation(len(problem.Z))[:FEW_ROWS])
    X, environment = problem.mixing(problem.Z[few]), problem.environment[few]
    ceiling = Supervised("mlp").fit(X, environment, problem.valuations(problem.Z[few]))
    floor = RandomProjection(problem.setting.n, seed=problem.seed).fit(X, environment)
    Z = problem.fresh(FRESH)
    drawn = Drawn(problem, X, problem.log_odds(problem.Z[fit.held]), Z, problem.mixing(Z))
    learned = fit.valuations(drawn.X_fresh)
    values: dict[str, float | None] = {
        "loss": fit.loss,
        "oracle_loss": _loss(drawn.log_odds, problem, fit.held),
    }
    codes = {
        "": learned,
        "supervised_": ceiling.transform(drawn.X_fresh),
        "projection_": floor.transform(drawn.X_fresh),
    }
    for prefix, code in codes.items():
        values[f"{prefix}r2"] = metrics.r2(drawn.truth, code)
        values[f"{prefix}mcc"] = metrics.mcc(drawn.truth, code)
    values["read_r2"], values["read_mcc"] = read_off(cell, drawn)
    values["chance_mcc"] = chance_mcc(drawn.truth[:READ], learned[:READ], rng, draws=5)
    return values


def _loss(log_odds: Array, problem: Problem, rows: np.ndarray) -> float:
    """Softmax loss of true log-odds at some rows, with the shares of all rows as priors."""
    held = stack([problem.Z], problem.environment, torch.float64).rows(torch.as_tensor(rows))
    return float(contrastive_loss(torch.as_tensor(log_odds[None]), held, "softmax"))
