"""English sentences written for this book, in a full grid of factors.

Every value of every factor meets every value of all others, so that two sentences can differ in
one concept and in nothing else. Which *words* carry a value depends on the topic: a good meal is
delicious, a good jacket elegant. So a direction that carries over to a topic is more than a word.
"""

import csv
import hashlib
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_TOPICS = (Path(__file__).parent / "topics.csv").read_text(encoding="utf-8")
_WORDS = {row["topic"]: row for row in csv.DictReader(_TOPICS.splitlines())}
"""The words of each topic; verbs as infinitive, third person and past."""

FACTORS: dict[str, tuple[str, ...]] = {
    "topic": tuple(_WORDS),
    "number": ("singular", "plural"),
    "tense": ("past", "present", "future"),
    "negation": ("affirmed", "negated"),
    "sentiment": ("bad", "good"),
    "formality": ("informal", "formal"),
    "ending": ("", "on Monday", "with a friend"),
}
"""Names and values of the factors, in the order of the columns of `Grid.values`."""

CONCEPTS = ("number", "tense", "negation", "sentiment", "formality")
"""The factors whose directions are asked for; topic and ending are what they should not heed."""


@dataclass(frozen=True)
class Grid:
    """Sentences and the values of their factors."""

    texts: tuple[str, ...]
    values: NDArray[np.intp]
    """Places (sentences, factors) of each sentence's values in `FACTORS`."""

    def column(self, factor: str) -> NDArray[np.intp]:
        """Return the values (sentences,) of one factor."""
        return self.values[:, self.index(factor)]

    def index(self, factor: str) -> int:
        """Return the column of a factor in `values`; raises ValueError if there is none."""
        if factor not in FACTORS:
            raise ValueError(f"factor={factor!r} must be one of {', '.join(FACTORS)}")
        return list(FACTORS).index(factor)

    def row(self, **values: str) -> int:
        """Return the row of the first sentence with these values, such as ``tense="past"``."""
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
    values = np.array(list(product(*(range(len(names)) for names in FACTORS.values()))))
    return Grid(tuple(_sentence(row) for row in values), values)


def _sentence(values: NDArray[np.intp]) -> str:
    named = [names[k] for names, k in zip(FACTORS.values(), values, strict=True)]
    topic, number, tense, negation, sentiment, formality, ending = named
    words, plural = _WORDS[topic], number == "plural"
    verb = [words[f"{formality}{form}"] for form in ("", "_third", "_past")]
    parts = [
        f"The {words['subjects' if plural else 'subject']}",
        _predicate(verb, plural, tense, negation == "negated"),
        f"the {words[sentiment]} {words['thing']}",
        ending,
    ]
    return " ".join(part for part in parts if part) + "."


def _predicate(verb: list[str], plural: bool, tense: str, negated: bool) -> str:
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
