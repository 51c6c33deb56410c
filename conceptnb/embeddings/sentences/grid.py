"""English sentences written for this book, in a full grid of factors.

A sentence model was trained on text that nobody controlled. To ask what it makes of one
concept, the sentences that it is asked about have to differ in that concept and in nothing
else: here every value of every factor meets every value of all others. Which *words* carry a
value depends on the topic, for all factors but negation and the ending: a good meal is
delicious, a good jacket elegant. Whoever carries a direction over from one topic to another
has thus more than a word.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class _Topic(NamedTuple):
    """The words of one topic; a verb is (infinitive, third person, past)."""

    name: str
    subject: tuple[str, str]
    formal: tuple[str, str, str]
    informal: tuple[str, str, str]
    thing: str
    sentiment: tuple[str, str]


_TOPICS = (
    _Topic(
        "kitchen",
        ("chef", "chefs"),
        ("prepare", "prepares", "prepared"),
        ("whip up", "whips up", "whipped up"),
        "meal",
        ("disgusting", "delicious"),
    ),
    _Topic(
        "garage",
        ("mechanic", "mechanics"),
        ("repair", "repairs", "repaired"),
        ("patch up", "patches up", "patched up"),
        "car",
        ("worthless", "reliable"),
    ),
    _Topic(
        "school",
        ("teacher", "teachers"),
        ("evaluate", "evaluates", "evaluated"),
        ("look over", "looks over", "looked over"),
        "essay",
        ("dreadful", "brilliant"),
    ),
    _Topic(
        "music",
        ("musician", "musicians"),
        ("perform", "performs", "performed"),
        ("belt out", "belts out", "belted out"),
        "song",
        ("horrible", "lovely"),
    ),
    _Topic(
        "sport",
        ("athlete", "athletes"),
        ("conclude", "concludes", "concluded"),
        ("wrap up", "wraps up", "wrapped up"),
        "race",
        ("boring", "thrilling"),
    ),
    _Topic(
        "shop",
        ("customer", "customers"),
        ("purchase", "purchases", "purchased"),
        ("snap up", "snaps up", "snapped up"),
        "jacket",
        ("ugly", "elegant"),
    ),
    _Topic(
        "travel",
        ("tourist", "tourists"),
        ("explore", "explores", "explored"),
        ("poke around", "pokes around", "poked around"),
        "village",
        ("filthy", "charming"),
    ),
    _Topic(
        "office",
        ("manager", "managers"),
        ("cancel", "cancels", "cancelled"),
        ("call off", "calls off", "called off"),
        "meeting",
        ("pointless", "productive"),
    ),
    _Topic(
        "hospital",
        ("doctor", "doctors"),
        ("examine", "examines", "examined"),
        ("check out", "checks out", "checked out"),
        "patient",
        ("rude", "friendly"),
    ),
    _Topic(
        "cinema",
        ("critic", "critics"),
        ("attend", "attends", "attended"),
        ("drop in on", "drops in on", "dropped in on"),
        "film",
        ("tedious", "gripping"),
    ),
    _Topic(
        "garden",
        ("neighbour", "neighbours"),
        ("construct", "constructs", "constructed"),
        ("knock together", "knocks together", "knocked together"),
        "shed",
        ("flimsy", "sturdy"),
    ),
    _Topic(
        "farm",
        ("farmer", "farmers"),
        ("acquire", "acquires", "acquired"),
        ("get hold of", "gets hold of", "got hold of"),
        "field",
        ("barren", "fertile"),
    ),
)

FACTORS: dict[str, tuple[str, ...]] = {
    "topic": tuple(topic.name for topic in _TOPICS),
    "number": ("singular", "plural"),
    "tense": ("past", "present", "future"),
    "negation": ("affirmed", "negated"),
    "sentiment": ("bad", "good"),
    "formality": ("informal", "formal"),
    "ending": ("", "on Monday", "with a friend"),
}
"""Names and values of the factors, in the order of the columns of `Grid.codes`."""

CONCEPTS = ("number", "tense", "negation", "sentiment", "formality")
"""The factors whose directions are asked for; topic and ending are what they should not heed."""


@dataclass(frozen=True)
class Grid:
    """Sentences and the values of their factors.

    Attributes
    ----------
    texts : tuple of str
    codes : (sentences, factors) place of each sentence's value in `FACTORS`
    """

    texts: tuple[str, ...]
    codes: NDArray[np.intp]

    def column(self, factor: str) -> NDArray[np.intp]:
        """Return the values (sentences,) of one factor.

        Raises
        ------
        ValueError
            If there is no such factor.
        """
        return self.codes[:, factor_index(factor)]

    def row(self, **values: str) -> int:
        """Return the row of the first sentence with these values, such as ``tense="past"``.

        Raises
        ------
        ValueError
            If there is no such factor, or no such value of it.
        """
        wanted = np.ones(len(self.texts), dtype=bool)
        for factor, value in values.items():
            column = self.column(factor)
            if value not in FACTORS[factor]:
                raise ValueError(
                    f"{factor}={value!r} must be one of {', '.join(map(repr, FACTORS[factor]))}"
                )
            wanted &= column == FACTORS[factor].index(value)
        return int(np.flatnonzero(wanted)[0])

    @property
    def sha256(self) -> str:
        """Return the hash of the texts: embeddings belong to one grid and to no other."""
        return hashlib.sha256("\n".join(self.texts).encode()).hexdigest()


@cache
def grid() -> Grid:
    """Return all sentences: every value of every factor with every value of the others."""
    codes = np.array(list(product(*(range(len(values)) for values in FACTORS.values()))))
    return Grid(tuple(_sentence(row) for row in codes), codes)


def factor_index(factor: str) -> int:
    """Return the column of a factor in `Grid.codes`.

    Raises
    ------
    ValueError
        If there is no such factor.
    """
    if factor not in FACTORS:
        raise ValueError(f"factor={factor!r} must be one of {', '.join(FACTORS)}")
    return list(FACTORS).index(factor)


def describe(codes: ArrayLike) -> list[str]:
    """Return the values of one row of codes as words."""
    values = zip(FACTORS.values(), np.asarray(codes, dtype=int), strict=True)
    return [names[code] or "none" for names, code in values]


def _sentence(codes: NDArray[np.intp]) -> str:
    """Return the sentence of one row of codes."""
    which, plural, tense, negated, good, formal, ending = (int(code) for code in codes)
    topic = _TOPICS[which]
    verb = topic.formal if formal else topic.informal
    parts = [
        f"The {topic.subject[plural]}",
        _predicate(verb, bool(plural), FACTORS["tense"][tense], bool(negated)),
        f"the {topic.sentiment[good]} {topic.thing}",
        FACTORS["ending"][ending],
    ]
    return " ".join(part for part in parts if part) + "."


def _predicate(verb: tuple[str, str, str], plural: bool, tense: str, negated: bool) -> str:
    """Return a verb in its tense, negated or not, as it agrees with its subject."""
    infinitive, third_person, past = verb
    if tense == "future":
        return f"will {'not ' if negated else ''}{infinitive}"
    if negated:
        auxiliary = "did" if tense == "past" else "do" if plural else "does"
        return f"{auxiliary} not {infinitive}"
    if tense == "past":
        return past
    return infinitive if plural else third_person
