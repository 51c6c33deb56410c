"""Exercises of chapter 21: Tables 1 and 7."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conceptnb import results
from conceptnb.core.mixing import MLPMixing
from conceptnb.core.problems import PAPER_SEEDS, TABLE_1, TABLE_7, draw_problem
from conceptnb.exercises.exercise import value

STUCK = 0.005
"""Nats above the oracle's held-out loss from which on a run counts as stuck."""


@value(
    rtol=0,
    atol=0.1,
    right="Its second valuation hardly varies in units of σ, so its environments hardly differ "
    "from the base.",
    mistakes={
        "Shorter atoms than the others', but both valuations vary by more than σ. Look at the "
        "deviations of the valuations beside σ.": 5,
        "Those are seeds, not places in the list: seeds are 3 to 7.": 1,
    },
)
def ex_hard_seed() -> int:
    """Return the seed whose weakest valuation varies least, from the base's covariance."""

    def weakest(seed: int) -> float:
        problem = draw_problem(TABLE_1[0], seed, samples=2)
        base = problem.base
        centred = base.means - base.weights @ base.means
        covariance = np.tensordot(base.weights, base.covariances, 1)
        covariance = covariance + (base.weights * centred.T) @ centred
        return float(np.diag(problem.atoms @ covariance @ problem.atoms.T).min())

    return min(PAPER_SEEDS, key=weakest)


@value(
    rtol=0.03,
    entries="standard error of the mean, surprising difference",
    right="The paper's 0.86 and a mean of 0.95 are no contradiction.",
    mistakes={
        "0.08 is the deviation of a single problem; a mean of five varies less.": [
            0.08,
            2 * np.sqrt(2) * 0.08,
        ],
        "Both means of a difference vary: their variances add.": lambda right: [
            right[0],
            2 * right[0],
        ],
        "One standard error is nothing surprising; two are.": lambda right: [
            right[0],
            np.sqrt(2) * right[0],
        ],
        "Deviations go with the root of the number of problems.": [0.016, 2 * np.sqrt(2) * 0.016],
    },
)
def ex_five_seeds() -> list[float]:
    """Return the error of a mean of five, and twice that of a difference of two such means."""
    error = float(np.sqrt(0.08**2 / 5))
    return [error, 2 * float(np.hypot(error, error))]


@value(
    rtol=0,
    atol=0.1,
    entries="authors' protocol, best estimator",
    right="The loss knows which runs are stuck, and a search by atoms leaves none.",
    mistakes={
        "First the authors' protocol, then the best estimator.": lambda right: right[::-1],
        "Count runs, not rows: every row has five.": lambda right: np.ceil(right / 5),
        "There are thirty linear runs of each: count those above, not those below.": lambda right: (
            30 - right
        ),
    },
)
def ex_stuck_runs() -> list[int]:
    """Count the linear runs that ended well above the oracle: the stored losses of Tables 1, 7."""
    counts = []
    for name in ("synthetic_faithful", "synthetic_best"):
        stored = results.load(name)
        counts.append(
            sum(
                loss > oracle + STUCK
                for row, seeds in zip(stored.rows, stored.notes["by_seed"], strict=True)
                if row["mixing"] == "linear"
                for loss, oracle in zip(seeds["held_out_loss"], seeds["oracle_loss"], strict=True)
            )
        )
    return counts


@value(
    entries="d_z of 3, 4, 8, 15, 20, 25",
    right="The hidden layer is the bottleneck, whatever d_x is.",
    mistakes={
        "d_x is larger than d_z in every row, but x is computed from a layer of 16.": [True] * 6,
        "15 dimensions do pass through a layer of 16.": [True, True, True, False, False, False],
        "Asked is where the mixing CAN be injective.": lambda right: ~right,
    },
)
def ex_which_rows() -> NDArray[np.bool_]:
    """Say which rows' random networks have a Jacobian of full rank: Assumption 1."""
    sizes = [(s.d_z, s.d_x) for s in TABLE_1 + TABLE_7 if s.mixing == "nonlinear"]
    rng = np.random.default_rng(0)

    def rank(d_z: int, d_x: int) -> int:
        mixing, point = MLPMixing.random(d_z, d_x, rng), rng.normal(size=d_z)
        steps = np.concatenate([point + 1e-6 * np.eye(d_z), point[None]])
        images = mixing(steps)
        return int(np.linalg.matrix_rank((images[:-1] - images[-1]) / 1e-6, tol=1e-5))

    return np.array([rank(*size) == size[0] for size in sizes])
