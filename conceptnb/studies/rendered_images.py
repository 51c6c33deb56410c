"""Rendered images embedded by several towers: what the chapters on CLIP start from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conceptnb.embeddings.clip.image_embedding import embed
from conceptnb.embeddings.clip.image_encoders import SMALL_NAMES, Tower, load_tower
from conceptnb.embeddings.clip.small import SMALL_SIZE
from conceptnb.embeddings.shapes3d.factors import held_out_combinations
from conceptnb.embeddings.shapes3d.images import RenderedShapes


@dataclass(frozen=True)
class Study:
    """The same images in the eyes of several towers.

    Attributes
    ----------
    shapes : source of the images
    index : (n,) their positions
    factors : (n, 6) value indices
    towers, embeddings : by name; embeddings are (n, dimension), not normalised
    """

    shapes: RenderedShapes
    index: NDArray[np.intp]
    factors: NDArray[np.intp]
    towers: dict[str, Tower]
    embeddings: dict[str, NDArray[np.float32]]

    @property
    def held_out(self) -> NDArray[np.bool_]:
        """Images (n,) whose combination of factors the small towers never saw."""
        return held_out_combinations(self.factors)


def rendered_study(n: int, rng: np.random.Generator, names: Sequence[str] = SMALL_NAMES) -> Study:
    """Render n random images at the small towers' size and embed them (Appendix D.1)."""
    shapes = RenderedShapes(SMALL_SIZE)
    index = np.sort(rng.choice(len(shapes), n, replace=False))
    towers = {name: load_tower(name) for name in names}
    embeddings = {
        name: embed(tower, shapes, index, progress=False) for name, tower in towers.items()
    }
    return Study(shapes, index, shapes.factors(index), towers, embeddings)
