"""A folder of images with labels -> concept directions in any embedding (Appendix D)."""

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from scipy.stats.contingency import association
from sklearn.decomposition import PCA

from conceptnb.common.table_files import read_table, reads_as_missing, require_columns
from conceptnb.common.validation import Array, as_count, as_points
from conceptnb.embeddings.directions.estimator import ConceptDirections
from conceptnb.embeddings.directions.evaluation import Reading
from conceptnb.embeddings.directions.factor_report import FactorReport, report_factors
from conceptnb.embeddings.image_files import Images, read_image

Embed = Callable[[NDArray[Any]], Array]

_FEWEST_IMAGES = 4  # that a value needs, so that both halves have some
_BY_CHANCE, _LITTLE = 0.05, 0.2
"""Share of random orders of labels that count as no reading, and of the way from chance to 1 that
the interval has to exclude before "not read" is said. Chapter 19 shows how often it is false."""
_SHALLOW = 1 / 16
"""Share of the range of 16 bits that some image has to exceed."""
SHRINKAGE = 0.05  # own folders are small: pull covariances further to the average


def read_images(
    folder: str | Path,
    labels: str | Path | None = None,
    *,
    column: str = "file",
    factors: Sequence[str] | None = None,
    encoding: str = "utf-8-sig",
    size: int | None = None,
) -> tuple[Images, pd.DataFrame]:
    """Read the images in a folder that a CSV file names, one per row, with their labels.

    Parameters
    ----------
    labels : path, optional
        Without it all images of the folder are read, by the ends of their names and in their order.
    column : str
        The column with names of files, relative to `folder`.
    factors : sequence of str, optional
        The columns with labels; all others by default.
    size : int, optional
        Pixels of the square that each image is cropped in the middle and scaled to, such as an
        encoder's input. Without it all images must have one size already.

    Returns
    -------
    images : uint8 ndarray of shape (images, height, width, 3)
    labels : DataFrame
        A row for each image: its labels, a column of text for each factor, or its name. What was
        done to images is said in ``labels.attrs["notes"]``.

    Raises
    ------
    ValueError
        If a file is missing or no image, or of a mode whose white is unknown (float, 32 bits),
        sizes are mixed, a label is missing, or a factor takes one value only or has a value of very
        few images; names file, column and row.
    """
    if size is not None:
        as_count(size, "size")
    if labels is None:
        kinds = Image.registered_extensions()
        inside = (path for path in Path(folder).iterdir() if path.suffix.lower() in kinds)
        files = sorted(path.name for path in inside if path.is_file())
        table = chosen = pd.DataFrame({column: files})
    else:
        table = read_table(labels, encoding)
        require_columns(table, [column, *(factors or [])], labels)
        chosen = table[list(factors or table.columns.drop(column))]
        refuse_labels(chosen, f"{labels}, ")
    source = labels or folder
    twice = table[column].map(lambda name: (Path(folder) / name).resolve()).duplicated()
    if twice.any():
        row = int(np.flatnonzero(twice)[0])
        raise ValueError(
            f"{source}, row {table.index[row] + 2}: {table[column].iloc[row]!r} is in an earlier "
            "row already; one would be learned from and the other judged by. Keep one row for each "
            "image"
        )
    found: list[Images] = []
    transparent, deepest = 0, list[float]()
    for row, name in zip(table.index + 2, table[column], strict=True):
        where = str(folder) if labels is None else f"{labels}, row {row}"
        image = read_image(Path(folder) / name, where, size)
        found.append(image.pixels)
        transparent += image.transparent
        deepest += [] if image.deepest is None else [image.deepest]
        if found[-1].shape != found[0].shape:
            sizes = [f"{image.shape[1]} x {image.shape[0]}" for image in (found[0], found[-1])]
            raise ValueError(
                f"{where}: {name} is {sizes[1]} pixels, the images before are "
                f"{sizes[0]}. Crop and scale all to one size (--size, or size=...)"
            )
    if not found:
        raise ValueError(f"{folder} holds no images")
    if deepest and max(deepest) < _SHALLOW:
        raise ValueError(
            f"{source}: no image of 16 bits uses more than {max(deepest):.1%} of its range, so 8 "
            "bits would hold few of its shades: stretch all of them by one factor"
        )
    chosen = chosen.copy()
    if transparent:
        chosen.attrs["notes"] = [f"{transparent} images are transparent: drawn on white."]
    return np.stack(found), chosen


def save_directions(
    directions: Mapping[str, ConceptDirections], path: str | Path, components: PCA | None = None
) -> None:
    """Write fitted directions of factors as safetensors: arrays, and classes as text.

    Directions in principal `components` are written as those of what the components are of.
    """
    arrays = {}
    for name, concept in directions.items():
        A, planes = concept.directions_, concept.planes_
        if components is not None:
            A = A @ components.components_
            planes = planes + A @ components.mean_
        arrays[f"{name}/directions"] = np.ascontiguousarray(A)
        arrays[f"{name}/planes"] = np.ascontiguousarray(planes)
        arrays[f"{name}/variance"] = np.array(concept.variance_)
    classes = {name: concept.classes_.tolist() for name, concept in directions.items()}
    columns = {
        name: concept.feature_names_in_.tolist()
        for name, concept in directions.items()
        if components is None and hasattr(concept, "feature_names_in_")
    }
    about = {"classes": json.dumps(classes), "columns": json.dumps(columns)}
    save_file(arrays, str(path), about)
    Path(path).chmod(0o644)


def load_directions(path: str | Path) -> dict[str, ConceptDirections]:
    """Return what `save_directions` wrote; ValueError if the file holds no directions."""
    found = {}
    try:
        with safe_open(str(path), "np") as file:
            about = file.metadata() or {}
            columns = json.loads(about.get("columns", "{}"))
            for name, classes in dict(json.loads(about["classes"])).items():
                A = file.get_tensor(f"{name}/directions")
                found[name] = concept = ConceptDirections(n_components=len(A))
                concept.directions_, concept.planes_ = A, file.get_tensor(f"{name}/planes")
                concept.classes_, concept.n_features_in_ = np.asarray(classes), A.shape[1]
                concept.variance_ = float(file.get_tensor(f"{name}/variance"))
                if name in columns:
                    concept.feature_names_in_ = np.array(columns[name], dtype=object)
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} holds no directions of this version ({error}): write them again"
        ) from None
    return found


def refuse_labels(labels: pd.DataFrame, where: str = "labels, ") -> None:
    """Refuse labels, a column for each factor, that are missing, of one value, or of too many.

    All columns that do not do are named at once, each with its row and the way out.
    """
    if not len(labels.columns):
        raise ValueError(f"{where}no column of labels is left")
    faults = [f"{where}{said}" for name, cells in labels.items() if (said := _fault(name, cells))]
    if faults:
        raise ValueError("; ".join(faults))


def _fault(name: Hashable, column: pd.Series) -> str:
    """Return what is wrong with the labels of a factor, or nothing."""
    cells = pd.Series([str(cell) for cell in column], index=column.index, dtype=object)
    here = f"column {name!r}"
    missing = column.isna().to_numpy() | cells.map(reads_as_missing).to_numpy()
    if missing.any():
        row = int(missing.argmax())
        return (
            f"{here}, row {column.index[row] + 2}: the label is missing ({cells.iloc[row]!r}), as "
            f"in {missing.sum()} rows; remove the row, or give the value another name"
        )
    counts = cells.value_counts()
    if len(counts) == 1:
        return (
            f"{here}: all rows have the value {counts.index[0]!r}. A direction needs two values or "
            "more; leave the column out with factors=[...]"
        )
    if len(counts) > max(len(cells) / 2, _FEWEST_IMAGES):
        return (
            f"{here}: {len(counts)} values in {len(cells)} rows, such as {counts.idxmin()!r}. It "
            "looks like an identifier: name the columns to learn (--factors, factors=[...]); of "
            "measurements, put them into a few classes first"
        )
    if counts.min() < _FEWEST_IMAGES:
        return (
            f"{here}: the value {counts.idxmin()!r} has {counts.min()} rows, and needs "
            f"{_FEWEST_IMAGES}. If the column holds measurements, put them into a few classes first"
        )
    return ""


def fit_pixel_components(images: Images, n_components: int = 30) -> tuple[PCA, Array]:
    """Fit leading principal components of images' pixels, fewer where there are few images.

    Returns them, of pixels in [0, 1], and the images in them, shape (images, components).
    """
    flat = images.reshape(len(images), -1) / 255.0
    components = PCA(min(n_components, *flat.shape), svd_solver="full")
    return components, components.fit_transform(flat)


def pixel_components(images: Images, n_components: int = 30) -> Array:
    """Return images, uint8 of shape (images, height, width, 3), in components of their pixels."""
    return fit_pixel_components(images, n_components)[1]


@dataclass(frozen=True, eq=False)
class DirectionReport:
    """Directions of all factors, and what speaks against them."""

    factors: dict[str, FactorReport]
    warnings: list[str] = field(default_factory=list)

    def summary(self) -> pd.DataFrame:
        """Return a row for each factor: values, accuracy beside chance, test, η².

        The accuracy is the share of rows, and chance that of the most frequent value; the balanced
        one counts all values alike. Of random orders of the labels, `shuffled labels` is the mean
        accuracy, and `p` the share that are read as well as the true one.
        """
        return pd.DataFrame(
            {
                "factor": name,
                "values": len(found.concept.classes_),
                "dimensions": len(found.concept.directions_),
                "accuracy": round(found.accuracy, 3),
                "chance": round(found.chance, 3),
                "shuffled labels": round(found.accuracy_shuffled, 3),
                "balanced": round(found.reading.accuracy, 3),
                "p": round(found.reading.p_value, 4),
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
        If `embed` returns anything but one finite row for each image, or as in `read_images`.
    """
    refuse_labels(labels.reset_index(drop=True))
    Z = as_points(embed(images), "embed(images)")
    if len(Z) != len(images):
        raise ValueError(f"embed returned {len(Z)} rows for {len(images)} images")
    values = {str(name): column.to_numpy(dtype=str) for name, column in labels.items()}
    factors = report_factors(
        Z, values, np.random.default_rng(seed), shrinkage=SHRINKAGE, standardise=True
    )
    for name, found in factors.items():
        if lost := {*values[name].tolist()} - {*found.labels.tolist()}:
            raise ValueError(f"{name}={lost}: no image of it in the half that judges; change seed")
    return DirectionReport(factors, [*_warnings(factors, labels, Z.shape[1], len(Z) // 2)])


def _warnings(
    factors: dict[str, FactorReport], labels: pd.DataFrame, dimensions: int, n_train: int
) -> Iterator[str]:
    if n_train < 3 * dimensions:
        yield (
            f"{n_train} images to learn from in {dimensions} dimensions: directions will fit "
            "noise. Use fewer dimensions or more images."
        )
    for name, found in factors.items():
        yield from _about_reading(name, found.reading, len(found.labels))
        fewest = labels[name].value_counts()
        if fewest.min() < 30:
            yield f"{name!r} = {fewest.idxmin()!r} has {fewest.min()} images only."
    yield from labels.attrs.get("notes", [])
    for one, other in combinations(labels.columns, 2):
        counts = pd.crosstab(labels[one], labels[other]).to_numpy()
        if (strength := association(counts, method="cramer")) > 0.5:
            yield (
                f"{one!r} and {other!r} go together in this folder (Cramér's V "
                f"{strength:.2f}): a direction for one reads the other. Balance the images."
            )


def _about_reading(name: str, found: Reading, rows: int) -> Iterator[str]:
    """Yield that a factor is not read, if the rows can tell, and else that they cannot."""
    if found.p_value < _BY_CHANCE:
        return
    said = f"balanced accuracy {found.accuracy:.2f}, by guessing {found.chance:.2f}, p"
    said += f" = {found.p_value:.2f}"
    if found.highest < found.chance + _LITTLE * (1 - found.chance):
        yield (
            f"{name!r} is not read better than by chance ({said}, and below {found.highest:.2f} "
            "with 95 % confidence): this embedding does not show it linearly."
        )
    else:
        yield (
            f"{name!r}: {rows} judged rows are too few to tell whether it is read ({said}; up to "
            f"{found.highest:.2f} is possible). Label more rows, or of rare values more."
        )
