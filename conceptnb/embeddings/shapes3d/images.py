"""Images of 3D Shapes from two sources: rendered here, or the file of Burgess and Kim (2018).

Both keep the published order, so the same positions mean the same factors.
"""

import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.common.downloads import fetch
from conceptnb.embeddings.shapes3d.factors import (
    FACTOR_VALUES,
    FACTORS,
    N_IMAGES,
    check_index,
    index_to_factors,
)
from conceptnb.embeddings.shapes3d.renderer import Renderer

PUBLISHED_URL = "https://storage.googleapis.com/3d-shapes/3dshapes.h5"
PUBLISHED_SHA256 = "0a0f6ed98baff276a50f3a081a7434d788da63cb135a98189b2a5b5769be1785"


def _factors_from_labels(labels: NDArray[np.float64]) -> NDArray[np.intp]:
    """Value indices (n, 6) of published labels (n, 6), such as scale .75 or -30 degrees."""
    factors = np.empty(labels.shape, dtype=np.intp)
    for column, name in enumerate(FACTORS):
        values = FACTOR_VALUES[name]
        nearest = np.searchsorted((values[1:] + values[:-1]) / 2, labels[:, column])
        factors[:, column] = nearest
        if not np.abs(labels[:, column] - values[nearest]).max() < 1e-6:  # also refuses NaN
            raise ValueError(f"labels of {name} must be among {values.round(4).tolist()}")
    return factors


class RenderedShapes:
    """The 480,000 images as rendered here, of some width and height in pixels; see `Renderer`."""

    source = "rendered here, not the published 3D Shapes"

    def __init__(self, size: int = 64) -> None:
        self._render = Renderer(size)

    def images(self, index: ArrayLike) -> NDArray[np.uint8]:
        """Images (n, size, size, 3) at the given positions."""
        return self._render(index_to_factors(index))


class PublishedShapes:
    """The published data set, read from its HDF5 file, as from `download`.

    Raises FileNotFoundError without the file, and ValueError for one of another layout.
    """

    source = "the published 3D Shapes"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        import h5py  # noqa: PLC0415 - only readers of the published file need it

        self.path = Path(path)
        if not self.path.exists():
            raise FileNotFoundError(f"path={path} is missing: shapes3d.download() fetches it")
        try:
            self._file: Any = h5py.File(self.path, "r")
        except OSError as error:
            raise ValueError(f"path={str(path)!r} is not a readable HDF5 file: {error}") from error
        try:
            self._check()
        except ValueError:
            self._file.close()
            raise

    def _check(self) -> None:
        wanted = {
            "images": ((N_IMAGES, 64, 64, 3), np.uint8),
            "labels": ((N_IMAGES, len(FACTORS)), np.float64),
        }
        for key, (shape, dtype) in wanted.items():
            if key not in self._file:
                raise ValueError(
                    f"{self.path} has no data set {key!r} but {sorted(self._file)}; "
                    "is it the file of 3D Shapes?"
                )
            found = self._file[key]
            if found.shape != shape or found.dtype != dtype:
                raise ValueError(
                    f"{self.path}: {key!r} must have shape {shape} and type "
                    f"{np.dtype(dtype)}; it has {found.shape} and {found.dtype}"
                )
        factors = _factors_from_labels(self._file["labels"][:])
        if not np.array_equal(factors, index_to_factors(np.arange(N_IMAGES))):
            raise ValueError(f"{self.path}: the labels are not in the published order")

    def __reduce__(self) -> tuple[type[Self], tuple[Path]]:
        """Open the file again in another process."""
        return type(self), (self.path,)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def images(self, index: ArrayLike) -> NDArray[np.uint8]:
        """Images (n, 64, 64, 3) at the given positions, in the order of `index`."""
        # Chunks of the file are compressed: read in rising order and whole runs at a time.
        unique, back = np.unique(check_index(index), return_inverse=True)
        images = np.empty((len(unique), 64, 64, 3), dtype=np.uint8)
        done = 0
        for run in np.split(unique, np.flatnonzero(np.diff(unique) > 1) + 1):
            if run.size:
                images[done : done + run.size] = self._file["images"][run[0] : run[-1] + 1]
                done += run.size
        return images[back]


def download(
    directory: str | os.PathLike[str] | None = None,
    *,
    url: str = PUBLISHED_URL,
    sha256: str = PUBLISHED_SHA256,
) -> Path:
    """Fetch the published file (255 MiB, Apache 2.0), check it and return its path.

    It is kept in `directory`, by default the user's cache. A broken download goes on where it
    stopped, and a file that is there and right is not fetched again. `url` names another place,
    `sha256` the checksum of what lies there; ValueError if what arrived does not have it.
    """
    return fetch(url, sha256, name="3dshapes.h5", folder=directory)


ShapesImages = RenderedShapes | PublishedShapes
"""A source of images."""
