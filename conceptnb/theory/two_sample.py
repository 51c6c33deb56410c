"""Do two samples come from one distribution? Two tests that look in different ways."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import ks_2samp, mannwhitneyu
from sklearn.ensemble import HistGradientBoostingClassifier

from conceptnb.common.validation import as_generator, as_points

_DIRECTIONS = 64  # number of random directions of `projection_test`, and of random points


def projection_test(X: ArrayLike, Y: ArrayLike, rng: np.random.Generator) -> float:
    """Kolmogorov-Smirnov along many directions, with Bonferroni's correction: a valid p-value.

    Two distributions are equal if and only if all their one-dimensional projections are (Cramér and
    Wold). The coordinates, random directions, and distances to random points of the pooled data are
    compared, the last to see what no line shows. X and Y have at least 500 rows each.
    """
    first, second = _pair(X, Y)
    as_generator(rng)
    d = first.shape[1]
    directions = np.hstack([np.eye(d), rng.standard_normal((d, _DIRECTIONS))])
    # The points are taken from both samples alike, so they favour neither.
    centres = np.vstack([first[:_DIRECTIONS], second[:_DIRECTIONS]])[::2]
    rest_first, rest_second = first[_DIRECTIONS:], second[_DIRECTIONS:]
    p_values = [
        ks_2samp(rest_first @ a, rest_second @ a, method="asymp").pvalue for a in directions.T
    ]
    for centre in centres:
        distances = [np.linalg.norm(rest - centre, axis=1) for rest in (rest_first, rest_second)]
        p_values.append(ks_2samp(*distances, method="asymp").pvalue)
    return float(min(1.0, min(p_values) * len(p_values)))


def classifier_test(X: ArrayLike, Y: ArrayLike, rng: np.random.Generator) -> float:
    """Let boosted trees try to tell the two samples apart, on data held out from them.

    Trees are fitted to one half of the pooled data; on the other half, their scores for
    the two samples are compared by the one-sided Mann-Whitney rank test. Any dependence that the
    trees can learn shows, not only one-dimensional ones. Parameters are as for `projection_test`.
    """
    first, second = _pair(X, Y)
    data = np.vstack([first, second])
    label = np.repeat([0, 1], [len(first), len(second)])
    order = as_generator(rng).permutation(len(data))
    fit, judge = np.array_split(order, 2)
    trees = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.2, early_stopping=False, random_state=0
    )
    trees.fit(data[fit], label[fit])
    score = trees.predict_proba(data[judge])[:, 1]
    ones = label[judge] == 1
    return float(mannwhitneyu(score[ones], score[~ones], alternative="greater").pvalue)


def _pair(X: ArrayLike, Y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    first = as_points(X, "X")
    second = as_points(Y, "Y", first.shape[1])
    if min(len(first), len(second)) < 500:
        raise ValueError(
            f"X and Y must have at least 500 rows each, got {len(first)} and {len(second)}"
        )
    return first, second
