"""Exercises on truth in a language model: probes, interventions, vectors and matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from conceptnb.core.validation import Array
from conceptnb.exercises.engine import Construction, Value

# A toy corpus with known truth

ex_guessing = Value(  # MC1 and MC2 of a model that finds four answers equally probable: Appendix E
    [1 / 4, 1 / 4],
    entries="MC1, MC2",
    right="A model below a quarter does worse than chance: it has learned the misconceptions.",
    mistakes={
        "There are four choices: the true answer and three misconceptions.": [1 / 3, 1 / 3],
        "A yes-no question would give one half. Here there are four choices.": [0.5, 0.5],
        "MC2 is a share of probability, and only one answer of four is true.": [0.25, 1.0],
    },
)

ex_best_voice = Value(  # the best MC1 with one source, and with one for each category
    lambda by_source: [by_source.mean(axis=1).max(), by_source.max(axis=0).mean()],
    atol=0.002,
    entries="one source for all, one source per category",
    right="A steering vector is like one source for all; a matrix may be like one per category.",
    mistakes={
        "The other way round: one source for all comes first.": lambda x: x[::-1],
        "For one source, average over categories, then take the best.": lambda x: x[[1, 1]],
        "By category, take the best source in each column; then average.": lambda x: x[[0, 0]],
    },
)

ex_no_word = Value(  # how often a word of the first category is true, and a misconception
    [16 // 8, 16 * 3 // 8],
    rtol=1e-6,
    entries="times true, times false",
    right="The same for every word: no probe for single words can find truth in this corpus.",
    mistakes={
        "The other way round: how often it is true comes first.": [6, 2],
        "The second is how often it is offered; asked for is how often as a falsehood.": [2, 8],
        "Each question has one true answer, but a word is the answer to more than one.": [1, 3],
    },
)


def _popularity(corpus: Any, mc1: Array) -> Array:
    top = corpus.popularity[:, :, 0].ravel()
    popular = top > np.median(top)
    return np.array([mc1[popular].mean(), mc1[~popular].mean()])


ex_popularity = Value(  # the mean MC1 of questions by popularity of their first misconception
    _popularity,
    atol=0.002,
    entries="more popular, less popular",
    right="As expected if the model has learned how often each falsehood is told.",
    mistakes={
        "The other way round: the more popular misconceptions come first.": lambda x: x[::-1],
        "That is the mean over all questions, twice.": lambda x: np.full(2, x.mean()),
    },
)

# Reading truth off the heads

ex_balanced = Value(  # both accuracies of calling every answer false, with one true answer in four
    [3 / 4, (0 + 1) / 2],
    entries="accuracy, balanced accuracy",
    right="A probe that has learned nothing can score 75 %. Balanced, chance is one half.",
    mistakes={
        "The other way round: the plain accuracy comes first.": [0.5, 0.75],
        "Three answers in four are false, and calling them false is right.": [0.25, 0.5],
        "Balanced means the mean of two shares: of the true and of the false.": [0.75, 0.75],
    },
)


def _carry_over(x: Array, true: NDArray[np.bool_], first: NDArray[np.bool_]) -> float:
    probe = LogisticRegression(max_iter=1000, class_weight="balanced").fit(x[first], true[first])
    return balanced_accuracy_score(true[~first], probe.predict(x[~first]))


ex_carry_over = Value(  # balanced accuracy, on other categories, of a probe of the first (E.1)
    _carry_over,
    rtol=0.0,
    atol=0.005,
    right="The probe carries over to categories about which another source is truthful.",
    mistakes={"That is chance. Does the probe reach it, exceed it, or fall below it?": 0.5},
)

ex_leak = {  # which way accuracy errs if rows are held out instead of questions (E.1)
    "too high": "Right. The probe has seen other answers to the questions that it is tested on.",
    "too low": "The probe has seen something of the tested questions. Does that lower accuracy?",
    "unbiased": "Held-out rows would be new, but their questions would not.",
}

ex_probe_or_mean = Value(  # the direction that separates two Gaussian clouds best: Σ⁻¹ δ
    np.linalg.solve(np.diag([4.0, 1.0]), [2.0, 1.0]),
    entries="first and second coordinate",
    right="The probe discounts the direction in which the clouds are wide; the mean does not.",
    mistakes={
        "That is the difference of the means. The probe divides by the covariance.": [2.0, 1.0],
        "That is the covariance times the difference; its inverse is needed.": [8.0, 1.0],
        "Divide by variances, not by standard deviations.": [1.0, 1.0],
    },
)

# Inference-time intervention

ex_compose = Value(  # the one strength that two nested interventions of α = 3 and −1 equal
    3.0 - 1.0,
    right="Interventions add, so nesting them is the same as applying their sum.",
    mistakes={
        "The second one is subtracted: its strength is negative.": 4.0,
        "Both act; the inner one does not replace the outer one.": -1.0,
        "Both act, and add.": 3.0,
        "They add; they do not multiply.": -3.0,
    },
)

ex_lie = {  # what MC2 does when a truthful shift is reversed: (82) with the sign changed
    "rises": "That is what the shift itself should do. Reversed, it leads to falsehood.",
    "falls": "Right. A direction that raised MC2 with either sign would not be one of truth.",
    "stays": "A direction that had no effect when reversed would have none as it is.",
}

ex_edit = {  # which token's probability stays if only the answer's own tokens are edited
    "first": "Right. It is predicted from the prompt's last token, which this edit leaves alone.",
    "last": "It is predicted from the token before it, which is one of the answer's own.",
    "none": "The token that predicts the answer's first one is not part of the answer.",
}

ex_number_of_heads = Value(  # the standard error of MC1 when half of 48 answers are true
    np.sqrt(0.25 / 48),
    right="So differences of a few hundredths between settings are noise.",
    mistakes={
        "That is the variance of one question. Divide by their number and take the root.": 0.25,
        "That is the standard deviation of one question. Divide by the root of their number.": 0.5,
        "Take the root: that is the variance of the mean.": 0.25 / 48,
    },
)

# Steering matrices

_TEXTS = ("food of brask?", "soil of mulin?", "any other question", "food of kral?")


def _constant(embedding: Callable[[list[str]], Any]) -> str | None:
    if not callable(embedding):
        return "An embedding is a function of a list of texts that returns one row for each text."
    weights = np.asarray(embedding(list(_TEXTS)))
    if weights.ndim != 2 or len(weights) != len(_TEXTS):
        return f"An array with one row for each text is needed; got shape {weights.shape}."
    if weights.dtype.kind not in "fiu" or not np.isfinite(weights).all():
        return "Its entries must be finite real numbers."
    if not np.allclose(weights, weights[0]):
        return "It gives the texts different vectors, so some questions weigh more than others."
    return None if weights.any() else "Its vectors are all zero, and so are all weights."


ex_constant = Construction(  # a constant λ, which makes the matrix the mass mean shift: E.3
    _constant,
    right="All questions get the same weight, so the matrix gives the mean: a steering vector.",
)

ex_by_hand = Value(  # η(x) = M λ(x) for three training questions (E.3)
    np.array([1, 0]) + 0 * np.array([0, 1]) + 0.5**0.5 * np.array([1, 1]),
    entries="first and second coordinate of η(x)",
    right="Similar questions have larger weights, and a question without similarity has none.",
    mistakes={
        "That is the plain sum, the mass mean times three.": [2.0, 2.0],
        "That is the mean. Weigh differences by the similarity of questions.": [2 / 3, 2 / 3],
        "The second question is orthogonal to x: its weight is zero.": [1.707107, 1.707107],
        "The third question's similarity is less than one.": [2.0, 1.0],
    },
)

ex_centred = {  # the corpus in which centring λ costs a steering matrix most (E.3, first idea)
    "alike": "Right. Centring removes what all questions share: in this corpus, everything.",
    "by-category": "There truth differs by category, and dissimilar questions mislead.",
    "no-source": "There truth differs by category, and dissimilar questions mislead.",
}

ex_sigma = Value(  # σ(x) = sqrt(ηᵀ Σ η) for η along (1, 1)
    np.sqrt((4 + 1 + 1 + 1) / 2),
    right="A quadratic form needs no pass over the data, so λ(x) may be of any text.",
    mistakes={
        "That is the variance; its root is the standard deviation.": 3.5,
        "η must have unit length first.": 7**0.5,
        "The covariance between the coordinates counts, too, and twice.": 2.5**0.5,
    },
)

# Truth is a subspace

ex_whiten = {  # in which coordinates a single direction leaves no second probe (E.2, item 2)
    "whitened": "Right. There probe and shift are parallel, and nothing of the shift is left.",
    "original": "There the noise is wide in one direction, which the probe avoids.",
    "rotated": "A rotation turns noise and shift alike: nothing changes.",
}

ex_erase = Value(  # what is left of δ when the probe's direction Σ⁻¹ δ is projected out
    np.array([4.0, 1.5]) - 3.25 / (0.25**2 + 1.5**2) * np.array([0.25, 1.5]),
    entries="first and second coordinate",
    right="Removing what a probe reads does not remove the concept.",
    mistakes={
        "That is zero only if δ and θ are parallel, and they are not.": [0.0, 0.0],
        "That is the difference before anything is removed.": [4.0, 1.5],
        "That is the part that was removed. What is left of δ?": [0.351351, 2.108108],
    },
)

ex_two_dimensions = {  # how good the second probe is where truth moves half the rows each way
    "chance": "Right. No linear probe finds it, though truth is a plane: absence proves little.",
    "nearly as good": "Along what is left the two halves of the true rows move opposite ways.",
    "perfect": "Along what is left the two halves of the true rows move opposite ways.",
}

ex_random_first = Value(  # the mean share of |δ|² that a random direction of 16 takes away
    1 / 16,
    right="Projecting out a random direction takes little from a given one: it is a control.",
    mistakes={
        "That is the share of the length; square it.": 0.25,
        "In sixteen dimensions all shares add up to one, and none is favoured.": 1.0,
        "That is the share that is left; the share removed was asked for.": 15 / 16,
    },
)

# On a real model

ex_family = Value(  # the shape of head activations: Appendix E.1
    [2, 4, 32 // 4],
    rtol=1e-6,
    entries="layers, heads, width of a head",
    right="The same for every family: heads are slices of the input of the output projection.",
    mistakes={
        "The heads share the width of the model: 32 over 4.": [2, 4, 32],
        "The layers come first, then the heads of each.": [4, 2, 8],
    },
)

ex_chance_level = Value(  # MC1 of random probabilities where one answer is best: Table 6
    1 / np.arange(2, 9),
    entries="2 to 8 answers",
    right="A model below chance prefers false answers, for example by repeating misconceptions.",
    mistakes={
        "With two answers, one of which is best, chance is one half.": 1 / np.arange(3, 10),
        "That is the probability of a wrong choice.": 1 - 1 / np.arange(2, 9),
        "One more answer does not change chance by the same amount.": np.linspace(1 / 2, 1 / 8, 7),
    },
)

ex_length = Value(  # how much more probable three tokens are than six, at 0.6 per token
    0.6**3 / 0.6**6,
    right="The longer answer is less probable because of its length alone.",
    mistakes={
        "That is the ratio of the log-probabilities; that of probabilities was asked for.": 2.0,
        "The other way round: the short answer's probability over the long one's.": 0.6**3,
        "Divided by length the two are equal. MC1 does not divide.": 1.0,
    },
)
