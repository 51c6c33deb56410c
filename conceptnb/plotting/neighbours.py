"""Figures of what is found with and without labels in the states of language models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from conceptnb.plotting.style import BLUES, INK, new_figure, styled

__all__ = ["found"]


@styled
def found(rows: Sequence[Mapping[str, Any]], concepts: Sequence[str]) -> Figure:
    """Draw mean η² of each method (down) and concept (across), one panel a world.

    Parameters
    ----------
    rows
        From `conceptnb.neighbours.summary`, of one number of components and of models either
        trained or not: ``row[concept]`` is a mean and a standard deviation.
    concepts
        Columns, by name.
    """
    worlds = list(dict.fromkeys(row["world"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    figure, axes = new_figure(1, len(worlds), height=0.36 * len(methods) + 1.1)
    for ax, world in zip(axes[0], worlds, strict=True):
        mean = {
            row["method"]: [row[c][0] for c in concepts] for row in rows if row["world"] == world
        }
        grid = np.array([mean[method] for method in methods])
        ax.imshow(grid, vmin=0, vmax=1, aspect="auto", cmap=BLUES)
        for (i, j), share in np.ndenumerate(grid):
            colour = INK if share > 0.5 else "white"
            ax.text(j, i, f"{share:.2f}", ha="center", va="center", color=colour, fontsize=9)
        ax.set_title(world)
        ax.set_xticks(range(len(concepts)), concepts, fontsize=8)
        ax.set_yticks(range(len(methods)), methods if ax is axes[0, 0] else [])
        ax.grid(visible=False)
    return figure
