"""Exercises of chapter 22: what limits identifiability."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conceptnb.core.design import paper_design
from conceptnb.exercises.exercise import choice, value
from conceptnb.studies.limits_report import study_rows


@value(
    entries="atoms 1 to 4",
    right="Only the atom that occurs in two environments, at two valuations.",
    mistakes={
        "Each atom has an environment, that is Assumption 2. Assumption 4 asks for a v with "
        "vᵀM = 0.": [True] * 4,
        "Asked is which are covered, not which fold.": lambda right: ~right,
        "Count again: which of the five environments share an atom?": [False] * 4,
    },
)
def ex_which_atom_folds() -> NDArray[np.bool_]:
    """Say which atoms Assumption 4 covers: those that the null space of M reaches through B."""
    design = paper_design(4)
    _, values, right = np.linalg.svd(design.M.T)
    null = right[(values > 1e-9 * values[0]).sum() :]
    return np.asarray((np.abs(null @ design.B) > 1e-9).any(axis=0))


@choice(
    right="A matrix of rank one has one eigenvector, known up to its sign, and Definition 4 leaves "
    "signs free.",
    options={
        "sign": "",
        "direction": "The Hessian of g_e in x has rank one: what is its eigenvector?",
        "side": "A fold takes an encoder that bends. Can a linear one fold?",
        "nothing": "-h and h have the same square. Which of them is learned?",
    },
)
def ex_fewer_than_n() -> str:
    """Say what squares (v - b)² leave open for a linear encoder: Definition 4."""
    return "sign"


@choice(
    right="It averages over what else varies, so its log-odds are no function of the valuation.",
    options={
        "gaussian": "Its log-odds are a parabola to rounding: that is (86).",
        "student": "Its tails are wrong, but it is a function of the valuation alone.",
        "window": "Constant where samples can be, so nothing is left over; what is missing is the "
        "edge.",
        "enforced": "It divides by the base's density of the valuation, which is a function of "
        "the valuation.",
        "averaged": "",
    },
)
def ex_wrong_parabola() -> str:
    """Name the conditioning whose log-odds a parabola in the valuation fits worst: Appendix C."""
    return "averaged"


@value(
    rtol=0.02,
    right="Most of what R² lost was lost in the noise, before anybody learned anything.",
    mistakes={
        "That is the ratio of the two R², not of their distances from one.": lambda _: (
            _noisiest()["r2_mean"] / _noisiest()["supervised_r2_mean"]
        ),
        "The other way round: the ceiling's distance over the learner's.": lambda right: 1 / right,
        "That is the ceiling's distance alone: divide it by the learner's.": lambda _: (
            1 - _noisiest()["supervised_r2_mean"]
        ),
    },
)
def ex_noise_ceiling() -> float:
    """Return which share of the loss in R² the noise explains, from the stored study."""
    row = _noisiest()
    return (1 - row["supervised_r2_mean"]) / (1 - row["r2_mean"])


def _noisiest() -> dict[str, float]:
    rows = [row for row in study_rows("noise") if row["mixing"] == "linear"]
    return max(rows, key=lambda row: row["level"])
