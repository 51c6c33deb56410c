"""What a concept direction is worth: planes, separation, agreement, splits (Appendix D.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.core.validation import as_points
from conceptnb.embeddings.directions.pairwise import check_labels

Array = NDArray[np.float64]


def _as_valuations(valuations: ArrayLike, name: str = "valuations") -> Array:
    array = np.asarray(valuations, dtype=float)
    return as_points(array[:, None] if array.ndim == 1 else array, name)


@dataclass(frozen=True)
class ValuationTable:
    """Mean and standard deviation of valuations for each value (Tables 2, 3 and 4).

    Attributes
    ----------
    values : (n_values,) the values that occur
    counts : (n_values,) images of each
    means, stds : (n_values, k); population standard deviations, as in the paper
    """

    values: NDArray[np.intp]
    counts: NDArray[np.intp]
    means: Array
    stds: Array


def valuation_table(valuations: ArrayLike, labels: ArrayLike) -> ValuationTable:
    """Summarise valuations (n,) or (n, k) by value, as Tables 2, 3 and 4 do."""
    V = _as_valuations(valuations)
    whole = check_labels(labels, len(V))
    values, counts = np.unique(whole, return_counts=True)
    groups = [V[whole == value] for value in values]
    return ValuationTable(
        values,
        counts,
        np.stack([group.mean(axis=0) for group in groups]),
        np.stack([group.std(axis=0) for group in groups]),
    )


def separation(valuations: ArrayLike, labels: ArrayLike) -> float:
    """Between-class share of the variance of valuations, η².

    1 when every image lies on the concept plane of its value (Definition 1), 0
    when the valuation says nothing about the value. In k > 1 dimensions variances
    are summed over dimensions (traces).
    """
    V = _as_valuations(valuations)
    table = valuation_table(V, labels)
    total = V.var(axis=0).sum()
    if total == 0:
        return 0.0
    shares = table.counts / table.counts.sum()
    return float(1 - (shares @ table.stds**2).sum() / total)


def spread_between(valuations: ArrayLike, labels: ArrayLike) -> Array:
    """Variance between values over variance within them, along each dimension (k,).

    What is expected of values that do not differ is subtracted, and a negative rest is 0.
    """
    V = _as_valuations(valuations)
    table = valuation_table(V, labels)
    shares = table.counts / len(V)
    between = shares @ (table.means - V.mean(axis=0)) ** 2
    within = shares @ table.stds**2
    noise = within * (len(table.values) - 1) / max(len(V) - len(table.values), 1)
    return np.maximum(between - noise, 0) / np.where(within > 0, within, 1)


def canonical_correlations(first: ArrayLike, second: ArrayLike) -> Array:
    """Canonical correlations of two sets of valuations of the same images, falling.

    In one dimension this is the absolute value of the correlation in Table 5. In
    k dimensions it is what correlation becomes when concepts are defined up to an
    invertible linear map, which is all that Theorem 1 promises.

    Raises
    ------
    ValueError
        If the numbers of images differ.
    """
    first_basis, second_basis = _whitened(first, second)
    correlations = np.linalg.svd(first_basis.T @ second_basis, compute_uv=False)
    return np.minimum(correlations, 1.0)


def canonical_variates(first: ArrayLike, second: ArrayLike) -> tuple[Array, Array]:
    """Turn two sets of valuations of the same images so that they agree as well as they can.

    Returns
    -------
    Two arrays (n, k), k the smaller dimension: columns have mean 0 and variance 1, and
    the j-th columns of both have the j-th canonical correlation.

    Raises
    ------
    ValueError
        If the numbers of images differ.
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
    U, s, _ = np.linalg.svd(A - A.mean(axis=0), full_matrices=False)
    V, t, _ = np.linalg.svd(B - B.mean(axis=0), full_matrices=False)
    return U[:, s > 1e-10 * max(s[0], 1e-300)], V[:, t > 1e-10 * max(t[0], 1e-300)]


def nearest_plane(valuations: ArrayLike, planes: ArrayLike) -> NDArray[np.intp]:
    """Row of the nearest of the concept planes (n_values, k), for each valuation (n, k)."""
    V, P = _as_valuations(valuations), _as_valuations(planes, "planes")
    if V.shape[1] != P.shape[1]:
        raise ValueError(
            f"valuations have {V.shape[1]} dimensions and planes {P.shape[1]}; both need the same"
        )
    squared = (V**2).sum(axis=1)[:, None] - 2 * V @ P.T + (P**2).sum(axis=1)
    return squared.argmin(axis=1)


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

    Training images have every other factor in the first half of its values (about
    3 % of 3D Shapes); all others are for testing. Unlike a random half, this asks
    a direction to carry over to values of other factors that it never saw.

    Parameters
    ----------
    factors : (n, n_factors) value indices
    factor : column of the factor whose direction is to be learned
    sizes : number of values of each factor
    """
    array = np.asarray(factors)
    if array.ndim != 2 or array.shape[1] != len(sizes):
        raise ValueError(f"factors must have {len(sizes)} columns; got shape {array.shape}")
    if not 0 <= factor < len(sizes):
        raise ValueError(f"factor={factor} must be a column of factors, 0 to {len(sizes) - 1}")
    others = [k for k in range(len(sizes)) if k != factor]
    first = (array[:, others] < np.array(sizes)[others] / 2).all(axis=1)
    return np.flatnonzero(first), np.flatnonzero(~first)
