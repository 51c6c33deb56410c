"""The text side: captions as concepts, environments from captions, and moving embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.embeddings.clip.image_encoders import Tower
from conceptnb.embeddings.clip.zeroshot import class_embeddings, unit
from conceptnb.embeddings.shapes3d import captions
from conceptnb.embeddings.shapes3d.factors import FACTORS, check_factors, factor_index

Array = NDArray[np.floating]


def value_means(Z: ArrayLike, factors: ArrayLike, factor: str) -> Array:
    """Mean embedding (n_values, dimension) of the images of each value of a factor.

    Raises
    ------
    ValueError
        If a value has no image.
    """
    points = np.asarray(Z, dtype=float)
    labels = check_factors(factors)[:, factor_index(factor)]
    counts = np.bincount(labels)
    if not counts.all():
        raise ValueError(f"{factor}={counts.argmin()} has no image; embed more images")
    return np.stack([points[labels == value].mean(axis=0) for value in range(len(counts))])


@dataclass(frozen=True)
class TextAgreement:
    """Cosines between differences of image means and differences of caption embeddings.

    Attributes
    ----------
    same : (n_pairs,) image and caption difference of the same two values
    other : (n_pairs,) the image difference against the captions of another pair
    """

    same: Array
    other: Array


def text_agreement(
    tower: Tower, Z: ArrayLike, factors: ArrayLike, factor: str, rng: np.random.Generator
) -> TextAgreement:
    """Ask whether captions differ in the direction in which images differ (Section 6).

    Image embeddings are scaled to unit length, as CLIP's loss does.
    """
    images = value_means(unit(np.asarray(Z)), factors, factor)
    texts = class_embeddings(tower, factor, rng)
    i, j = np.triu_indices(len(images), 1)
    image_gaps, text_gaps = unit(images[j] - images[i]), unit(texts[j] - texts[i])
    cosines = image_gaps @ text_gaps.T
    return TextAgreement(np.diag(cosines), np.diag(np.roll(cosines, len(cosines) // 2, axis=1)))


def vague_caption(factor: str, value: int) -> str:
    """Caption that names one value of one factor and leaves the others open (Section 6).

    The images that fit it are a concept conditional environment of that factor.
    """
    row = [[value if name == factor else 0 for name in FACTORS]]
    return captions(row, vague=[name for name in FACTORS if name != factor])[0]


def caption_environment(tower: Tower, Z: ArrayLike, caption: str, n: int) -> NDArray[np.intp]:
    """Positions (n,) of the images that fit a caption best, best first.

    The paper reads captions as concept indicators: images that go with "coloured
    red ..." are a sample of a concept conditional distribution (Definition 3).

    Raises
    ------
    ValueError
        If `n` is not between 1 and the number of images.
    """
    images = unit(np.asarray(Z))
    if not 1 <= n <= len(images):
        raise ValueError(f"n={n} must lie between 1 and {len(images)}, the number of images")
    similarity = images @ unit(tower.embed_texts([caption]))[0]
    return np.argsort(-similarity)[:n]


def environments_from_captions(
    tower: Tower, Z: ArrayLike, texts: Sequence[str], n: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Environment data without labels: all images as the base, and n images a caption.

    Returns
    -------
    rows : (samples + m n,) positions of images
    environment : (samples + m n,) 0 for the base, k for the k-th caption; both
        together are what `conceptnb.learning.ConceptLearner` fits
    """
    base = np.arange(len(np.asarray(Z)))
    chosen = [caption_environment(tower, Z, text, n) for text in texts]
    labels = [np.full(len(rows), e) for e, rows in enumerate([base, *chosen])]
    return np.concatenate([base, *chosen]), np.concatenate(labels)


def move(Z: ArrayLike, means: ArrayLike, start: ArrayLike, end: ArrayLike) -> Array:
    """Move embeddings from one value of a factor to another: z + mean(end) - mean(start).

    By linearity the valuation A z moves from one concept plane to the other.

    Parameters
    ----------
    Z : (n, dimension) embeddings
    means : (n_values, dimension), as from `value_means`
    start, end : (n,) values before and after
    """
    centres = np.asarray(means)
    return np.asarray(Z) + centres[np.asarray(end)] - centres[np.asarray(start)]


def nearest_images(Z: ArrayLike, gallery: ArrayLike) -> NDArray[np.intp]:
    """Row (n,) of the gallery whose embedding has the largest cosine with each of Z."""
    return (unit(np.asarray(Z)) @ unit(np.asarray(gallery)).T).argmax(axis=1)
