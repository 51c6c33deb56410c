"""A folder of images with labels -> concept directions in any embedding (Appendix D)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageOps, UnidentifiedImageError
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from scipy.stats.contingency import association
from sklearn.decomposition import PCA

from conceptnb.core.table_files import read_table, require_columns
from conceptnb.core.validation import Array, as_points
from conceptnb.embeddings.directions.estimator import ConceptDirections
from conceptnb.embeddings.directions.factor_report import FactorReport, report_factors

Images = NDArray[np.uint8]
Embed = Callable[[NDArray[Any]], Array]

_FEWEST_IMAGES = 4  # that a value needs, so that both halves have some
_SHRINKAGE = 0.05  # own folders are small: pull covariances further to the average


def read_images(
    folder: str | Path,
    labels: str | Path,
    *,
    column: str = "file",
    factors: Sequence[str] | None = None,
    encoding: str = "utf-8-sig",
) -> tuple[Images, pd.DataFrame]:
    """Read the images in a folder that a CSV file names, one per row, with their labels.

    Parameters
    ----------
    column : str
        The column with names of files, relative to `folder`.
    factors : sequence of str, optional
        The columns with labels; all others by default.

    Returns
    -------
    images : uint8 ndarray of shape (images, height, width, 3)
    labels : DataFrame
        A column for each factor, a row for each image, values as text.

    Raises
    ------
    ValueError
        If a file is missing or no image, sizes are mixed, a label is missing, or a factor takes
        one value only or has a value of very few images; names file, column and row.
    """
    table = read_table(labels, encoding)
    require_columns(table, [column], labels)
    chosen = _factors(table.drop(columns=column), factors, labels)
    if (
        twice := table[column].map(lambda name: (Path(folder) / name).resolve()).duplicated()
    ).any():
        row = int(np.flatnonzero(twice)[0])
        raise ValueError(
            f"{labels}, row {row + 2}: {table[column].iloc[row]!r} is in an earlier row already; "
            "one would be learned from and the other judged by. Keep one row for each image"
        )
    found: list[Images] = []
    for row, name in enumerate(table[column], start=2):
        found.append(_read_image(Path(folder) / name, f"{labels}, row {row}"))
        if found[-1].shape != found[0].shape:
            sizes = [f"{image.shape[1]} x {image.shape[0]}" for image in (found[0], found[-1])]
            raise ValueError(
                f"{labels}, row {row}: {name} is {sizes[1]} pixels, the images before are "
                f"{sizes[0]}. Scale or crop all to one size first"
            )
    return np.stack(found), chosen


def read_labels(path: str | Path, factors: Sequence[str] | None = None) -> pd.DataFrame:
    """Read labels of embeddings: a column for each factor, values as text, rows in their order.

    ValueError as in `read_images`; `factors` are all columns by default.
    """
    return _factors(read_table(path), factors, path)


def read_folder(folder: str | Path) -> tuple[list[str], Images]:
    """Return the names of all files of a folder, in order, and their images, all of one size."""
    files = sorted(path for path in Path(folder).iterdir() if path.is_file())
    found = [_read_image(path, str(folder)) for path in files]
    if len({image.shape for image in found}) != 1:
        raise ValueError(f"{folder} has to hold images of one size, and nothing else")
    return [path.name for path in files], np.stack(found)


def save_directions(directions: Mapping[str, ConceptDirections], path: str | Path) -> None:
    """Write fitted directions of factors as safetensors: arrays, and classes as text."""
    arrays = {}
    for name, concept in directions.items():
        arrays[f"{name}/directions"] = np.ascontiguousarray(concept.directions_)
        arrays[f"{name}/planes"] = np.ascontiguousarray(concept.planes_)
    classes = {name: concept.classes_.tolist() for name, concept in directions.items()}
    save_file(arrays, str(path), {"classes": json.dumps(classes)})


def load_directions(path: str | Path) -> dict[str, ConceptDirections]:
    """Return what `save_directions` wrote; ValueError if the file holds no directions."""
    try:
        with safe_open(str(path), "np") as file:
            return {
                name: fitted_directions(
                    file.get_tensor(f"{name}/directions"),
                    file.get_tensor(f"{name}/planes"),
                    classes,
                )
                for name, classes in json.loads(file.metadata()["classes"]).items()
            }
    except (SafetensorError, KeyError, TypeError) as error:
        raise ValueError(f"{path} holds no directions: {error}") from None


def fitted_directions(A: Array, planes: Array, classes: ArrayLike) -> ConceptDirections:
    """Return a fitted estimator with directions (k, dimensions) and planes (values, k)."""
    found = ConceptDirections(n_components=len(A))
    found.directions_, found.planes_, found.classes_ = A, planes, np.asarray(classes)
    found.n_features_in_ = A.shape[1]
    return found


def _factors(
    table: pd.DataFrame, factors: Sequence[str] | None, labels: str | Path
) -> pd.DataFrame:
    """Return the columns of labels, after a check of each."""
    require_columns(table, factors or [], labels)
    if table.empty or not len(table.columns):
        raise ValueError(f"{labels} has no column of labels")
    chosen = table[list(factors or table.columns)]
    for name, cells in chosen.items():
        _check_factor(cells, f"{labels}, column {name!r}")
    return chosen


def _check_factor(cells: pd.Series, where: str) -> None:
    if (empty := np.flatnonzero(cells.to_numpy() == "")).size:
        raise ValueError(f"{where}, row {empty[0] + 2}: the label is missing; remove the image")
    counts = cells.value_counts()
    if len(counts) == 1:
        raise ValueError(
            f"{where}: all images have the value {counts.index[0]!r}. A direction needs two values "
            "or more; leave the column out with factors=[...]"
        )
    if counts.min() < _FEWEST_IMAGES:
        raise ValueError(
            f"{where}: the value {counts.idxmin()!r} has {counts.min()} images, and needs "
            f"{_FEWEST_IMAGES}. If the column holds measurements, put them into a few classes first"
        )


def _read_image(path: Path, where: str) -> Images:
    """Return one image as 8-bit RGB, turned as its EXIF says; transparency is dropped."""
    if not path.is_file():
        raise ValueError(f"{where}: there is no file {path}; is `folder` the right one?")
    try:
        with Image.open(path) as image:
            frames = getattr(image, "n_frames", 1)
            upright = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    except (OSError, SyntaxError, UnidentifiedImageError) as error:
        raise ValueError(
            f"{where}: {path} cannot be read as an image ({type(error).__name__}). Open it in a "
            "viewer and save it again, as PNG or JPEG"
        ) from None
    if frames > 1:
        raise ValueError(f"{where}: {path} has {frames} frames: save the one that is meant as PNG")
    return upright


def pixel_components(images: Images, n_components: int = 30) -> Array:
    """Return leading principal components of images' pixels, fewer where there are few images."""
    flat = images.reshape(len(images), -1) / 255.0
    kept = min(n_components, *flat.shape)
    return PCA(kept, svd_solver="full").fit_transform(flat)


@dataclass(frozen=True, eq=False)
class DirectionReport:
    """Directions of all factors, and what speaks against them."""

    factors: dict[str, FactorReport]
    warnings: list[str] = field(default_factory=list)

    def summary(self) -> pd.DataFrame:
        """Return a row for each factor: values, accuracy beside chance and control, η²."""
        return pd.DataFrame(
            {
                "factor": name,
                "values": len(found.concept.classes_),
                "dimensions": len(found.concept.directions_),
                "accuracy": round(found.accuracy, 3),
                "chance": round(found.chance, 3),
                "shuffled labels": round(found.accuracy_shuffled, 3),
                "η²": round(found.eta2, 3),
            }
            for name, found in self.factors.items()
        )


def learn_directions(
    images: NDArray[Any], labels: pd.DataFrame, embed: Embed = pixel_components, *, seed: int = 0
) -> DirectionReport:
    """Learn a direction for each factor on half of the images, and judge it on the other half.

    Parameters
    ----------
    images, labels : ndarray, DataFrame
        As from `read_images`.
    embed : callable
        Maps uint8 images (images, height, width, 3) to embeddings (images, dimensions): raw
        pixels in principal components by default, or the image encoder of any model. For
        embeddings in place of images, `numpy.asarray`.
    seed : int
        Of the split, and of the order of labels in the control.

    Raises
    ------
    ValueError
        If `embed` returns anything but one finite row for each image.
    """
    Z = as_points(embed(images), "embed(images)")
    if len(Z) != len(images):
        raise ValueError(f"embed returned {len(Z)} rows for {len(images)} images")
    values = {str(name): column.to_numpy(dtype=str) for name, column in labels.items()}
    factors = report_factors(Z, values, np.random.default_rng(seed), shrinkage=_SHRINKAGE)
    for name, found in factors.items():
        if lost := {*values[name].tolist()} - {*found.labels.tolist()}:
            raise ValueError(
                f"{name}={lost}: no image of it in the half that judges; take another seed"
            )
    return DirectionReport(factors, _warnings(factors, labels, Z.shape[1], len(Z) // 2))


def _warnings(
    factors: dict[str, FactorReport], labels: pd.DataFrame, dimensions: int, n_train: int
) -> list[str]:
    said = []
    if n_train < 3 * dimensions:
        said.append(
            f"{n_train} images to learn from in {dimensions} dimensions: directions will fit "
            "noise. Use fewer dimensions or more images."
        )
    for name, found in factors.items():
        # Three standard errors of a share, so that luck does not pass for knowledge.
        luck = 3 * np.sqrt(found.chance * (1 - found.chance) / len(found.labels))
        control = max(found.chance, found.accuracy_shuffled)
        if found.accuracy < control + luck:
            said.append(
                f"{name!r} is not read better than by chance ({found.accuracy:.2f} against "
                f"{control:.2f}): this embedding does not show it linearly."
            )
        fewest = labels[name].value_counts()
        if fewest.min() < 30:
            said.append(f"{name!r} = {fewest.idxmin()!r} has {fewest.min()} images only.")
    for one, other in combinations(labels.columns, 2):
        counts = pd.crosstab(labels[one], labels[other]).to_numpy()
        if (strength := association(counts, method="cramer")) > 0.5:
            said.append(
                f"{one!r} and {other!r} go together in this folder (Cramér's V "
                f"{strength:.2f}): a direction for one reads the other. Balance the images."
            )
    return said
