"""Captions as concepts: what text and image embeddings share, and environments from captions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.core.validation import Array
from conceptnb.embeddings.arithmetic import unit, value_means
from conceptnb.embeddings.clip.clip_models import ClipModel
from conceptnb.embeddings.clip.zeroshot import class_embeddings
from conceptnb.embeddings.shapes3d.captions import captions
from conceptnb.embeddings.shapes3d.factors import FACTORS, check_factors, factor_index


def text_agreement(
    model: ClipModel, Z: ArrayLike, factors: ArrayLike, factor: str, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Ask whether captions differ in the direction in which images differ (Section 6).

    Image embeddings are scaled to unit length, as CLIP's loss does.

    Parameters
    ----------
    model : ClipModel
    Z : array-like of shape (n, dimension)
        Embeddings of images.
    factors : array-like of shape (n, 6)
        Of these images; every value of `factor` has to occur.
    factor : str
    rng : numpy.random.Generator
        Source of what the captions say of other factors.

    Returns
    -------
    same : ndarray of shape (n_pairs,)
        Cosines between image and caption difference of the same two values.
    other : ndarray of shape (n_pairs,)
        The image difference against the captions of another pair.

    Raises
    ------
    ValueError
        If a value has no image.
    """
    labels = check_factors(factors)[:, factor_index(factor)]
    texts = class_embeddings(model, factor, rng)
    if (missing := np.setdiff1d(np.arange(len(texts)), labels)).size:
        raise ValueError(f"{factor}={missing[0]} has no image; embed more images")
    images = value_means(unit(Z), labels)
    i, j = np.triu_indices(len(images), 1)
    image_gaps, text_gaps = unit(images[j] - images[i]), unit(texts[j] - texts[i])
    cosines = image_gaps @ text_gaps.T
    return np.diag(cosines), np.diag(np.roll(cosines, len(cosines) // 2, axis=1))


def vague_caption(factor: str, value: int) -> str:
    """Caption that names one value of one factor and leaves the others open (Section 6).

    The images that fit it are a concept conditional environment of that factor.
    """
    row = [[value if name == factor else 0 for name in FACTORS]]
    return captions(row, vague=[name for name in FACTORS if name != factor])[0]


def caption_environment(model: ClipModel, Z: ArrayLike, caption: str, n: int) -> NDArray[np.intp]:
    """Positions (n,) of the images that fit a caption best, best first.

    The paper reads captions as concept indicators: images that go with "coloured
    red ..." are a sample of a concept conditional distribution (Definition 3).

    Raises
    ------
    ValueError
        If `n` is not between 1 and the number of images.
    """
    images = unit(Z)
    if not 1 <= n <= len(images):
        raise ValueError(f"n={n} must lie between 1 and {len(images)}, the number of images")
    similarity = images @ unit(model.embed_texts([caption]))[0]
    return np.argsort(-similarity)[:n]


def environments_from_captions(
    model: ClipModel, Z: ArrayLike, texts: Sequence[str], n: int
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
