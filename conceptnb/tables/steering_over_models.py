"""Techniques compared over several trained models: intervals over models and questions at once."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from conceptnb.common.intervals import interval_over_models
from conceptnb.common.validation import Array
from conceptnb.results.runner import Row
from conceptnb.results.summarise import grouped
from conceptnb.tables.steering_analysis import accuracy_at_kl


def model_gains(rows: Sequence[Row], method: str, against: str, kl: float) -> Array:
    """Return MC1 of a method minus that of another at equal KL, (models, questions)."""
    models = [mine for _, mine in sorted(grouped(rows, ["model_seed"]).items())]
    one, other = ([accuracy_at_kl(m, name, kl) for m in models] for name in (method, against))
    return np.subtract(one, other)


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
