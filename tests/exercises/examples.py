"""Answers to the exercises that compute something or look for a property.

An example holds what a chapter passes beside the answer; for a construction also a right answer,
and wrong ones, by words of what is said to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import GaussianMixture
from conceptnb.embeddings import sentences


@dataclass(frozen=True)
class Example:
    """What stands in for a chapter's variables, and answers to a construction."""

    given: tuple[Any, ...] = ()
    right: Any = None
    wrong: Mapping[str, Any] = field(default_factory=dict)


def _normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


# The theorems

_TOGETHER = [([0, 1], [0.2, -0.1]), ([0, 1], [-0.3, 0.4]), ([0, 1], [0.1, 0.0])]


def _repaired(*last):
    subsets, valuations = [[0], [1], [2], list(last)], [-0.1, 0.1, -0.2][: len(last)]
    return EnvironmentDesign(subsets, [[0.2], [-0.2], [0.1], valuations], 0.005)


def _together(*added):
    return EnvironmentDesign(*zip(*_TOGETHER, *added, strict=True), 0.01)


def _base(first, coupling=0.0, mean=0.0):
    return GaussianMixture([1.0], [[mean, 0.5]], [[[first, coupling], [coupling, 1.0]]])


_THEORY = {
    "ex_once": Example(
        right=_repaired(0, 1, 2),
        wrong={
            "Still no contrast": _repaired(0, 1),
            "Without adding environments": EnvironmentDesign(
                [[0], [1], [2], [0], [1], [2]], [[0.2], [-0.2], [0.1], [0.4], [0.3], [0.5]], 0.005
            ),
            "has lost an atom": EnvironmentDesign(
                [[0, 1], [1, 2], [0], [0, 1, 2]],
                [[0.2, 1], [0.3, 1], [0.1], [-0.1, 0.1, 0.4]],
                0.005,
            ),
        },
    ),
    "ex_price_theorem_2": Example(
        right=EnvironmentDesign([[0], [0], [1], [1]], [[0.0], [1.0], [0.0], [2.0]], 1.0),
        wrong={
            "has rank 3": EnvironmentDesign([[0], [0], [1]], [[0.0], [1.0], [2.0]], 1.0),
            "The same valuation twice": EnvironmentDesign(
                [[0], [0], [1], [1]], [[1.0], [1.0], [0.0], [2.0]], 1.0
            ),
            "One atom per environment": EnvironmentDesign(
                [[0, 1], [0, 1], [1], [1]], [[0.3, 1.0], [-0.7, 0.2], [0.5], [-0.4]], 1.0
            ),
        },
    ),
    "ex_count": Example(
        right=np.array([[1, 0], [1, 1], [0, 1]]),
        wrong={
            "3 rows": np.array([[1, 1, 0], [0, 1, 1]]),
            "zeros and ones": np.array([[2, 0], [2, 2], [0, 2]]),
            "S_{2} has 1 atoms": np.array([[1, 0], [1, 0], [0, 1]]),
            "S_{1,3} has 1 atoms": np.array([[1, 0], [1, 1], [1, 0]]),
            "a matrix of numbers": "two atoms",
        },
    ),
    "ex_repair": Example(
        given=(((0, 1), (0, 1), (0, 1)),),
        right=_together(([1], [0.0])),
        wrong={
            "still always occur together": _together(([0, 1], [0.5, 0.5])),
            "environments of always_together come first": EnvironmentDesign(
                [[0], [1], [0, 1]], [[0.1], [0.2], [0.3, 0.1]], 0.01
            ),
            "Add one environment": _together(([0], [0.5]), ([1], [0.7])),
        },
    ),
    "ex_cannot_tell": Example(
        right=_base(100.0),
        wrong={
            "two dimensions": GaussianMixture([1.0], [[0.0]], [[[100.0]]]),
            "depends on the first": _base(100.0, coupling=6.0),
            "acceptance still narrows": _base(1.0),
            "acceptance still moves": _base(20.0, mean=-40.0),
            "a single component": GaussianMixture(
                [0.5, 0.5], [[0.0, 0.0], [1.0, 1.0]], [100 * np.eye(2)] * 2
            ),
        },
    ),
}

# The contrastive learner

_LATENT = _normal(0, 200, 3)
_GAUSSIAN = _normal(0, 6000, 3)
_LEARNING = {
    "ex_fewer_starts": Example(
        right=np.array([0.0, 0.02, 0.0, 0.0, 0.11]),
        wrong={
            "five generators": np.zeros(4),
            "the other way round": -np.array([0.0, 0.02, 0.0, 0.0, 0.11]),
            "losses themselves": np.array([1.1, 1.2, 1.1, 1.1, 1.15]),
            "array of shape (5,)": ["a"] * 5,
        },
    ),
    "ex_folded": Example(
        given=(np.abs(_LATENT), _LATENT),
        right=np.abs(_LATENT),
        wrong={
            "Folded and target have an MCC of 0.": _LATENT,
            "expected (200, 3)": np.ones((200, 2)),
            "the folded one itself": 2 * np.abs(_LATENT) + 1,
            "array of shape (200, 3)": "sizes",
        },
    ),
    "ex_pca_r2": Example(
        right=np.linalg.qr(_normal(0, 3, 3))[0],
        wrong={
            "expected (3, 3)": np.eye(2),
            "not invertible": np.ones((3, 3)),
            "permutation": 2 * np.eye(3)[[2, 0, 1]],
            "array of shape (3, 3)": [["a"] * 3] * 3,
        },
    ),
    "ex_ica_works": Example(
        right=np.random.default_rng(0).uniform(-1, 1, size=(6000, 3)),
        wrong={
            "three columns": np.zeros((6000, 2)),
            "1000": np.tanh(_normal(0, 60, 3)),
            "constant": np.zeros((6000, 3)),
            "correlated": np.repeat(_normal(0, 6000, 1), 3, axis=1),
            "squares": _GAUSSIAN * np.repeat([[0.3], [3.0]], 3000, axis=0),
            "Gaussian": _GAUSSIAN,
            "numbers": ["a"] * 3,
        },
    ),
    "ex_models_or_starts": Example(
        given=(
            [
                {"seed": m, "start": s, "mcc": 0.8 + 0.05 * m + 0.01 * (s - m) ** 2}
                for m in range(4)
                for s in range(3)
            ],
        ),
    ),
    "ex_ceiling": Example(
        right=np.array([0.95, 0.97, 0.98]),
        wrong={
            "three sample sizes": np.zeros(4),
            "falls": np.array([0.98, 0.95, 0.93]),
            "cannot exceed one": np.array([0.5, 1.0, 2.0]),
            "array of shape (3,)": ["a"] * 3,
        },
    ),
}

# Embeddings of images and sentences

_OPEN = "some coloured {} on coloured floor by coloured wall seen from anywhere"
_SHAPES = ["cube", "cylinder", "ball", "ellipsoid"]
_HUES = np.array([0, 3, 6, 9, 2, 5, 8, 1, 4, 7])  # by the place of each in a shuffled wheel
_AROUND = np.argsort(_HUES)
_COEFFICIENTS = _normal(0, 64)


def _wheel(order):
    angle = 2 * np.pi * order / 10
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _two_planes():
    rng = np.random.default_rng(0)
    first = rng.normal(size=(200, 2))
    return first, first * [1.0, 0.5] + 0.5 * rng.normal(size=(200, 2))


def _scales():
    rng = np.random.default_rng(1)
    scale = np.arange(400) % 8
    shared = rng.normal(size=400)
    x, y = (scale + 0.5 * shared + rng.normal(size=400) for _ in range(2))
    return x, y, scale


def _hues():
    rng = np.random.default_rng(0)
    hue = np.arange(600) % 10
    Z = np.column_stack([_wheel(hue), 0.6 * _wheel(2 * hue)[:, 0]])
    Z = (Z + 0.12 * rng.normal(size=Z.shape)) @ rng.normal(size=(3, 6))
    Z += 0.02 * rng.normal(size=Z.shape)
    return Z[:300], hue[:300], Z[300:], hue[300:]


def _shapes():
    wanted = np.arange(40)[:, None] % [1, 1, 1, 8, 4, 1]
    return np.append((wanted[:6, 4] + 3) % 4, wanted[6:, 4]), wanted


def _moves():
    rng = np.random.default_rng(0)
    start = rng.normal(size=(200, 8))
    return start, start + rng.normal(size=(4, 8))[np.arange(200) % 4]


def _moved_by(steps):
    start, moved = _moves()
    length = np.linalg.norm(moved - start, axis=1, keepdims=True)
    return start + length * steps / np.linalg.norm(steps, axis=1, keepdims=True)


def _small_grid():
    """Return noisy points in which three values lie on a line and off it, in four groups."""
    labels, groups = np.tile(np.repeat(np.arange(3), 20), 4), np.repeat(np.arange(4), 60)
    places = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 0.0]])[labels]
    return np.column_stack([places, groups]) + 0.4 * _normal(0, 240, 3), labels, groups


_EMBEDDINGS = {
    "ex_linear": Example(given=(np.arange(40, 88).reshape(4, 4, 3),)),
    "ex_vague": Example(
        right=[_OPEN.format(shape) for shape in _SHAPES],
        wrong={
            "four texts": ["cube"],
            "in this order": [_OPEN.format(shape) for shape in reversed(_SHAPES)],
            "says more than the shape": [f"tiny{_OPEN[4:]}".format(s) for s in _SHAPES],
            "words in the order": _SHAPES,
        },
    ),
    "ex_scikit": Example(
        given=(_COEFFICIENTS,),
        right=1.001 * _COEFFICIENTS,
        wrong={
            "64 numbers": np.ones((1, 3)),
            "points the other way": -_COEFFICIENTS,
            "cosine": _COEFFICIENTS + _normal(1, 64),
            "an array of numbers": "coef_",
            "length": 3 * _COEFFICIENTS,
        },
    ),
    "ex_four_ways": Example(
        given=({"paper": 0.4, "pairwise": 0.6, "ordinal": 0.9, "discriminant": 0.7},),
        right=" Ordinal",
        wrong={"another method": "paper", "is none of": "ica"},
    ),
    "ex_canonical": Example(given=_two_planes()),
    "ex_within": Example(given=_scales()),
    "ex_circular": Example(
        given=(5 + _wheel(_HUES) * [1, 2],),
        right=np.roll(_AROUND, 3),
        wrong={
            "each of the hues": np.zeros(10),
            "ten hues": np.arange(7),
            "in the order of their numbers": np.arange(10),
            "not around the centre": _AROUND[[1, 0, *range(2, 10)]],
        },
    ),
    "ex_asked_wheel": Example(given=_hues()),
    "ex_other_encoder": Example(given=_hues()),
    "ex_untrained_text": Example(
        given=(np.full(6, 0.7),),
        right=np.array([0.05, -0.1, 0.1, 0.0, 0.12, -0.02]),
        wrong={
            "six pairs": np.zeros(15),
            "cosines of the trained encoder": np.full(6, 0.7),
            "between -1 and 1": np.full(6, 3.0),
            "far from zero": np.full(6, 0.9),
        },
    ),
    "ex_captions_move": Example(given=_shapes()),
    "ex_random_move": Example(
        given=_moves(),
        right=_moved_by(_normal(1, 200, 8)),
        wrong={
            "expected (200, 8)": np.zeros(3),
            "as far as": _moves()[0] + _normal(1, 200, 8),
            "still the old move": _moves()[1],
            "of its own": _moved_by(np.ones((200, 8))),
        },
    ),
    "ex_tense_dimensions": Example(given=_small_grid()),
    "ex_longer_step": Example(
        given=(sentences.load_embeddings().embeddings["minilm"], sentences.grid())
    ),
    "ex_best_of_many": Example(given=(_normal(1, 60, 8), np.arange(60) % 2)),
}

# A language model, and data of one's own


def _two_halves():
    rng = np.random.default_rng(0)
    true = rng.random(400) < 0.25
    first = np.arange(400) < 200
    x = rng.normal(size=(400, 4))
    x[:, 0] += 2 * true
    x[:, 1] += true * first
    return x, true, first


_STEERING = {
    "ex_best_voice": Example(
        given=(np.array([[0.9, 0.8, 0.1, 0.2], [0.1, 0.3, 1.0, 0.7], [0.1, 0.0, 0.1, 0.0]]),)
    ),
    "ex_popularity": Example(
        given=(
            SimpleNamespace(
                popularity=np.array([[[0.6, 0.2], [0.3, 0.3]], [[0.7, 0.1], [0.4, 0.2]]])
            ),
            np.array([0.0, 1.0, 0.25, 0.5]),
        )
    ),
    "ex_carry_over": Example(given=_two_halves()),
    "ex_real_heads": Example(
        given=(np.array([[0.6, 0.7], [0.5, 0.58]]), np.array([[0.55, 0.5], [0.57, 0.4]]))
    ),
    "ex_constant": Example(
        right=lambda texts: np.ones((len(texts), 1)),
        wrong={
            "different vectors": lambda texts: np.eye(len(texts)),
            "all zero": lambda texts: np.zeros((len(texts), 2)),
            "one row for each text": lambda _: np.ones((1, 3)),
            "finite": lambda texts: np.full((len(texts), 1), np.nan),
        },
    ),
    "ex_plan": Example(
        right={"e1": ["u", "v"], "e2": ["v", "w"], "e3": ["u", "w"], "e4": ["u", "v", "w"]},
        wrong={
            "3 concepts": {"e1": ["u"], "e2": ["v"], "e3": ["u"], "e4": ["v"]},
            "4 environments": {"e1": ["u"], "e2": ["v"], "e3": ["w"]},
            "has rank 2": {"e1": ["u"], "e2": ["v", "w"], "e3": ["u"], "e4": ["v", "w"]},
            "once only": {"e1": ["u"], "e2": ["v"], "e3": ["w"], "e4": ["u", "v"]},
            "a list of names": {"e1": "u", "e2": ["v"], "e3": ["w"], "e4": ["u"]},
        },
    ),
}

EXAMPLES = _THEORY | _LEARNING | _EMBEDDINGS | _STEERING
