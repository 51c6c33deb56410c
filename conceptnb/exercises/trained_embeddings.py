"""Exercises on concepts in the embeddings of images and sentences."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.linalg import subspace_angles
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import NearestCentroid

from conceptnb.common.validation import Array
from conceptnb.embeddings import sentences
from conceptnb.exercises.engine import Construction, Value

# 3D Shapes and small CLIPs
_ex_linear = Value(lambda rendered: rendered)  # the fourth image of a square of hues

_OPEN = "some coloured {} on coloured floor by coloured wall seen from anywhere"
_SHAPES = ("cube", "cylinder", "ball", "ellipsoid")


@Construction.declare(kind=list)
def _ex_vague(answer: Any) -> str | None:
    """Look for captions that name one shape each and leave the rest open: Section 6."""
    if len(answer) != 4 or not all(isinstance(text, str) for text in answer):
        return "The answer is a list of four texts."
    pattern = _OPEN.split()
    for text, shape in zip(answer, _SHAPES, strict=True):
        found = text.split()
        if len(found) != len(pattern):
            return f"{text!r} does not fit: it needs the words in the order {_OPEN!r}."
        if found[2] != shape:
            return f"{text!r} stands where {shape} belongs: name the shapes in this order."
        for word, vague in zip(found, pattern, strict=True):
            if vague not in ("{}", word):
                return f"{text!r} says more than the shape: {word!r}; {vague!r} leaves it open."
    return None


# Concepts in CLIP space
@Construction.declare()
def _ex_scikit(answer: Any, ours: Array) -> str | None:
    """Compare one pair's coefficients with those of all pairs: Appendix D.1."""
    theirs = np.asarray(answer)
    if theirs.dtype.kind not in "iuf":
        return "The answer is an array of numbers: the coefficients."
    if theirs.size != ours.size:
        return f"Coefficients are {ours.size} numbers; got {theirs.size}."
    theirs = theirs.ravel()
    ratio = float(np.linalg.norm(theirs) / np.linalg.norm(ours))
    cosine = float(theirs @ ours) / max(ratio * float(ours @ ours), 1e-300)
    if cosine < -0.99:
        return "It points the other way: the larger label is the positive class."
    if not cosine > 0.99:
        return f"Its cosine with ours is {cosine:.3f}. Keep both labels of the pair, and no other."
    if not 0.9 < ratio < 1.1:
        return f"Its length is {ratio:.2f} of ours: the penalty differs. Use C = 0.01."
    return None


@Construction.declare(kind=str)
def _ex_four_ways(word: str, correlations: Mapping[str, float]) -> str | None:
    if word.strip().lower() not in correlations:
        return f"{word!r} is none of {', '.join(map(repr, correlations))}."
    if word.strip().lower() == max(correlations, key=lambda name: correlations[name]):
        return None
    return "Look at the numbers: another method's valuations correlate more with the scale."


# Whether two models agree
@Value.declare()
def _ex_canonical(first: Array, second: Array) -> Array:
    angles = subspace_angles(first - first.mean(axis=0), second - second.mean(axis=0))
    return np.cos(angles)[::-1]


@Value.declare()
def _ex_within(x: Array, y: Array, labels: NDArray[np.intp]) -> float:
    table = pd.DataFrame({"x": x, "y": y})
    left = table - table.groupby(labels).transform("mean")
    return float(left.corr().loc["x", "y"])


# Hue is not an atom

_ORDER = np.array([0, 3, 6, 9, 2, 5, 8, 1, 4, 7])


@Construction.declare(shape=(10,))
def _ex_circular(mine: Array, planes: Array) -> str | None:
    """Look for the cyclic order of the planes, from anywhere and either way round."""
    if sorted(mine.tolist()) != list(range(10)):
        return "List each of the hues 0 to 9 once."
    centred = planes - planes.mean(axis=0)
    around = np.argsort(np.arctan2(centred[:, 1], centred[:, 0]))
    steps = np.diff(np.argsort(around)[mine.astype(int)]) % 10  # along the circle
    if (steps == 1).all() or (steps == 9).all():
        return None
    if np.array_equal(mine, np.arange(10)):
        return "Those are the hues in the order of their numbers. Sort them by angle."
    return "That is not around the centre: sort by the angle of each centred plane."


@Value.declare(
    mistakes={
        "The second wheel is to be fitted on order[hue], too.": lambda x: x[[0, 0]],
        "That is the share of errors.": lambda x: 1 - x,
    }
)
def _ex_asked_wheel(Z: Array, hue: NDArray[np.intp], seen: Array, asked: NDArray[np.intp]) -> Array:
    found = []
    for order in (np.arange(10), _ORDER):
        angle = 2 * np.pi * order[hue] / 10
        wheel = LinearRegression().fit(Z, np.column_stack([np.cos(angle), np.sin(angle)]))
        nearest = NearestCentroid().fit(wheel.predict(Z), hue)
        found.append(nearest.score(wheel.predict(seen), asked))
    return np.array(found)


@Value.declare(mistakes={"Two components: n_components=2 for the second.": lambda x: x[[0, 0]]})
def _ex_other_encoder(
    Z: Array, hue: NDArray[np.intp], seen: Array, asked: NDArray[np.intp]
) -> Array:
    fit = LinearDiscriminantAnalysis(solver="eigen", shrinkage=1e-3).fit(Z, hue)
    first, second = fit.transform(Z), fit.transform(seen)
    nearest = [NearestCentroid().fit(first[:, :k], hue) for k in (1, 2)]
    return np.array([nearest[k - 1].score(second[:, :k], asked) for k in (1, 2)])


# Controls, text and arithmetic
@Construction.declare(shape=np.shape)
def _ex_untrained_text(cosines: Array, trained: Array) -> str | None:
    if not (np.abs(cosines) <= 1).all():
        return "Cosines lie between -1 and 1."
    if np.allclose(cosines, trained):
        return "Those are the cosines of the trained encoder."
    if abs(cosines.mean()) > 0.5:
        return f"A mean of {cosines.mean():.2f} is far from zero: is the encoder untrained?"
    return None


# the share of the diagonal of the table of seen against wanted shapes
_ex_captions_move = Value(lambda seen, wanted: np.mean(seen == wanted[:, 4]))


@Construction.declare(shape=lambda start, moved: start.shape)
def _ex_random_move(mine: Array, start: Array, moved: Array) -> str | None:
    steps, old = mine - start, moved - start
    lengths = np.linalg.norm(steps, axis=1)
    if not np.allclose(lengths, np.linalg.norm(old, axis=1), rtol=0.01):
        return "Each embedding has to move as far as it did before."
    if np.sum(steps * old) > 0.5 * np.sum(old * old):
        return "That is still the old move, or close to it."
    if np.linalg.norm((steps / lengths[:, None]).mean(axis=0)) > 0.5:
        return "All move in one direction; each needs a random direction of its own."
    return None


# A sentence model trained by others
@Value.declare()
def _ex_tense_dimensions(Z: Any, labels: Any, groups: Any) -> float:
    one, two = (sentences.carry_over(Z, labels, groups, n_components=k).accuracy for k in (1, 2))
    return float(two.mean() - one.mean())


@Value.declare()
def _ex_longer_step(Z: Any, grid: Any) -> float:
    number, topic = grid.column("number"), grid.column("topic")
    steps = sentences.differences(Z, number, topic)
    others = np.stack([np.delete(steps, own, axis=0).mean(axis=0) for own in range(len(steps))])
    start = number == 0
    found = ((Z[start] + 2 * others[topic[start]]) @ Z.T).argmax(axis=1)
    wanted = grid.values[start].copy()
    wanted[:, grid.index("number")] = 1
    return float((grid.values[found] == wanted).all(axis=1).mean())


# Without labels
_ex_best_of_many = Value(  # the largest η², the squared correlation with a label of two values
    lambda noise, labels: max(float(np.corrcoef(column, labels)[0, 1] ** 2) for column in noise.T)
)
