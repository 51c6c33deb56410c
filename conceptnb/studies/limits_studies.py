"""What limits identifiability: the studies, and how one is run cell by cell."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import resource
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from conceptnb.core.conditioning_distributions import CONDITIONINGS
from conceptnb.core.design import PAPER_VARIANCE
from conceptnb.core.files import write_text
from conceptnb.core.problems import MixingKind, Setting
from conceptnb.results.store import source_hash
from conceptnb.studies.limits_cells import Cell, DesignKind, measure, summary
from conceptnb.studies.limits_samples import measure_in_parts

__all__ = ["MODULES", "SEEDS", "STUDIES", "Study", "run_study"]

Measure = Callable[[Cell, Sequence[int]], dict[str, Any]]
SEEDS = (3, 4, 5, 6, 7)
"""The authors' seeds; every mean ± std of a study is over these problems."""
FEW = 1000
"""Samples an environment in the studies of a single small setting."""
MODULES = [
    f"conceptnb.{package}{name}"
    for package, names in (
        ("", "concepts conditioning disentanglement environments metrics mixing sampling"),
        ("", "synthetic"),
        ("baselines.", "base classical networks training"),
        ("contrastive.", "best data encoders fitting heads linear losses model training"),
        ("limits.", "bounds cells laws"),
    )
    for name in names.split()
]
"""What the numbers depend on."""


@dataclass(frozen=True)
class Study:
    """One question, and the cells that answer it.

    Parameters
    ----------
    name, question, axis : str
        ``axis`` labels what varies.
    cells : tuple of Cell
    own_process : bool
        Whether each cell runs in a fresh process, so that its peak memory can be measured.
    measure : callable
        Fits and scores a cell's problems, as :func:`~conceptnb.studies.limits_cells.measure` does.
    modules : tuple of str
        What the numbers depend on beside :data:`MODULES`.
    """

    name: str
    question: str
    axis: str
    cells: tuple[Cell, ...]
    own_process: bool = False
    measure: Measure = measure
    modules: tuple[str, ...] = ()


KINDS: tuple[MixingKind, ...] = ("linear", "nonlinear")


def _small(kind: MixingKind) -> Setting:
    return Setting(kind, 2, 3, 4)


def _designs() -> tuple[Cell, ...]:
    names: dict[DesignKind, str] = {"authors": "authors'", "star": "star", "path": "path"}
    return tuple(
        Cell(Setting(kind, *sizes), f"n = {sizes[0]}", f"{names[design]}, {kind}", design)
        for kind in KINDS
        for design in names
        for sizes in ((2, 3, 4), (3, 4, 6), (4, 8, 10))
    )


def _samples() -> tuple[Cell, ...]:
    return tuple(
        Cell(_small("nonlinear"), samples, "star, nonlinear", samples=samples)
        for samples in (1_000, 10_000, 100_000, 1_000_000)
    )


def _environments() -> tuple[Cell, ...]:
    total = 4 * FEW  # rows of all concept conditional environments together, for every m
    sizes = {"n = 2, nonlinear": (2, 3, 4), "n = 3, nonlinear": (3, 4, 6)}
    return tuple(
        Cell(Setting("nonlinear", *size), m, series, "sized", m, samples=total // m)
        for series, size in sizes.items()
        for m in range(max(size[0] - 1, 1), 2 * size[0] + 2)
    )


def _variances() -> tuple[Cell, ...]:
    return tuple(
        Cell(_small(kind), variance, kind, samples=FEW, variance=variance)
        for kind in KINDS
        for variance in (0.0002, PAPER_VARIANCE, 0.05, 0.5)
    )


def _spreads() -> tuple[Cell, ...]:
    names: dict[DesignKind, str] = {"authors": "authors', nonlinear", "star": "star, nonlinear"}
    return tuple(
        Cell(_small("nonlinear"), spread, series, design, samples=FEW, spread=spread)
        for design, series in names.items()
        for spread in (0.05, 1.0)
    )


def _conditionings() -> tuple[Cell, ...]:
    return tuple(
        Cell(_small(kind), conditioning, kind, "path", conditioning=conditioning)
        for kind in KINDS
        for conditioning in CONDITIONINGS
    )


def _noises() -> tuple[Cell, ...]:
    return tuple(
        Cell(_small(kind), noise, kind, samples=FEW, noise=noise)
        for kind in KINDS
        for noise in (0.0, 0.03, 0.1, 0.5)
    )


def _dimensions() -> tuple[Cell, ...]:
    return tuple(
        Cell(Setting("linear", 10, d_z, d_z * 6 // 5), d_z, "n = 10", "path", samples=FEW)
        for d_z in (15, 30, 60, 100)
    )


STUDIES = {
    study.name: study
    for study in (
        Study("design", "Does the choice of environments matter?", "atoms", _designs()),
        Study("samples", "How many samples are enough?", "samples of an environment", _samples(),
              own_process=True, measure=measure_in_parts,
              modules=("conceptnb.studies.limits_samples",)),
        Study("environments", "How many environments are enough?",
              "concept conditional environments m", _environments()),
        Study("variance", "How sharp should conditioning be?", "variance σ² of q", _variances()),
        Study("spread", "Does it matter whether the support is connected?",
              "half width of the box of component means", _spreads()),
        Study("conditioning", "What if q is not Gaussian, or conditioning means something else?",
              "conditioning distribution", _conditionings()),
        Study("noise", "What if observations are noisy?", "noise on x, in units of its deviation",
              _noises()),
        Study("dimension", "How large may the latent space be?", "latent dimension", _dimensions(),
              own_process=True),
    )
}  # fmt: skip
"""The studies by name, in the order of the chapter."""


def run_study(
    study: Study,
    seeds: Sequence[int] = SEEDS,
    *,
    checkpoints: Path | None = None,
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Run a study's cells, or read those that an earlier run finished.

    Parameters
    ----------
    study : Study
    seeds : sequence of int
        One problem each.
    checkpoints : Path, optional
        Folder that keeps each cell when it is done. A cell is read from there if it was
        computed for the same seeds by the same code.
    progress : bool

    Returns
    -------
    list of dict
        Plain JSON values, one row per cell: `study`, what
        :func:`~conceptnb.studies.limits_cells.summary` gives, `by_seed` with the values of each
        seed, and `peak_gb` for a study in processes of its own.
    """
    compute = _in_own_process if study.own_process else run_cell
    rows = []
    for cell in tqdm(study.cells, desc=study.name, disable=not progress, unit="cell"):
        # All that the numbers depend on: what the cell is, the seeds, the code.
        code = source_hash([*MODULES, *study.modules])
        key = json.dumps([asdict(cell), list(seeds), code], sort_keys=True)
        row = kept_row(checkpoints, key, partial(compute, cell, seeds, study.measure))
        rows.append({"study": study.name, **row})
    return rows


def run_cell(cell: Cell, seeds: Sequence[int], fit: Measure = measure) -> dict[str, Any]:
    """Return a cell's row, with the values of each seed."""
    measured = fit(cell, seeds)
    by_seed = {
        name: None if None in values else [round(float(v), 5) for v in values]
        for name, values in measured["values"].items()
    }
    return summary(cell, measured, seeds) | {"by_seed": by_seed}


def _in_own_process(cell: Cell, seeds: Sequence[int], fit: Measure) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_with_peak_memory, cell, seeds, fit).result()


def _with_peak_memory(cell: Cell, seeds: Sequence[int], fit: Measure) -> dict[str, Any]:
    row = run_cell(cell, seeds, fit)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # In KiB, except on macOS, where it is in bytes.
    row["peak_gb"] = round(peak * (1 if sys.platform == "darwin" else 1024) / 1e9, 3)
    return row


def kept_row(
    folder: Path | None, key: str, compute: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Return what `compute` gives, or what an earlier call kept in `folder` under the same key.

    `key` has to name all that the row depends on, the code included. Without a folder nothing
    is kept.
    """
    if folder is None:
        return compute()
    path = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
    if not path.is_file():
        write_text(path, json.dumps(compute(), allow_nan=False))
    return json.loads(path.read_text(encoding="utf-8"))
