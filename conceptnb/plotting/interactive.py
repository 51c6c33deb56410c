"""Interactive figures: plotly where it can run, and a static picture everywhere else."""

from __future__ import annotations

import base64
import html
import io
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.figure import Figure


class InteractiveFigure:
    """A plotly figure with a static twin, as the value of a notebook's cell.

    In Jupyter and Colab plotly shows itself. On the book's site the page holds the static
    picture and the figure's data, and ``_static/interactive.js`` swaps the live figure in. `alt`
    says in words what it shows.
    """

    def __init__(self, figure: go.Figure, static: Figure, alt: str) -> None:
        if not alt.strip():
            raise ValueError("alt is empty: say in words what the figure shows")
        self.figure = figure
        self.static = static
        self.alt = alt

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        buffer = io.BytesIO()
        self.static.savefig(buffer, format="png", bbox_inches="tight")
        encoded = base64.b64encode(buffer.getvalue()).decode()
        if os.environ.get("CONCEPTNB_SITE"):
            return {"text/html": self._page(encoded), "image/png": encoded}
        # Jupyter shows whichever of plotly's forms it knows, or else the picture.
        live = self.figure._repr_mimebundle_() or {}
        return {**live, "image/png": encoded}

    def _page(self, picture: str) -> str:
        """Return what the site shows: the picture, and the data of the live figure."""
        # "</" inside a script element would end it.
        data = str(self.figure.to_json()).replace("</", "<\\/")
        return (
            '<div class="interactive-figure">'
            f'<img alt="{html.escape(self.alt)}" src="data:image/png;base64,{picture}">'
            f'<script type="application/json">{data}</script></div>'
        )
