"""Images and captions: zero-shot classes, directions of both, and environments from captions.

The class of a value can be the mean embedding of captions that name it and draw all other
attributes at random, as CLIP's prompt ensembles do; or one asks for the whole caption that fits
best. Unit vectors trade their parts off, so the right caption can win where the mean loses.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.common.validation import Array, as_count
from conceptnb.embeddings.arithmetic import unit, value_means
from conceptnb.embeddings.encoders.encoder import Encoder
from conceptnb.embeddings.shapes3d.captions import captions
from conceptnb.embeddings.shapes3d.factors import FACTORS, SIZES, check_factors, factor_index

TOLERANCE = {"scale": 1, "orientation": 2}
"""Steps on the grid that a prediction may be off: neighbours hardly differ in an image."""


def _class_embeddings(
    model: Encoder, factor: str, rng: np.random.Generator, *, n_captions: int = 100
) -> NDArray[np.floating]:
    """Embed values as unit vectors (n_values, dimension) of captions alike but for their word."""
    column = factor_index(factor)
    contexts = np.stack([rng.integers(0, size, n_captions) for size in SIZES], axis=1)
    rows = []
    for value in range(SIZES[column]):
        contexts[:, column] = value
        rows.append(unit(model.embed_texts(captions(contexts))).mean(axis=0))
    return unit(np.stack(rows))


def zero_shot(
    model: Encoder,
    embeddings: NDArray[np.floating],
    rng: np.random.Generator,
    factors: Sequence[str] = FACTORS,
) -> NDArray[np.intp]:
    """Return the values (n, len(factors)) whose mean captions fit embeddings (n, dimension) best.

    What the captions of a class say of other factors is drawn from `rng`.
    """
    images = unit(embeddings)
    found = [(images @ _class_embeddings(model, name, rng).T).argmax(axis=1) for name in factors]
    return np.stack(found, axis=1)


def best_captions(
    model: Encoder, embeddings: NDArray[np.floating], start: ArrayLike, *, sweeps: int = 3
) -> NDArray[np.intp]:
    """Values (n, 6) named by the caption that fits each image best.

    480,000 captions are too many to try, so one word at a time is exchanged for the one
    that fits best in its company, factor by factor, until no exchange helps or after `sweeps`
    rounds. The search starts from the values `start` (n, 6), as from `zero_shot`.
    """
    images, guess = unit(embeddings), check_factors(start).copy()
    if len(guess) != len(images):
        raise ValueError(f"start has {len(guess)} rows for {len(images)} images")
    active = np.arange(len(images))
    for _ in range(as_count(sweeps, "sweeps")):
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


def text_agreement(
    model: Encoder, Z: ArrayLike, factors: ArrayLike, factor: str, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Ask whether captions differ in the direction in which images differ (Section 6).

    Embeddings Z (n, dimension) of images with `factors` (n, 6) are scaled to unit length, as CLIP's
    loss does; every value of `factor` has to occur. `rng` draws what captions say of others.

    Returns
    -------
    same, other : ndarray of shape (n_pairs,)
        Cosines between image and caption difference of the same two values, and of the image
        difference with the captions of another pair.
    """
    labels = check_factors(factors)[:, factor_index(factor)]
    texts = _class_embeddings(model, factor, rng)
    if (missing := np.setdiff1d(np.arange(len(texts)), labels)).size:
        raise ValueError(f"{factor}={missing[0]} has no image; embed more images")
    images = value_means(unit(Z), labels)
    i, j = np.triu_indices(len(images), 1)
    image_gaps, text_gaps = unit(images[j] - images[i]), unit(texts[j] - texts[i])
    cosines = image_gaps @ text_gaps.T
    return np.diag(cosines), np.diag(np.roll(cosines, len(cosines) // 2, axis=1))


def vague_caption(factor: str, value: int) -> str:
    """Caption that names one value of one factor and leaves the others open (Section 6)."""
    row = [[value if name == factor else 0 for name in FACTORS]]
    return captions(row, vague=[name for name in FACTORS if name != factor])[0]


def caption_environment(model: Encoder, Z: ArrayLike, caption: str, n: int) -> NDArray[np.intp]:
    """Positions (n,) of the images that fit a caption best, best first.

    The paper reads captions as concept indicators: images that go with "coloured
    red ..." are a sample of a concept conditional distribution (Definition 3).
    """
    images = unit(Z)
    if not 1 <= n <= len(images):
        raise ValueError(f"n={n} must lie between 1 and {len(images)}, the number of images")
    similarity = images @ unit(model.embed_texts([caption]))[0]
    return np.argsort(-similarity)[:n]


def environments_from_captions(
    model: Encoder, Z: ArrayLike, texts: Sequence[str], n: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Environment data without labels: all images as the base, and n images per caption.

    Returns
    -------
    rows : ndarray of shape (samples + m n,)
        Positions of images.
    environment : ndarray of shape (samples + m n,)
        0 for the base, k for the k-th caption; ``Z[rows]`` and `environment` are what
        `conceptnb.learning.ConceptLearner` fits.
    """
    base = np.arange(len(np.asarray(Z)))
    chosen = [caption_environment(model, Z, text, n) for text in texts]
    labels = [np.full(len(rows), e) for e, rows in enumerate([base, *chosen])]
    return np.concatenate([base, *chosen]), np.concatenate(labels)
