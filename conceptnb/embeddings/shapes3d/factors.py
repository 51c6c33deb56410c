"""The six factors of 3D Shapes, their values and their grid (Appendix D; Burgess and Kim, 2018).

The data set holds every combination of the factors once, 480,000 in all. The last factor varies
fastest, so a combination and its position in the file determine each other.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from matplotlib.colors import hsv_to_rgb
from numpy.typing import ArrayLike, NDArray

FactorName = Literal["floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation"]

FACTORS: tuple[FactorName, ...] = get_args(FactorName)
"""Names of the factors, in the order of the columns of the labels."""

SIZES: tuple[int, ...] = (10, 10, 10, 8, 4, 15)
N_IMAGES = 480_000  # the product of SIZES
SHAPE_NAMES: tuple[str, ...] = ("cube", "cylinder", "ball", "ellipsoid")

HUES = np.arange(10) / 10
SCALES = np.linspace(0.75, 1.25, 8)
ORIENTATIONS = np.linspace(-30.0, 30.0, 15)

FACTOR_VALUES: dict[str, NDArray[np.float64]] = dict(
    zip(FACTORS, (HUES, HUES, HUES, SCALES, np.arange(4.0), ORIENTATIONS), strict=True)
)
"""Values in the published labels: hues in [0, 1), scales, numbers of shapes, degrees."""


def factor_index(factor: str) -> int:
    """Column of a factor in arrays of factors; raises ValueError if there is none."""
    if factor not in FACTORS:
        raise ValueError(f"factor={factor!r} is unknown; choose one of {', '.join(FACTORS)}")
    return FACTORS.index(factor)  # type: ignore[arg-type]


def check_factors(factors: ArrayLike) -> NDArray[np.intp]:
    """Return value indices as an integer array of shape (n, 6), or raise ValueError."""
    array = np.asarray(factors)
    if array.ndim != 2 or array.shape[1] != len(FACTORS):
        raise ValueError(f"factors have shape (n, 6), for {', '.join(FACTORS)}; got {array.shape}")
    whole = array.astype(np.intp)
    if not np.array_equal(whole, array):
        raise ValueError("factors must be whole numbers, positions on the grid and no values")
    off_grid = (whole < 0) | (whole >= np.array(SIZES))
    if off_grid.any():
        row, column = np.argwhere(off_grid)[0]
        name, value = FACTORS[column], whole[row, column]
        raise ValueError(f"factors[{row}, {column}]={value}: {name} takes 0 to {SIZES[column] - 1}")
    return whole


def index_to_factors(index: ArrayLike) -> NDArray[np.intp]:
    """Value indices (n, 6) of the images at the given positions (n,) of the data file."""
    return np.stack(np.unravel_index(check_index(index), SIZES), axis=1)


def check_index(index: ArrayLike) -> NDArray[np.intp]:
    """Return positions in the data file as an integer array of shape (n,), or raise ValueError."""
    array = np.atleast_1d(np.asarray(index))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"index must be whole numbers; got {array.dtype} of shape {array.shape}")
    if array.size and (array.min() < 0 or array.max() >= N_IMAGES):
        raise ValueError(f"index must lie in [0, {N_IMAGES}); got {array.min()} to {array.max()}")
    return array.astype(np.intp)


def factors_to_index(factors: ArrayLike) -> NDArray[np.intp]:
    """Positions in the data file of the images with the given (n, 6) factors."""
    return np.ravel_multi_index(tuple(check_factors(factors).T), SIZES)


def sample_factors(n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw `n` combinations uniformly, without repetition while the grid lasts."""
    if n < 1 or n > N_IMAGES:
        raise ValueError(f"n={n} must lie in [1, {N_IMAGES}]")
    return index_to_factors(rng.choice(N_IMAGES, size=n, replace=False))


def held_out_combinations(factors: ArrayLike) -> NDArray[np.bool_]:
    """Which combinations (n,) the small CLIP models never saw in training.

    Of each scale and shape one object hue is held out. Every pair of values is still seen; a model
    that is right on these images has composed what it learned.
    """
    array = check_factors(factors)
    object_hue, scale, shape = array[:, 2], array[:, 3], array[:, 4]
    return (object_hue + 3 * scale + 5 * shape + shape // 2) % 10 == 0


def hue_to_rgb(hue_index: ArrayLike) -> NDArray[np.float32]:
    """Red, green and blue in [0, 1] of fully saturated hues, (n,) to (n, 3)."""
    hues = HUES[np.asarray(hue_index)]
    ones = np.ones_like(hues)
    return hsv_to_rgb(np.stack([hues, ones, ones], axis=-1)).astype(np.float32)


def factor_labels(factor: str) -> Sequence[str]:
    """Short texts for the values of a factor, for axes and tables."""
    if factor == "shape":
        return SHAPE_NAMES
    digits = 2 if factor == "scale" else 1
    return [f"{value:.{digits}f}" for value in FACTOR_VALUES[factor]]
