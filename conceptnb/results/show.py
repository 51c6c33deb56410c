"""How a page shows a table: without row numbers, ``mean ± std`` in one cell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Table:
    """Rows with the same keys, as the value of a notebook's cell; `digits` formats numbers."""

    rows: Sequence[Mapping[str, Any]]
    digits: str = "g"

    def frame(self) -> "pd.DataFrame":
        """Return the table as a data frame of what its cells read."""
        import pandas as pd  # noqa: PLC0415 - needed for display alone

        return pd.DataFrame(
            [{k: _show(value, self.digits) for k, value in row.items()} for row in self.rows]
        )

    def _repr_html_(self) -> str:
        return self.frame().to_html(index=False, border=0, na_rep="")


def means(row: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, list[Any]]:
    """Return ``[mean, std]`` of a row, by what a page calls them: label -> name of the column."""
    return {label: [row[f"{key}_mean"], row[f"{key}_std"]] for label, key in columns.items()}


def _show(value: Any, digits: str = "g") -> Any:
    """Return a cell as people read it: ``"mean ± std"``, ``"< 0.001"``, empty if not measured."""
    if isinstance(value, list | tuple):
        between = " ± " if len(value) <= 2 else ", "
        return between.join(_number(part, digits) for part in value if part is not None)
    if isinstance(value, float):
        return _number(value, digits)
    return "" if value is None else value


def _number(value: Any, digits: str) -> str:
    text = format(value, digits)
    if not text.endswith("0") or float(text) != 0 or "." not in text:
        return text
    text = text.removeprefix("-")  # nothing has no sign
    return f"<\N{NO-BREAK SPACE}{text[:-1]}1" if value > 0 else text
