"""Zero-shot classification: which caption fits an image best.

Two ways. The class of a value can be the mean embedding of captions that name it and
draw all other attributes at random, as CLIP's prompt ensembles average over templates.
Or one asks for the whole caption that fits best. Unit vectors trade their parts off:
a caption whose hue counts for little counts the more for everything else, so that the
right caption wins although the mean over contexts, in which all else cancels, loses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.embeddings.arithmetic import unit
from conceptnb.embeddings.clip.clip_models import ClipModel
from conceptnb.embeddings.shapes3d.captions import captions
from conceptnb.embeddings.shapes3d.factors import FACTORS, SIZES, check_factors, factor_index

TOLERANCE = {"scale": 1, "orientation": 2}
"""Steps on the grid that a prediction may be off: neighbours hardly differ in an image."""


def class_embeddings(
    model: ClipModel, factor: str, rng: np.random.Generator, *, n_captions: int = 100
) -> NDArray[np.floating]:
    """Embed the values of a factor as unit text vectors (n_values, dimension).

    All values share the same captions but for the factor's own word, so that
    their differences are due to that word.
    """
    column = factor_index(factor)
    contexts = np.stack([rng.integers(0, size, n_captions) for size in SIZES], axis=1)
    rows = []
    for value in range(SIZES[column]):
        contexts[:, column] = value
        rows.append(unit(model.embed_texts(captions(contexts))).mean(axis=0))
    return unit(np.stack(rows))


def zero_shot(
    model: ClipModel,
    embeddings: NDArray[np.floating],
    rng: np.random.Generator,
    factors: Sequence[str] = FACTORS,
) -> NDArray[np.intp]:
    """Return the predicted values of factors (n, len(factors)), each by its mean captions.

    Parameters
    ----------
    model : ClipModel
    embeddings : ndarray of shape (n, dimension)
        Of images.
    rng : numpy.random.Generator
        Source of what the captions of a class say of other factors.
    factors : sequence of str
        Names; all six by default.
    """
    images = unit(embeddings)
    found = [(images @ class_embeddings(model, name, rng).T).argmax(axis=1) for name in factors]
    return np.stack(found, axis=1)


def best_captions(
    model: ClipModel, embeddings: NDArray[np.floating], start: ArrayLike, *, sweeps: int = 3
) -> NDArray[np.intp]:
    """Values (n, 6) named by the caption that fits each image best.

    480,000 captions are too many to try, so one word at a time is exchanged for the one
    that fits best in its company, factor by factor, until no exchange helps.

    Parameters
    ----------
    model : ClipModel
    embeddings : ndarray of shape (n, dimension)
        Of images.
    start : array-like of shape (n, 6)
        Values to start from, as from `zero_shot`.
    sweeps : int
        Most rounds through the factors.

    Raises
    ------
    ValueError
        If `start` has not one row per image, or `sweeps` is below 1.
    """
    images, guess = unit(embeddings), check_factors(start).copy()
    if len(guess) != len(images):
        raise ValueError(f"start has {len(guess)} rows for {len(images)} images")
    if sweeps < 1:
        raise ValueError(f"sweeps={sweeps} must be at least 1")
    active = np.arange(len(images))
    for _ in range(sweeps):
        before = guess[active]
        for column, size in enumerate(SIZES):
            tried = guess[active].repeat(size, axis=0)
            tried[:, column] = np.tile(np.arange(size), len(active))
            texts = unit(model.embed_texts(captions(tried))).reshape(len(active), size, -1)
            fit = np.einsum("nd,nvd->nv", images[active], texts)
            guess[active, column] = fit.argmax(axis=1)
        active = active[(guess[active] != before).any(axis=1)]
        if not active.size:
            break
    return guess


def accuracies(found: ArrayLike, factors: ArrayLike) -> dict[str, float]:
    """Share of predicted values (n, 6) that are right for each factor, within `TOLERANCE` steps."""
    off = np.abs(check_factors(found) - check_factors(factors))
    return {
        name: float((off[:, column] <= TOLERANCE.get(name, 0)).mean())
        for column, name in enumerate(FACTORS)
    }
