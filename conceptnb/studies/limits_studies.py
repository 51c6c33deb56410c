"""``conceptnb reproduce limits``: what limits identifiability, one study per cause."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

from conceptnb.core.conditioning_distributions import CONDITIONINGS
from conceptnb.core.design import PAPER_VARIANCE
from conceptnb.core.problems import MixingKind, Setting
from conceptnb.results.runner import Plan, Row, Sample, Task
from conceptnb.results.summarise import grouped
from conceptnb.studies.limits_cells import Cell, DesignKind, cell_rows, cell_runs
from conceptnb.studies.scored_fits import consecutive_seeds, spoilt_tasks

__all__ = ["LIMITS", "plans"]

_FEW = 1000  # samples per environment in the studies of a single small setting
_KINDS: tuple[MixingKind, ...] = ("linear", "nonlinear")
_SIZES = {2: (2, 3, 4), 3: (3, 4, 6), 4: (4, 8, 10)}
_SMALL = {kind: Setting(kind, 2, 3, 4) for kind in _KINDS}
_DESIGNS: dict[DesignKind, str] = {"authors": "authors'", "star": "star", "path": "path"}


@dataclass(frozen=True)
class _Limit:
    """One question about what limits identifiability, and the cells that answer it."""

    question: str
    axis: str  # what varies
    cells: tuple[Cell, ...]


LIMITS = {
    "design": _Limit(
        "Does the choice of environments matter?",
        "atoms",
        tuple(
            Cell(Setting(kind, *sizes), f"n = {n}", f"{name}, {kind}", design)
            for kind in _KINDS
            for design, name in _DESIGNS.items()
            for n, sizes in _SIZES.items()
        ),
    ),
    "samples": _Limit(
        "How many samples are enough?",
        "samples per environment",
        tuple(
            Cell(_SMALL["nonlinear"], n, "star, nonlinear", samples=n, rows_per_epoch=100_000)
            for n in (1_000, 10_000, 100_000, 1_000_000)
        ),
    ),
    "environments": _Limit(
        "How many environments are enough?",
        "concept conditional environments m",
        tuple(
            # All concept conditional environments together have as many rows for every m.
            Cell(
                Setting("nonlinear", *_SIZES[n]),
                m,
                f"n = {n}, nonlinear",
                "sized",
                m,
                4 * _FEW // m,
            )
            for n in (2, 3)
            for m in range(n - 1, 2 * n + 2)
        ),
    ),
    "variance": _Limit(
        "How sharp should conditioning be?",
        "variance σ² of q",
        tuple(
            Cell(_SMALL[kind], variance, kind, samples=_FEW, variance=variance)
            for kind in _KINDS
            for variance in (0.0002, PAPER_VARIANCE, 0.05, 0.5)
        ),
    ),
    "spread": _Limit(
        "Does it matter whether the support is connected?",
        "half width of the box of component means",
        tuple(
            Cell(
                _SMALL["nonlinear"], spread, f"{name}, nonlinear", design, None, _FEW, spread=spread
            )
            for design, name in list(_DESIGNS.items())[:2]
            for spread in (0.05, 1.0)
        ),
    ),
    "conditioning": _Limit(
        "What if q is not Gaussian, or conditioning means something else?",
        "conditioning distribution",
        tuple(
            Cell(_SMALL[kind], conditioning, kind, "path", conditioning=conditioning)
            for kind in _KINDS
            for conditioning in CONDITIONINGS
        ),
    ),
    "noise": _Limit(
        "What if observations are noisy?",
        "noise on x, in units of its deviation",
        tuple(
            Cell(_SMALL[kind], noise, kind, samples=_FEW, noise=noise)
            for kind in _KINDS
            for noise in (0.0, 0.03, 0.1, 0.5)
        ),
    ),
    "dimension": _Limit(
        "How large may the latent space be?",
        "latent dimension",
        tuple(
            Cell(Setting("linear", 10, d_z, d_z * 6 // 5), d_z, "n = 10", "path", samples=_FEW)
            for d_z in (15, 30, 60, 100)
        ),
    ),
}
"""The studies by name, in the order of the chapter."""


def _measure(study: str, index: int, seeds: list[int], wrong: str | None = None) -> list[Row]:
    return [{"study": study} | row for row in cell_runs(LIMITS[study].cells[index], seeds, wrong)]


def _rows(runs: list[Row]) -> list[Row]:
    return [row for own in grouped(runs, ["study"]).values() for row in cell_rows(own)]


def plans(args: SimpleNamespace) -> list[Plan]:
    """Return the results files that the options ask for."""
    seeds = consecutive_seeds(args.seeds)
    chosen = list(LIMITS) if args.study == "all" else [args.study]
    tasks = [
        Task(_measure, {"study": name, "index": i, "seeds": own})
        for name in chosen
        for i, cell in enumerate(LIMITS[name].cells)
        for own in ([seeds] if cell.rows_per_epoch is None else [[seed] for seed in seeds])
    ]
    suffix = "" if args.study == "all" else f"_{args.study}"
    # The smallest cells with nonlinear mixing: the lines of the figures are theirs.
    name = "variance" if args.study == "all" else args.study
    task = Task(_measure, {"study": name, "index": len(LIMITS[name].cells) // 2, "seeds": seeds})
    return [
        Plan(
            file=f"synthetic_limits{suffix}",
            tasks=tasks,
            summarise=_rows,
            seeds=seeds,
            notes={
                "studies": {k: [LIMITS[k].question, LIMITS[k].axis] for k in chosen},
                "data": "synthetic, drawn as in Appendix G by the exact sampler",
                "losses": "softmax over environments, nats per row, on held-out rows",
                "scores": "on 5000 fresh base samples",
            },
            sample=Sample(
                task,
                ("held_out_loss", "excess_loss", "r2", "mcc", "supervised_r2"),
                spoilt_tasks(task),
                by=("study", "series", "level"),
            ),
        )
    ]
