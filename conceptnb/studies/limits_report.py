"""Rows of the stored studies as a chapter shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conceptnb import results
from conceptnb.results.show import Table

__all__ = ["study_rows", "study_table"]


def study_rows(study: str, name: str = "synthetic_limits") -> list[dict[str, Any]]:
    """Return the stored rows of one study of ``conceptnb reproduce limits``.

    Parameters
    ----------
    study : str
    name : str
        Stem of the file under ``results/``.

    Raises
    ------
    ValueError
        If the file holds no such study.
    """
    stored = results.load(name)
    rows = [row for row in stored.rows if row["study"] == study]
    if not rows:
        there = ", ".join(dict.fromkeys(row["study"] for row in stored.rows))
        raise ValueError(f"study must be one of {there}, got {study!r}")
    return rows


def study_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return scores and bounds of a study's rows, mean ± std over seeds.

    Parameters
    ----------
    rows : sequence of dict
        Of :func:`study_rows`.
    """
    columns = {
        "R²": "r2",
        "MCC": "mcc",
        "MCC read off": "read_mcc",
        "R² supervised": "supervised_r2",
        "loss above oracle": "excess_loss",
    }
    return Table(
        [
            {"line": row["series"], "level": str(row["level"])}
            | {
                label: None
                if row[f"{key}_mean"] is None
                else [row[f"{key}_mean"], row[f"{key}_std"]]
                for label, key in columns.items()
            }
            for row in rows
        ],
        ".3f",
    )
