"""Exercises of chapter 3: learning concepts from environments, a first run."""

from __future__ import annotations

import numpy as np

from conceptnb.exercises.exercise import choice, value


@value(
    right="So a loss just below 0.69 has learned next to nothing, whatever its curve looks like.",
    mistakes={
        "That is the probability that it gives to the right class. The loss is minus its "
        "logarithm.": 0.5,
        "That is in bits. The loss uses the natural logarithm.": 1.0,
        "That is the sum over three environments; the average over environments is asked for.": (
            3 * np.log(2)
        ),
        "A loss is minus the logarithm of a probability, which is positive.": -np.log(2),
    },
)
def ex_blind() -> float:
    """Return the loss (88) of the log-odds 0, for one environment."""
    probability_of_the_right_class = np.exp(0.0) / (1 + np.exp(0.0))
    return -float(np.log(probability_of_the_right_class))


@choice(
    right="The oracle's loss depends on the latent points alone: f cancels in the log-odds.",
    options={
        "mixing": "The log-odds are a function of the latent point, and f is not in it. What else "
        "is drawn anew when the problem is drawn with another mixing?",
        "atoms": "Atoms and environments are drawn before the mixing, from the same seed.",
        "training": "Nothing is trained: the true log-odds are put into the loss.",
        "samples": "",
    },
)
def ex_oracle() -> str:
    """Say why the oracle's loss differs between two mixings of one seed: Lemma 3."""
    return "samples"


@choice(
    right="A linear encoder cannot fold: one parabola reveals its axis. A general f needs more.",
    options={
        "direction": "Look at the correlations that you computed: they are high with a single "
        "environment too.",
        "side": "That is what a general f loses: it is seen only through (<a, z> - b)². But your "
        "encoder is linear, and no linear map takes one side of the plane to the other alone.",
        "nothing": "",
    },
)
def ex_one_environment() -> str:
    """Say what one environment leaves open with linear mixing: Lemma 3."""
    return "nothing"


@value(
    right="Its environments tell least, so being wrong costs little: there the loss is no guide.",
    mistakes={
        "That is the place in the list, counted from 0. The seed is asked for.": 1,
        "That is the place in the list, counted from 1. The seed is asked for.": 2,
        "The gap is largest there; where is it smallest?": lambda _: 5,
    },
)
def ex_too_simple() -> int:
    """Return the seed whose loss hardly tells a linear encoder from a network, as measured."""
    return 4
