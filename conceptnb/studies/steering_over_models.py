"""Techniques compared over several trained models: intervals over models and questions at once."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import t

from conceptnb.core.validation import Array
from conceptnb.studies.runner import Row
from conceptnb.studies.steering_analysis import accuracy_at_kl
from conceptnb.studies.summarise import grouped


def model_gains(rows: Sequence[Row], method: str, against: str, kl: float) -> Array:
    """Return MC1 of a method minus that of another at equal KL, (models, questions)."""
    models = [mine for _, mine in sorted(grouped(rows, ["model_seed"]).items())]
    one, other = ([accuracy_at_kl(m, name, kl) for m in models] for name in (method, against))
    return np.subtract(one, other)


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


def difference_columns(mean: float, low: float, high: float) -> dict[str, str]:
    """Return the columns that tables of comparisons have for a difference of MC1."""
    return {
        "MC1": f"{mean:+.3f}",
        "interval": f"[{low:+.3f}, {high:+.3f}]",
        "excludes 0": "yes" if low > 0 or high < 0 else "no",
    }


def over_models(
    corpora: Mapping[str, Sequence[Row]], methods: Sequence[str], against: str, kl: float
) -> pd.DataFrame:
    """Return MC1 of each method minus that of another at equal KL, on every corpus.

    The intervals, over models and questions, hold for all methods of a corpus together. The last
    column has the models in which the method is ahead.
    """
    shown = []
    for corpus, rows in corpora.items():
        for method in methods:
            gains = model_gains(rows, method, against, kl)
            mean, low, high = interval_over_models(gains, len(methods))
            shown.append(
                {"corpus": corpus, "technique": method}
                | difference_columns(mean, low, high)
                | {"ahead in": f"{(gains.mean(axis=1) > 0).sum()} of {len(gains)}"}
            )
    return pd.DataFrame(shown).set_index("corpus")
