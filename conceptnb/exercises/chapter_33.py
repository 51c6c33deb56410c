"""Exercises of chapter 33: hue is not an atom."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from conceptnb.exercises.exercise import construction, value

Array = NDArray[np.float64]


@value(
    entries="the two eigenvalues",
    right="They are equal, so the leading eigenvector is arbitrary: hue needs the whole plane.",
    mistakes={
        "Each pair once: 45 differences, not 90 or 100.": [100.0, 100.0],
        "That is the matrix of the points; the differences are ten times as much.": [5.0, 5.0],
        "That is the trace; symmetry shares it out between two dimensions.": [100.0, 0.0],
    },
)
def ex_wheel() -> Array:
    """Return the eigenvalues of the sum over pairs, n Σ x xᵀ for centred points."""
    n, radius = 10, 1.0
    trace = n * n * radius**2  # Σ |x_j - x_i|² over pairs is n Σ |x|² for centred x
    return np.array([trace / 2, trace / 2])


def _planes() -> tuple[Array]:
    angle = 2 * np.pi * np.array([0, 3, 6, 9, 2, 5, 8, 1, 4, 7]) / 10
    return (5 + np.column_stack([np.cos(angle), 2 * np.sin(angle)]),)


def _around() -> NDArray[np.intp]:
    return np.argsort(np.array([0, 3, 6, 9, 2, 5, 8, 1, 4, 7]))


@construction(
    right="Neighbours in the list are neighbours in the plane. Are they neighbours in colour?",
    example=lambda: np.roll(_around(), 3),
    wrong={
        "each of the hues": lambda: np.zeros(10),
        "ten whole numbers": lambda: np.linspace(-3, 3, 7),
        "in the order of their numbers": lambda: np.arange(10),
        "not around the centre": lambda: _around()[[1, 0, *range(2, 10)]],
    },
    given=_planes,
)
def ex_circular(answer: Any, planes: Array) -> str | None:
    """Compare with the cyclic order of the planes, from anywhere and either way round."""
    mine = np.asarray(answer)
    if mine.dtype.kind not in "iuf" or mine.shape != (10,) or (mine != np.round(mine)).any():
        return "The answer is ten whole numbers."
    if sorted(mine.tolist()) != list(range(10)):
        return "List each of the hues 0 to 9 once."
    centred = planes - planes.mean(axis=0)
    around = np.argsort(np.angle(centred[:, 0] + 1j * centred[:, 1]))
    for direction in (around, around[::-1]):
        start = int(np.flatnonzero(direction == mine[0])[0])
        if np.array_equal(np.roll(direction, -start), mine):
            return None
    if np.array_equal(mine, np.arange(10)):
        return "Those are the hues in the order of their numbers. Sort them by angle."
    return "That is not around the centre: sort by the angle of each centred plane."


def _hues() -> tuple[Array, NDArray[np.intp], Array, NDArray[np.intp]]:
    rng = np.random.default_rng(0)
    hue = np.arange(600) % 10
    angle = 2 * np.pi * hue / 10
    Z = np.column_stack([np.cos(angle), np.sin(angle), 0.6 * np.cos(2 * angle)])
    Z = (Z + 0.12 * rng.normal(size=Z.shape)) @ rng.normal(size=(3, 6))
    Z += 0.02 * rng.normal(size=Z.shape)
    return Z[:300], hue[:300], Z[300:], hue[300:]


def _nearest(fit: Array, train: NDArray[np.intp], seen: Array, test: NDArray[np.intp]) -> float:
    """Accuracy of the nearest mean, from valuations of both halves."""
    means = np.stack([fit[train == value].mean(axis=0) for value in range(10)])
    distances = np.linalg.norm(seen[:, None] - means, axis=2)
    return float((distances.argmin(axis=1) == test).mean())


@value(
    rtol=0,
    atol=0.03,
    entries="true order, shuffled order",
    right="The control is what makes the first number mean anything.",
    mistakes={
        "The true order first.": lambda right: right[::-1],
        "The second wheel is to be fitted on order[hue], too.": lambda right: right[[0, 0]],
        "That is the share of errors.": lambda right: 1 - right,
    },
    given=_hues,
)
def ex_asked_wheel(Z: Array, hue: NDArray[np.intp], seen: Array, asked: NDArray[np.intp]) -> Array:
    """Return the accuracy of two least-squares wheels, by numpy's own solver."""
    found = []
    for order in (np.arange(10), np.array([0, 3, 6, 9, 2, 5, 8, 1, 4, 7])):
        angle = 2 * np.pi * order[hue] / 10
        design = np.column_stack([Z, np.ones(len(Z))])
        targets = np.column_stack([np.cos(angle), np.sin(angle)])
        rows = np.linalg.lstsq(design, targets, rcond=None)[0][:-1]
        found.append(_nearest(Z @ rows, hue, seen @ rows, asked))
    return np.array(found)


@value(
    rtol=0,
    atol=0.03,
    entries="one direction, two",
    right="A line through a plane of ten clusters meets some of them together.",
    mistakes={
        "One direction first, then two.": lambda right: right[::-1],
        "Two components: n_components=2 for the second.": lambda right: right[[0, 0]],
    },
    given=_hues,
)
def ex_other_tower(Z: Array, hue: NDArray[np.intp], seen: Array, asked: NDArray[np.intp]) -> Array:
    """Return the accuracies of discriminant directions, by scikit-learn."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # noqa: PLC0415 - slow

    found = []
    for k in (1, 2):
        fit = LinearDiscriminantAnalysis(solver="eigen", shrinkage=1e-3, n_components=k).fit(Z, hue)
        found.append(_nearest(fit.transform(Z), hue, fit.transform(seen), asked))
    return np.array(found)
