"""Exercises of chapter 44: truth is a subspace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises.exercise import choice, value


@choice(
    right="There the probe and the shift are parallel, and nothing of the shift is left.",
    options={
        "whitened": "",
        "original": "There the noise is long in one direction, and the probe avoids it.",
        "rotated": "A rotation turns noise and shift alike: nothing changes.",
    },
)
def ex_whiten() -> str:
    """Return in which coordinates a single direction leaves no second probe (E.2, item 2)."""
    return "whitened"


@value(
    entries="first and second coordinate",
    right="Removing what a probe reads does not remove the concept.",
    mistakes={
        "That is zero only if δ and θ are parallel, and they are not.": [0.0, 0.0],
        "That is the difference before anything is removed.": [4.0, 1.5],
        "That is the part that was removed. What is left of δ?": [0.351351, 2.108108],
    },
)
def ex_erase() -> NDArray[np.float64]:
    """Return what is left of δ when the probe's direction Σ⁻¹ δ is projected out."""
    shift = np.array([4.0, 1.5])
    probe = np.linalg.solve(np.diag([16.0, 1.0]), shift)
    onto = np.outer(probe, probe) / (probe @ probe)
    return (np.eye(2) - onto) @ shift


@choice(
    right="No linear probe sees it, though truth has two dimensions: absence proves little.",
    options={
        "chance": "",
        "nearly as good": "Along what is left the two halves of the true rows move opposite ways.",
        "perfect": "Along what is left the two halves of the true rows move opposite ways.",
    },
)
def ex_two_dimensions() -> str:
    """Return how good the second probe is where truth moves half the rows along each axis."""
    return "chance"


@value(
    right="A random direction hardly touches a given one. That makes it a good control.",
    mistakes={
        "That is the share of the length; square it.": 0.25,
        "In sixteen dimensions all shares add up to one, and none is favoured.": 1.0,
        "That is what is left. Asked is what goes.": 15 / 16,
    },
)
def ex_random_first() -> float:
    """Return the mean share of |δ|² that a random direction of 16 dimensions takes away."""
    dimensions = 16
    return 1 / dimensions
