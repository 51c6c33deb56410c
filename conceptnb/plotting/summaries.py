"""Figures that several parts share: numbers by concept, along a level, and as a grid."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from conceptnb.common.validation import Array
from conceptnb.plotting._style import (
    MUTED,
    PALETTE,
    draw_grid,
    new_figure,
    scatter_on_line,
    series_style,
    share_legend,
    styled,
)


@styled
def concept_dots(
    numbers: Mapping[str, Mapping[str, ArrayLike]],
    label: str,
    reference: ArrayLike | None = None,
    limits: tuple[float, float] = (-0.03, 1.04),
    interval: bool = False,
) -> Figure:
    """Draw numbers by concept, models side by side: runs as small marks, their mean large.

    Parameters
    ----------
    numbers : mapping from a model to a mapping from a concept to one number or an array of them
    reference : float or array-like of shape (concepts,), optional
        Chance or a bar to reach, for all concepts or for each, drawn as dashed lines; of shape
        (models, 1 or concepts), one for each model, in its colour.
    interval : bool
        Draw the 95 % t interval of each mean over runs.
    """
    figure, [[ax]] = new_figure(height=3.3)
    names = list(next(iter(numbers.values())))
    width = 0.84 / len(numbers)
    for k, (model, concepts) in enumerate(numbers.items()):
        style = series_style(k, "color", "marker")
        for place, name in enumerate(names):
            values = np.ravel(concepts[name])
            x = place + (k - (len(numbers) - 1) / 2) * width
            if len(values) > 1:
                places = x + scatter_on_line(len(values), 0.6 * width)
                ax.scatter(places, values, s=12, alpha=0.45, linewidths=0, rasterized=True, **style)
            if interval and (n := len(values)) > 1:
                half = stdtrit(n - 1, 0.975) * values.std(ddof=1) / np.sqrt(n)
                ax.errorbar(x, values.mean(), half, color=style["color"], lw=1.2, capsize=2)
            mean = {"label": model} if place == 0 else {}
            ax.plot(x, values.mean(), ms=8, markeredgecolor="white", ls="", **style, **mean)
    if reference is not None:
        lines = np.atleast_2d(reference)
        for (k, place), level in np.ndenumerate(np.broadcast_to(lines, (len(lines), len(names)))):
            color = MUTED if len(lines) == 1 else PALETTE[k]
            ax.hlines(level, place - 0.45, place + 0.45, color=color, linestyle="--", linewidth=1)
    ax.set_xticks(range(len(names)), [name.replace("_", " ") for name in names])
    ax.set(ylabel=label, ylim=limits)
    ax.grid(axis="x", visible=False)
    if len(numbers) > 1:
        share_legend(figure, min(3, len(numbers)), "above")
    return figure


@styled
def profiles(
    levels: ArrayLike,
    scores: Mapping[str, ArrayLike],
    x_label: str,
    y_label: str = "score",
    *,
    log: bool = False,
    chance: float | None = None,
) -> Figure:
    """Draw scores along a level, one line per name: means, and one standard deviation around.

    `scores` have shape (levels,) or (levels, repeats); a series that is shorter is of the first
    levels. `chance` is drawn as a dotted line.
    """
    places = np.asarray(levels, dtype=float)
    figure, [[ax]] = new_figure(height=3.3)
    for k, (name, values) in enumerate(scores.items()):
        table = np.asarray(values, dtype=float)
        table = table.reshape(len(table), -1)
        here, mean, std = places[: len(table)], table.mean(axis=1), table.std(axis=1)
        ax.plot(here, mean, label=name.replace("_", " "), **series_style(k))
        ax.fill_between(here, mean - std, mean + std, color=PALETTE[k], alpha=0.15, linewidth=0)
    if chance is not None:
        ax.axhline(chance, color=MUTED, linestyle=":", linewidth=1.2, label="chance")
    if log:
        ax.set_xscale("log")
        ax.minorticks_off()
    ax.set_xticks(places, [f"{place:g}" for place in places])
    ax.set(xlabel=x_label, ylabel=y_label, ylim=(-0.03, 1.05))
    share_legend(figure, min(4, len(scores) + (chance is not None)), "above")
    return figure


@styled
def value_grid(
    values: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    x_label: str = "",
    y_label: str = "",
    limits: tuple[float, float] = (0, 1),
    form: str = "{:.2f}",
) -> Figure:
    """Draw a matrix (rows, columns) as cells with their values, as `draw_grid` does."""
    figure, axes = new_figure(height=0.42 * len(rows) + 1.2)
    draw_grid(axes[0, 0], np.asarray(values, dtype=float), rows, columns, form=form, limits=limits)
    axes[0, 0].set(xlabel=x_label, ylabel=y_label)
    return figure


@styled
def cosine_maps(cosines: Mapping[str, Array], names: Sequence[str]) -> Figure:
    """Draw the cosines (groups, groups) of directions, one panel for each of up to six concepts.

    A panel's title has the mean over pairs of different groups; `names` are the groups.
    """
    figure, axes = new_figure(2, 3, height=4.6)
    for ax, (concept, values) in zip(axes.flat, cosines.items(), strict=False):
        draw_grid(ax, values, names, [""] * len(names), form="", limits=(-1, 1), colours="PuOr")
        others = values[~np.eye(len(values), dtype=bool)]
        ax.set(title=f"{concept}: {others.mean():.2f}", aspect="equal", xticks=[])
        ax.tick_params(axis="y", labelsize=7)
    for ax in axes.flat[len(cosines) :]:
        ax.set_axis_off()
    picture = axes[0, 0].images[0]
    figure.colorbar(picture, ax=list(axes.flat), label="cosine", location="right", shrink=0.6)
    return figure
