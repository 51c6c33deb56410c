"""Exercises of chapter 35: a sentence model that nobody here trained."""

from __future__ import annotations

from typing import Any

import numpy as np

from conceptnb.embeddings import sentences
from conceptnb.exercises.exercise import choice, value


@value(
    right="A full grid: every combination as often as every other.",
    mistakes={
        "That is the share of plural and negated ones, whatever their tense.": 432,
        "Tense has three values, not two.": 216,
        "That is one topic's; all topics count.": 12,
    },
    rtol=0,
)
def ex_grid_count() -> int:
    """Return the number of sentences that are plural, negated and in the future."""
    free = [len(names) for name, names in sentences.FACTORS.items()]
    fixed = [len(sentences.FACTORS[name]) for name in ("number", "negation", "tense")]
    return int(np.prod(free) / np.prod(fixed))


@choice(
    right="Each adjective occurs in one topic. In a new one the direction has met none of them.",
    options={
        "number": "The nouns are the topic's own, but 'do' and 'does' differ in number everywhere.",
        "tense": "'will', 'did' and 'does' occur in all topics.",
        "negation": "'not' occurs in all topics.",
        "sentiment": "",
    },
)
def ex_words_carry() -> str:
    """Say which concept no word carries from topic to topic."""
    return "sentiment"


@value(
    right="That is the level of chance to hold a shared part against.",
    mistakes={
        "That is the length; the squared length was asked for.": 12**-0.5,
        "The steps themselves count among those that the mean is taken of.": 1 / 11,
        "Their mean is short, but not zero.": 0.0,
    },
)
def ex_shared_chance() -> float:
    """Return ‖mean v‖² / mean ‖v‖² of twelve orthogonal vectors of one length."""
    return 12 * (1 / 12) ** 2


def _small_grid() -> tuple[Any, ...]:
    """Return noisy points in which three values lie on a line and off it, in four groups."""
    rng = np.random.default_rng(0)
    labels, groups = np.tile(np.repeat(np.arange(3), 20), 4), np.repeat(np.arange(4), 60)
    places = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 0.0]])[labels]
    return np.column_stack([places, groups]) + rng.normal(0, 0.4, (240, 3)), labels, groups


@value(
    right="Two directions hold three planes apart that one mixes up where their zero is shifted.",
    mistakes={
        "The other way round: accuracy with two dimensions less that with one.": lambda x: -x,
        "It is in percent; a difference of shares was asked for.": lambda x: 100 * x,
    },
    given=_small_grid,
    rtol=0.05,
    atol=1e-4,
)
def ex_tense_dimensions(Z: Any, labels: Any, groups: Any) -> float:
    """Return how much a second dimension adds to accuracy in new groups (Definition 1)."""
    accuracies = [
        sentences.carry_over(Z, labels, groups, n_components=k).accuracy.mean() for k in (1, 2)
    ]
    return float(accuracies[1] - accuracies[0])


@value(
    right="The direction was right and the length was not.",
    mistakes={
        "It is in percent; a share was asked for.": lambda x: 100 * x,
        "That is the share that does not arrive.": lambda x: 1 - x,
    },
    given=lambda: (sentences.load().embeddings["minilm"], sentences.grid()),
    rtol=0.02,
)
def ex_longer_step(Z: Any, grid: Any) -> float:
    """Return the share that arrives after twice the step of the other topics, for number."""
    number, topic = grid.column("number"), grid.column("topic")
    steps = sentences.differences(Z, number, topic)
    others = np.stack([np.delete(steps, own, axis=0).mean(axis=0) for own in range(len(steps))])
    start = number == 0
    found = ((Z[start] + 2 * others[topic[start]]) @ Z.T).argmax(axis=1)
    wanted = grid.codes[start].copy()
    wanted[:, sentences.factor_index("number")] = 1
    return float((grid.codes[found] == wanted).all(axis=1).mean())
