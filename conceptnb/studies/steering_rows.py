"""From runs of a steering study to the rows of Table 6: by corpus and technique."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from conceptnb.results.runner import Row
from conceptnb.results.summarise import grouped

BASELINE = "baseline"
COLUMNS = {
    "mc1": "MC1",
    "mc2": "MC2",
    "ce": "CE",
    "kl": "KL",
    "kl_asked": "KL of a question's edit",
}


def by_corpus(runs: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the runs of each toy corpus (or model) in which K and α were chosen."""
    chosen = [run for run in runs if run["chosen"]]
    return {str(name): rows for (name,), rows in grouped(chosen, ["world"]).items()}


def table6_rows(runs: Iterable[Row]) -> list[dict[str, Any]]:
    """Return Table 6 by corpus (``world``) and technique: [mean, std] over splits and models."""
    rows = []
    for world, mine in by_corpus(runs).items():
        for (method,), of_method in grouped(mine, ["method"]).items():
            splits = [_pooled(part) for part in grouped(of_method, ["model_seed", "seed"]).values()]
            values = {key: np.array([split[key] for split in splits]) for key in splits[0]}
            rows.append(
                {"world": world, "technique": method}
                | {"α": round(float(values["alpha"].mean()), 2)}
                | {"K": round(float(values["heads"].mean()), 1)}
                | {
                    title: [round(float(values[key].mean()), 4), round(float(values[key].std()), 4)]
                    for key, title in COLUMNS.items()
                }
            )
    return rows


def _pooled(folds: Sequence[Row]) -> dict[str, float]:
    """Return the scores of a split from those of its folds, of which each question is in one."""
    sizes = [fold["tested"].count("1") for fold in folds]
    found = {
        key: float(np.average([fold[key] for fold in folds], weights=sizes)) for key in COLUMNS
    }
    for key in ("alpha", "heads"):
        found[key] = float(np.mean([fold[key] for fold in folds]))
    return found
