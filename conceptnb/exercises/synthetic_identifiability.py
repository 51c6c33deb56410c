"""Exercises on the contrastive learner: algorithm, tables, limits, metrics, baselines."""

from operator import truediv
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kurtosis, skew

from conceptnb import results
from conceptnb.common.validation import Array
from conceptnb.core.scores import mcc
from conceptnb.exercises.engine import Construction, Value
from conceptnb.tables.limits_report import study_rows


# The contrastive algorithm
@Construction.declare(shape=(5,))
def _ex_fewer_starts(gaps: Array) -> str | None:
    if gaps.min() < -1e-3:
        return "Ten starts cannot end above one: subtract the other way round."
    if gaps.min() > 0.5:
        return "Those look like the losses themselves; subtract the loss of ten starts."
    return None


# Tables 1 and 7

_STUCK = 0.005  # nats above the oracle's held-out loss


@Value.declare(
    mistakes={
        "Count runs, not rows: every row has five.": lambda x: np.ceil(x / 5),
        "There are thirty linear runs of each: count those above, not below.": lambda x: 30 - x,
    }
)
def _ex_stuck_runs() -> list[int]:
    """Count linear runs well above the oracle, by the stored losses of Tables 1 and 7."""

    def count(stored: results.Result) -> int:
        linear = [run for run in stored.runs if run["mixing"] == "linear"]
        return sum(run["excess_loss"] > _STUCK for run in linear)

    return [count(results.load(name)) for name in ("synthetic_faithful", "synthetic_best")]


# What limits identifiability
@Value.declare(
    mistakes={
        "That is the ratio of R², not of distances from one.": lambda _: truediv(*_noisiest()),
        "The other way round: the ceiling's distance over the learner's.": lambda x: 1 / x,
        "That is the ceiling's distance: divide it by the learner's.": lambda _: 1 - _noisiest()[1],
    }
)
def _ex_noise_ceiling() -> float:
    learner, ceiling = _noisiest()
    return (1 - ceiling) / (1 - learner)


def _noisiest() -> tuple[float, float]:
    """Return R² of the learner and of its ceiling at the highest level of noise."""
    rows = [row for row in study_rows("noise") if row["mixing"] == "linear"]
    noisiest = max(rows, key=lambda row: row["level"])
    return noisiest["r2_mean"], noisiest["supervised_r2_mean"]


# What the metrics mean
@Construction.declare(shape=lambda folded, true: true.shape)
def _ex_folded(target: Array, folded: Array, true: Array) -> str | None:
    found = mcc(target, folded)
    if found < 0.999:
        return f"Folded and target have an MCC of {found:.2f}. What does a fold keep?"
    if not np.allclose(target, np.abs(true)):
        return "That is close to the folded one itself. Compute it from the true valuations."
    return None


# Against baselines
@Construction.declare(shape=(3, 3))
def _ex_pca_r2(Q: Array) -> str | None:
    if np.linalg.cond(Q) > 1e6:
        return "The matrix is not invertible, so it loses a part of the latents, and R² falls."
    if ((np.abs(Q) > 1e-9 * np.abs(Q).max()).sum(axis=0) == 1).all():
        return "A permutation with scaling: this leaves MCC unchanged, too. Mix the columns."
    return None


@Construction.declare()
def _ex_ica_works(answer: Any) -> str | None:
    Z = np.asarray(answer)
    if Z.dtype.kind not in "iuf" or Z.ndim != 2 or Z.shape[1] != 3:
        return f"The answer is an array of numbers with three columns; got {Z.dtype} {Z.shape}."
    if len(Z) < 1000 or not np.isfinite(Z).all():
        return f"Give at least 1000 finite samples, or nothing can be estimated; got {len(Z)}."
    if (np.ptp(Z, axis=0) == 0).any():
        return "A constant column is no latent."
    others = ~np.eye(3, dtype=bool)
    if np.abs(np.corrcoef(Z.T)[others]).max() > 0.1:
        return "Columns are correlated, so they are not independent."
    if np.abs(np.corrcoef(((Z - Z.mean(axis=0)) ** 2).T)[others]).max() > 0.1:
        return "Columns are uncorrelated, but their squares are not, so they are not independent."
    gaussian = (np.abs(kurtosis(Z)) < 0.2) & (np.abs(skew(Z)) < 0.2)
    seen = "More than one column looks Gaussian, and a rotation of Gaussians changes nothing."
    return seen if gaussian.sum() > 1 else None


@Construction.declare(shape=(3,))
def _ex_ceiling(scores: Array) -> str | None:
    if scores.max() > 1:
        return "R² cannot exceed one."
    falls = not scores[0] < scores[2] + 0.005
    return "R² falls with more samples: is it taken on the same fresh points Z?" if falls else None


# Problems that others posed


@Value.declare()
def _ex_models_or_starts(runs: Any) -> float:
    """Return the share of the variance over runs that lies between models."""
    scores = pd.DataFrame(runs).pivot(index="seed", columns="start", values="mcc").to_numpy()
    return float(scores.mean(axis=1).var() / scores.var())
