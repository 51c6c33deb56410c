"""Captions of rendered scenes, such as "huge aqua ball on green floor by mint wall seen from -30°".

A caption names the concepts present in an image (Section 6). An attribute can be
left vague ("some", "coloured", "thing", "anywhere"); the images that fit such a
caption are then a concept conditional environment.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.embeddings.shapes3d.factors import (
    FACTORS,
    ORIENTATIONS,
    SHAPE_NAMES,
    check_factors,
    factor_index,
)

HUE_NAMES = (
    "red",
    "orange",
    "lime",
    "green",
    "mint",
    "aqua",
    "azure",
    "indigo",
    "purple",
    "pink",
)
SCALE_NAMES = ("tiny", "small", "smallish", "middling", "biggish", "big", "huge", "giant")
ORIENTATION_NAMES = tuple(f"{angle:+.0f}°" for angle in ORIENTATIONS)

WORDS: dict[str, tuple[str, ...]] = {
    "floor_hue": HUE_NAMES,
    "wall_hue": HUE_NAMES,
    "object_hue": HUE_NAMES,
    "scale": SCALE_NAMES,
    "shape": SHAPE_NAMES,
    "orientation": ORIENTATION_NAMES,
}
"""The word for each value of each factor."""

VAGUE: dict[str, str] = {
    "floor_hue": "coloured",
    "wall_hue": "coloured",
    "object_hue": "coloured",
    "scale": "some",
    "shape": "thing",
    "orientation": "anywhere",
}
"""The word that leaves a factor open."""

_TEMPLATE = (
    "{scale} {object_hue} {shape} on {floor_hue} floor by {wall_hue} wall seen from {orientation}"
)

VOCABULARY: tuple[str, ...] = tuple(
    dict.fromkeys(
        word
        for words in (
            *WORDS.values(),
            VAGUE.values(),
            ("on", "floor", "by", "wall", "seen", "from"),
        )
        for word in words
    )
)
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
    return [_caption(row, open_row) for row, open_row in zip(array, is_vague, strict=True)]


def _caption(row: NDArray[np.intp], is_vague: NDArray[np.bool_]) -> str:
    words = {
        name: VAGUE[name] if is_vague[k] else WORDS[name][row[k]] for k, name in enumerate(FACTORS)
    }
    return _TEMPLATE.format(**words)
