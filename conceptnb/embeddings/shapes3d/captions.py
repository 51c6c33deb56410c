"""Captions of rendered scenes, such as "huge aqua ball on green floor by mint wall seen from -30°".

A caption names the concepts present in an image (Section 6). An attribute can be left vague
("some", "coloured"); the images that fit are then a concept conditional environment.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike

from conceptnb.embeddings.shapes3d.factors import (
    FACTORS,
    ORIENTATIONS,
    SHAPE_NAMES,
    check_factors,
    factor_index,
)

HUE_NAMES = ("red", "orange", "lime", "green", "mint", "aqua", "azure", "indigo", "purple", "pink")

WORDS: dict[str, tuple[str, ...]] = {
    "floor_hue": HUE_NAMES,
    "wall_hue": HUE_NAMES,
    "object_hue": HUE_NAMES,
    "scale": ("tiny", "small", "smallish", "middling", "biggish", "big", "huge", "giant"),
    "shape": SHAPE_NAMES,
    "orientation": tuple(f"{angle:+.0f}°" for angle in ORIENTATIONS),
}
"""The word for each value of each factor."""

VAGUE: dict[str, str] = {
    **dict.fromkeys(("floor_hue", "wall_hue", "object_hue"), "coloured"),
    "scale": "some",
    "shape": "thing",
    "orientation": "anywhere",
}
"""The word that leaves a factor open."""

_TEMPLATE = (
    "{scale} {object_hue} {shape} on {floor_hue} floor by {wall_hue} wall seen from {orientation}"
)

_BETWEEN = ("on", "floor", "by", "wall", "seen", "from")
VOCABULARY = tuple(dict.fromkeys(chain(*WORDS.values(), VAGUE.values(), _BETWEEN)))
"""Every word that a caption can hold, each once."""


def captions(
    factors: ArrayLike,
    *,
    vague: Collection[str] = (),
    vague_rate: float = 0.0,
    rng: np.random.Generator | None = None,
    left_open: ArrayLike | None = None,
) -> list[str]:
    """Captions of value indices (n, 6).

    Parameters
    ----------
    factors : array-like of shape (n, 6)
        Whole numbers.
    vague : collection of str
        Names of factors to leave open in every caption.
    vague_rate : float
        Chance in [0, 1] that each further attribute is left open.
    rng : numpy.random.Generator, optional
        Needed when `vague_rate` is above 0.
    left_open : array-like of bool of shape (n, 6), optional
        Further attributes to leave open, caption by caption.

    Raises
    ------
    ValueError
        If a factor is unknown, `vague_rate` is not a probability or lacks `rng`, or
        `left_open` is of another shape than `factors`.
    """
    array = check_factors(factors)
    if not 0 <= vague_rate <= 1:
        raise ValueError(f"vague_rate={vague_rate} must lie in [0, 1]")
    is_vague = np.zeros(array.shape, dtype=bool)
    if vague_rate > 0:
        if rng is None:
            raise ValueError("vague_rate above 0 needs rng, a numpy Generator")
        is_vague = rng.random(array.shape) < vague_rate
    if left_open is not None:
        mask = np.asarray(left_open, dtype=bool)
        if mask.shape != array.shape:
            raise ValueError(
                f"left_open has shape {mask.shape}; it needs that of factors, {array.shape}"
            )
        is_vague |= mask
    for name in vague:
        is_vague[:, factor_index(name)] = True
    found = []
    for row, is_open in zip(array, is_vague, strict=True):
        each = zip(FACTORS, row, is_open, strict=True)
        words = {name: VAGUE[name] if open_ else WORDS[name][k] for name, k, open_ in each}
        found.append(_TEMPLATE.format(**words))
    return found
