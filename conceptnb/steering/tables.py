"""Data frames for display: Table 6, paired differences, gaps to the ceiling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from conceptnb.steering import analysis
from conceptnb.steering.analysis import Interval, Row
from conceptnb.steering.methods import MASS_MEAN, ORACLE

#: The techniques of the paper's Table 6, in its order.
PAPER_ORDER = (
    "baseline",
    "random direction",
    "CCS direction",
    "ITI: probe weight direction",
    MASS_MEAN,
    "steering matrix",
)


def table6(rows: Sequence[Row]) -> pd.DataFrame:
    """Our counterpart of Table 6 for one world or model, mean ± std over runs."""
    shown = []
    for entry in analysis.table(rows):
        pairs = {key: entry[key] for key in ("mc1", "mc2", "ce", "kl")}
        shown.append(
            {"technique": entry["technique"], "α": round(entry["alpha"], 1), "K": entry["heads"]}
            | {key: f"{mean:.3f} ± {std:.3f}" for key, (mean, std) in pairs.items()}
        )
    return pd.DataFrame(shown).set_index("technique")


def at_equal_kl(
    worlds: Mapping[str, Sequence[Row]], method: str, against: str, budget: float
) -> pd.DataFrame:
    """MC1 of two methods at equal KL in every world, and their paired difference."""
    shown = []
    for world, rows in worlds.items():
        one, other = (analysis.accuracy_at_kl(rows, name, budget) for name in (method, against))
        difference = analysis.paired_difference(one, other, np.random.default_rng(0))
        shown.append(
            {"world": world, method: round(one.mean(), 3), against: round(other.mean(), 3)}
            | _columns(difference)
        )
    return pd.DataFrame(shown).set_index("world")


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
