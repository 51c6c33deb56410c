"""The rows of ``conceptnb reproduce clip`` as Tables 2 to 5 print them, for a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from conceptnb.embeddings.directions.evaluation import ValuationTable
from conceptnb.embeddings.shapes3d.factors import FACTORS, factor_labels
from conceptnb.results import paper
from conceptnb.results.show import Table
from conceptnb.results.store import Result

__all__ = ["agreements", "beside_paper", "paper_columns", "separations", "valuations", "wheels"]

PAPER_MODELS = ("ViT-B/32", "RN101")


def paper_columns() -> dict[str, dict[str, list[list[float]]]]:
    """Tables 2 to 4 of the paper: [mean, std] a value, by factor and model."""
    printed = {
        name: column
        for table in ("table2", "table3", "table4")
        for name, column in paper.printed(table).items()
    }
    printed["orientation"] = printed["orientation_deg"]
    return {name: {model: printed[name][model] for model in PAPER_MODELS} for name in FACTORS}


def beside_paper(ours: Mapping[str, Mapping[str, ValuationTable]]) -> Table:
    """Tables 2 to 4: valuations of our models, and of the paper's beside them.

    Parameters
    ----------
    ours : valuations by model and factor
    """
    columns = paper_columns()
    rows = [
        {"factor": factor.replace("_", " "), "value": label}
        | {
            name: [float(tables[factor].means[k, 0]), float(tables[factor].stds[k, 0])]
            for name, tables in ours.items()
        }
        | {f"paper: {model}": columns[factor][model][k] for model in PAPER_MODELS}
        for factor in FACTORS
        for k, label in enumerate(factor_labels(factor))
    ]
    return Table(rows, ".1f")


def _models(result: Result, *, untrained: bool) -> list[str]:
    rows = _rows(result, "separation")
    names = dict.fromkeys(row["model"] for row in rows)
    return [name for name in names if untrained or not name.endswith("-untrained")]


def _rows(result: Result, table: str) -> list[dict[str, Any]]:
    rows = [row for row in result.rows if row.get("table") == table]
    if not rows:
        raise ValueError(
            f"result={result.name!r} has no rows of table {table!r}; "
            "it has to come from `conceptnb reproduce clip`"
        )
    return rows


def valuations(result: Result, factors: Sequence[str]) -> Result:
    """Mean ± standard deviation of valuations by value, a column a model (Tables 2 to 4).

    Parameters
    ----------
    result : Result
        What ``conceptnb reproduce clip`` computed.
    factors : sequence of str
        Names of the factors to show.

    Raises
    ------
    ValueError
        If `result` holds no valuations.
    """
    models = _models(result, untrained=False)
    found = {
        (row["factor"], row["value"], row["model"]): [row["mean"], row["std"]]
        for row in _rows(result, "valuations")
    }
    keys = dict.fromkeys((factor, value) for factor, value, _ in found if factor in factors)
    rows = [
        {"factor": factor.replace("_", " "), "value": value}
        | {model: found[factor, value, model] for model in models}
        for factor, value in keys
    ]
    return replace(result, rows=rows)


def agreements(result: Result) -> Result:
    """Correlation of two models' valuations, a row a factor (Table 5).

    Beside the correlation of the paper's directions stand the canonical
    correlations of the concepts in their proper dimensions, and the smallest of them as
    mean ± standard deviation over five random halves. Untrained models come last.
    """
    rows = [
        {
            "models": " and ".join(row["models"]),
            "factor": row["factor"].replace("_", " "),
            "paper's direction": row["correlation_paper"],
            "dimensions": " and ".join(map(str, row["dimensions"])),
            "canonical correlations": _joined(row["canonical"]),
            "smallest, over splits": "{:.3f} ± {:.3f}".format(*row["smallest_over_splits"]),
        }
        for row in _rows(result, "agreement")
    ]
    return replace(result, rows=rows)


def wheels(result: Result) -> Result:
    """Agreement of two models on a hue, a row for each way to read it; see `readings`."""
    rows = [
        {
            "models": " and ".join(row["models"]),
            "factor": row["factor"].replace("_", " "),
            "reading": row["reading"],
            "dimensions": " and ".join(map(str, row["dimensions"])),
            "accuracies": _joined(row["accuracies"]),
            "canonical correlations": _joined(row["canonical"]),
        }
        for row in _rows(result, "readings")
    ]
    return replace(result, rows=rows)


def _joined(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.3f}" for number in numbers)


def separations(result: Result) -> Result:
    """Between-class share of variance η² of order-free directions, a column a model.

    Untrained models stand beside the trained ones.
    """
    models = _models(result, untrained=True)
    found = {(row["model"], row["factor"]): row["eta2"] for row in _rows(result, "separation")}
    rows = [
        {"factor": factor.replace("_", " ")} | {model: found[model, factor] for model in models}
        for factor in FACTORS
    ]
    return replace(result, rows=rows)
