"""Concept directions from captions alone, and their valuations beside those of labels (Section 6).

A model of images and texts maps both into one space. The captions of a value, averaged over
templates, are then a point of it, and the difference of two such points a direction that no label
was needed for. What it is worth is asked of labelled images that nothing was learned from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from conceptnb.common.table_files import read_table, require_columns
from conceptnb.common.validation import Array, as_points
from conceptnb.embeddings.arithmetic import unit, value_means
from conceptnb.embeddings.directions.estimator import ConceptDirections
from conceptnb.embeddings.directions.evaluation import half_split, separation
from conceptnb.embeddings.directions.pairwise import check_labels
from conceptnb.embeddings.directions.selection import proper_concept

EmbedTexts = Callable[[Sequence[str]], NDArray[np.floating]]
"""Texts to embeddings (n, dimension) in the space of the images, such as `Encoder.embed_texts`."""


@dataclass(frozen=True, eq=False)
class WordedConcept:
    """A factor as words name its values; images are taken at unit length, as CLIP's loss does.

    Attributes
    ----------
    values : ndarray of str of shape (n_values,)
    points : ndarray of shape (n_values, dimension)
        Of unit length: the mean of the captions of each value.
    """

    values: NDArray[np.str_]
    points: NDArray[np.floating]

    @property
    def axis(self) -> Array:
        """The direction (dimension,) along which captions of the values differ most.

        It leads from the first value to the last as far as it tells them apart.
        """
        _, _, rows = np.linalg.svd(self.points - self.points.mean(axis=0), full_matrices=False)
        leading = rows[0]
        return leading if leading @ (self.points[-1] - self.points[0]) >= 0 else -leading

    def towards(self, end: str, start: str) -> Array:
        """Return the unit direction (dimension,) from the words of one value to another's.

        Raises
        ------
        ValueError
            If no captions name one of them.
        """
        for name, value in {"end": end, "start": start}.items():
            if value not in self.values:
                raise ValueError(f"{name}={value!r} must be one of {self.values.tolist()}")
        of = {str(value): point for value, point in zip(self.values, self.points, strict=True)}
        return unit((of[end] - of[start])[None])[0]

    def transform(self, Z: ArrayLike) -> Array:
        """Valuations (n,) of embeddings (n, dimension) along `axis`."""
        return unit(as_points(Z, "Z")) @ self.axis

    def predict(self, Z: ArrayLike) -> NDArray[np.str_]:
        """Value (n,) whose captions have the largest cosine: zero-shot classification."""
        return self.values[(unit(as_points(Z, "Z")) @ self.points.T).argmax(axis=1)]


def concept_from_words(
    embed_texts: EmbedTexts, captions: Mapping[str, Sequence[str]]
) -> WordedConcept:
    """Learn a factor from captions of its values, with no image and no label.

    Parameters
    ----------
    embed_texts : callable
        As `Encoder.embed_texts`.
    captions : mapping of str to sequence of str
        For each value its captions, such as one word in several templates; their embeddings are
        averaged at unit length.

    Raises
    ------
    ValueError
        If there are fewer than two values, one has no caption, or two have the same ones.

    Examples
    --------
    >>> from conceptnb.embeddings.clip import load_encoder
    >>> scene = "some coloured {} on coloured floor by coloured wall seen from anywhere"
    >>> captions = {shape: [scene.format(shape)] for shape in ("cube", "ball")}
    >>> shape = concept_from_words(load_encoder("small-vit").embed_texts, captions)
    >>> shape.points.shape
    (2, 64)
    """
    if len(captions) < 2:
        raise ValueError(f"captions name {len(captions)} values, and a direction needs two")
    empty = [value for value, texts in captions.items() if isinstance(texts, str) or not len(texts)]
    if empty:
        raise ValueError(f"captions[{empty[0]!r}] must be a list with at least one caption")
    texts = [text for value in captions.values() for text in value]
    rows = unit(as_points(embed_texts(texts), "embed_texts(captions)"))
    ends = np.cumsum([len(value) for value in captions.values()])[:-1]
    points = unit(np.stack([part.mean(axis=0) for part in np.split(rows, ends)]))
    names = list(captions)
    for i, j in combinations(range(len(names)), 2):
        if np.allclose(points[i], points[j], atol=1e-6):
            raise ValueError(
                f"captions of {names[i]!r} and {names[j]!r} have one embedding: the model does "
                "not tell their words apart"
            )
    return WordedConcept(np.array(names), points)


def read_captions(
    path: str | Path, labels: pd.DataFrame | None = None
) -> dict[str, dict[str, list[str]]]:
    """Read captions of values: a CSV file with the columns factor, value and caption.

    A value may have several rows. A row of the value ``*`` is a template: its ``{}`` is replaced by
    each value of the factor, those of other rows and, with `labels`, those that occur there.

    Returns
    -------
    dict
        Captions by value, by factor, in the order of values.

    Raises
    ------
    ValueError
        If a column, a factor of `labels`, a value, or a template's ``{}`` is missing.
    """
    table = read_table(path)
    require_columns(table, ["factor", "value", "caption"], path)
    named: dict[str, dict[str, list[str]]] = {}
    templates: dict[str, list[str]] = {}
    for row, factor, value, caption in table[["factor", "value", "caption"]].itertuples():
        where = f"{path}, row {row + 2}"
        if not factor or not value:
            raise ValueError(f"{where}: factor or value is empty; a template has the value *")
        if labels is not None and factor not in labels:
            raise ValueError(f"{where}: the labels have no factor {factor!r}, but {list(labels)}")
        if value != "*":
            found = named.setdefault(factor, {}).setdefault(value, [])
            found += [caption] if caption else []
        elif "{}" not in caption:
            raise ValueError(f"{where}: a template says by {{}} where the value goes: {caption!r}")
        else:
            templates.setdefault(factor, []).append(caption)
    for factor in dict.fromkeys(table["factor"]):
        values = named.setdefault(factor, {})
        for value in [] if labels is None else labels[factor]:
            values.setdefault(str(value), [])
        for value, texts in values.items():
            texts += [text.replace("{}", value) for text in templates.get(factor, [])]
            if not texts:
                raise ValueError(f"{path}: {factor}={value!r} has no caption, and no template *")
        if len(values) < 2:
            raise ValueError(
                f"{path} names {len(values)} values of {factor!r}, and a direction needs two: give "
                "a row for each, or labels"
            )
    return {
        factor: dict(sorted(named[factor].items())) for factor in dict.fromkeys(table["factor"])
    }


@dataclass(frozen=True)
class WordsBesideLabels:
    """What captions say of a factor, beside labels; all numbers are of images not learned from.

    A pair is a pair of values. AUC is the share of pairs of images, one of each value, whose
    valuations come in the right order, as a mean over pairs of values.
    """

    factor: str
    cosine: float
    """Mean over pairs, of the captions' difference with that of the images' means."""
    cosine_other: float
    """The control: the same with differences of other factors' captions, absolute values."""
    auc: float
    """Along the captions' difference."""
    auc_other: float
    """The control: along differences of other factors' captions, the better sign of each."""
    auc_labels: float
    """Along the line between the planes of the concept that labels give."""
    eta2: float
    """Share of the variance along `WordedConcept.axis` that lies between values."""
    eta2_labels: float
    """And along the order-free direction that labels give."""
    accuracy: float
    accuracy_labels: float
    chance: float
    """Share of the most frequent value."""


def words_beside_labels(
    words: Mapping[str, WordedConcept],
    Z: ArrayLike,
    labels: Mapping[str, ArrayLike],
    rng: np.random.Generator,
    *,
    shrinkage: float = 1e-3,
) -> dict[str, WordsBesideLabels]:
    """Compare directions from captions with directions from labels, on held-out images.

    Parameters
    ----------
    words : mapping of str to WordedConcept
        By factor. With several factors the captions of the others are the control.
    Z : array-like of shape (n, dimension)
        Embeddings of images by the same model; compared at unit length.
    labels : mapping of str to array-like of shape (n,)
        The value of each factor that an image shows, as `words` name it.
    rng : numpy.random.Generator
        Source of the halves: labels are learned from one, and all are judged by the other.
    shrinkage : float
        As in `ConceptDirections`, for the labels' directions.

    Raises
    ------
    ValueError
        If a factor has no labels, or captions and labels name different values.
    """
    points, seed = unit(as_points(Z, "Z")), rng.integers(2**32)
    found = {}
    for name, concept in words.items():
        if name not in labels:
            raise ValueError(f"captions name {name!r}, and labels have {', '.join(labels)}")
        given = check_labels(np.asarray(labels[name]).astype(str), len(points))
        if (odd := np.setxor1d(given, concept.values)).size:
            where = "captions" if odd[0] in given else "labels"
            raise ValueError(f"{name}={str(odd[0])!r} is not among the {where}: name it in both")
        differences = [
            np.subtract(*other.points[list(pair)])
            for key, other in words.items()
            if key != name
            for pair in combinations(range(len(other.points)), 2)
        ]
        others = np.reshape(differences, (-1, points.shape[1]))
        halves = np.random.default_rng(seed)
        found[name] = _compare(name, concept, points, given, others, halves, shrinkage)
    return found


def _compare(
    factor: str,
    concept: WordedConcept,
    points: NDArray[np.floating],
    labels: NDArray[np.generic],
    others: NDArray[np.floating],
    rng: np.random.Generator,
    shrinkage: float,
) -> WordsBesideLabels:
    """Compare one factor; `others` (m, dimension) are differences of other factors' captions."""
    train, test = half_split(len(points), rng)
    A, a, B, b = points[train], labels[train], points[test], labels[test]
    values = np.unique(labels)
    if (lost := np.setdiff1d(values, np.intersect1d(a, b))).size:
        raise ValueError(f"{factor}={str(lost[0])!r} is not in both halves: give more images of it")
    learned = proper_concept(A, a, rng, shrinkage=shrinkage)
    atom = ConceptDirections(shrinkage=shrinkage, standardise=False).fit(A, a)
    i, j = np.triu_indices(len(values), 1)
    own, means = concept.points[np.argsort(concept.values)], value_means(A, a)
    spoken, seen = own[j] - own[i], unit(means[j] - means[i])
    labelled = (learned.planes_[j] - learned.planes_[i]) @ learned.directions_
    by_pair = np.array([
        _aucs(B[shown] @ np.vstack([said, read, others]).T, b[shown] == values[end])
        for end, said, read, shown in zip(
            j, spoken, labelled, (b == values[i, None]) | (b == values[j, None]), strict=True
        )
    ])  # fmt: skip
    away = np.maximum(by_pair[:, 2:], 1 - by_pair[:, 2:])
    return WordsBesideLabels(
        factor,
        cosine=float((seen * unit(spoken)).sum(axis=1).mean()),
        cosine_other=float(np.abs(seen @ unit(others).T).mean()) if len(others) else np.nan,
        auc=float(by_pair[:, 0].mean()),
        auc_other=float(away.mean()) if len(others) else np.nan,
        auc_labels=float(by_pair[:, 1].mean()),
        eta2=separation(concept.transform(B), b),
        eta2_labels=separation(atom.transform(B), b),
        accuracy=float((concept.predict(B) == b).mean()),
        accuracy_labels=float(learned.score(B, b)),
        chance=float(np.unique(b, return_counts=True)[1].max() / len(b)),
    )


def _aucs(valuations: Array, positive: NDArray[np.bool_]) -> Array:
    """Areas under the ROC curve (m,) of valuations (n, m), by ranks."""
    n, count = int(positive.sum()), len(positive)
    ranks = rankdata(valuations, axis=0)[positive].sum(axis=0)
    return (ranks - n * (n + 1) / 2) / (n * (count - n))
