"""From runs of the steering study to Table 6, paired tests and the accuracy-KL frontier.

A run is one technique on one fold (``fold``) of a split (``seed``) of a model's questions.
``tested`` has one character per question, 1 where it is in that fold. ``curve`` has one entry per
α; ``right`` there has one character per tested question, 1 where it was answered truly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from conceptnb.results.runner import Row
from conceptnb.results.summarise import grouped
from conceptnb.studies.steering_rows import BASELINE, COLUMNS, table6_rows
from conceptnb.studies.steering_rows import by_corpus as by_corpus  # noqa: PLC0414 - for pages

_MASS_MEAN, _ORACLE = "ITI: mass mean shift", "category oracle"
PAPER_ORDER = (
    BASELINE,
    "random direction",
    "CCS direction",
    "ITI: probe weight direction",
    _MASS_MEAN,
    "steering matrix",
)
"""The techniques of the paper's Table 6, in its order."""


class _Interval(NamedTuple):
    """A mean with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


def _select(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def table6(rows: Sequence[Row]) -> pd.DataFrame:
    """Return our counterpart of Table 6 for one corpus or model, mean ± std over runs."""
    shown = []
    for entry in table6_rows(rows):
        pairs = {title: "{:.3f} ± {:.3f}".format(*entry[title]) for title in COLUMNS.values()}
        shown.append(
            {"technique": entry["technique"], "α": round(entry["α"], 1), "K": entry["K"]} | pairs
        )
    return pd.DataFrame(shown).set_index("technique")


def accuracy_at_choice(rows: Sequence[Row], method: str) -> np.ndarray:
    """Return MC1 of each question at the α chosen in its fold, mean over splits and models."""

    def right(row: Row) -> np.ndarray:
        return _bits(next(p["right"] for p in row["curve"] if p["alpha"] == row["alpha"]))

    return _per_question(_select(rows, method=method), right)


def accuracy_at_kl(
    rows: Sequence[Row], method: str, budget: float, measured: str = "kl_asked"
) -> np.ndarray:
    """Return MC1 of each question, (questions,), when the method may spend `budget` of KL.

    KL(original ‖ steered), in nats per token, is ``kl_asked`` if nothing else is `measured`: the
    other one, ``kl``, is zero for a matrix whose embedding knows no word of the texts, and the same
    as this for a vector. Linear interpolation between neighbouring α by their
    KL, within each fold, from the unsteered model (KL = 0) on; a method whose strongest α stays
    below the budget is taken at that α. Mean over splits and trained models.

    Raises
    ------
    ValueError
        If `budget` is not positive.
    """
    if not budget > 0:
        raise ValueError(f"budget is {budget}; give a positive KL in nats per token")

    def right(row: Row) -> np.ndarray:
        points = [_start(rows, row), *row["curve"]]
        # KL grows with α; where it does not, the frontier is what less KL has already reached.
        path = np.maximum.accumulate([0.0, *(point[measured] for point in row["curve"])])
        outcomes = np.stack([_bits(point["right"]) for point in points], axis=1)
        return np.array([np.interp(budget, path, question) for question in outcomes])

    return _per_question(_select(rows, method=method), right)


def _per_question(rows: Sequence[Row], right: Callable[[Row], np.ndarray]) -> np.ndarray:
    """Return the mean over runs of each question's outcome, from those of the tested ones."""
    total = np.zeros(len(rows[0]["tested"]))
    runs = np.zeros(len(total))
    for row in rows:
        tested = _bits(row["tested"]) == 1
        total[tested] += right(row)
        runs[tested] += 1
    return np.divide(total, runs, out=np.full(len(total), np.nan), where=runs > 0)


def _start(rows: Sequence[Row], row: Row) -> Row:
    fold = {key: row[key] for key in ("world", "model_seed", "seed", "fold")}
    return _select(rows, method=BASELINE, **fold)[0]["curve"][0]


def _bits(digits: str) -> np.ndarray:
    return np.array([float(digit) for digit in digits])


def paired_difference(
    one: np.ndarray, other: np.ndarray, rng: np.random.Generator, draws: int = 4000
) -> _Interval:
    """Return the mean of ``one - other`` over questions, and its interval from `draws` resamples.

    Raises ValueError if the scores are not of shape (questions,), both.
    """
    if one.shape != other.shape or one.ndim != 1:
        raise ValueError(
            f"one and other have shapes {one.shape} and {other.shape}; "
            "give the scores of the same questions"
        )
    difference = one - other
    picks = rng.integers(len(difference), size=(draws, len(difference)))
    low, high = np.quantile(difference[picks].mean(1), [0.025, 0.975])
    return _Interval(float(difference.mean()), float(low), float(high))


def along_alpha(rows: Sequence[Row], method: str) -> dict[str, np.ndarray]:
    """Return means over runs along ``alpha``, (strengths + 1,), from the unsteered model on."""
    curves = [[_start(rows, row), *row["curve"]] for row in _select(rows, method=method)]
    found = {
        key: np.mean([[point[key] for point in curve] for curve in curves], axis=0)
        for key in ("alpha", "kl", "kl_asked", "ce")
    }
    mc1 = [[_bits(point["right"]).mean() for point in curve] for curve in curves]
    return found | {"mc1": np.mean(mc1, axis=0)}


def at_equal_kl(
    corpora: Mapping[str, Sequence[Row]], method: str, against: str, budget: float
) -> pd.DataFrame:
    """Return MC1 of two methods at equal KL on every corpus, and their paired difference.

    The interval is over questions; the last column has the difference for each model alone.
    """
    shown = []
    for corpus, rows in corpora.items():
        one, other = (accuracy_at_kl(rows, name, budget) for name in (method, against))
        models = grouped(rows, ["model_seed"])
        each = [
            accuracy_at_kl(mine, method, budget).mean()
            - accuracy_at_kl(mine, against, budget).mean()
            for _, mine in sorted(models.items())
        ]
        shown.append(
            {"corpus": corpus, method: round(one.mean(), 3), against: round(other.mean(), 3)}
            | _tested(one, other)
            | {"each model": ", ".join(f"{gain:+.3f}" for gain in each)}
        )
    return pd.DataFrame(shown).set_index("corpus")


def order_tested(rows: Sequence[Row]) -> pd.DataFrame:
    """Return each technique of Table 6 against the one above it, at the α that each has chosen."""
    shown = []
    for lower, upper in pairwise(PAPER_ORDER):
        one, other = (accuracy_at_choice(rows, name) for name in (upper, lower))
        shown.append({"technique": upper, "against": lower} | _tested(one, other))
    return pd.DataFrame(shown).set_index("technique")


def gaps_closed(rows: Sequence[Row], budget: float) -> pd.DataFrame:
    """Return how far each matrix goes from mass mean to the category oracle, in MC1 at equal KL."""
    names = [name for name in dict.fromkeys(row["method"] for row in rows) if "matrix" in name]
    mc1 = {n: accuracy_at_kl(rows, n, budget).mean() for n in (*names, _MASS_MEAN, _ORACLE)}
    gap = mc1[_ORACLE] - mc1[_MASS_MEAN]
    shown = [
        {
            "technique": name,
            "MC1": round(mc1[name], 3),
            "of the gap": f"{(mc1[name] - mc1[_MASS_MEAN]) / gap:.0%}",
        }
        for name in names
    ]
    return pd.DataFrame(shown).set_index("technique")


def _tested(one: np.ndarray, other: np.ndarray) -> dict[str, object]:
    mean, low, high = paired_difference(one, other, np.random.default_rng(0))
    return {
        "difference": round(mean, 3),
        "95 % interval": f"[{low:.3f}, {high:.3f}]",
        "excludes zero": low > 0 or high < 0,
    }
