"""Intervals of confidence."""

import numpy as np
from scipy.stats import t

from conceptnb.common.validation import Array


def interval_over_models(gains: Array, together: int = 1) -> tuple[float, float, float]:
    """Return the mean of (models, questions), and an interval of which `together` hold with 95 %.

    Models and questions are both drawn. The variance of the mean is the sum of those over models
    and over questions, which counts what is left once too often and so errs on the wide side; its
    degrees of freedom, Welch's and Satterthwaite's, are approximate: tests see 93 % or more.
    One model: over questions alone.
    """
    parts = [
        (means.var(ddof=1) / len(means), len(means) - 1)
        for means in (gains.mean(axis=1), gains.mean(axis=0))
        if len(means) > 1
    ]
    variance = sum(part for part, _ in parts)
    mean = float(gains.mean())
    if variance == 0:
        return mean, mean, mean
    free = variance**2 / sum(part**2 / n for part, n in parts)
    half = float(t.ppf(1 - 0.025 / together, free) * np.sqrt(variance))
    return mean, mean - half, mean + half
