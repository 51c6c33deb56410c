"""What a concept direction is worth: planes, separation, agreement, splits (Appendix D.2)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import orth
from scipy.stats import random_table

from conceptnb.common.validation import Array, as_count, as_points
from conceptnb.embeddings.directions.pairwise import check_labels


def _as_valuations(valuations: ArrayLike, name: str = "valuations") -> Array:
    array = np.asarray(valuations, dtype=float)
    return as_points(array[:, None] if array.ndim == 1 else array, name)


@dataclass(frozen=True)
class ValuationTable:
    """Mean and standard deviation of valuations for each value (Tables 2, 3 and 4).

    `values`, `counts` (n_values,) are those that occur; `means`, population `stds` (n_values, k).
    """

    values: NDArray[np.generic]
    counts: NDArray[np.intp]
    means: Array
    stds: Array


def valuation_table(valuations: ArrayLike, labels: ArrayLike) -> ValuationTable:
    """Summarise valuations (n,) or (n, k) by value, as Tables 2, 3 and 4 do."""
    V = _as_valuations(valuations)
    given = check_labels(labels, len(V))
    values, counts = np.unique(given, return_counts=True)
    groups = [V[given == value] for value in values]
    return ValuationTable(
        values,
        counts,
        np.stack([group.mean(axis=0) for group in groups]),
        np.stack([group.std(axis=0) for group in groups]),
    )


def separation(valuations: ArrayLike, labels: ArrayLike) -> float:
    """Between-class share of the variance of valuations, η².

    1 when every image lies on its concept plane (Definition 1); variances sum over dimensions.
    """
    V = _as_valuations(valuations)
    table = valuation_table(V, labels)
    total = V.var(axis=0).sum()
    if total == 0:
        return 0.0
    shares = table.counts / table.counts.sum()
    return float(1 - (shares @ table.stds**2).sum() / total)


@dataclass(frozen=True)
class Reading:
    """Whether held-out labels are read at all, whatever the shares of their values.

    `accuracy` is balanced: the mean over values of the share of their rows that are read right,
    and `chance` is that of guessing, 1 over the number of values. `p_value` is the share of random
    orders of the labels that are read as well, `shuffled` their mean plain accuracy, and `highest`
    the upper end of a 95 % interval of the balanced accuracy.
    """

    accuracy: float
    chance: float
    p_value: float
    shuffled: float
    highest: float


def held_out_reading(
    read: ArrayLike, labels: ArrayLike, rng: np.random.Generator, draws: int = 2000
) -> Reading:
    """Test whether what was read of held-out rows says anything of their labels.

    If labels (samples,) were independent of the embeddings, any order of them would be as likely
    beside what was `read` (samples,), whichever direction was learned: so shuffling labels of rows
    that nothing was learned from is an exact test, and needs no further fit. (To shuffle those that
    a direction is learned from, and to judge it by the true ones, is none: along an axis on which
    the values differ, a direction of either sign scores far from chance.)
    """
    values, own = np.unique(np.asarray(labels), return_inverse=True)
    found = np.asarray(read)
    table = np.array([[np.sum(found[own == k] == v) for v in values] for k in range(len(values))])
    counts, others = np.bincount(own), len(own) - table.sum()
    columns = np.append(table.sum(axis=0), others)
    orders = random_table(counts, columns).rvs(as_count(draws, "draws"), random_state=rng)
    right = np.diagonal(orders, axis1=1, axis2=2)  # (draws, values)
    accuracies = (right / counts).mean(axis=1)
    accuracy = float((np.diagonal(table) / counts).mean())
    share = (np.diagonal(table) + 2) / (counts + 4)  # of Agresti and Coull: never 0 or 1
    error = np.sqrt((share * (1 - share) / (counts + 4)).sum()) / len(values)
    as_good = int((accuracies >= accuracy - 1e-12).sum())
    return Reading(
        accuracy,
        1 / len(values),
        (1 + as_good) / (1 + draws),
        float(right.sum(axis=1).mean() / len(own)),
        min(float(accuracy + 1.96 * error), 1.0),
    )


def canonical_correlations(first: ArrayLike, second: ArrayLike) -> Array:
    """Canonical correlations of two sets of valuations of the same images, falling.

    In one dimension this is the absolute value of the correlation in Table 5; in k dimensions
    it does not change with an invertible linear map, which Theorem 1 leaves open.
    """
    first_basis, second_basis = _whitened(first, second)
    correlations = np.linalg.svd(first_basis.T @ second_basis, compute_uv=False)
    return np.minimum(correlations, 1.0)


def canonical_variates(first: ArrayLike, second: ArrayLike) -> tuple[Array, Array]:
    """Turn two sets of valuations of the same images so that they agree as well as they can.

    Returns
    -------
    first, second : ndarray of shape (n, k), k the smaller dimension
        Of mean 0 and variance 1; the j-th columns have the j-th canonical correlation.
    """
    first_basis, second_basis = _whitened(first, second)
    left, _, right = np.linalg.svd(first_basis.T @ second_basis, full_matrices=False)
    scale = np.sqrt(len(first_basis))
    return scale * first_basis @ left, scale * second_basis @ right.T


def _whitened(first: ArrayLike, second: ArrayLike) -> tuple[Array, Array]:
    """Orthonormal bases (n, rank) of the centred columns of two sets of valuations."""
    A, B = _as_valuations(first, "first"), _as_valuations(second, "second")
    if len(A) != len(B):
        raise ValueError(f"first has {len(A)} images and second has {len(B)}; both need the same")
    return orth(A - A.mean(axis=0), rcond=1e-10), orth(B - B.mean(axis=0), rcond=1e-10)


def half_split(n: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Random training and test halves of n images: the split in the paper's text."""
    if n < 4:
        raise ValueError(f"n={n} images are too few to split in half")
    order = rng.permutation(n)
    return np.sort(order[: n // 2]), np.sort(order[n // 2 :])


def first_values_split(
    factors: ArrayLike, factor: int, sizes: tuple[int, ...]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Split by the values of the other factors, as the authors' released code does.

    Training images have every factor but column `factor` in the first half of its values (about
    3 % of 3D Shapes); all others are for testing. Unlike a random half, this asks a direction to
    carry over to values of other factors that it never saw.

    Parameters
    ----------
    factors : array-like of shape (n, n_factors)
        Places of values on the grid, from 0.
    sizes : tuple of int
        Number of values of each factor.

    Returns
    -------
    train, test : ndarray of int
        Positions of images.
    """
    array = np.asarray(factors)
    if array.ndim != 2 or array.shape[1] != len(sizes):
        raise ValueError(f"factors must have {len(sizes)} columns; got shape {array.shape}")
    if not 0 <= factor < len(sizes):
        raise ValueError(f"factor={factor} must be a column of factors, 0 to {len(sizes) - 1}")
    others = [k for k in range(len(sizes)) if k != factor]
    first = (array[:, others] < np.array(sizes)[others] / 2).all(axis=1)
    return np.flatnonzero(first), np.flatnonzero(~first)
