"""One cell of a study: draw its problems, fit them, and put bounds beside the scores."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from conceptnb.core import scores as metrics
from conceptnb.core.concepts import random_atoms
from conceptnb.core.conditioning_distributions import Conditioning, sample_conditioned
from conceptnb.core.design import PAPER_VARIANCE, EnvironmentDesign, paper_design
from conceptnb.core.disentanglement import chance_mcc
from conceptnb.core.distributions import GaussianMixture, random_mixture
from conceptnb.core.mixing import LinearMixing
from conceptnb.core.planner import propose_design, tree_design
from conceptnb.core.problems import Problem, Setting, draw_problem
from conceptnb.core.validation import Array
from conceptnb.learning.baselines.classical import RandomProjection
from conceptnb.learning.baselines.networks import Supervised
from conceptnb.learning.best import fit_best
from conceptnb.learning.fitting import oracle_loss
from conceptnb.theory.read_off import peeling_order, read_valuations

__all__ = ["Cell", "Drawn", "build_design", "draw", "measure"]

DesignKind = Literal["authors", "star", "path", "sized"]
FRESH = 5000
"""Fresh base samples that the metrics are taken on."""
READ = 2000
"""How many of them the true log-odds are solved at."""


@dataclass(frozen=True)
class Cell:
    """What a cell varies; the defaults are the paper's (Appendix G).

    Parameters
    ----------
    setting : Setting
    level : float or str
        The value of what the study varies, for its axis.
    series : str
        The line of the figure that the cell belongs to.
    design : {"authors", "star", "path", "sized"}
        The authors' environments, or designs that satisfy Assumption 4: each atom alone and
        one environment with all; the planner's path; ``n_environments`` of :func:`sized_design`.
    n_environments : int, optional
        For "sized".
    samples : int
        Samples of each concept conditional environment; the base has as many as all.
    variance : float
        Variance of q.
    spread : float
        Half width of the box of the base's component means.
    conditioning : str
        What the environments are drawn from, see
        :func:`~conceptnb.core.conditioning_distributions.sample_conditioned`.
    noise : float
        Standard deviation of Gaussian noise on x, in units of each column's own.
    """

    setting: Setting
    level: float | str
    series: str
    design: DesignKind = "star"
    n_environments: int | None = None
    samples: int = 2000
    variance: float = PAPER_VARIANCE
    spread: float = 1.0
    conditioning: Conditioning = "gaussian"
    noise: float = 0.0


@dataclass(frozen=True, eq=False)
class Drawn:
    """A problem of a cell: truth, observations, and the true log-odds of the latter.

    Parameters
    ----------
    problem : Problem
    X : array of shape (samples, d_x)
        Observations, noise included.
    log_odds : array of shape (samples, m)
        True log-odds given x; given z where x is a noisy nonlinear image, which is a
        bound that no function of x reaches.
    Z_fresh, X_fresh : arrays
        Base samples that no learner has seen.
    """

    problem: Problem
    X: Array
    log_odds: Array
    Z_fresh: Array
    X_fresh: Array

    @cached_property
    def truth(self) -> Array:
        """True valuations of the fresh samples, shape (FRESH, n)."""
        return self.problem.valuations(self.Z_fresh)


def sized_design(n: int, m: int, variance: float = PAPER_VARIANCE) -> EnvironmentDesign:
    """Return a design for n atoms with any number m >= n - 1 of environments.

    With m = n - 1, neighbouring atoms in pairs; n, each atom alone; n + 1, one more with
    all; up to 2n, atoms alone at a second valuation (with 2n, each atom alone twice,
    Theorem 2's rank); 2n + 1, both the second valuations and the one with all.

    Raises
    ------
    ValueError
        If m lies outside n - 1, ..., 2n + 1.
    """
    if not max(n - 1, 1) <= m <= 2 * n + 1:
        raise ValueError(f"m must lie between {max(n - 1, 1)} and {2 * n + 1}, got {m}")
    first = [0.2 if i % 2 == 0 else -0.2 for i in range(n)]
    second = [-b / 2 for b in first]
    alone: list[tuple[list[int], list[float]]] = [([i], [first[i]]) for i in range(n)]
    again: list[tuple[list[int], list[float]]] = [([i], [second[i]]) for i in range(n)]
    everything = (list(range(n)), second)
    if m == n - 1:
        chosen = [([i, i + 1], [first[i], second[i + 1]]) for i in range(m)]
    elif m <= n:
        chosen = alone
    elif m == 2 * n:
        chosen = alone + again
    else:
        chosen = [*alone, everything, *again[: m - n - 1]]
    subsets, valuations = zip(*chosen, strict=True)
    return EnvironmentDesign(subsets, valuations, variance)


def build_design(cell: Cell, base: GaussianMixture, atoms: Array) -> EnvironmentDesign:
    """Return the design of a cell; only a planned path looks at the base distribution."""
    n = cell.setting.n
    if cell.design == "authors":
        design = paper_design(n)
        return EnvironmentDesign(design.subsets, design.valuations, cell.variance)
    if cell.design == "star":
        # The authors' valuations, 0.2 and -0.1, with alternating signs.
        signs = np.array([1.0 if i % 2 == 0 else -1.0 for i in range(n)])
        return tree_design("star", signs[:, None] * [0.2, -0.1], cell.variance)
    if cell.design == "path":
        return propose_design(n, cell.variance, base, atoms)
    if cell.design == "sized":
        return sized_design(n, n + 1 if cell.n_environments is None else cell.n_environments,
                            cell.variance)  # fmt: skip
    raise ValueError(f"design must be authors, star, path or sized, got {cell.design!r}")


def draw(cell: Cell, seed: int) -> Drawn:
    """Draw a problem of a cell. Cells with the same seed and sizes share base, atoms and mixing.

    Parameters
    ----------
    cell : Cell
    seed : int
    """
    rng = np.random.default_rng(seed)
    base = random_mixture(cell.setting.d_z, rng, spread=cell.spread)
    atoms = random_atoms(cell.setting.n, cell.setting.d_z, rng)
    design = build_design(cell, base, atoms)
    problem = draw_problem(
        cell.setting, seed, samples=cell.samples, design=design, spread=cell.spread
    )
    log_odds = problem.log_odds
    if cell.conditioning != "gaussian":
        draws = np.random.default_rng((seed, 3))
        Z, log_odds_of = zip(
            *(
                sample_conditioned(
                    cell.conditioning, base, concept, design.variance, cell.samples, draws
                )
                for concept in design.concepts(atoms)
            ),
            strict=True,
        )
        latents = np.concatenate([problem.Z[problem.environment == 0], *Z])
        problem = Problem(**{**vars(problem), "Z": latents})
        odds = np.stack([log_odds(latents) for log_odds in log_odds_of], axis=1)
    else:
        odds = log_odds()
    X, Z_fresh = problem.X, problem.fresh(FRESH)
    X_fresh = problem.mixing(Z_fresh)
    if cell.noise:
        scale = cell.noise * X[problem.environment == 0].std(axis=0)
        noise = np.random.default_rng((seed, 4))
        X = X + scale * noise.normal(size=X.shape)
        X_fresh = X_fresh + scale * noise.normal(size=X_fresh.shape)
        if isinstance(problem.mixing, LinearMixing):
            odds = _noisy_log_odds(problem, problem.mixing.weight, X, scale)
    return Drawn(problem, X, odds, Z_fresh, X_fresh)


def _noisy_log_odds(problem: Problem, W: Array, X: Array, scale: Array) -> Array:
    """Exact log-odds of x = Wz + noise: every environment is a Gaussian mixture in x."""

    def log_density(p: GaussianMixture) -> Array:
        covariances = W @ p.covariances @ W.T + np.diag(scale**2)
        return GaussianMixture(p.weights, p.means @ W.T, covariances).log_density(X)

    design = problem.design
    concepts = design.concepts(problem.atoms)
    conditionals = [problem.base.condition(c, design.variance) for c in concepts]
    own = log_density(problem.base)
    return np.stack([log_density(p) - own for p in conditionals], axis=1)


def measure(cell: Cell, seeds: Sequence[int]) -> dict[str, Any]:
    """Fit the problems of a cell with the book's best estimator and measure all bounds.

    Parameters
    ----------
    cell : Cell
    seeds : sequence of int

    Returns
    -------
    dict
        ``values`` maps each measure to its values by seed, None where a measure does not
        apply; ``cpu_seconds`` is the fit's share a problem. Losses are of the softmax over
        environments on held-out rows, in nats.
    """
    drawn = [draw(cell, seed) for seed in seeds]
    environment = drawn[0].problem.environment
    linear = cell.setting.mixing == "linear"
    X = [d.X for d in drawn]
    started = time.process_time()
    fit = fit_best(
        X, environment, drawn[0].problem.design.M > 0, linear=linear, seeds=seeds, progress=False
    )
    cpu_seconds = (time.process_time() - started) / len(drawn)
    learned = fit.valuations([d.X_fresh for d in drawn])
    truth = np.stack([d.problem.valuations() for d in drawn])
    fresh = np.stack([d.X_fresh for d in drawn])
    ceiling = Supervised("linear" if linear else "mlp").fit(np.stack(X), environment, truth)
    floor = RandomProjection(cell.setting.n, seed=int(seeds[0])).fit(np.stack(X), environment)
    oracle = oracle_loss([d.log_odds for d in drawn], environment, kind=fit.kind)
    values: dict[str, list[float | None]] = {
        "loss": list(fit.held_out_loss.min(axis=1)),
        "oracle_loss": list(oracle),
    }
    codes = {
        "": learned,
        "supervised_": ceiling.transform(fresh),
        "projection_": floor.transform(fresh),
    }
    for prefix, code in codes.items():
        values[f"{prefix}r2"] = [metrics.r2(d.truth, h) for d, h in zip(drawn, code, strict=True)]
        values[f"{prefix}mcc"] = [metrics.mcc(d.truth, h) for d, h in zip(drawn, code, strict=True)]
    read = [read_off(cell, d) for d in drawn]
    values["read_r2"], values["read_mcc"] = [r for r, _ in read], [m for _, m in read]
    values["chance_mcc"] = [
        chance_mcc(d.truth[:READ], h[:READ], np.random.default_rng((d.problem.seed, 5)), draws=5)
        for d, h in zip(drawn, learned, strict=True)
    ]
    return {"values": values, "cpu_seconds": cpu_seconds}


def read_off(cell: Cell, drawn: Drawn) -> tuple[float | None, float | None]:
    """R² and MCC of the valuations read off the true log-odds, where (86) is their form."""
    problem = drawn.problem
    solvable = cell.setting.n <= 4 and peeling_order(problem.design) is not None
    if cell.conditioning != "gaussian" or cell.noise or not solvable:
        return None, None
    gaps = drawn.truth[:READ, None, :] - problem.design.B * problem.design.variance
    quadratic = -0.5 * (problem.design.M * gaps**2).sum(axis=2)
    read = read_valuations(problem.design, quadratic)
    return metrics.r2(drawn.truth[:READ], read), metrics.mcc(drawn.truth[:READ], read)


def summary(cell: Cell, measured: dict[str, Any], seeds: Sequence[int]) -> dict[str, Any]:
    """Return a cell's row: what it varied, means and population deviations over seeds."""
    setting = cell.setting
    row: dict[str, Any] = {
        "level": cell.level,
        "series": cell.series,
        "mixing": setting.mixing,
        "n": setting.n,
        "dz": setting.d_z,
        "dx": setting.d_x,
    }
    row |= {k: v for k, v in asdict(cell).items() if k not in ("setting", "level", "series")}
    for name, values in measured["values"].items():
        if any(value is None for value in values):
            row[f"{name}_mean"] = row[f"{name}_std"] = None
            continue
        row[f"{name}_mean"] = round(float(np.mean(values)), 5)
        row[f"{name}_std"] = round(float(np.std(values)), 5)
    gap = np.subtract(measured["values"]["loss"], measured["values"]["oracle_loss"])
    row["excess_loss_mean"] = round(float(gap.mean()), 5)
    row["excess_loss_std"] = round(float(gap.std()), 5)
    row["cpu_seconds"] = round(measured["cpu_seconds"], 3)
    row["seeds"] = len(seeds)
    return row
