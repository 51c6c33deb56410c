"""``conceptnb reproduce limits``: what limits identifiability, one study per cause."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from typing import Any

from conceptnb.core.conditioning_distributions import CONDITIONINGS
from conceptnb.core.design import PAPER_VARIANCE
from conceptnb.core.problems import PAPER_SEEDS, MixingKind, Setting
from conceptnb.studies.limits_cells import Cell, DesignKind, cell_rows, cell_runs
from conceptnb.studies.runner import Plan, Sample, Study, Task
from conceptnb.studies.summarise import grouped

__all__ = ["LIMITS", "STUDY"]

_FEW = 1000
"""Samples per environment in the studies of a single small setting."""


@dataclass(frozen=True)
class _Limit:
    """One question about what limits identifiability, and the cells that answer it.

    Parameters
    ----------
    question, axis : str
        ``axis`` labels what varies.
    cells : tuple of Cell
    """

    question: str
    axis: str
    cells: tuple[Cell, ...]


_KINDS: tuple[MixingKind, ...] = ("linear", "nonlinear")


def _small(kind: MixingKind) -> Setting:
    return Setting(kind, 2, 3, 4)


def _designs() -> tuple[Cell, ...]:
    names: dict[DesignKind, str] = {"authors": "authors'", "star": "star", "path": "path"}
    return tuple(
        Cell(Setting(kind, *sizes), f"n = {sizes[0]}", f"{names[design]}, {kind}", design)
        for kind in _KINDS
        for design in names
        for sizes in ((2, 3, 4), (3, 4, 6), (4, 8, 10))
    )


def _samples() -> tuple[Cell, ...]:
    return tuple(
        Cell(
            _small("nonlinear"),
            samples,
            "star, nonlinear",
            samples=samples,
            rows_per_epoch=100_000,
        )
        for samples in (1_000, 10_000, 100_000, 1_000_000)
    )


def _environments() -> tuple[Cell, ...]:
    total = 4 * _FEW  # rows of all concept conditional environments together, for every m
    sizes = {"n = 2, nonlinear": (2, 3, 4), "n = 3, nonlinear": (3, 4, 6)}
    return tuple(
        Cell(Setting("nonlinear", *size), m, series, "sized", m, samples=total // m)
        for series, size in sizes.items()
        for m in range(max(size[0] - 1, 1), 2 * size[0] + 2)
    )


def _variances() -> tuple[Cell, ...]:
    return tuple(
        Cell(_small(kind), variance, kind, samples=_FEW, variance=variance)
        for kind in _KINDS
        for variance in (0.0002, PAPER_VARIANCE, 0.05, 0.5)
    )


def _spreads() -> tuple[Cell, ...]:
    names: dict[DesignKind, str] = {"authors": "authors', nonlinear", "star": "star, nonlinear"}
    return tuple(
        Cell(_small("nonlinear"), spread, series, design, samples=_FEW, spread=spread)
        for design, series in names.items()
        for spread in (0.05, 1.0)
    )


def _conditionings() -> tuple[Cell, ...]:
    return tuple(
        Cell(_small(kind), conditioning, kind, "path", conditioning=conditioning)
        for kind in _KINDS
        for conditioning in CONDITIONINGS
    )


def _noises() -> tuple[Cell, ...]:
    return tuple(
        Cell(_small(kind), noise, kind, samples=_FEW, noise=noise)
        for kind in _KINDS
        for noise in (0.0, 0.03, 0.1, 0.5)
    )


def _dimensions() -> tuple[Cell, ...]:
    return tuple(
        Cell(Setting("linear", 10, d_z, d_z * 6 // 5), d_z, "n = 10", "path", samples=_FEW)
        for d_z in (15, 30, 60, 100)
    )


LIMITS = {
    "design": _Limit("Does the choice of environments matter?", "atoms", _designs()),
    "samples": _Limit("How many samples are enough?", "samples per environment", _samples()),
    "environments": _Limit(
        "How many environments are enough?", "concept conditional environments m", _environments()
    ),
    "variance": _Limit("How sharp should conditioning be?", "variance σ² of q", _variances()),
    "spread": _Limit(
        "Does it matter whether the support is connected?",
        "half width of the box of component means",
        _spreads(),
    ),
    "conditioning": _Limit(
        "What if q is not Gaussian, or conditioning means something else?",
        "conditioning distribution",
        _conditionings(),
    ),
    "noise": _Limit(
        "What if observations are noisy?", "noise on x, in units of its deviation", _noises()
    ),
    "dimension": _Limit("How large may the latent space be?", "latent dimension", _dimensions()),
}
"""The studies by name, in the order of the chapter."""


def _measure(
    study: str, index: int, seeds: list[int], wrong: str | None = None
) -> list[dict[str, Any]]:
    """Measure one cell of a study; return a row per seed."""
    cell = asdict(LIMITS[study].cells[index])
    return [{"study": study} | row for row in cell_runs(cell, seeds, wrong)]


def _rows(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for own in grouped(runs, ["study"]).values() for row in cell_rows(own)]


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--study", choices=("all", *LIMITS), default="all", help="which one")
    parser.add_argument("--seeds", type=int, default=len(PAPER_SEEDS), help="problems per cell")


def _plans(args: argparse.Namespace) -> list[Plan]:
    if args.seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {args.seeds}")
    seeds = list(range(PAPER_SEEDS[0], PAPER_SEEDS[0] + args.seeds))
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
                {
                    "labels shuffled": Task(_measure, task.arguments | {"wrong": "labels"}),
                    "targets exchanged": Task(_measure, task.arguments | {"wrong": "targets"}),
                },
                by=("study", "series", "level"),
            ),
        )
    ]


STUDY = Study(_add_options, _plans)
