"""Methods with and without labels on one embedding: components, matched and judged."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import PCA, FastICA, MiniBatchDictionaryLearning
from sklearn.exceptions import ConvergenceWarning

from conceptnb.core.validation import as_points
from conceptnb.embeddings.directions.estimator import ConceptDirections
from conceptnb.embeddings.directions.evaluation import separation
from conceptnb.embeddings.unmixing import unmix

Array = NDArray[np.float64]
Method = Literal[
    "labels", "environments", "PCA", "ICA", "sparse dictionary", "unmixing", "random directions"
]
METHODS: tuple[Method, ...] = (
    "labels",
    "environments",
    "PCA",
    "ICA",
    "sparse dictionary",
    "unmixing",
    "random directions",
)


@dataclass(frozen=True)
class Found:
    """What a method makes of the test samples, matched to the concepts.

    Attributes
    ----------
    eta2 : share of the matched component's variance that lies between a concept's values
    mcc : mean over concepts of the absolute correlation with the values, in their order
    """

    eta2: dict[str, float]
    mcc: float


def find(
    method: Method,
    Z: ArrayLike,
    labels: Mapping[str, ArrayLike],
    n_components: int,
    rng: np.random.Generator,
    groups: ArrayLike | None = None,
) -> Found:
    """Learn components on a random half, match them there, and judge them on the other half.

    Parameters
    ----------
    method : one of `METHODS`
        "labels" is the supervised direction of `conceptnb.embeddings.directions` for each concept,
        "environments" the contrastive learner of Section 6, which gets all samples as its base and
        two data sets a concept, of its first and of its last value, and is told only which belong
        to one concept. The others see nothing of either until components are matched; "unmixing"
        is that of log-posteriors, `conceptnb.neighbours.unmix`.
    Z : (samples, dimensions) embeddings
    labels : (samples,) values of each concept, by name
    n_components : int
        Leading principal components that each method works on, whitened but for the sparse
        dictionary, which has twice as many atoms.
    rng : source of the halves, of the solvers' starts and of the random directions
    groups : (samples,), optional
        Samples of one group, such as the answers to one question, go to the same half.

    Raises
    ------
    ValueError
        If the method is not known, there are fewer components than concepts, or `groups` has
        another length than Z or a single value.
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} must be one of {', '.join(METHODS)}")
    points = as_points(Z, "Z")
    if not len(labels) <= n_components <= min(points.shape):
        raise ValueError(
            f"n_components={n_components} must lie between {len(labels)}, the number of concepts, "
            f"and {min(points.shape)}"
        )
    train, test = _halves(np.arange(len(points)) if groups is None else groups, len(points), rng)
    values = {name: np.asarray(column) for name, column in labels.items()}
    pca = PCA(n_components, whiten=True, random_state=_seed(rng)).fit(points[train])
    codes = _components(method, pca, pca.transform(points), values, train, rng)
    matched = match(codes[train], {name: column[train] for name, column in values.items()})
    chosen = {name: codes[test, component] for name, component in matched.items()}
    eta2 = {name: separation(column, values[name][test]) for name, column in chosen.items()}
    correlations = [
        abs(np.corrcoef(column, values[name][test])[0, 1]) if column.std() else 0.0
        for name, column in chosen.items()
    ]
    return Found(eta2, float(np.mean(correlations)))


def _halves(
    groups: ArrayLike, n_samples: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows of a random half of the groups, and the other rows."""
    of_sample = np.asarray(groups)
    if of_sample.shape != (n_samples,):
        raise ValueError(
            f"groups has shape {of_sample.shape}; give one value for each of {n_samples} samples"
        )
    names = rng.permutation(np.unique(of_sample))
    if len(names) < 2:
        raise ValueError("groups has a single value; two halves need at least two groups")
    first = np.isin(of_sample, names[: len(names) // 2])
    return np.flatnonzero(first), np.flatnonzero(~first)


def match(codes: ArrayLike, labels: Mapping[str, ArrayLike]) -> dict[str, int]:
    """Give each concept a component of its own, so that η² is largest in sum.

    Parameters
    ----------
    codes : (samples, components)
    labels : (samples,) values of each concept, by name

    Returns
    -------
    column of `codes` by concept
    """
    columns = as_points(codes, "codes").T
    gain = [[separation(column, values) for column in columns] for values in labels.values()]
    _, chosen = linear_sum_assignment(gain, maximize=True)
    return {name: int(column) for name, column in zip(labels, chosen, strict=True)}


def _components(
    method: Method,
    pca: PCA,
    white: Array,
    labels: Mapping[str, NDArray[np.generic]],
    train: NDArray[np.intp],
    rng: np.random.Generator,
) -> Array:
    """Return components (samples, at least one a concept) of whitened principal components."""
    match method:
        case "labels":
            rows = [
                ConceptDirections().fit(white[train], values[train]).directions_[0]
                for values in labels.values()
            ]
            components = white @ np.array(rows).T
        case "environments":
            components = _from_environments(white, labels, train, rng)
        case "random directions":
            components = white @ rng.normal(size=(white.shape[1], white.shape[1]))
        case "PCA":
            components = white
        case "unmixing":
            components = white @ unmix(white[train], white.shape[1], rng)
        case "sparse dictionary":
            components = _sparse_codes(white * np.sqrt(pca.explained_variance_), train, rng)
        case "ICA":
            components = _independent(white, train, rng)
    return components


def _from_environments(
    white: Array,
    labels: Mapping[str, NDArray[np.generic]],
    train: NDArray[np.intp],
    rng: np.random.Generator,
) -> Array:
    """Return what the contrastive learner makes of environments of first and last values."""
    from conceptnb.learning.learner import ConceptLearner  # noqa: PLC0415 - brings torch

    rows, environment, targets = [train], [np.zeros(len(train), dtype=int)], []
    for concept, values in enumerate(labels.values()):
        for value in (values[train].min(), values[train].max()):
            targets.append([other == concept for other in range(len(labels))])
            rows.append(train[values[train] == value])
            environment.append(np.full(len(rows[-1]), len(targets)))
    learner = ConceptLearner(
        len(labels), targets=targets, encoder="linear", random_state=_seed(rng)
    )
    learner.fit(white[np.concatenate(rows)], np.concatenate(environment))
    return learner.transform(white)


def _independent(white: Array, train: NDArray[np.intp], rng: np.random.Generator) -> Array:
    """Return components (samples, dimensions), as independent as FastICA finds them."""
    ica = FastICA(whiten="unit-variance", max_iter=400, tol=1e-3, random_state=_seed(rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is judged by what it finds
        return ica.fit(white[train]).transform(white)


def _sparse_codes(scores: Array, train: NDArray[np.intp], rng: np.random.Generator) -> Array:
    """Return codes (samples, twice the dimensions), few of them nonzero in each sample."""
    size = float(np.linalg.norm(scores[train], axis=1).mean())
    dictionary = MiniBatchDictionaryLearning(
        2 * scores.shape[1],
        alpha=0.1,
        transform_algorithm="lasso_cd",
        fit_algorithm="cd",
        max_iter=20,
        batch_size=128,
        random_state=_seed(rng),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return dictionary.fit(scores[train] / size).transform(scores / size)


def _seed(rng: np.random.Generator) -> int:
    """Return a seed for scikit-learn, which takes no Generator."""
    return int(rng.integers(2**31))
