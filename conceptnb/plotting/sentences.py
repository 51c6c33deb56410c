"""Figures of the chapters on sentence embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from conceptnb.plotting.style import LINES, MARKERS, MUTED, PALETTE, new_figure, styled

Array = NDArray[np.floating]


@styled
def by_group(
    numbers: Mapping[str, Mapping[str, Array]], label: str, chance: Sequence[float] | None = None
) -> Figure:
    """Draw one number a group, for each concept and model: small marks, and their mean large.

    Parameters
    ----------
    numbers : (n_groups,) by model and concept
    label : of the axis
    chance : one level a concept, drawn as a short line
    """
    figure, axes = new_figure(1, 1, height=3.3)
    ax = axes[0, 0]
    names = list(next(iter(numbers.values())))
    width = 0.84 / len(numbers)
    for k, (model, concepts) in enumerate(numbers.items()):
        for place, values in enumerate(concepts.values()):
            x = place + (k - (len(numbers) - 1) / 2) * width
            spread = np.linspace(-0.3, 0.3, len(values)) * width
            style = {"color": PALETTE[k], "marker": MARKERS[k]}
            ax.scatter(x + spread, values, s=9, alpha=0.45, linewidths=0, **style)
            mean = {"label": model} if place == 0 else {}
            ax.plot(
                x, np.mean(values), markersize=8, markeredgecolor="white", ls="", **style, **mean
            )
    if chance is not None:
        for place, level in enumerate(chance):
            ax.hlines(level, place - 0.45, place + 0.45, color=MUTED, linestyle="--", linewidth=1)
    ax.set_xticks(range(len(names)), names)
    ax.set(ylabel=label, ylim=(-0.03, 1.04))
    ax.grid(axis="x", visible=False)
    figure.legend(loc="outside upper center", ncols=min(3, len(numbers)))
    return figure


@styled
def cosine_maps(cosines: Mapping[str, Array], names: Sequence[str]) -> Figure:
    """Draw the cosines (n, n) between every two topics' directions, one panel a concept."""
    figure, axes = new_figure(2, 3, height=4.6)
    for ax, (concept, values) in zip(axes.flat, cosines.items(), strict=False):
        picture = ax.imshow(values, vmin=-1, vmax=1, cmap="PuOr")
        others = values[~np.eye(len(values), dtype=bool)]
        ax.set_title(f"{concept}: {others.mean():.2f}")
        ax.set_xticks([])
        ax.set_yticks(range(len(names)), names, fontsize=7)
        ax.grid(visible=False)
    for ax in axes.flat[len(cosines) :]:
        ax.set_axis_off()
    figure.colorbar(picture, ax=list(axes.flat), label="cosine", location="right", shrink=0.6)
    return figure


@styled
def rising(curves: Mapping[str, Mapping[int, Array]], x_label: str, y_label: str) -> Figure:
    """Draw a share against a count: mean and standard deviation, a line a concept or method.

    Parameters
    ----------
    curves : (repeats,) by name and count
    x_label, y_label : of the axes
    """
    figure, axes = new_figure(1, 1, height=3.2)
    ax = axes[0, 0]
    for k, (name, points) in enumerate(curves.items()):
        x = np.array(list(points)) * 1.03 ** (k - len(curves) / 2)
        means, stds = (np.array([f(v) for v in points.values()]) for f in (np.mean, np.std))
        style = {"color": PALETTE[k], "marker": MARKERS[k], "linestyle": LINES[k]}
        ax.errorbar(x, means, stds, label=name, elinewidth=0.8, capsize=2, **style)
    ax.set_xscale("log")
    ticks = list(next(iter(curves.values())))
    ax.set_xticks(ticks, [str(tick) for tick in ticks], minor=False)
    ax.minorticks_off()
    ax.set(xlabel=x_label, ylabel=y_label)
    ax.set_ylim(-0.03, 1.04)
    figure.legend(loc="outside upper center", ncols=len(curves))
    return figure


@styled
def plane(valuations: Array, labels: NDArray[np.integer], names: Sequence[str]) -> Figure:
    """Draw two valuations (n, 2) of samples, and the mean of each value."""
    figure, axes = new_figure(1, 1, height=3.4)
    ax = axes[0, 0]
    for value, name in enumerate(names):
        points = valuations[labels == value]
        style = {"color": PALETTE[value], "marker": MARKERS[value]}
        ax.scatter(*points.T, s=12, alpha=0.55, linewidths=0, label=name, **style)
        ax.annotate(
            name, points.mean(axis=0), ha="center", va="center", fontweight="bold",
            bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.5},
        )  # fmt: skip
    ax.set(xlabel="first valuation", ylabel="second valuation")
    ax.set_aspect("equal", adjustable="datalim")
    return figure
