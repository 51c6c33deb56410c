"""Table 6 of a real model from its runs: the comparisons that `steering_real` has fixed.

Intervals are over questions, averaged over splits: mean ± z standard errors of paired differences.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.stats import norm

from conceptnb.results.runner import Row
from conceptnb.results.summarise import grouped
from conceptnb.steering.techniques import CONTROLS, MASS_MEAN, MATRIX
from conceptnb.tables.steering_analysis import (
    BASELINE,
    PAPER_ORDER,
    accuracy_at_choice,
    accuracy_at_kl,
    along_alpha,
    table6_rows,
)
from conceptnb.tables.steering_over_models import difference_columns

ORDER = PAPER_ORDER
"""The techniques of the paper's Table 6, in its order."""
NEIGHBOURS = tuple((upper, lower) for lower, upper in pairwise(ORDER))
"""Each technique and the one above it: does the paper's order hold?"""
HEADLINE = ((MATRIX, MASS_MEAN),)
WITH_CONTROLS = tuple(zip((MASS_MEAN, MATRIX), CONTROLS, strict=True))
OTHER_MATRICES = tuple(
    (name, MASS_MEAN) for name in ("matrix, TF-IDF", "matrix, centred", "matrix, optimised weights")
)
"""What `steering_real_matrices` compares at equal KL."""
KL_MEASURED = {
    "edits of tested questions": "kl_asked",
    "each technique's own edit of the prose": "kl",
}
"""What KL(original ‖ steered) on neutral prose may mean: the first is that of the design."""
PEERS = {
    "honest_llama, LLaMA-2-chat-7B": 0.09,
    "honest_llama, LLaMA-2-chat-13B": 0.03,
    "honest_llama, LLaMA-3-8B": 0.02,
}
"""Gain in MC1 per nat of KL in honest_llama's own replication (α = 15, K = 48)."""


def table6_of_model(rows: Sequence[Row]) -> pd.DataFrame:
    """Return each technique at its chosen α, with MC1 minus the unsteered model's, 95 %.

    If there are several splits, ± is MC1's standard deviation over them.
    """
    start = accuracy_at_choice(rows, BASELINE)
    several = len(_splits(rows)) > 1
    shown = []
    for entry in table6_rows(rows):
        name = entry["technique"]
        mean, low, high = _paired(accuracy_at_choice(rows, name), start)
        shown.append(
            {"technique": name, "α": entry["α"]}
            | {"MC1": f"{entry['MC1'][0]:.3f}"}
            | ({"±": f"{entry['MC1'][1]:.3f}"} if several else {})
            | {title: f"{entry[title][0]:.3f}" for title in ("MC2", "CE", "KL")}
            | {"MC1 gained": "" if name == BASELINE else f"{mean:+.3f} {_bracket(low, high, 3)}"}
        )
    return pd.DataFrame(shown).set_index("technique")


def mc1_differences(
    rows: Sequence[Row],
    pairs: Sequence[tuple[str, str]],
    *,
    alpha: float | None = None,
    kl: float | None = None,
    among: slice | np.ndarray = slice(None),
) -> pd.DataFrame:
    """Return MC1 of the first technique of each pair minus that of the second, in numbers.

    Parameters
    ----------
    rows
        Runs of one model, of `steering_real` or `steering_real_matrices`.
    pairs
        Names of two techniques each; ``baseline`` is the unsteered model.
    alpha, kl
        Give one of them: compare at equal strength, or at equal disturbance, KL in nats per token.
        At equal KL each technique is interpolated along its own α; one that stays below is taken
        at its strongest.
    among
        Which questions, of shape (questions,); all by default.

    Returns
    -------
    DataFrame
        One row a pair: ``technique``, ``minus``, ``mean``, ``low`` and ``high``. The intervals of
        all pairs hold together with 95 % (Bonferroni).

    Raises
    ------
    ValueError
        If not one of `alpha` and `kl` is given.
    """
    if (alpha is None) == (kl is None):
        raise ValueError("give alpha or kl, and not both")
    found = []
    for pair in pairs:
        one, other = (_accuracy(rows, name, alpha, kl)[among] for name in pair)
        found.append((*pair, *_paired(one, other, len(pairs))))
    return pd.DataFrame(found, columns=["technique", "minus", "mean", "low", "high"])


def along_kl(
    rows: Sequence[Row], pair: tuple[str, str], kl: Sequence[float] | None = None
) -> pd.DataFrame:
    """Return MC1 of a technique minus that of another along KL, by both of its definitions.

    A matrix edits each text by a vector of its own. ``kl_asked`` is the KL on neutral prose under
    the edits of tested questions, and ``kl`` that under the edits which the prose itself asks for;
    for a vector they are one.

    Parameters
    ----------
    rows
        Runs of one model, of `steering_real` or `steering_real_matrices`.
    pair
        Names of the two techniques, of which the second is subtracted.
    kl
        In nats per token, positive. By default 40 steps up to the largest KL that both techniques
        have reached in every fold by both definitions: nothing is extrapolated.

    Returns
    -------
    DataFrame
        ``measured`` (a key of `KL_MEASURED`), ``kl``, ``mean``, ``low`` and ``high``: intervals
        over questions, each of which holds alone with 95 %.

    Raises
    ------
    ValueError
        If a technique has no runs among `rows`, or a KL is not positive.
    """
    mine = [row for row in rows if row["method"] in pair]
    if missing := set(pair) - {row["method"] for row in mine}:
        raise ValueError(f"pair names {sorted(missing)}, of which rows holds no runs")
    if kl is None:
        reached = (max(p[of] for p in row["curve"]) for row in mine for of in KL_MEASURED.values())
        kl = np.linspace(0, min(reached), 41)[1:].tolist()
    found = []
    for name, measured in KL_MEASURED.items():
        for budget in kl:
            one, other = (accuracy_at_kl(rows, method, budget, measured) for method in pair)
            found.append((name, budget, *_paired(one, other)))
    return pd.DataFrame(found, columns=["measured", "kl", "mean", "low", "high"])


def compared(
    rows: Sequence[Row],
    pairs: Sequence[tuple[str, str]],
    *,
    alpha: float | None = None,
    kl: float | None = None,
    among: slice | np.ndarray = slice(None),
) -> pd.DataFrame:
    """Return `differences` as a table to read; its last column is the difference in each split."""
    found = mc1_differences(rows, pairs, alpha=alpha, kl=kl, among=among)
    splits, shown = _splits(rows), []
    for one, other, mean, low, high in found.itertuples(index=False):
        entry = {"technique": one, "minus": other} | difference_columns(mean, low, high)
        if len(splits) > 1:
            one_each, other_each = (
                [_accuracy(part, name, alpha, kl)[among].mean() for part in splits]
                for name in (one, other)
            )
            each = np.subtract(one_each, other_each)
            entry["each split"] = ", ".join(f"{d:+.3f}" for d in each)
        shown.append(entry)
    return pd.DataFrame(shown).set_index("technique")


def beside(rows: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    """Return the runs of Table 6 in the splits of `others`, whose techniques take their place."""
    seeds, methods = {row["seed"] for row in others}, {row["method"] for row in others}
    kept = [row for row in rows if row["seed"] in seeds and row["method"] not in methods]
    return [*kept, *others]


def gain_per_nat(rows: Sequence[Row], budget: float) -> pd.DataFrame:
    """Return MC1 gained per nat of KL, at the strongest α within the budget; peers' below."""
    start, shown = accuracy_at_choice(rows, BASELINE), []
    for name in ORDER[1:]:
        curve = along_alpha(rows, name)
        points = zip(curve["kl_asked"], curve["alpha"], strict=True)
        inside = [(kl, alpha) for kl, alpha in points if alpha > 0 and kl <= budget]
        if not inside:
            continue
        kl, alpha = max(inside)
        gain = np.array(_paired(_at(rows, name, alpha), start)) / kl
        shown.append(
            {"technique": name, "α": f"{alpha:g}", "KL": f"{kl:.3f}"}
            | {"gain per nat": f"{gain[0]:+.2f}", "95 % interval": _bracket(gain[1], gain[2])}
        )
    shown += [
        {"technique": name, "α": "15", "KL": "", "gain per nat": f"{gain:+.2f}"}
        | {"95 % interval": ""}
        for name, gain in PEERS.items()
    ]
    return pd.DataFrame(shown).set_index("technique")


def _splits(rows: Sequence[Row]) -> list[list[Row]]:
    return [part for _, part in sorted(grouped(rows, ["seed"]).items())]


def _accuracy(
    rows: Sequence[Row], method: str, alpha: float | None, kl: float | None
) -> np.ndarray:
    """Return MC1 of each question, (questions,), at a strength or at a KL."""
    if method == BASELINE:
        return accuracy_at_choice(rows, BASELINE)
    return _at(rows, method, alpha) if kl is None else accuracy_at_kl(rows, method, kl)


def _at(rows: Sequence[Row], method: str, alpha: float | None) -> np.ndarray:
    here = [{**row, "alpha": alpha} for row in rows if row["method"] == method]
    return accuracy_at_choice(here, method)


def _paired(one: np.ndarray, other: np.ndarray, together: int = 1) -> tuple[float, float, float]:
    """Return the mean difference and an interval; `together` of them hold with 95 %."""
    difference = one - other
    half = norm.ppf(1 - 0.025 / together) * difference.std(ddof=1) / np.sqrt(len(difference))
    mean = float(difference.mean())
    return mean, mean - float(half), mean + float(half)


def _bracket(low: float, high: float, digits: int = 2) -> str:
    return f"[{low:+.{digits}f}, {high:+.{digits}f}]"
