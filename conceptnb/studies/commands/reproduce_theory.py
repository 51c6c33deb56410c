"""``conceptnb reproduce theory``: the long computations of the chapters on identifiability."""

from __future__ import annotations

import argparse
import importlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tqdm.auto import tqdm

from conceptnb import results

Row = dict[str, Any]

_PROOF = [
    "conceptnb.core.concepts",
    "conceptnb.environments",
    "conceptnb.core.distributions",
    "conceptnb.theory.nonlinear_map",
    "conceptnb.theory.observables",
    "conceptnb.theory.minima",
    "conceptnb.theory.standard_form",
    "conceptnb.theory.theorem1",
    "conceptnb.studies.theory_instances",
]


_TRIALS = [
    *_PROOF,
    "conceptnb.theory.counterexamples",
    "conceptnb.theory.two_sample",
    "conceptnb.studies.theory_trials",
]


@dataclass(frozen=True)
class Part:
    """One table: its rows from one seed, its seeds, and the modules behind it."""

    module: str
    function: str
    seeds: Sequence[int]
    modules: Sequence[str]
    note: str

    def rows(self) -> Callable[[int], Any]:
        """Import what computes the rows of one seed."""
        return getattr(importlib.import_module(self.module), self.function)


PARTS: dict[str, Part] = {
    "instances": Part(
        "conceptnb.studies.theory_instances",
        "recover_seed",
        range(500),
        _PROOF,
        "Theorem 1's proof on random instances with exact log ratios",
    ),
    "estimated": Part(
        "conceptnb.studies.theory_estimated",
        "error_curve",
        range(5),
        [*_PROOF[:-1], "conceptnb.core.mixing", "conceptnb.studies.theory_estimated"],
        "the same with log ratios estimated from samples, linear mixing",
    ),
    "pairs": Part(
        "conceptnb.studies.theory_trials",
        "trial_pairs",
        range(1),
        _TRIALS,
        "two-sample tests of models with equal data and different concepts",
    ),
    "violations": Part(
        "conceptnb.studies.theory_trials",
        "check_violations",
        range(500),
        _TRIALS,
        "does the checker name the fault of designs broken on purpose, and only that",
    ),
    "nested": Part(
        "conceptnb.studies.theory_trials",
        "recover_nested",
        range(100),
        _TRIALS,
        "recovery of designs that violate Assumption 5 only",
    ),
    "lemma1": Part(
        "conceptnb.studies.theory_trials",
        "lemma1_trials",
        range(5),
        _TRIALS,
        "random designs under Lemma 1's condition",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the choice of tables."""
    parser.add_argument("--part", choices=sorted(PARTS), nargs="+", default=sorted(PARTS))


def run(options: argparse.Namespace) -> int:
    """Compute the chosen tables and write them under ``results/``."""
    for name in options.part:
        part = PARTS[name]
        compute, started = part.rows(), time.process_time()
        rows: list[Row] = []
        for seed in tqdm(part.seeds, desc=name, unit="seed"):
            found = compute(seed)
            for row in found if isinstance(found, list) else [found]:
                rows.append({"seed": seed, **_plain(asdict(row))})
        path = results.save(
            f"theory_{name}",
            rows,
            command=f"conceptnb reproduce theory --part {name}",
            modules=part.modules,
            seeds=part.seeds,
            cpu_seconds=time.process_time() - started,
            notes={"what": part.note},
        )
        print(path)
    return 0


def _plain(row: Row) -> Row:
    """Replace what JSON cannot hold: an infinite error means not computed."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }
