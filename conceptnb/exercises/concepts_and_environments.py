"""Exercises on concepts, conditioning and a first run of the learner."""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad

from conceptnb.core.validation import Array
from conceptnb.exercises.engine import Value

# Concepts are affine subspaces

ex_distance = Value(  # the distance of the level sets 0 and 10 of the atom (3, 4) (Definition 1)
    10 / np.hypot(3, 4),
    right="The distance is |b| / |a|: ten units of valuation, at five units per step.",
    mistakes={
        "That is how far the valuations are apart. How far must z go to change its valuation by "
        "10, if one step along a / |a| changes it by |a|?": 10.0,
        "You divided by |a|², not by |a|: a b / |a|² is the point; its length is asked for.": 0.4,
        "You multiplied by |a|: the longer the atom, the closer the level sets.": 50.0,
    },
)

ex_oblique = Value(  # the nearest points with first valuation 0, and with the second one 5 as well
    [[0.0, 3.0], np.linalg.solve([[1.0, 0.0], [1.0, 1.0]], [0.0, 5.0])],
    entries="rows are the shortest way and the way that holds the second valuation",
    right="The way that holds the second valuation is longer than the shortest way.",
    mistakes={
        "The rows are in the other order: the shortest way comes first.": lambda x: x[::-1],
        "Both rows are the shortest way. The second has to keep its valuation.": lambda x: x[
            [0, 0]
        ],
        "Your first row moves along the second atom; along the first is shortest.": [
            [0.0, 1.0],
            [0.0, 5.0],
        ],
        "That is the displacement; the point after it was asked for.": lambda x: x - [2, 3],
    },
)

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

ex_definition_4 = Value(  # the valuation in another unit, with another zero: Definition 4, (4)
    -3.0 * (1.5 + np.dot([1.0, 0.6, 1.2], [0.2, -0.5, 1.0])),
    right="A plus sign, as in (34) of the paper's appendix, and unlike its (4) and (33).",
    mistakes={
        "You used the minus sign that the paper prints in (4). Take a point with <a, z> = b and "
        "compute its valuation in their units.": -3.0 * (1.5 - 1.1),
        "The shift belongs inside the bracket: it is in our units, before the factor.": -3.0 * 1.5
        + 1.1,
        "You left out the factor: their unit is different.": 1.5 + 1.1,
        "You left out the shift: their zero is different.": -3.0 * 1.5,
    },
)

ex_circle = {  # whether circles about the origin are level sets of a concept (Definition 1)
    "linear": "An atom's level sets are parallel lines. Circles of different radius are not.",
    "after lifting": "Right. A circle is a level set of |z|², which is not linear, but the "
    "coordinate (|z|², z) makes it so: what is a concept depends on the latent space.",
    "never": "Not in these coordinates, but others are possible. Which function is constant on "
    "each circle? Take its values as a new coordinate.",
}


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

ex_twice = Value(  # the variance of one look that equals two looks of variance 0.1 (Definition 3)
    1 / (1 / 0.1 + 1 / 0.1),
    right="Two independent looks halve the variance.",
    mistakes={
        "That is the variance of one look. The second narrows it again: multiply q by q.": 0.1,
        "Variances add for sums of errors. Of multiplied densities the precisions 1/σ² add.": 0.2,
        "The variances are not multiplied: q(t)² is proportional to exp(-t²/σ²).": 0.01,
        "That is for standard deviations: a variance is divided by 2, not √2.": 0.1 / 2**0.5,
    },
)

ex_price = Value(  # the draws for one sample of ten dimensions: Lemma 4 and Corollary 1
    (1 + 1 / 0.01) ** (10 / 2),
    rtol=0.02,
    right="Ten dimensions at a tenth of the base's width: about ten billion draws per sample.",
    mistakes={
        "Each dimension contributes a square root: the exponent is d/2, not d.": 101.0**10,
        "That is the share that is kept. The number of draws is one over it.": 101.0**-5,
        "The formula has σ² = 0.01, and you used σ = 0.1.": 11.0**5,
        "You left out the 1 in 1 + s²/σ².": 100.0**5,
    },
)

ex_laplace = Value(  # what of Appendix H holds for q(t) proportional to exp(-|t|/s)
    [True, True, True, True, False],
    entries="Definition 3, Algorithm 1, Theorem 3, Lemma 4, the exact sampler",
    right="Nothing up to Lemma 4 uses Gaussian noise. The closed form does, and so will the "
    "proofs of Theorems 1 and 2, through the quadratic.",
    mistakes={
        "The exact sampler multiplies Gaussians by q. Is the product still Gaussian?": [1] * 5,
        "Look again at what the proofs of Theorem 3 and Lemma 4 use of q: only that it is a "
        "density bounded by L.": [1, 1, 0, 0, 0],
        "The definition is stated for a general q; Assumption 3 comes after it.": [0] * 5,
    },
)

# Learning concepts from environments, a first run

ex_blind = Value(  # the loss (88) of the log-odds 0, for one environment
    np.log(2),
    right="A model with a loss just below 0.69 has learned little, whatever its curve looks like.",
    mistakes={
        "That is the probability of the right class. The loss is minus its logarithm.": 0.5,
        "That is in bits. The loss uses the natural logarithm.": 1.0,
        "That is the sum over three environments; their average is asked for.": 3 * np.log(2),
        "A loss is minus the logarithm of a probability, which is positive.": -np.log(2),
    },
)

ex_oracle = {  # why the oracle's loss differs between two mixings of one seed: Lemma 3
    "mixing": "The log-odds are a function of the latent point, and f is not in it. What else is "
    "drawn anew when the problem is drawn with another mixing?",
    "atoms": "Atoms and environments are drawn before the mixing, from the same seed.",
    "training": "Nothing is trained: the true log-odds are put into the loss.",
    "samples": "Right. The oracle's loss depends on latent points alone: f cancels in log-odds.",
}

ex_one_environment = {  # what one environment leaves open with linear mixing: Lemma 3
    "direction": "Look at your correlations: they are high with a single environment too.",
    "side": "That is what a general f loses: it is seen only through (<a, z> - b)². But your "
    "encoder is linear, and no linear map reflects one side of the plane and keeps the other.",
    "nothing": "Right. A linear encoder cannot fold: one parabola gives the direction. A nonlinear "
    "encoder needs more.",
}

ex_too_simple = Value(  # the seed whose loss barely tells a linear encoder from a network
    4,
    right="Its environments are least informative: a wrong encoder costs little loss there.",
    mistakes={
        "That is the place in the list, counted from 0. The seed is asked for.": 1,
        "That is the place in the list, counted from 1. The seed is asked for.": 2,
        "The gap is largest there; where is it smallest?": 5,
    },
)
