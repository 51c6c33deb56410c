"""The paper's own numbers: Tables 1-7, as data, to be shown beside ours and never as ours.

Pairs are mean and deviation over repetitions (Tables 1, 6, 7) or of valuations (Tables 2-4).
"""

import copy
import functools
import json
from importlib.resources import files
from typing import Any

from conceptnb.results.show import Table


def printed(name: str) -> dict[str, Any]:
    """Return a copy of one of the paper's tables, as printed.

    They are ``"table1_table7"`` (synthetic data) and ``"table6"`` (steering LLaMA-7B on
    TruthfulQA), with ``columns`` and ``rows``, and by factor of 3D Shapes ``"table2"``,
    ``"table3"``, ``"table4"`` (valuations of CLIP models) and ``"table5_correlation_ViT_RN"``.

    Examples
    --------
    >>> printed("table1_table7")["rows"][0]
    ['linear', 2, 3, 4, [0.98, 0.01], [0.98, 0.03]]
    """
    tables = {table: content for table, content in _all().items() if isinstance(content, dict)}
    if name not in tables:
        raise ValueError(f"name={name!r} is none of the paper's tables: {', '.join(tables)}")
    return copy.deepcopy(tables[name])


def as_printed(name: str) -> Table:
    """Return one of the tables of `printed` for display, ``"mean ± std"`` where it has both."""
    content = printed(name)
    if "rows" in content:
        return Table([dict(zip(content["columns"], row, strict=True)) for row in content["rows"]])
    if all(isinstance(value, float) for value in content.values()):
        return Table([{"factor": key, "correlation": value} for key, value in content.items()])
    models = ("ViT-B/32", "RN101")
    return Table(
        [
            {"factor": factor, "value": value, **{model: part[model][i] for model in models}}
            for factor, part in content.items()
            for i, value in enumerate(part["values"])
        ]
    )


@functools.cache
def _all() -> dict[str, Any]:
    return json.loads((files("conceptnb.results") / "paper_tables.json").read_text("utf-8"))
