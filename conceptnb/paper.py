"""The paper's own numbers: Tables 1-7, as data, to be shown beside ours and never as ours.

The file ``data/paper_tables.json`` holds the printed values. Pairs are mean and standard
deviation over the paper's repetitions (Tables 1, 6, 7), or mean and standard deviation of a
concept's valuation over images (Tables 2-4).
"""

from __future__ import annotations

import copy
import functools
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CITATION", "frame", "names", "show", "table"]

CITATION = (
    "G. Rajendran, S. Buchholz, B. Aragam, B. Schölkopf, P. Ravikumar: From Causal to "
    "Concept-Based Representation Learning, NeurIPS 2024"
)


def names() -> list[str]:
    """Return the names that `table` knows."""
    return [name for name, content in _all().items() if isinstance(content, dict)]


def table(name: str) -> dict[str, Any]:
    """Return one of the paper's tables, as printed.

    Parameters
    ----------
    name : str
        One of `names`: ``"table1_table7"`` (synthetic data: Table 1 and its extension,
        Table 7), ``"table2"``, ``"table3"``, ``"table4"`` (mean valuations of CLIP models
        on 3D Shapes), ``"table5_correlation_ViT_RN"`` (correlation of the two models'
        valuations), ``"table6"`` (steering LLaMA-7B on TruthfulQA).

    Returns
    -------
    table : dict
        With ``columns`` and ``rows`` (Tables 1, 6, 7), or by factor of 3D Shapes. A copy:
        it may be changed freely.

    Raises
    ------
    ValueError
        If the paper has no table of that name here.

    Examples
    --------
    >>> table("table1_table7")["rows"][0]
    ['linear', 2, 3, 4, [0.98, 0.01], [0.98, 0.03]]
    """
    if name not in names():
        raise ValueError(f"name={name!r} is none of the paper's tables: {', '.join(names())}")
    return copy.deepcopy(_all()[name])


def frame(name: str) -> pd.DataFrame:
    """Return one of the paper's tables as a data frame for display.

    Parameters
    ----------
    name : str
        As for `table`.

    Returns
    -------
    frame : pandas.DataFrame
        One row a printed row, ``"mean ± std"`` where the paper prints both.

    Raises
    ------
    ValueError
        If the paper has no table of that name here.
    """
    import pandas as pd  # noqa: PLC0415 - needed for display alone

    content = table(name)
    if "rows" in content:
        cells = [[show(value) for value in row] for row in content["rows"]]
        return pd.DataFrame(cells, columns=content["columns"])
    if all(isinstance(value, float) for value in content.values()):
        return pd.DataFrame({"factor": list(content), "correlation": list(content.values())})
    rows = [
        {"factor": factor, "value": value, **{m: show(part[m][i]) for m in ("ViT-B/32", "RN101")}}
        for factor, part in content.items()
        for i, value in enumerate(part["values"])
    ]
    return pd.DataFrame(rows)


def show(value: Any, digits: str = "g") -> Any:
    """Return a cell as people read it: ``[mean, std]`` becomes ``"mean ± std"``.

    Parameters
    ----------
    value : Any
        A pair of numbers, a number, text, or None for what was not measured.
    digits : str
        Format of a number; as printed by default.
    """
    if isinstance(value, list | tuple):
        return " ± ".join(format(part, digits) for part in value if part is not None)
    if isinstance(value, float):
        return format(value, digits)
    return "" if value is None else value


@functools.cache
def _all() -> dict[str, Any]:
    text = (files("conceptnb") / "data" / "paper_tables.json").read_text(encoding="utf-8")
    return json.loads(text)
