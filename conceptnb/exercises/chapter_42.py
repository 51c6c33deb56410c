"""Exercises of chapter 42: inference-time intervention."""

from __future__ import annotations

import numpy as np

from conceptnb.exercises.exercise import choice, value


@value(
    right="Interventions add, so nesting them is the same as applying their sum.",
    mistakes={
        "The second one is subtracted: its strength is negative.": 4.0,
        "Both act; the inner one does not replace the outer one.": -1.0,
        "Both act, and add.": 3.0,
        "They add; they do not multiply.": -3.0,
    },
)
def ex_compose() -> float:
    """Return the one strength that two nested interventions of α = 3 and −1 equal."""
    direction = np.array([0.6, 0.8])
    activation = np.array([1.0, -2.0])
    shifted = (activation + 3 * direction) - direction
    return float((shifted - activation) @ direction)


@choice(
    right="A direction that raises truth both ways would be one that unsettles the model.",
    options={
        "rises": "That is what the shift itself should do. Reversed, it leads to falsehood.",
        "falls": "",
        "stays": "A direction that does nothing when it is reversed does nothing else either.",
    },
)
def ex_lie() -> str:
    """Return what MC2 does when a truthful shift is reversed: (82) with the sign changed."""
    return "falls"


@choice(
    right="It is predicted from the prompt's last token, which this edit leaves alone.",
    options={
        "first": "",
        "last": "It is predicted from the token before it, which is one of the answer's own.",
        "none": "What predicts the answer's first token is no token of the answer.",
    },
)
def ex_edit() -> str:
    """Return which token's probability stays if only the answer's own tokens are edited."""
    return "first"


@value(
    right="So differences of a few hundredths between settings are noise.",
    mistakes={
        "That is the variance of one question. Divide by their number and take the root.": 0.25,
        "That is the standard deviation of one question. Divide by the root of their number.": 0.5,
        "Take the root: that is the variance of the mean.": 0.25 / 48,
    },
)
def ex_number_of_heads() -> float:
    """Return the standard error of MC1 when half of 48 questions are answered truly."""
    right = np.repeat([0.0, 1.0], 24)
    return float(right.std() / np.sqrt(len(right)))
