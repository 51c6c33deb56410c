"""Captions of rendered scenes, such as "huge aqua ball on green floor by mint wall seen from -30°".

A caption names the concepts present in an image (Section 6). An attribute can be left vague
("some", "coloured"); the images that fit are then a concept conditional environment.
"""

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
    **dict.fromkeys(FACTORS[:3], HUE_NAMES),
    "scale": ("tiny", "small", "smallish", "middling", "biggish", "big", "huge", "giant"),
    "shape": SHAPE_NAMES,
    "orientation": tuple(f"{angle:+.0f}°" for angle in ORIENTATIONS),
}
"""The word for each value of each factor."""

VAGUE: dict[str, str] = dict(
    zip(FACTORS, ("coloured", "coloured", "coloured", "some", "thing", "anywhere"), strict=True)
)
"""The word that leaves a factor open."""

_TEMPLATE = (
    "{scale} {object_hue} {shape} on {floor_hue} floor by {wall_hue} wall seen from {orientation}"
)

_BETWEEN = ("on", "floor", "by", "wall", "seen", "from")
VOCABULARY = tuple(dict.fromkeys(chain(*WORDS.values(), VAGUE.values(), _BETWEEN)))
"""Every word that a caption can hold, each once."""


def captions(
    factors: ArrayLike, *, vague: Collection[str] = (), left_open: ArrayLike | None = None
) -> list[str]:
    """Captions of value indices (n, 6).

    Parameters
    ----------
    factors : array-like of shape (n, 6)
    vague : collection of str
        Names of factors to leave open in every caption.
    left_open : array-like of bool of shape (n, 6), optional
        Further attributes to leave open, caption by caption.
    """
    array = check_factors(factors)
    is_vague = np.zeros(array.shape) if left_open is None else np.asarray(left_open)
    if is_vague.shape != array.shape:
        raise ValueError(f"left_open has shape {is_vague.shape}, and factors {array.shape}")
    is_vague = is_vague.astype(bool)
    for name in vague:
        is_vague[:, factor_index(name)] = True
    found = []
    for row, is_open in zip(array, is_vague, strict=True):
        each = zip(FACTORS, row, is_open, strict=True)
        words = {name: VAGUE[name] if open_ else WORDS[name][k] for name, k, open_ in each}
        found.append(_TEMPLATE.format(**words))
    return found
