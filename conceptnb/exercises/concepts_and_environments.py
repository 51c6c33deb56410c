"""Exercises on concepts, conditioning and a first run of the learner."""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad

from conceptnb.core.validation import Array
from conceptnb.exercises.engine import Value

# Concepts are affine subspaces


ex_how_many = Value(  # smallest over largest singular value of n atoms in R^6, as in Appendix G
    lambda: _smallest_singular_values(relative=True),
    rtol=0.15,
    entries="for n = 1, 2, 4, 5, 6",
    right="Independent up to n = d_z with probability one, but closer to dependent as n grows: "
    "some combination of atoms varies little over the data, and noise can hide it.",
    mistakes={
        "These are the smallest singular values themselves. Divide each by the largest of the "
        "same matrix.": lambda _: _smallest_singular_values(relative=False),
        "You divided the largest by the smallest: the ratio is at most 1.": lambda x: 1 / x,
    },
)


def _smallest_singular_values(relative: bool) -> Array:
    rng = np.random.default_rng(11)
    draws = (rng.uniform(-0.3, 0.3, size=(1000, n, 6)) for n in (1, 2, 4, 5, 6))
    values = [np.linalg.svd(atoms, compute_uv=False) for atoms in draws]
    return np.array([np.mean(s[:, -1] / (s[:, 0] if relative else 1.0)) for s in values])


# Conditioning on a concept


def _peak() -> Array:
    def moment(k: int) -> float:
        return quad(lambda z: z**k * np.exp(-(z**2) / 4 - (3 - z) ** 2 / 2), -20, 20)[0]

    mean = moment(1) / moment(0)
    return np.array([mean, moment(2) / moment(0) - mean**2])


ex_peak = Value(  # mean and variance of Definition 3 in one dimension, by numerical integration
    _peak,
    entries="first the mean, then the variance",
    right="The mean lies between the base's and what was asked for; the variance is below both.",
    mistakes={
        "That is what was asked for. The base counts, too: its mass is around 0.": [3.0, 1.0],
        "You exchanged s² and σ²: the noisier the look, the more the base counts.": [1.0, 2 / 3],
        "The second entry is a standard deviation; the variance is asked for.": lambda x: np.array(
            [x[0], x[1] ** 0.5]
        ),
        "Variances add for sums. Here two densities are multiplied, so precisions add.": [2.0, 3.0],
    },
)
