"""Exercises on truth in a language model: probes, interventions, vectors and matrices."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from conceptnb.common.validation import Array
from conceptnb.exercises.engine import Construction, Value

# A toy corpus with known truth
_ex_best_voice = Value(  # the best MC1 with one source, and with one for each category
    lambda by_source: [by_source.mean(axis=1).max(), by_source.max(axis=0).mean()],
    mistakes={
        "For one source, average over categories, then take the best.": lambda x: x[[1, 1]],
        "By category, take the best source in each column; then average.": lambda x: x[[0, 0]],
    },
)


@Value.declare(
    mistakes={"That is the mean of all questions twice.": lambda x: np.full(2, x.mean())}
)
def _ex_popularity(corpus: Any, mc1: Array) -> Array:
    top = corpus.popularity[:, :, 0].ravel()
    popular = top > np.median(top)
    return np.array([mc1[popular].mean(), mc1[~popular].mean()])


# Reading truth off the heads
@Value.declare()
def _ex_carry_over(x: Array, true: NDArray[np.bool_], first: NDArray[np.bool_]) -> float:
    """Return the balanced accuracy, on other categories, of a probe of the first (E.1)."""
    probe = LogisticRegression(max_iter=1000, class_weight="balanced").fit(x[first], true[first])
    return balanced_accuracy_score(true[~first], probe.predict(x[~first]))


# Steering matrices

_TEXTS = ("food of brask?", "soil of mulin?", "any other question", "food of kral?")


@Construction.declare()
def _ex_constant(embedding: Callable[[list[str]], Any]) -> str | None:
    """Look for a constant λ, which makes the matrix the mass mean shift: E.3."""
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


_ex_real_heads = Value(  # best of all heads, that of the shuffled labels, and how many exceed it
    lambda heads, shuffled: [heads.max(), shuffled.max(), (heads > shuffled.max()).sum()],
    mistakes={
        "The other way round: the trained labels come first.": lambda x: x[[1, 0, 2]],
        "The third is a number of heads, not a share.": lambda x: x / np.array([1, 1, 270]),
    },
)
