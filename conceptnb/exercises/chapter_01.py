"""Exercises of chapter 1: concepts are affine subspaces."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises.exercise import choice, value


@value(
    right="The distance is |b| / |a|: ten units of valuation, at five units of valuation a step.",
    mistakes={
        "That is how far the valuations are apart. How far must z go to change its valuation by "
        "10, if one step along a / |a| changes it by |a|?": 10.0,
        "You divided by |a|² and not by |a|: a b / |a|² is the point, and its length is asked "
        "for.": 10 / 25,
        "You multiplied by |a|: the longer the atom, the closer the level sets.": 50.0,
    },
)
def ex_distance() -> float:
    """Return the distance of the level sets 0 and 10 of the atom (3, 4) (Definition 1)."""
    return 10 / np.hypot(3, 4)


@value(
    entries="rows are the shortest way and the way that holds the second valuation",
    right="Changing one concept 'and nothing else' is longer than changing it alone.",
    mistakes={
        "The rows are in the other order: first the shortest way.": lambda right: right[::-1],
        "Both rows are the shortest way. It changes the second valuation from 5 to 3; the second "
        "row has to keep it at 5.": lambda right: right[[0, 0]],
        "Your first row moves along the second atom. The shortest way to a level set of the first "
        "goes along the first.": lambda right: np.array([[0.0, 1.0], right[1]]),
        "That is how far the point moves; where it arrives was asked for.": lambda right: (
            right - [2.0, 3.0]
        ),
    },
)
def ex_oblique() -> NDArray[np.float64]:
    """Return the nearest points with first valuation 0, and with the second one 5 as well."""
    shortest = np.array([0.0, 3.0])  # along a_1 = (1, 0), only the first coordinate moves
    holding = np.linalg.solve([[1.0, 0.0], [1.0, 1.0]], [0.0, 5.0])
    return np.stack([shortest, holding])


@value(
    rtol=0.15,
    entries="for n = 1, 2, 4, 5, 6",
    right="Independent up to n = d_z with probability one, but ever less comfortably so: some "
    "combination of atoms hardly varies over the data, and noise will hide it.",
    mistakes={
        "These are the smallest singular values themselves. Divide each by the largest of the "
        "same matrix.": lambda _: _smallest_singular_values(relative=False),
        "You divided the largest by the smallest: the ratio is at most 1.": lambda right: 1 / right,
    },
)
def ex_how_many() -> NDArray[np.float64]:
    """Return smallest over largest singular value of n atoms in R^6, drawn as in Appendix G."""
    return _smallest_singular_values(relative=True)


@value(
    right="A plus sign, as in (33) and (34) of the paper's appendix, and unlike its (4).",
    mistakes={
        "You used the minus sign that the paper prints in (4). Take a point with <a, z> = b and "
        "compute its valuation for them.": -3.0 * (1.5 - 1.1),
        "The shift belongs inside the bracket: it is measured in our units, and the factor comes "
        "after it.": -3.0 * 1.5 + 1.1,
        "You left out the factor: their unit is another one.": 1.5 + 1.1,
        "You left out the shift: their zero is elsewhere.": -3.0 * 1.5,
    },
)
def ex_definition_4() -> float:
    """Return the valuation of a plane in another unit, with another zero: Definition 4, (4)."""
    a, w = np.array([1.0, 0.6, 1.2]), np.array([0.2, -0.5, 1.0])
    z = 1.5 * a / (a @ a)  # any point on the plane will do
    return float(-3.0 * (a @ z + a @ w))


@choice(
    right="A circle is a level set of |z|², which is not linear, but the coordinate (|z|², z) "
    "makes it so: what is a concept depends on the latent space.",
    options={
        "linear": "An atom's level sets are parallel lines. Circles of different radius are not.",
        "after lifting": "",
        "never": "Not in these coordinates; but Z may be described in others. Which function is "
        "constant on each circle? Take its values as a new coordinate.",
    },
)
def ex_circle() -> str:
    """Say whether circles about the origin are level sets of a concept (Definition 1)."""
    return "after lifting"


def _smallest_singular_values(relative: bool) -> NDArray[np.float64]:
    rng = np.random.default_rng(11)
    values = [
        np.linalg.svd(rng.uniform(-0.3, 0.3, size=(1000, n, 6)), compute_uv=False)
        for n in (1, 2, 4, 5, 6)
    ]
    return np.array([np.mean(s[:, -1] / (s[:, 0] if relative else 1.0)) for s in values])
