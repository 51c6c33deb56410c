"""The one style of all figures: palette, sizes, and how a figure is made.

Fonts, sizes and colours are those of ``house.mplstyle``; nothing is told by colour alone.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, ParamSpec

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import rc_params_from_file
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from conceptnb.common.validation import Array

Row = Mapping[str, Any]  # of a results file

_SHEET = Path(__file__).with_name("house.mplstyle")
_STYLE: Any = rc_params_from_file(_SHEET, use_default_template=False)
PALETTE: tuple[str, ...] = tuple(_STYLE["axes.prop_cycle"].by_key()["color"])
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))

INK, MUTED = _STYLE["text.color"], _STYLE["axes.edgecolor"]
FAINT = "#b8bfc5"  # what lies behind the data and is not to be told apart
CARD, BLUES = _STYLE["axes.facecolor"], _STYLE["image.cmap"]
REDS = LinearSegmentedColormap.from_list("reds", ["#f3e3d3", "#d9603f", "#7a1410"])
"""Of pictures of something red, told apart by lightness."""
_WIDTH = 7.2  # inches: the width of a page's text column

P = ParamSpec("P")


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw a figure in the house style, and close it for pyplot, which would show it twice."""

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
    """Return a figure, as wide as a page's text and `height` inches high, and its grid of axes.

    The axes have shape (n_rows, n_columns); `subplots` go to `matplotlib.pyplot.subplots`.
    """
    given = {"figsize": (_WIDTH, height), "layout": "constrained", "squeeze": False, **subplots}
    return plt.subplots(n_rows, n_columns, **given)


def series_style(k: int, *parts: str) -> dict[str, Any]:
    """Return colour, marker and line of the k-th series, or of these what `parts` names."""
    every = {"color": PALETTE[k], "marker": MARKERS[k], "linestyle": LINES[k]}
    return {part: every[part] for part in parts or every}


def share_legend(
    figure: Figure, columns: int, place: Literal["above", "below"] = "below", **options: Any
) -> None:
    """Draw one legend outside all axes of a figure, each label once, with `columns` per line."""
    found: dict[str, Any] = {}
    for ax in figure.axes:
        handles, labels = ax.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            found.setdefault(label, handle)
    options["loc"] = {"above": "outside upper center", "below": "outside lower center"}[place]
    figure.legend(list(found.values()), list(found), ncols=columns, **options)


def draw_grid(
    ax: Axes,
    values: Array,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    form: str = "{:.2f}",
    limits: tuple[float, float] = (0, 1),
    colours: str = BLUES,
) -> None:
    """Draw a matrix (rows, columns) as coloured cells with each finite value written in its cell.

    `form` is how a value is written, such as ``"{:.0%}"``, empty for cells without text; `limits`
    are the values at the ends of the matplotlib colour map `colours`.
    """
    picture = ax.imshow(values, vmin=limits[0], vmax=limits[1], aspect="auto", cmap=colours)
    colour: Any = picture.get_cmap()
    for (i, j), value in np.ndenumerate(values):
        if form and np.isfinite(value):
            red, green, blue, _ = colour(picture.norm(np.array(value)))
            ink = INK if 0.3 * red + 0.59 * green + 0.11 * blue > 0.45 else "white"
            ax.text(j, i, form.format(value), ha="center", va="center", color=ink, fontsize=9)
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.grid(visible=False)


def scatter_on_line(count: int, width: float) -> Array:
    """Return offsets that keep points on one line apart, the same for the same count."""
    return width * ((np.arange(count, dtype=np.float64) * 0.618) % 1 - 0.5)
