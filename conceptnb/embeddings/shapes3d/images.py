"""Images of 3D Shapes from two sources with one interface.

`RenderedShapes` composes images here and needs no data. `PublishedShapes` reads
the data set of Burgess and Kim (2018), one HDF5 file with `images`
(480000, 64, 64, 3) and `labels` (480000, 6). Both keep the published order, so
the same positions mean the same factors.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.embeddings.shapes3d.factors import (
    FACTOR_VALUES,
    FACTORS,
    N_IMAGES,
    index_to_factors,
)
from conceptnb.embeddings.shapes3d.renderer import Renderer

PUBLISHED_URL = "https://storage.googleapis.com/3d-shapes/3dshapes.h5"
PUBLISHED_SHA256 = "0a0f6ed98baff276a50f3a081a7434d788da63cb135a98189b2a5b5769be1785"
PUBLISHED_BYTES = 267_573_662


def _check_index(index: ArrayLike, n: int) -> NDArray[np.intp]:
    array = np.atleast_1d(np.asarray(index, dtype=np.intp))
    if array.ndim != 1:
        raise ValueError(f"index must be one-dimensional; got shape {array.shape}")
    if array.size and (array.min() < 0 or array.max() >= n):
        raise ValueError(f"index must lie in [0, {n}); got {array.min()} to {array.max()}")
    return array


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
    """The 480,000 images as rendered here; see `Renderer`.

    Parameters
    ----------
    size : int
        Width and height in pixels. The published images have 64.
    """

    source = "rendered here, not the published 3D Shapes"

    def __init__(self, size: int = 64) -> None:
        self._render = Renderer(size)

    def __len__(self) -> int:
        return N_IMAGES

    def factors(self, index: ArrayLike) -> NDArray[np.intp]:
        """Value indices (n, 6) of the images at the given positions."""
        return index_to_factors(_check_index(index, N_IMAGES))

    def images(self, index: ArrayLike) -> NDArray[np.uint8]:
        """Images (n, size, size, 3) at the given positions."""
        return self._render(self.factors(index))


class PublishedShapes:
    """The published data set, read from its HDF5 file.

    The chunks of the file are compressed, so positions are read in rising order
    and whole runs at a time, whatever order they are asked for in.

    Parameters
    ----------
    path : path
        The HDF5 file, as from `download`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not HDF5, lacks `images` or `labels`, or holds other shapes,
        types or an order of labels other than the published one.

    Examples
    --------
    >>> with PublishedShapes("3dshapes.h5") as shapes:      # doctest: +SKIP
    ...     images = shapes.images(range(1000))
    """

    source = "the published 3D Shapes"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        import h5py  # noqa: PLC0415 - only readers of the published file need it

        self.path = Path(path)
        if not self.path.exists():
            raise FileNotFoundError(
                f"path={str(path)!r} does not exist; fetch the file with "
                "conceptnb.embeddings.shapes3d.download()"
            )
        try:
            self._file: Any = h5py.File(self.path, "r")
        except OSError as error:
            raise ValueError(f"path={str(path)!r} is not a readable HDF5 file: {error}") from error
        try:
            self._labels = self._check()
        except ValueError:
            self._file.close()
            raise

    def _check(self) -> NDArray[np.intp]:
        """Refuse a file whose layout or labels are not the published ones."""
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
        return factors

    def __reduce__(self) -> tuple[type[PublishedShapes], tuple[Path]]:
        """Open the file again in another process."""
        return PublishedShapes, (self.path,)

    def __len__(self) -> int:
        return N_IMAGES

    def __enter__(self) -> PublishedShapes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def factors(self, index: ArrayLike) -> NDArray[np.intp]:
        """Value indices (n, 6) of the images at the given positions."""
        return self._labels[_check_index(index, N_IMAGES)]

    def images(self, index: ArrayLike) -> NDArray[np.uint8]:
        """Images (n, 64, 64, 3) at the given positions, in the order of `index`."""
        array = _check_index(index, N_IMAGES)
        unique, back = np.unique(array, return_inverse=True)
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
    progress: bool = True,
) -> Path:
    """Fetch the published file (255 MiB, Apache 2.0), check it and return its path.

    A broken download goes on where it stopped. A file that is already there and
    right is not fetched again.

    Parameters
    ----------
    directory : path, optional
        Where to keep the file; by default the user's cache directory.
    url, sha256 : str
        Another place and the checksum of what lies there.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Path

    Raises
    ------
    ValueError
        If what arrived does not have the checksum.
    """
    import pooch  # noqa: PLC0415 - only downloads need it

    fetched = pooch.retrieve(
        url,
        known_hash=f"sha256:{sha256}",
        fname="3dshapes.h5",
        path=directory or pooch.os_cache("conceptnb"),
        downloader=_ResumingDownloader(progress),
    )
    return Path(fetched)


class _ResumingDownloader:
    """Downloader for pooch that keeps what arrived and asks only for the rest.

    pooch's own one starts again from the beginning.
    """

    def __init__(self, progress: bool, block: int = 1 << 16) -> None:
        self.progress, self.block = progress, block

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        import requests  # noqa: PLC0415 - comes with pooch
        from tqdm.auto import tqdm  # noqa: PLC0415

        partial = Path(output_file).parent / "3dshapes.h5.part"
        have = partial.stat().st_size if partial.exists() else 0
        headers = {"Range": f"bytes={have}-"} if have else {}
        with requests.get(url, headers=headers, stream=True, timeout=30) as response:
            if response.status_code == requests.codes.requested_range_not_satisfiable:
                complete = True  # nothing is missing; the checksum decides
            else:
                response.raise_for_status()
                complete = False
                if response.status_code != requests.codes.partial_content:
                    have = 0  # the server ignored the range and sends everything
            if not complete:
                total = have + int(response.headers.get("Content-Length", 0))
                with (
                    partial.open("ab" if have else "wb") as file,
                    tqdm(
                        total=total or None,
                        initial=have,
                        unit="B",
                        unit_scale=True,
                        disable=not self.progress,
                    ) as bar,
                ):
                    for chunk in response.iter_content(self.block):
                        file.write(chunk)
                        bar.update(len(chunk))
        partial.replace(output_file)


ShapesImages = RenderedShapes | PublishedShapes
"""A source of images."""
