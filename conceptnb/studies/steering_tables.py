"""Data frames for display: Table 6, paired differences, gaps to the category oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from conceptnb.steering.methods import MASS_MEAN, ORACLE
from conceptnb.studies import steering_analysis as analysis
from conceptnb.studies.steering_analysis import Interval, Row

#: The techniques of the paper's Table 6, in its order.
PAPER_ORDER = (
    "baseline",
    "random direction",
    "CCS direction",
    "ITI: probe weight direction",
    MASS_MEAN,
    "steering matrix",
)


_COLUMNS = {
    "mc1": "MC1",
    "mc2": "MC2",
    "ce": "CE",
    "kl": "KL",
    "kl_asked": "KL of a question's edit",
}


def summary(worlds: Mapping[str, Sequence[Row]]) -> list[dict[str, object]]:
    """Rows of our Table 6 for all worlds, as ``conceptnb.results.store`` keeps them.

    Mean and standard deviation over runs (a trained model and a split) as pairs.
    """
    return [
        {"world": world, "technique": entry["technique"]}
        | {"α": round(entry["alpha"], 2), "K": round(entry["heads"], 1)}
        | {title: [round(x, 4) for x in entry[key]] for key, title in _COLUMNS.items()}
        for world, rows in worlds.items()
        for entry in analysis.table(rows)
    ]


def table6(rows: Sequence[Row]) -> pd.DataFrame:
    """Our counterpart of Table 6 for one world or model, mean ± std over runs."""
    shown = []
    for entry in analysis.table(rows):
        pairs = {title: entry[key] for key, title in _COLUMNS.items()}
        shown.append(
            {"technique": entry["technique"], "α": round(entry["alpha"], 1), "K": entry["heads"]}
            | {key: f"{mean:.3f} ± {std:.3f}" for key, (mean, std) in pairs.items()}
        )
    return pd.DataFrame(shown).set_index("technique")


def at_equal_kl(
    worlds: Mapping[str, Sequence[Row]], method: str, against: str, budget: float
) -> pd.DataFrame:
    """MC1 of two methods at equal KL in every world, and their paired difference.

    The interval is over questions, each averaged over models and splits first; the
    last column has the difference for each trained model alone.
    """
    shown = []
    for world, rows in worlds.items():
        one, other = (analysis.accuracy_at_kl(rows, name, budget) for name in (method, against))
        difference = analysis.paired_difference(one, other, np.random.default_rng(0))
        shown.append(
            {"world": world, method: round(one.mean(), 3), against: round(other.mean(), 3)}
            | _columns(difference)
            | {"each model": _each_model(rows, method, against, budget)}
        )
    return pd.DataFrame(shown).set_index("world")


def _each_model(rows: Sequence[Row], method: str, against: str, budget: float) -> str:
    """Differences of the trained models, one after the other."""
    found = []
    for seed in sorted({row["model_seed"] for row in rows}):
        mine = analysis.select(rows, model_seed=seed)
        one, other = (
            analysis.accuracy_at_kl(mine, name, budget).mean() for name in (method, against)
        )
        found.append(f"{one - other:+.3f}")
    return ", ".join(found)


def order_tested(rows: Sequence[Row]) -> pd.DataFrame:
    """Each technique of Table 6 against the one above it, at the α that each has chosen."""
    shown = []
    for lower, upper in pairwise(PAPER_ORDER):
        one, other = (analysis.accuracy_at_choice(rows, name) for name in (upper, lower))
        difference = analysis.paired_difference(one, other, np.random.default_rng(0))
        shown.append({"technique": upper, "against": lower} | _columns(difference))
    return pd.DataFrame(shown).set_index("technique")


def gaps_closed(rows: Sequence[Row], budget: float) -> pd.DataFrame:
    """How far each matrix goes from mass mean to the category oracle, in MC1 at equal KL."""
    names = [n for n in analysis.methods(rows) if "matrix" in n]
    shown = [
        {
            "technique": name,
            "MC1": round(analysis.accuracy_at_kl(rows, name, budget).mean(), 3),
            "of the gap": f"{analysis.gap_closed(rows, name, MASS_MEAN, ORACLE, budget):.0%}",
        }
        for name in names
    ]
    return pd.DataFrame(shown).set_index("technique")


def _columns(difference: Interval) -> dict[str, object]:
    return {
        "difference": round(difference.mean, 3),
        "95 % interval": f"[{difference.low:.3f}, {difference.high:.3f}]",
        "excludes zero": difference.excludes_zero,
    }
