"""Components of language models' states as a chapter shows them, from ``results/neighbours``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from conceptnb import results
from conceptnb.common.validation import Array
from conceptnb.results.runner import Row
from conceptnb.results.show import Table
from conceptnb.results.summarise import grouped
from conceptnb.tables.synthetic_report import interval

CORPORA = ("alike", "no-source", "by-category")
SEPARABLE = ("alike", "no-source")
"""The corpora on which labels separate truth."""


def by_model(
    corpora: Sequence[str],
    concept: str,
    method: str,
    *,
    purity: float = 1.0,
    components: int = 8,
    trained: bool = True,
) -> Array:
    """Return η² of a concept in every model of some corpora, shape (models,), as stored.

    `purity` is of the data sets of "piles"; pure ones have the method "environments".
    """
    runs = _runs()
    keys = [(corpus, method, purity, components, trained) for corpus in corpora]
    if missing := [key for key in keys if key not in runs]:
        raise ValueError(f"results/neighbours.json has no runs of {missing}")
    return np.array([run[concept] for key in keys for run in runs[key]])


@cache
def _runs() -> dict[tuple[Any, ...], list[Row]]:
    """Return the stored runs by what `by_model` chooses them by; a page asks some hundred times."""
    by = ["corpus", "method", "purity", "components", "trained"]
    return grouped(results.load("neighbours").runs, by)


def of_piles(corpora: Sequence[str], concept: str, purity: float) -> Array:
    """Return what `by_model` does for piles of a purity, of which 1 is that of environments."""
    return by_model(corpora, concept, "piles" if purity < 1 else "environments", purity=purity)


def truth_by_method(methods: Sequence[str]) -> Table:
    """Return η² of truth, mean ± std over models, for 8 and 32 components and untrained models."""
    blocks = {"8": (8, True), "32": (32, True), "32, untrained": (32, False)}
    rows: list[dict[str, Any]] = []
    for block, size in blocks.items():
        for method in methods:
            cells = {corpus: _mean_and_std(corpus, method, *size) for corpus in CORPORA}
            rows.append({"components": block, "method": method, **cells})
    return Table(rows, ".2f")


def labels_minus_piles(purities: Sequence[float]) -> Table:
    """Return η² of labels minus that of piles, with 95 % t intervals over models."""
    return Table(
        [
            {"purity": f"{purity:g}"}
            | {
                concept: _gap(by_model(own, concept, "labels"), of_piles(own, concept, purity))
                for concept, own in {"truth": SEPARABLE, "speaker": CORPORA}.items()
            }
            for purity in purities
        ]
    )


def minus_random(methods: Sequence[str], components: int = 8) -> Table:
    """Return η² minus that of random directions, with 95 % t intervals over models."""
    corpora = {"truth": SEPARABLE, "category": CORPORA, "speaker": CORPORA}
    return Table(
        [
            {"components": str(components), "method": method}
            | {
                concept: _gap(
                    by_model(own, concept, method, components=components),
                    by_model(own, concept, "random directions", components=components),
                )
                for concept, own in corpora.items()
            }
            for method in methods
        ]
    )


def _gap(one: Array, other: Array) -> str:
    return interval((one - other).tolist())


def _mean_and_std(corpus: str, method: str, components: int, trained: bool) -> list[float]:
    values = by_model([corpus], "truth", method, components=components, trained=trained)
    return [float(values.mean()), float(values.std())]
