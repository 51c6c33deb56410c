"""Interactive figures: live where they can run, and a static picture everywhere else."""

import base64
import html
import io
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.figure import Figure


class InteractiveFigure:
    """A live figure with a static twin, as the value of a notebook's cell.

    The live one is of plotly, which shows itself in Jupyter and Colab, or the data of a script of
    the book (`conceptnb.plotting.moving`), for which the static picture stands there. On the book's
    site the page holds picture and data, and ``_static/interactive.js`` swaps the live figure in.
    `alt` says in words what it shows.
    """

    def __init__(self, figure: "go.Figure | Mapping[str, Any]", static: "Figure", alt: str) -> None:
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
        live = {} if isinstance(self.figure, Mapping) else self.figure._repr_mimebundle_() or {}
        return {**live, "image/png": encoded}

    def _page(self, picture: str) -> str:
        if isinstance(self.figure, Mapping):
            data = json.dumps(self.figure, default=np.ndarray.tolist)
        else:
            data = str(self.figure.to_json())
        data = data.replace("</", "<\\/")  # which would end a script element
        return (
            '<div class="interactive-figure">'
            f'<img alt="{html.escape(self.alt)}" src="data:image/png;base64,{picture}">'
            f'<script type="application/json">{data}</script></div>'
        )
