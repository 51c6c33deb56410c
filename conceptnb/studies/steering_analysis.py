"""From rows of a study to Table 6, paired tests and the accuracy-KL frontier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of zero."""
        return self.low > 0 or self.high < 0


def select(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """Rows in which every named field has the given value, in their order."""
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def methods(rows: Iterable[Row]) -> list[str]:
    """Names of the methods, in their order."""
    return list(dict.fromkeys(row["method"] for row in rows))


def table(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Table 6: one row a method, mean and standard deviation over runs.

    Parameters
    ----------
    rows
        Rows of one world or model. A run is one model seed and split seed.

    Returns
    -------
    list of dict
        ``technique``; ``alpha`` and ``heads``, means of the chosen ones; and
        ``mc1``, ``mc2``, ``mc3``, ``ce``, ``kl``, ``kl_asked`` as (mean, std),
        log-quantities in nats a token.
    """
    out = []
    for name in methods(rows):
        mine = select(rows, method=name)
        entry: dict[str, Any] = {
            "technique": name,
            "alpha": float(np.mean([row["alpha"] for row in mine])),
            "heads": float(np.mean([row["heads"] for row in mine])),
        }
        for key in ("mc1", "mc2", "mc3", "ce", "kl", "kl_asked"):
            values = np.array([row[key] for row in mine])
            entry[key] = float(values.mean()), float(values.std())
        out.append(entry)
    return out


def right_at_choice(row: Row) -> np.ndarray:
    """Whether each question was answered right at the α chosen for its fold, shape (questions,)."""
    bits = {point["alpha"]: _bits(point["right"]) for point in row["curve"]}
    table_ = np.stack([bits[alpha] for alpha in row["alpha"]])
    return table_[_bits(row["fold"]), np.arange(table_.shape[1])]


def right_at_kl(row: Row, baseline: Row, budget: float) -> np.ndarray:
    """Whether each question is answered right when the method may spend ``budget`` of KL.

    Linear interpolation between neighbouring α by their KL, within each fold,
    from the unsteered model (KL = 0) on. A method whose strongest α stays
    below the budget is taken at that α; of two α with the same KL the stronger counts.
    KL is that of the edits which answer the tested questions (``kl_asked``): the
    other one is zero for a matrix whose embedding knows no word of the neutral texts.

    Parameters
    ----------
    row, baseline
        Rows of one run: the method's and the unsteered model's.
    budget
        KL(original ‖ steered) in nats a token.

    Returns
    -------
    ndarray
        Values in [0, 1], shape (questions,).
    """
    if not budget > 0:
        raise ValueError(f"budget is {budget}; give a positive KL in nats a token")
    start = _bits(baseline["curve"][0]["right"])
    right = np.stack([start, *(_bits(point["right"]) for point in row["curve"])]).astype(float)
    fold = _bits(row["fold"])
    out = np.empty(len(start))
    for index in np.unique(fold):
        kl = np.array([0.0, *(point["kl_asked"][index] for point in row["curve"])])
        here = fold == index
        # KL grows with α; where it does not, the frontier is what less KL has already reached.
        path = np.maximum.accumulate(kl)
        out[here] = [np.interp(budget, path, right[:, q]) for q in np.flatnonzero(here)]
    return out


def accuracy_at_kl(rows: Sequence[Row], method: str, budget: float) -> np.ndarray:
    """MC1 of each question at equal KL, mean over runs; shape (questions,)."""
    return np.mean(
        [right_at_kl(row, _baseline_of(rows, row), budget) for row in select(rows, method=method)],
        axis=0,
    )


def accuracy_at_choice(rows: Sequence[Row], method: str) -> np.ndarray:
    """MC1 of each question at the chosen α, mean over runs; shape (questions,)."""
    return np.mean([right_at_choice(row) for row in select(rows, method=method)], axis=0)


def paired_difference(
    one: np.ndarray, other: np.ndarray, rng: np.random.Generator, draws: int = 4000
) -> Interval:
    """Mean of ``one - other`` over questions, and its bootstrap interval.

    Parameters
    ----------
    one, other
        Scores of the same questions in the same order, shape (questions,).
    rng
        Draws the resamples of questions.
    draws
        Resamples.
    """
    if one.shape != other.shape or one.ndim != 1:
        raise ValueError(
            f"one and other have shapes {one.shape} and {other.shape}; "
            "give the scores of the same questions"
        )
    difference = one - other
    picks = rng.integers(len(difference), size=(draws, len(difference)))
    low, high = np.quantile(difference[picks].mean(1), [0.025, 0.975])
    return Interval(float(difference.mean()), float(low), float(high))


def gap_closed(
    rows: Sequence[Row], method: str, floor: str, reference: str, budget: float
) -> float:
    """Part of the way from ``floor`` to ``reference`` that ``method`` goes, in MC1 at equal KL."""
    here, low, high = (
        accuracy_at_kl(rows, name, budget).mean() for name in (method, floor, reference)
    )
    return float((here - low) / (high - low))


def frontier(rows: Sequence[Row], method: str) -> tuple[np.ndarray, np.ndarray]:
    """KL (``kl_asked``) and MC1 of each run along the grid of α, from the unsteered model on.

    Returns
    -------
    kl, mc1
        Both of shape (runs, strengths + 1).
    """
    kl, mc1 = [], []
    for row in select(rows, method=method):
        start = _baseline_of(rows, row)["curve"][0]
        points = [start, *row["curve"]]
        kl.append([np.mean(point["kl_asked"]) for point in points])
        mc1.append([_bits(point["right"]).mean() for point in points])
    return np.array(kl), np.array(mc1)


def _baseline_of(rows: Sequence[Row], row: Row) -> Row:
    """Return the unsteered model's row of the same run."""
    run = {key: row[key] for key in ("world", "model_seed", "split_seed") if key in row}
    return select(rows, method="baseline", **run)[0]


def _bits(digits: str) -> np.ndarray:
    return np.array([int(digit) for digit in digits])


def along_alpha(rows: Sequence[Row], method: str) -> dict[str, list[float]]:
    """MC1, KL and cross-entropy along the grid of α, means over runs; α = 0 is the model itself."""
    start = [row["curve"][0] for row in select(rows, method="baseline")]
    runs = [row["curve"] for row in select(rows, method=method)]
    steps = [start, *zip(*runs, strict=True)]
    return {
        "alpha": [float(points[0]["alpha"]) for points in steps],
        "mc1": [float(np.mean([_bits(p["right"]).mean() for p in points])) for points in steps],
        "kl": [float(np.mean([p["kl"] for p in points])) for points in steps],
        "ce": [float(np.mean([p["ce"] for p in points])) for points in steps],
    }
