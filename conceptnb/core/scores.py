"""How well learned valuations match the true ones: R² and MCC (paper, Section 6).

Both are blind to permutation, scale and shift of concepts (Definition 4 and Remark 1).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from conceptnb.common.validation import Array, as_points

Method = Literal["pearson", "spearman"]


def correlation(true: ArrayLike, learned: ArrayLike, method: Method = "pearson") -> Array:
    """Correlate every true valuation (samples, n) with every learned one (samples, k).

    Returns signed correlations (n, k). A constant column carries no information about any other,
    so its correlations, 0/0 by the formula, are set to 0. "spearman" is Pearson on ranks, where
    tied values share their average rank.
    """
    true_columns, learned_columns = paired_samples(true, learned)
    if method not in ("pearson", "spearman"):
        raise ValueError(f"method is {method!r}; choose 'pearson' or 'spearman'")
    if method == "spearman":
        true_columns = rankdata(true_columns, axis=0)
        learned_columns = rankdata(learned_columns, axis=0)
    return np.clip(standardised(true_columns).T @ standardised(learned_columns), -1.0, 1.0)


def match_columns(
    true: ArrayLike, learned: ArrayLike, method: Method = "pearson"
) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Pair true with learned valuations so that the sum of |:func:`correlation`| is largest.

    Returns
    -------
    true_index, learned_index : arrays of shape (min(n, k),)
        Pair j joins true column ``true_index[j]`` to learned column
        ``learned_index[j]`` (the permutation of Definition 4).
    correlations : array of shape (min(n, k),)
        Their signed correlations. The sign is that of the scale λ in (6).
    """
    signed = correlation(true, learned, method)
    rows, columns = linear_sum_assignment(np.abs(signed), maximize=True)
    return rows, columns, signed[rows, columns]


def mcc(true: ArrayLike, learned: ArrayLike, method: Method = "pearson") -> float:
    """Mean correlation coefficient of matched valuations (Tables 1 and 7).

    Absolute correlations between true and learned columns are matched one to one
    by the Hungarian algorithm and averaged over the min(n, k) matched pairs. No
    affine fit comes first: a learned column has to be one concept and no mixture.

    Parameters
    ----------
    true : array of shape (samples, n)
        True valuations.
    learned : array of shape (samples, k)
        Learned valuations. With k < n the n - k unmatched true columns do not count, and with k > n
        the best n columns are picked: state both numbers beside the score when they differ.
    method : {"pearson", "spearman"}
        The tables use Pearson. Spearman also forgives monotone distortions.

    Returns
    -------
    float
        Between 0 and 1. A constant column counts as uncorrelated with everything.

    Examples
    --------
    >>> import numpy as np
    >>> true = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]])
    >>> round(mcc(true, -5 * true[:, ::-1] + 7), 12)
    1.0
    """
    _, _, correlations = match_columns(true, learned, method)
    return float(np.abs(correlations).mean())


def r2(true: ArrayLike, learned: ArrayLike) -> float:
    """Share of the true valuations' variance that an affine map of the learned explains.

    The R² of Tables 1 and 7: ordinary least squares with intercept from learned to true valuations,
    scored on the same samples, one R² per true column, then their plain mean (scikit-learn's
    ``r2_score`` with ``multioutput="uniform_average"``). It is blind to every invertible affine map
    of the learned columns, so it says that the span of the concepts was found and not that the
    concepts were separated. Learned columns may be constant or linearly dependent; a constant true
    column has no variance to explain and scores 1, as in scikit-learn.
    """
    true_columns, learned_columns = paired_samples(true, learned)
    target, design = standardised(true_columns), standardised(learned_columns)
    solution, *_ = np.linalg.lstsq(design, target, rcond=None)
    residual = target - design @ solution
    return float(1 - np.square(residual).sum(axis=0).mean())  # each target has length 1, or 0


def paired_samples(true: ArrayLike, learned: ArrayLike) -> tuple[Array, Array]:
    """Return both arrays as finite floats (samples, columns), checked to have the same samples.

    Raises
    ------
    TypeError, ValueError
        If an array holds no real numbers, is masked, NaN or infinite somewhere, has fewer than two
        samples or no column, or the numbers of samples differ.
    """
    true_columns = _columns(true, "true")
    learned_columns = _columns(learned, "learned")
    if len(true_columns) != len(learned_columns):
        raise ValueError(
            f"true has {len(true_columns)} samples and learned has {len(learned_columns)}; "
            "give both for the same samples, one row per sample"
        )
    return true_columns, learned_columns


def _columns(values: ArrayLike, name: str) -> Array:
    """Return a finite float array of shape (samples >= 2, columns >= 1) or refuse."""
    array = as_points(values, name)
    if array.shape[0] < 2 or array.shape[1] < 1:
        raise ValueError(
            f"{name} has shape {array.shape}; at least two samples and one column are needed"
        )
    if (np.ptp(array / 2, axis=0) > np.finfo(float).max / 2).any():
        raise ValueError(f"{name} has a column whose range no float holds: divide it")
    return array


def standardised(columns: Array) -> Array:
    """Return columns (samples, k) of mean 0 and length 1, whatever their origin and scale.

    A constant column becomes zeros.
    """
    # Dividing by the range first keeps squares of very large or small values finite.
    spread = np.ptp(columns, axis=0)
    constant = spread == 0
    scaled = (columns - columns.min(axis=0)) / np.where(constant, 1.0, spread)
    centred = scaled - scaled.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    return centred / np.where(constant, 1.0, length)
