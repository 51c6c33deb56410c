"""Rows of the stored studies as a chapter shows them."""

from collections.abc import Sequence
from typing import Any

from conceptnb import results
from conceptnb.results.show import Table, means


def study_rows(study: str) -> list[dict[str, Any]]:
    """Return the stored rows of one study of ``conceptnb reproduce limits``."""
    stored = results.load("synthetic_limits").rows
    rows = [row for row in stored if row["study"] == study]
    if not rows:
        there = ", ".join(dict.fromkeys(row["study"] for row in stored))
        raise ValueError(f"study must be one of {there}, got {study!r}")
    return rows


def study_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return scores and bounds of what :func:`study_rows` returned, mean ± std over seeds."""
    columns = {"R²": "r2", "MCC": "mcc", "MCC read off": "read_mcc"}
    columns |= {"R² supervised": "supervised_r2", "loss above oracle": "excess_loss"}
    lines = [{"line": r["series"], "level": str(r["level"])} | means(r, columns) for r in rows]
    return Table(lines, ".3f")
