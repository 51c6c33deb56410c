"""Exercises of chapter 2: conditioning on a concept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad

from conceptnb.exercises.exercise import value


@value(
    entries="first the mean, then the variance",
    right="The mean lies between what there is and what was asked for, and the variance is smaller "
    "than either.",
    mistakes={
        "That is what was asked for. The base has a say too: its mass is around 0.": [3.0, 1.0],
        "You exchanged s² and σ²: the noisier the look, the more the base counts.": [1.0, 2 / 3],
        "The second entry is a standard deviation; the variance is asked for.": lambda right: (
            np.array([right[0], right[1] ** 0.5])
        ),
        "Variances add for sums. Here two densities are multiplied, so precisions add.": [2.0, 3.0],
    },
)
def ex_peak() -> NDArray[np.float64]:
    """Return mean and variance of Definition 3 in one dimension, by numerical integration."""

    def density(z: float) -> float:
        return np.exp(-(z**2) / (2 * 2.0) - (3.0 - z) ** 2 / (2 * 1.0))

    mass, first, second = (quad(lambda z, k=k: z**k * density(z), -20, 20)[0] for k in range(3))
    return np.array([first / mass, second / mass - (first / mass) ** 2])


@value(
    right="Two independent looks halve the variance.",
    mistakes={
        "That is the variance of one look. The second narrows it again: multiply q by q.": 0.1,
        "Variances add for sums of errors. Here densities are multiplied: their precisions 1/σ² "
        "add.": 0.2,
        "The variances are not multiplied: q(t)² is proportional to exp(-t²/σ²).": 0.01,
        "That is for standard deviations: the variance is divided by 2, not by its root.": (
            0.1 / 2**0.5
        ),
    },
)
def ex_twice() -> float:
    """Return the variance of one look that equals two looks of variance 0.1 (Definition 3)."""
    precision = 1 / 0.1 + 1 / 0.1
    return 1 / precision


@value(
    rtol=0.02,
    right="Ten dimensions at a tenth of the base's width: ten thousand million draws for one.",
    mistakes={
        "Each dimension contributes a square root: the exponent is d/2, not d.": 101.0**10,
        "That is the share that is kept. The number of draws is one over it.": 101.0**-5,
        "The formula has σ² = 0.01, and you used σ = 0.1.": 11.0**5,
        "You left out the 1 in 1 + s²/σ².": 100.0**5,
    },
)
def ex_price() -> float:
    """Return the draws for one sample of ten dimensions: Lemma 4 and Corollary 1."""
    rate = quad(lambda v: np.exp(-(v**2) / 0.02 - v**2 / 2) / np.sqrt(2 * np.pi), -3, 3)[0]
    return rate**-10.0


@value(
    entries="Definition 3, Algorithm 1, Theorem 3, Lemma 4, the exact sampler",
    right="Nothing up to Lemma 4 uses Gaussian noise. The closed form does, and so will the proofs "
    "of Theorems 1 and 2, through the quadratic.",
    mistakes={
        "The exact sampler multiplies Gaussians by q. With another q the product is no Gaussian "
        "mixture any more.": [True] * 5,
        "Look again at what the proofs of Theorem 3 and Lemma 4 use of q: that it is a density "
        "below L, and no more.": [True, True, False, False, False],
        "The definition is stated for a general q; Assumption 3 comes after it.": [False] * 5,
    },
)
def ex_laplace() -> NDArray[np.bool_]:
    """Say what of Appendix H holds for q(t) proportional to exp(-|t|/s)."""
    needs_gaussian_noise = np.array([False, False, False, False, True])
    return ~needs_gaussian_noise
