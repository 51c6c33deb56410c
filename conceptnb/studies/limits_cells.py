"""One cell of a study of limits: its problems, their fit, and bounds beside the scores."""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from conceptnb.common.validation import Array
from conceptnb.core import scores as metrics
from conceptnb.core.concepts import random_atoms
from conceptnb.core.conditioning_distributions import Conditioning, sample_conditioned
from conceptnb.core.design import PAPER_VARIANCE, EnvironmentDesign, paper_design
from conceptnb.core.disentanglement import chance_mcc
from conceptnb.core.distributions import GaussianMixture, random_mixture
from conceptnb.core.mixing import LinearMixing
from conceptnb.core.planner import propose_design, tree_design
from conceptnb.core.problems import Problem, Setting, draw_problem
from conceptnb.learning.baselines.baseline import Baseline, RandomProjection
from conceptnb.learning.baselines.supervised import Supervised
from conceptnb.learning.fitting import fit
from conceptnb.learning.problem_scores import SCORED_SAMPLES, Learner, evaluate
from conceptnb.learning.recipes import BEST
from conceptnb.results.runner import Row
from conceptnb.results.summarise import grouped, summary
from conceptnb.studies.scored_fits import fit_and_score
from conceptnb.theory.read_off import peeling_order, read_valuations

__all__ = ["Cell", "cell_row", "cell_rows", "cell_runs", "draw", "sized_design"]

DesignKind = Literal["authors", "star", "path", "sized"]
_READ = 2000  # fresh base samples that the true log-odds are solved at
_BOUND_ROWS = 50_000  # rows that find the bounds, at most
_LOSSES = ("held_out_loss", "oracle_loss", "excess_loss")
_BOUNDS = ("supervised_r2", "supervised_mcc", "projection_r2", "projection_mcc")
_COLUMNS = (*_LOSSES, "r2", "mcc", *_BOUNDS, "read_r2", "read_mcc", "chance_mcc")


@dataclass(frozen=True)
class Cell:
    """What a cell varies; the defaults are the paper's (Appendix G).

    Parameters
    ----------
    level, series : float or str, str
        Of what the study varies, and the line of the figure.
    design : {"authors", "star", "path", "sized"}
        The authors' environments, or designs that satisfy Assumption 4: each atom alone and
        one environment with all; the planner's path; ``n_environments`` of :func:`sized_design`.
    spread : float
        Half width of the box of the base's component means.
    noise : float
        Standard deviation of Gaussian noise on x, in units of each column's own.
    rows_per_epoch : int, optional
        Rows that a network sees per epoch at most, and problems one at a time.
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
    rows_per_epoch: int | None = None


@dataclass(frozen=True, eq=False)
class _Drawn(Problem):
    """A problem whose observations may hold noise, and whose true log-odds are its own."""

    observations: Array
    odds: Array | None  # given x; given z, a bound, where x is a noisy nonlinear image
    fresh_observations: Array  # of fresh(SCORED_SAMPLES)

    @property
    def X(self) -> Array:
        return self.observations

    def log_odds(self, Z: Array | None = None) -> Array:
        """Return the true log-odds, shape (samples, m); of `Z` if given, by Definition 3."""
        return super().log_odds(Z) if Z is not None or self.odds is None else self.odds


def sized_design(n: int, m: int, variance: float = PAPER_VARIANCE) -> EnvironmentDesign:
    """Return a design for n atoms with any number m >= n - 1 of environments.

    With m = n - 1, neighbouring atoms in pairs; n, each atom alone; n + 1, one more with
    all; up to 2n, atoms alone at a second valuation (with 2n, each atom alone twice,
    Theorem 2's rank); 2n + 1, both the second valuations and the one with all.
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


def _build_design(cell: Cell, base: GaussianMixture, atoms: Array) -> EnvironmentDesign:
    """Return the design of a cell; only a planned path looks at the base distribution."""
    n = cell.setting.n
    match cell.design:
        case "authors":
            return replace(paper_design(n), variance=cell.variance)
        case "star":  # the authors' valuations, 0.2 and -0.1, with alternating signs
            signs = np.array([1.0 if i % 2 == 0 else -1.0 for i in range(n)])
            return tree_design("star", signs[:, None] * [0.2, -0.1], cell.variance)
        case "path":
            return propose_design(n, cell.variance, base, atoms)
        case "sized":
            return sized_design(n, cell.n_environments or n + 1, cell.variance)
    raise ValueError(f"design must be authors, star, path or sized, got {cell.design!r}")


def draw(cell: Cell, seed: int) -> _Drawn:
    """Draw a problem, whose ``X`` and ``log_odds()`` include the cell's noise and conditioning."""
    rng = np.random.default_rng(seed)
    base = random_mixture(cell.setting.d_z, rng, spread=cell.spread)
    atoms = random_atoms(cell.setting.n, cell.setting.d_z, rng)
    design = _build_design(cell, base, atoms)
    problem = draw_problem(
        cell.setting, seed, samples=cell.samples, design=design, spread=cell.spread
    )
    odds: Array | None = None
    if cell.conditioning != "gaussian":
        Z, odds = _conditioned(cell, problem)
        problem = replace(problem, Z=Z)
    X, fresh = problem.X, problem.mixing(problem.fresh(SCORED_SAMPLES))
    if cell.noise:
        scale = cell.noise * X[problem.environment == 0].std(axis=0)
        noise = np.random.default_rng((seed, 4))
        X = X + scale * noise.normal(size=X.shape)
        fresh = fresh + scale * noise.normal(size=fresh.shape)
        if isinstance(problem.mixing, LinearMixing):
            odds = _noisy_log_odds(problem, problem.mixing.weight, X, scale)
    own = {field.name: getattr(problem, field.name) for field in fields(problem)}
    return _Drawn(**own, observations=X, odds=odds, fresh_observations=fresh)


def _conditioned(cell: Cell, problem: Problem) -> tuple[Array, Array]:
    """Return latents of environments of another conditioning distribution, and true log-odds."""
    design, draws = problem.design, np.random.default_rng((problem.seed, 3))
    parts = [
        sample_conditioned(
            cell.conditioning, problem.base, concept, design.variance, cell.samples, draws
        )
        for concept in design.concepts(problem.atoms)
    ]
    Z = np.concatenate([problem.Z[problem.environment == 0], *(own for own, _ in parts)])
    return Z, np.stack([log_odds(Z) for _, log_odds in parts], axis=1)


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


def cell_row(cell: Cell, seeds: Sequence[int]) -> Row:
    """Fit the problems of a cell with the book's best recipe and measure all bounds.

    Measures are mean and population deviation over seeds, None where one does not apply; losses are
    of the softmax over environments on held-out rows, in nats.
    """
    return cell_rows(cell_runs(cell, seeds))[0]


def cell_runs(cell: Cell, seeds: Sequence[int], wrong: str | None = None) -> list[Row]:
    """Return the measures of a cell, a row per seed."""
    _forget_peak()
    groups = [seeds] if cell.rows_per_epoch is None else [[seed] for seed in seeds]
    rows = [row for group in groups for row in _scores(cell, group, wrong)]
    varied = {k: v for k, v in asdict(cell).items() if k != "setting"}
    return [varied | row | {"peak_gb": _peak_gb()} for row in rows]


def cell_rows(runs: Sequence[Row]) -> list[Row]:
    """Return a row per cell: what it varied, means and population deviations over seeds."""
    measures = {*_COLUMNS, "seed", "cpu_seconds", "peak_gb", "r2_seen", "mcc_seen"}
    by = [name for name in runs[0] if name not in measures]
    rows = summary(runs, by, _COLUMNS)
    for row, own in zip(rows, grouped(runs, by).values(), strict=True):
        row["cpu_seconds"] = round(float(np.mean([run["cpu_seconds"] for run in own])), 3)
        row["peak_gb"] = max(run["peak_gb"] for run in own)
        row["seeds"] = len(own)
    return rows


def _scores(cell: Cell, seeds: Sequence[int], wrong: str | None) -> list[Row]:
    drawn = [draw(cell, seed) for seed in seeds]
    recipe = replace(BEST, training=replace(BEST.training, rows=cell.rows_per_epoch))

    def read(_: Learner, p: Problem, Z: Array, h: Array) -> Mapping[str, Any]:
        rng = np.random.default_rng((p.seed, 5))
        chance = chance_mcc(p.valuations(Z)[:_READ], h[:_READ], rng, draws=5)
        return _read_off(cell, p, Z[:_READ]) | {"chance_mcc": chance}

    fresh = [p.fresh_observations for p in drawn]
    rows = fit_and_score(
        drawn, lambda p: fit(p, recipe), measure=read, observations=fresh, wrong=wrong
    )
    order = np.random.default_rng((seeds[0], 7)).permutation(len(drawn[0].Z))
    few = np.sort(order[:_BOUND_ROWS])
    X = np.stack([p.X[few] for p in drawn])
    truth = np.stack([p.valuations(p.Z[few]) for p in drawn])
    bounds: dict[str, Baseline] = {
        "supervised": Supervised("linear" if cell.setting.mixing == "linear" else "mlp"),
        "projection": RandomProjection(cell.setting.n, seed=seeds[0]),
    }
    for name, bound in bounds.items():
        bound.fit(X, drawn[0].environment[few], truth)
        for row, scores in zip(rows, evaluate(drawn, bound, observations=fresh), strict=True):
            row |= {f"{name}_{key}": round(scores[key], 6) for key in ("r2", "mcc")}
    return rows


def _read_off(cell: Cell, problem: Problem, Z: Array) -> dict[str, float | None]:
    """R² and MCC of the valuations read off the true log-odds, where (86) is their form."""
    design = problem.design
    solvable = cell.setting.n <= 4 and peeling_order(design) is not None
    if cell.conditioning != "gaussian" or cell.noise or not solvable:
        return {"read_r2": None, "read_mcc": None}
    truth = problem.valuations(Z)
    gaps = truth[:, None, :] - design.B * design.variance
    read = read_valuations(design, -0.5 * (design.M * gaps**2).sum(axis=2))
    return {"read_r2": metrics.r2(truth, read), "read_mcc": metrics.mcc(truth, read)}


def _forget_peak() -> None:
    """Let Linux count this process's peak memory from now on."""
    forget = Path("/proc/self/clear_refs")
    if forget.exists():
        forget.write_text("5")


def _peak_gb() -> float:
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in kB, on macOS in bytes
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text().splitlines()
        found = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return round(found * (1 if sys.platform == "darwin" else 1024) / 1e9, 3)
