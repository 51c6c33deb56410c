"""What R² and MCC leave out: coverage, cross-fitting and DCI (Section 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.ensemble import GradientBoostingRegressor

from conceptnb.common.validation import Array, as_count, as_generator
from conceptnb.core.scores import match_columns, paired_samples, r2, standardised

_FEWEST_FOR_HALVES = 4


def coverage_mcc(true: ArrayLike, learned: ArrayLike) -> float:
    """MCC that divides by the number of true columns: a dropped concept counts as zero.

    :func:`conceptnb.core.scores.mcc` averages over matched pairs, so a representation with a single
    good column has an MCC of 1 however many concepts it lacks. Arrays are as there.
    """
    *_, correlations = match_columns(true, learned)
    return float(np.abs(correlations).sum() / np.asarray(true).shape[1])


def cross_fitted_mcc(true: ArrayLike, learned: ArrayLike, rng: np.random.Generator) -> float:
    """MCC whose matching and signs are chosen on one half of the samples and scored on the other.

    MCC takes the best of k!/(k-n)! matchings and the absolute value of each correlation on the
    samples it scores, which inflates it when samples are few or columns are many. Signed
    correlations on the other half are unbiased by that choice: pure noise averages 0. Both
    directions between the random halves are averaged.
    """
    t, h = paired_samples(true, learned)
    scores = []
    for choose, judge in _halves(len(t), rng):
        rows, columns, chosen = match_columns(t[choose], h[choose])
        for i, j, value in zip(rows, columns, chosen, strict=True):
            _, _, judged = match_columns(t[judge][:, [i]], h[judge][:, [j]])
            scores.append(np.sign(value) * judged[0])
    return float(np.mean(scores))


def cross_fitted_r2(true: ArrayLike, learned: ArrayLike, rng: np.random.Generator) -> float:
    """R² of an affine map fitted on one half of the samples and scored on the other.

    The R² of Tables 1 and 7 is scored on the samples it is fitted to, and grows with every column.
    This one is near or below 0 for noise. Parameters: :func:`cross_fitted_mcc`. ValueError if a
    true column is constant on one half, which leaves nothing to explain.
    """
    r2(true, learned)  # refuses what R² refuses
    t, h = map(standardised, paired_samples(true, learned))
    scores = []
    for fit, judge in _halves(len(t), rng):
        design = np.column_stack([np.ones(len(h)), h])
        solution, *_ = np.linalg.lstsq(design[fit], t[fit], rcond=None)
        residual = t[judge] - design[judge] @ solution
        spread = t[judge] - t[judge].mean(axis=0)
        if not np.ptp(t[judge], axis=0).all():
            raise ValueError("true has a column that is constant on half of the samples: drop it")
        scores.append(np.mean(1 - (residual**2).sum(axis=0) / (spread**2).sum(axis=0)))
    return float(np.mean(scores))


def chance_mcc(
    true: ArrayLike, learned: ArrayLike, rng: np.random.Generator, draws: int = 20
) -> float:
    """Mean MCC with the learned rows shuffled `draws` times: the score of no relation at all."""
    t, h = paired_samples(true, learned)
    count = as_count(draws, "draws")
    shuffled = (match_columns(t, h[rng.permutation(len(h))])[2] for _ in range(count))
    return float(np.mean([np.abs(values).mean() for values in shuffled]))


@dataclass(frozen=True)
class DCI:
    """Disentanglement, completeness and informativeness of a representation.

    The first is 1 if every learned column is important for one concept only, the second if every
    concept is predicted from one column only; the third is R² on samples not seen.
    """

    disentanglement: float
    completeness: float
    informativeness: float


def dci(true: ArrayLike, learned: ArrayLike, rng: np.random.Generator) -> DCI:
    """DCI of a representation, by 30 boosted trees that predict each concept from all columns.

    Columns are standardised first: the thresholds of trees are of single precision, and impurities
    below 1e-7 of their unit count as none. The importance of a column for a concept is the share of
    the splits' gain. Entropies of the normalised importances, weighted by total importance, give
    the first two scores.
    The generator draws the half on which regressors are fitted, and seeds them.
    """
    r2(true, learned)
    t, h = (standardised(a) * np.sqrt(len(a)) for a in paired_samples(true, learned))
    if len(t) < _FEWEST_FOR_HALVES:
        raise ValueError(f"true has {len(t)} samples; dci needs {_FEWEST_FOR_HALVES}, two a half")
    fit, judge = _halves(len(t), rng)[0]
    importance, scores = [], []
    for column in t.T:
        seed = int(rng.integers(2**31))
        model = GradientBoostingRegressor(
            n_estimators=30, max_depth=3, learning_rate=0.2, random_state=seed
        ).fit(h[fit], column[fit])
        importance.append(model.feature_importances_)
        scores.append(model.score(h[judge], column[judge]))
    table = np.array(importance).T + 1e-12  # (k, n): learned columns by concepts
    return DCI(
        disentanglement=_concentration(table),
        completeness=_concentration(table.T),
        informativeness=float(np.mean(scores)),
    )


def correlated_normal(n: int, correlation: float, samples: int, rng: np.random.Generator) -> Array:
    """Draw normal valuations (samples, n) with unit variances and one correlation of all pairs.

    The correlation must lie in (-1/(n-1), 1).
    """
    size = as_count(n, "n")
    covariance = np.full((size, size), float(correlation))
    np.fill_diagonal(covariance, 1.0)
    if np.linalg.eigvalsh(covariance)[0] <= 0:
        raise ValueError(
            f"correlation is {correlation}; for {size} concepts it must lie between "
            f"{-1 / max(size - 1, 1)} and 1"
        )
    normal = as_generator(rng).normal(size=(as_count(samples, "samples"), size))
    return normal @ np.linalg.cholesky(covariance).T


def _halves(samples: int, rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    order = as_generator(rng).permutation(samples)
    first, second = order[: samples // 2], order[samples // 2 :]
    return [(first, second), (second, first)]


def _concentration(importance: Array) -> float:
    """Mean of 1 - normalised entropy of the rows, weighted by their sums."""
    if importance.shape[1] == 1:
        return 1.0
    shares = importance / importance.sum(axis=1, keepdims=True)
    entropy = -(shares * np.log(shares)).sum(axis=1) / np.log(importance.shape[1])
    weights = importance.sum(axis=1) / importance.sum()
    return float((weights * (1 - entropy)).sum())
