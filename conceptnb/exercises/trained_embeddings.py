"""Exercises on concepts in the embeddings of images and sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from conceptnb.core.validation import Array
from conceptnb.embeddings import sentences
from conceptnb.exercises.engine import Construction, Value


def _normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


# 3D Shapes and small CLIPs

ex_position = Value(  # the position of the middle of the grid: Section 6, the grid of 3D Shapes
    np.ravel_multi_index((5, 5, 5, 4, 2, 7), (10, 10, 10, 8, 4, 15)),
    rtol=0,
    atol=0.5,
    right="The last factor counts single positions, the first 48,000 at a time.",
    mistakes={
        "The last factor varies fastest, not the first.": 244_555,
        "That is half of all images. The middle has index s // 2 in every factor.": 240_000,
    },
)


ex_linear = Value(  # the fourth image of a square of hues, which the chapter has rendered
    lambda rendered: rendered,
    rtol=0,
    atol=3,
    right="Three images of a square give the fourth, so 480 sets of masks give all 480,000.",
    mistakes={
        "A whole image too much: subtract the one that has both of the old hues.": lambda x: 2 * x,
    },
    given=lambda: (np.arange(40, 88).reshape(4, 4, 3),),
)

_OPEN = "some coloured {} on coloured floor by coloured wall seen from anywhere"
_SHAPES = ("cube", "cylinder", "ball", "ellipsoid")


def _vague(answer: Any) -> str | None:
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


ex_vague = Construction(  # captions that name one shape each and leave the rest open: Section 6
    _vague,
    kind=list,
    right="Each is one concept and leaves everything else open: a caption as an environment.",
    wrong={
        "four texts": lambda: ["cube"],
        "in this order": lambda: [_OPEN.format(shape) for shape in reversed(_SHAPES)],
        "says more than the shape": lambda: [f"tiny{_OPEN[4:]}".format(s) for s in _SHAPES],
        "words in the order": lambda: list(_SHAPES),
    },
    one_right=lambda: [_OPEN.format(shape) for shape in _SHAPES],
)

ex_hard_group = Value(  # the cross-entropy of a uniform guess among four captions
    np.log(4),
    right="Below this loss an encoder has begun to learn the factor that differs.",
    mistakes={
        "That is the chance of the right caption; the loss is minus its logarithm.": 0.25,
        "Only the four captions of the group count here, not the 128 of the batch.": np.log(128),
        "Natural logarithms: the loss is not in bits.": 2.0,
    },
)

ex_mean_caption = Value(  # the cosines of an image with two captions and two class means
    np.append(np.cos(np.arcsin([0.3, 0.6]) - np.arcsin(0.3)), [0.3 * 0.3, 0.3 * 0.6]),
    entries="captions purple, pink; means purple, pink",
    right="Length one is a budget: what the hue does not take, the rest of the scene has.",
    mistakes={
        "Captions have length one: the rest has √(1 - part²), and counts too.": [0.09, 0.18] * 2,
        "The means first? Purple and pink as captions come first.": lambda x: x[[2, 3, 0, 1]],
        "Class means have lost the rest: only their parts along u meet.": lambda x: x[[0, 1] * 2],
    },
)

# Concepts in CLIP space

ex_split = Value(  # the share of training images in the released code's split (Appendix D.1)
    5 * 5 * 5 * 4 * 4 * 8 / 480_000,
    right="About three in a hundred, as in the authors' code: a much harder question than a half.",
    mistakes={
        "Of fifteen orientations the first eight remain, not one half.": 0.5**5,
        "The factor itself, shape, keeps all its values: five others are halved.": 0.5**5 * 8 / 15,
        "All five other factors have to lie in their first halves at once.": 0.5,
    },
)


def _scikit(answer: Any, ours: Array) -> str | None:
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
        return f"Its length is {ratio:.2f} of ours: the penalty is another one. C is 0.01."
    return None


ex_scikit = Construction(  # one pair's coefficients beside those of all pairs: Appendix D.1
    _scikit,
    right="The same direction: of a convex function every solver finds the same minimum.",
    wrong={
        "64 numbers": lambda: np.ones((1, 3)),
        "points the other way": lambda: -_normal(0, 64),
        "cosine": lambda: _normal(0, 64) + _normal(1, 64),
        "an array of numbers": lambda: "coef_",
        "length": lambda: 3 * _normal(0, 64),
    },
    one_right=lambda: 1.001 * _normal(0, 64),
    given=lambda: (_normal(0, 64),),
)

_RATIO = np.sqrt(0.85 / 0.15)

ex_eta = Value(  # the accuracy at η² = .85 for two values of equal frequency
    ndtr(_RATIO),
    rtol=0.002,
    right="A high η² between two values means next to no confusion of these two.",
    mistakes={
        "That is m/s itself; the accuracy is its normal distribution function.": _RATIO,
        "m/s is a square root: m² / s² = η² / (1 - η²).": 1.0,
        "Both values count the same; the accuracy is Φ(m/s), not a two-sided one.": 2 * ndtr(_RATIO)
        - 1,
        "η² is a share of variance, not an accuracy.": 0.85,
    },
)


def _four_ways(word: str, correlations: Mapping[str, float]) -> str | None:
    if word.strip().lower() not in correlations:
        return f"{word!r} is none of {', '.join(map(repr, correlations))}."
    if word.strip().lower() == max(correlations, key=lambda name: correlations[name]):
        return None
    return "Look at the numbers: another method's valuations correlate more with the scale."


ex_four_ways = Construction(  # the method of largest correlation
    _four_ways,
    kind=str,
    right="It asks for the order. The others ask only that values differ, and get an arc.",
    wrong={"another method": lambda: "paper", "is none of": lambda: "ica"},
    one_right=lambda: " Ordinal",
    given=lambda: ({"paper": 0.4, "pairwise": 0.6, "ordinal": 0.9, "discriminant": 0.7},),
)

# Whether two models agree


def _two_planes() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    first = rng.normal(size=(200, 2))
    return first, first * [1.0, 0.5] + 0.5 * rng.normal(size=(200, 2))


def _canonical(first: Array, second: Array) -> Array:
    joint = np.cov(np.hstack([first, second]).T)
    k = first.shape[1]
    within, across, other = joint[:k, :k], joint[:k, k:], joint[k:, k:]
    product = np.linalg.solve(within, across) @ np.linalg.solve(other, across.T)
    squares = np.sort(np.linalg.eigvals(product).real)[::-1]
    return np.sqrt(np.maximum(squares, 0))


ex_canonical = Value(  # canonical correlations as roots of eigenvalues of a product of covariances
    _canonical,
    atol=0.002,
    entries="the larger, the smaller",
    right="An invertible map of either side changes nothing: the freedom that Theorem 1 leaves.",
    mistakes={
        "The larger one first.": lambda x: x[::-1],
        "These are the squares: a regression explains ρ² of the variance.": lambda x: x**2,
    },
    given=_two_planes,
)


def _scales() -> tuple[Array, Array, NDArray[np.intp]]:
    rng = np.random.default_rng(1)
    scale = np.arange(400) % 8
    shared = rng.normal(size=400)
    x, y = (scale + 0.5 * shared + rng.normal(size=400) for _ in range(2))
    return x, y, scale


def _within(x: Array, y: Array, labels: NDArray[np.intp]) -> float:
    design = (labels[:, None] == np.unique(labels)).astype(float)
    left = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (x, y)]
    return float(left[0] @ left[1] / np.sqrt((left[0] @ left[0]) * (left[1] @ left[1])))


ex_within = Value(  # the correlation within values, by regression on indicators
    _within,
    atol=0.01,
    right="The rest of the overall correlation is the factor itself, which both encoders know.",
    mistakes={
        "That is the overall correlation: the means of values are still in it.": 0.828956,
    },
    given=_scales,
)

ex_chance = Value(  # the mean largest canonical correlation of independent samples, by simulation
    # of whitened independent samples the cross-covariance is Gaussian with variance 1 / n
    lambda: np.linalg.svd(_normal(5, 4000, 2, 2))[1][:, 0].mean() / np.sqrt(2000),
    rtol=0.15,
    right="So correlations of .85 and more between two encoders are no accident of the sample.",
    mistakes={
        "That is k / n; correlations go with its square root.": 2 / 2000,
        "Nothing is exactly uncorrelated in a sample.": 0.0,
        "n counts images: 2,000 of them.": np.sqrt(2 / 20),
    },
)

ex_subspace = Value(  # canonical correlations from the covariances of v and w
    np.array([1, 1, 1, 0]) / np.sqrt(1.25),
    atol=0.005,
    entries="two of the space, two of the plane",
    right="Agreement is a matter of the space in which it is asked for.",
    mistakes={
        "v₂ is independent of w: the plane's second correlation is 0.": lambda x: x[[0] * 4],
        "The correlation is 1 / √(1 + 1/4), for errors of variance 1/4: no square.": lambda x: x**2,
        "v₃ is in the space: both of its correlations are high.": lambda x: x[[0, 3, 0, 3]],
    },
)

# Hue is not an atom

ex_wheel = Value(  # the eigenvalues of the sum over pairs, n Σ x xᵀ for centred points
    [50.0, 50.0],
    entries="the two eigenvalues",
    right="They are equal, so the leading eigenvector is arbitrary: hue needs the whole plane.",
    mistakes={
        "Each pair once: 45 differences, not 90 or 100.": [100.0, 100.0],
        "That is the matrix of the points; the differences are ten times as much.": [5.0, 5.0],
        "That is the trace; symmetry shares it out between two dimensions.": [100.0, 0.0],
    },
)


_ORDER = np.array([0, 3, 6, 9, 2, 5, 8, 1, 4, 7])
_AROUND = np.argsort(_ORDER)


def _wheel(order: NDArray[np.intp]) -> Array:
    angle = 2 * np.pi * order / 10
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _circular(answer: Any, planes: Array) -> str | None:
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


ex_circular = Construction(  # the cyclic order of the planes, from anywhere and either way round
    _circular,
    right="Neighbours in the list are neighbours in the plane. Are they neighbours in colour?",
    wrong={
        "each of the hues": lambda: np.zeros(10),
        "ten whole numbers": lambda: np.linspace(-3, 3, 7),
        "in the order of their numbers": lambda: np.arange(10),
        "not around the centre": lambda: _AROUND[[1, 0, *range(2, 10)]],
    },
    one_right=lambda: np.roll(_AROUND, 3),
    given=lambda: (5 + _wheel(_ORDER) * [1, 2],),
)


def _hues() -> tuple[Array, NDArray[np.intp], Array, NDArray[np.intp]]:
    rng = np.random.default_rng(0)
    hue = np.arange(600) % 10
    Z = np.column_stack([_wheel(hue), 0.6 * _wheel(2 * hue)[:, 0]])
    Z = (Z + 0.12 * rng.normal(size=Z.shape)) @ rng.normal(size=(3, 6))
    Z += 0.02 * rng.normal(size=Z.shape)
    return Z[:300], hue[:300], Z[300:], hue[300:]


def _nearest(fit: Array, train: NDArray[np.intp], seen: Array, test: NDArray[np.intp]) -> float:
    """Accuracy of the nearest mean, from valuations of both halves."""
    means = np.stack([fit[train == value].mean(axis=0) for value in range(10)])
    distances = np.linalg.norm(seen[:, None] - means, axis=2)
    return float((distances.argmin(axis=1) == test).mean())


def _asked_wheel(Z: Array, hue: NDArray[np.intp], seen: Array, asked: NDArray[np.intp]) -> Array:
    found = []
    for order in (np.arange(10), _ORDER):
        design = np.column_stack([Z, np.ones(len(Z))])
        rows = np.linalg.lstsq(design, _wheel(order[hue]), rcond=None)[0][:-1]
        found.append(_nearest(Z @ rows, hue, seen @ rows, asked))
    return np.array(found)


ex_asked_wheel = Value(  # the accuracy of two least-squares wheels, by numpy's own solver
    _asked_wheel,
    rtol=0,
    atol=0.03,
    entries="true order, shuffled order",
    right="The control is what makes the first number mean anything.",
    mistakes={
        "The true order first.": lambda x: x[::-1],
        "The second wheel is to be fitted on order[hue], too.": lambda x: x[[0, 0]],
        "That is the share of errors.": lambda x: 1 - x,
    },
    given=_hues,
)


def _other_encoder(Z: Array, hue: NDArray[np.intp], seen: Array, asked: NDArray[np.intp]) -> Array:
    fit = LinearDiscriminantAnalysis(solver="eigen", shrinkage=1e-3).fit(Z, hue)
    rows = fit.scalings_[:, :2]
    return np.array([_nearest(Z @ rows[:, :k], hue, seen @ rows[:, :k], asked) for k in (1, 2)])


ex_other_encoder = Value(  # the accuracies of discriminant directions, by scikit-learn
    _other_encoder,
    rtol=0,
    atol=0.03,
    entries="one direction, two",
    right="A line through a plane of ten clusters meets some of them together.",
    mistakes={
        "One direction first, then two.": lambda x: x[::-1],
        "Two components: n_components=2 for the second.": lambda x: x[[0, 0]],
    },
    given=_hues,
)

# Controls, text and arithmetic


def _untrained_text(answer: Any, trained: Array) -> str | None:
    cosines = np.asarray(answer)
    if cosines.dtype.kind not in "iuf" or cosines.shape != trained.shape:
        return "The answer is six cosines, one per pair of shapes: the attribute same."
    if not (np.abs(cosines) <= 1).all():
        return "Cosines lie between -1 and 1."
    if np.allclose(cosines, trained):
        return "Those are the cosines of the trained encoder."
    if abs(cosines.mean()) > 0.5:
        return f"A mean of {cosines.mean():.2f} is far from zero: is the encoder untrained?"
    return None


ex_untrained_text = (
    Construction(  # cosines of unrelated directions: near zero, and not the trained ones
        _untrained_text,
        right="Nothing ties a random image encoder to a random text encoder. Training does.",
        wrong={
            "six cosines": lambda: np.zeros(15),
            "cosines of the trained encoder": lambda: np.full(6, 0.7),
            "between -1 and 1": lambda: np.full(6, 3.0),
            "far from zero": lambda: np.full(6, 0.9),
        },
        one_right=lambda: np.array([0.05, -0.1, 0.1, 0.0, 0.12, -0.02]),
        given=lambda: (np.full(6, 0.7),),
    )
)


def _shapes() -> tuple[Any, ...]:
    wanted = np.arange(40)[:, None] % [1, 1, 1, 8, 4, 1]
    return np.append((wanted[:6, 4] + 3) % 4, wanted[6:, 4]), wanted


ex_captions_move = Value(  # the share of the diagonal of the table of seen against wanted shapes
    lambda seen, wanted: np.mean(seen == wanted[:, 4]),
    atol=0.002,
    right="A move found from images is understood by captions: both encoders share the concept.",
    mistakes={
        "Column 3 is the scale; the shape is column 4.": 0.4,
        "That is the share of errors.": lambda x: 1 - x,
    },
    given=_shapes,
)

ex_shuffled_bound = Value(  # the mean η² of independent valuations: 15 values, 2,000 images
    14 / 1999,
    rtol=0.035,
    right="With 2,000 images chance stays below one in a hundred; trained encoders exceed it.",
    mistakes={
        "That is what the best of 64 dimensions could do on its own images.": 64 * 14 / 1999,
        "The fifteen means have a grand mean in common: fourteen are free.": 15 / 2000,
        "Independent of the values does not mean exactly zero in a sample.": 0.0,
        "Degrees of freedom: fifteen means minus one, not a share 1/15.": 1 / 15,
    },
)


def _moves() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    start = rng.normal(size=(200, 8))
    return start, start + rng.normal(size=(4, 8))[np.arange(200) % 4]


def _moved_by(steps: Array) -> Array:
    start, moved = _moves()
    length = np.linalg.norm(moved - start, axis=1, keepdims=True)
    return start + length * steps / np.linalg.norm(steps, axis=1, keepdims=True)


def _random_move(answer: Any, start: Array, moved: Array) -> str | None:
    mine = np.asarray(answer)
    if mine.dtype.kind not in "iuf" or mine.shape != start.shape:
        return f"The answer is an array of shape {start.shape}: embeddings after the move."
    steps, old = mine - start, moved - start
    lengths = np.linalg.norm(steps, axis=1)
    if not np.allclose(lengths, np.linalg.norm(old, axis=1), rtol=0.01):
        return "Each embedding has to move as far as it did before."
    if np.sum(steps * old) > 0.5 * np.sum(old * old):
        return "That is still the old move, or close to it."
    if np.linalg.norm((steps / lengths[:, None]).mean(axis=0)) > 0.5:
        return "All move in one direction; each needs a random direction of its own."
    return None


ex_random_move = Construction(  # moves of the same lengths in independent directions
    _random_move,
    right="Of all moves of this length only one direction changes the shape and nothing else.",
    wrong={
        "shape (200, 8)": lambda: np.zeros(3),
        "as far as": lambda: _moves()[0] + _normal(1, 200, 8),
        "still the old move": lambda: _moves()[1],
        "of its own": lambda: _moved_by(np.ones((200, 8))),
    },
    one_right=lambda: _moved_by(_normal(1, 200, 8)),
    given=_moves,
)

# A sentence model trained by others

ex_grid_count = Value(  # the number of sentences that are plural, negated and in the future
    lambda: math.prod(map(len, sentences.FACTORS.values())) // (2 * 2 * 3),
    rtol=0,
    right="A full grid: every combination as often as every other.",
    mistakes={
        "That is the share of plural and negated ones, whatever their tense.": 432,
        "Tense has three values, not two.": 216,
        "That is one topic's; all topics count.": 12,
    },
)

ex_words_carry = {  # which concept no word carries from topic to topic
    "number": "The nouns are the topic's own, but 'do' and 'does' differ in number everywhere.",
    "tense": "'will', 'did' and 'does' occur in all topics.",
    "negation": "'not' occurs in all topics.",
    "sentiment": "Right. Each adjective occurs in one topic; a new topic has none of them.",
}

ex_shared_chance = Value(  # ‖mean v‖² / mean ‖v‖² of twelve orthogonal vectors of one length
    12 * (1 / 12) ** 2,
    right="That is the level of chance to hold a shared part against.",
    mistakes={
        "That is the length; the squared length was asked for.": 12**-0.5,
        "The steps themselves count among those that the mean is taken of.": 1 / 11,
        "Their mean is short, but not zero.": 0.0,
    },
)


def _small_grid() -> tuple[Any, ...]:
    """Return noisy points in which three values lie on a line and off it, in four groups."""
    labels, groups = np.tile(np.repeat(np.arange(3), 20), 4), np.repeat(np.arange(4), 60)
    places = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 0.0]])[labels]
    return np.column_stack([places, groups]) + 0.4 * _normal(0, 240, 3), labels, groups


def _tense_dimensions(Z: Any, labels: Any, groups: Any) -> float:
    one, two = (sentences.carry_over(Z, labels, groups, n_components=k).accuracy for k in (1, 2))
    return float(two.mean() - one.mean())


ex_tense_dimensions = Value(  # what a second dimension adds to accuracy in new groups
    _tense_dimensions,
    rtol=0.05,
    atol=1e-4,
    right="Two directions hold three planes apart that one mixes up where their zero is shifted.",
    mistakes={
        "The other way round: accuracy with two dimensions minus that with one.": lambda x: -x,
        "It is in percent; a difference of shares was asked for.": lambda x: 100 * x,
    },
    given=_small_grid,
)


def _longer_step(Z: Any, grid: Any) -> float:
    number, topic = grid.column("number"), grid.column("topic")
    steps = sentences.differences(Z, number, topic)
    others = np.stack([np.delete(steps, own, axis=0).mean(axis=0) for own in range(len(steps))])
    start = number == 0
    found = ((Z[start] + 2 * others[topic[start]]) @ Z.T).argmax(axis=1)
    wanted = grid.values[start].copy()
    wanted[:, grid.index("number")] = 1
    return float((grid.values[found] == wanted).all(axis=1).mean())


ex_longer_step = Value(  # the share that arrives after twice the step of the other topics
    _longer_step,
    rtol=0.02,
    right="The direction was right and the length was not.",
    mistakes={
        "It is in percent; a share was asked for.": lambda x: 100 * x,
        "That is the share that does not arrive.": lambda x: 1 - x,
    },
    given=lambda: (sentences.load_embeddings().embeddings["minilm"], sentences.grid()),
)

# Without labels

ex_room_for_luck = Value(  # the number of injective maps from 5 concepts to 32 components
    math.perm(32, 5),
    rtol=1e-9,
    right="Twenty-four million ways to be lucky.",
    mistakes={
        "That is the number of sets; which concept gets which matters, too.": math.comb(32, 5),
        "No two concepts share a component.": 32**5,
        "The concepts choose, one after the other; there are five of them.": 5.0**32,
    },
)

ex_presence = Value(  # the mean of exp(z) of a standardised variable with two values, both ways
    [0.1 * np.exp(3) + 0.9 * np.exp(-1 / 3), 0.1 * np.exp(-3) + 0.9 * np.exp(1 / 3)],
    right="The penalty prefers to see a rare concept as one that is nearly always absent.",
    mistakes={
        "That is exp of the mean, which is 1 for both; asked for is the mean of exp.": [1.0, 1.0],
        "These values have variance q (1 - q); divide by its root first.": [1.060314, 1.035311],
    },
)

ex_rotation = {  # whose components depend on the coordinates of whitened data
    "labels": "The direction that separates the values turns with the data.",
    "ica": "The least Gaussian direction turns with the data.",
    "pca": "Right. After whitening, variance singles out no direction.",
}

ex_two_bells = {  # which method needs non-Gaussian components (Comon's theorem)
    "labels": "Labels say which direction separates their values, whatever the density.",
    "environments": "A conditioned data set is narrow in the direction of its concept.",
    "ica": "Right. A rotated pair of standard normal variables is again one: data cannot tell.",
}


ex_best_of_many = Value(  # the largest η², the squared correlation with a label of two values
    lambda noise, labels: max(float(np.corrcoef(column, labels)[0, 1] ** 2) for column in noise.T),
    right="Noise, several times above average: matched and judged at once, it passes for more.",
    mistakes={
        "That is one over the number of samples minus one: a single column's average.": 1 / 59,
        "η² of a column that says everything; these say nothing.": 1.0,
    },
    given=lambda: (_normal(1, 60, 8), np.arange(60) % 2),
)
