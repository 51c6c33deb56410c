"""The one style of all figures: palette, sizes, and how a figure is made.

Figures are drawn on an opaque light card, so that they read the same on a light page,
on a dark page and on paper. Colours are those of Okabe and Ito, which stay apart for
colour-blind readers; no figure tells things apart by colour alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, ParamSpec

import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo")

INK = "#1f2933"
MUTED = "#5b6670"
FAINT = "#b8bfc5"  # what lies behind the data and is not to be told apart
CARD = "#fcfcfa"
BLUES = "cividis"  # sequential and safe for colour-blind readers
WIDTH = 7.2  # inches: the width of a page's text column

P = ParamSpec("P")

_STYLE: dict[str, Any] = {
    "figure.facecolor": CARD,
    "savefig.facecolor": CARD,
    "figure.dpi": 144,
    "savefig.dpi": 160,
    "axes.facecolor": CARD,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=PALETTE),
    "axes.grid": True,
    "grid.color": "#dfe3e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "font.size": 10.5,
    "font.family": "DejaVu Sans",
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "image.cmap": BLUES,
}


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw a figure in the house style, and close it for pyplot.

    A closed figure is shown once, as the value of the cell that returns it, and never
    a second time by the inline backend. Every public figure function wears this.
    """

    @functools.wraps(draw)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with plt.style.context(_STYLE):
            figure = draw(*args, **kwargs)
        plt.close(figure)
        return figure

    return wrapper


def new_figure(
    n_rows: int = 1, n_columns: int = 1, height: float = 3.2, **subplots: Any
) -> tuple[Figure, np.ndarray]:
    """Return a figure as wide as a page's text column, and its grid of axes.

    Parameters
    ----------
    n_rows, n_columns : int
    height : float
        Height of the figure in inches.
    **subplots
        Passed to `matplotlib.pyplot.subplots`.

    Returns
    -------
    figure : matplotlib.figure.Figure
    axes : ndarray of matplotlib.axes.Axes, shape (n_rows, n_columns)
    """
    return plt.subplots(
        n_rows,
        n_columns,
        figsize=(WIDTH, height),
        layout="constrained",
        squeeze=False,
        **subplots,
    )


def identity_line(ax: Axes) -> None:
    """Draw the line on which both coordinates agree."""
    ax.axline((0, 0), slope=1, color=MUTED, linestyle="--", linewidth=1, zorder=1)


def stretch_scores(ax: Axes, axis: Literal["x", "y"] = "y") -> None:
    """Scale an axis of scores from 0 to 1 so that those near 1 lie apart."""
    top = 1.05

    def forward(score: Any) -> Any:
        return -np.sqrt(np.maximum(top - score, 0))

    def inverse(place: Any) -> Any:
        return top - np.minimum(place, 0) ** 2

    ticks = [0, 0.5, 0.8, 0.9, 1.0], ["0", "0.5", "0.8", "0.9", "1"]
    if axis == "x":
        ax.set_xscale("function", functions=(forward, inverse))
        ax.set_xticks(*ticks)
        ax.set_xlim(-0.05, top)
    else:
        ax.set_yscale("function", functions=(forward, inverse))
        ax.set_yticks(*ticks)
        ax.set_ylim(-0.05, top)
