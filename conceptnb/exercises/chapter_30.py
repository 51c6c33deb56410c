"""Exercises of chapter 30: 3D Shapes and small CLIPs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises.exercise import construction, value


@value(
    rtol=0,
    atol=0.5,
    right="The last factor counts single positions, the first 48,000 at a time.",
    mistakes={
        "The last factor varies fastest, not the first.": 5
        + 10 * (5 + 10 * (5 + 10 * (4 + 8 * (2 + 4 * 7)))),
        "That is half of all images. The middle has index s // 2 in every factor.": 240_000,
    },
)
def ex_position() -> int:
    """Return the position of the middle of the grid: Section 6, the grid of 3D Shapes."""
    sizes = (10, 10, 10, 8, 4, 15)
    return int(np.arange(480_000).reshape(sizes)[tuple(size // 2 for size in sizes)])


def _image() -> tuple[NDArray[np.intp]]:
    return (np.arange(40, 88).reshape(4, 4, 3),)


@value(
    rtol=0,
    atol=3,
    right="Three images of a square give the fourth, so 480 sets of masks give all 480,000.",
    mistakes={
        "A whole image too much: subtract the one in which both hues are the old ones.": lambda d: (
            2 * d
        ),
    },
    given=_image,
)
def ex_linear(rendered: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the fourth image of a square of hues, which the chapter has rendered."""
    return rendered


_OPEN = "some coloured {} on coloured floor by coloured wall seen from anywhere"
_SHAPES = ("cube", "cylinder", "ball", "ellipsoid")


@construction(
    kind=list,
    right="Each is one concept and leaves everything else open: a caption as an environment.",
    example=lambda: [_OPEN.format(shape) for shape in _SHAPES],
    wrong={
        "four texts": lambda: ["cube"],
        "in this order": lambda: [_OPEN.format(shape) for shape in reversed(_SHAPES)],
        "says more than the shape": lambda: [
            _OPEN.format(shape).replace("some", "tiny") for shape in _SHAPES
        ],
        "words in the order": lambda: list(_SHAPES),
    },
)
def ex_vague(answer: Any) -> str | None:
    """Look for captions that name one shape each and leave five attributes open (Section 6)."""
    if len(answer) != 4 or not all(isinstance(text, str) for text in answer):
        return "The answer is a list of four texts."
    pattern = _OPEN.split()
    for text, shape in zip(answer, _SHAPES, strict=True):
        found = text.split()
        if len(found) != len(pattern):
            return f"{text!r} is no caption of ours: it needs the words in the order {_OPEN!r}."
        if found[2] != shape:
            return f"{text!r} stands where {shape} belongs: name the shapes in this order."
        for word, vague in zip(found, pattern, strict=True):
            if vague not in ("{}", word):
                return f"{text!r} says more than the shape: {word!r}; {vague!r} leaves it open."
    return None


@value(
    right="Below this loss a tower has begun to learn the factor that differs.",
    mistakes={
        "That is the chance of the right caption; the loss is minus its logarithm.": 0.25,
        "Only the four captions of the group count here, not the 128 of the batch.": np.log(128),
        "Natural logarithms: the loss is not in bits.": 2.0,
    },
)
def ex_hard_group() -> float:
    """Return the cross-entropy of a uniform guess among four captions."""
    logits = np.zeros(4)
    return float(np.log(np.exp(logits).sum()) - logits[0])


@value(
    entries="captions purple, pink; means purple, pink",
    right="Length one is a budget: what the hue does not take, the rest of the scene has.",
    mistakes={
        "The captions have length one: the rest has √(1 - part²), and counts, too.": [
            0.09,
            0.18,
            0.09,
            0.18,
        ],
        "The means first? Purple and pink as captions come first.": lambda right: right[
            [2, 3, 0, 1]
        ],
        "The class means have lost the rest: only the parts along u meet.": lambda right: right[
            [0, 1, 0, 1]
        ],
    },
)
def ex_mean_caption() -> NDArray[np.float64]:
    """Return the cosines of an image with two captions and two class means."""
    angles = np.arcsin([0.3, 0.6])  # parts along u are sines
    whole = np.cos(angles - angles[0])
    return np.concatenate([whole, 0.3 * np.sin(angles)])
