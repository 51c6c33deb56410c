"""Figures of the chapters on steering a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from conceptnb.plotting.style import INK, LINES, MARKERS, MUTED, PALETTE, new_figure, styled
from conceptnb.studies import steering_analysis as analysis

__all__ = [
    "frontiers",
    "head_accuracy",
    "orthogonal_probes",
    "sources",
    "strengths",
    "truth_plane",
    "turning",
]


@styled
def sources(accuracy: Mapping[str, Sequence[float]], categories: Sequence[str]) -> Figure:
    """Share of questions answered truly, by who is said to speak and by category.

    Parameters
    ----------
    accuracy
        Source to MC1 of each category.
    categories
        Names of the categories.
    """
    figure, axes = new_figure(height=0.42 * len(accuracy) + 1.2)
    values = np.array(list(accuracy.values()))
    _labelled_grid(axes[0, 0], values, list(accuracy), categories, percent=True)
    return figure


@styled
def head_accuracy(accuracy: np.ndarray) -> Figure:
    """Held-out accuracy of every head's probe, layers down and heads across."""
    figure, axes = new_figure(height=0.5 * len(accuracy) + 1.3)
    layers, heads = accuracy.shape
    ax = axes[0, 0]
    _labelled_grid(
        ax, accuracy, [str(i) for i in range(layers)], [str(i) for i in range(heads)], percent=False
    )
    ax.set_xlabel("head")
    ax.set_ylabel("layer")
    return figure


@styled
def turning(cosines: np.ndarray, categories: Sequence[str]) -> Figure:
    """Cosine between the directions that a steering matrix gives to two categories."""
    figure, axes = new_figure(height=3.6)
    _labelled_grid(axes[0, 0], cosines, categories, categories, percent=False, low=-1, high=1)
    return figure


def _labelled_grid(
    ax: Axes,
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    percent: bool,
    low: float = 0,
    high: float = 1,
) -> None:
    """Draw values as a grid of cells with each value written in it."""
    ax.imshow(values, vmin=low, vmax=high, aspect="auto")
    ax.grid(visible=False)
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    middle = (low + high) / 2
    for (i, j), value in np.ndenumerate(values):
        text = f"{value:.0%}" if percent else f"{value:.2f}"
        colour = INK if value > middle else "white"
        ax.text(j, i, text, ha="center", va="center", color=colour, fontsize=9)


@styled
def truth_plane(
    x: np.ndarray, true: np.ndarray, directions: np.ndarray, accuracy: np.ndarray
) -> Figure:
    """One head's activations along its first two orthogonal probes.

    Parameters
    ----------
    x, true
        Activations (rows, width) and labels.
    directions, accuracy
        From ``conceptnb.steering.probes.orthogonal_probes``, at least two.
    """
    figure, axes = new_figure(height=3.8)
    ax = axes[0, 0]
    along = x @ directions[:2].T
    for label, flag, colour, marker in (
        ("false answers", False, PALETTE[1], "x"),
        ("true answers", True, PALETTE[0], "o"),
    ):
        rows = true == flag
        ax.scatter(*along[rows].T, s=18, c=colour, marker=marker, alpha=0.7, label=label)
    ax.set_xlabel(f"first probe (held-out accuracy {accuracy[0]:.2f})")
    ax.set_ylabel(f"second, orthogonal ({accuracy[1]:.2f})")
    ax.legend()
    return figure


@styled
def orthogonal_probes(accuracies: Mapping[str, np.ndarray]) -> Figure:
    """Held-out accuracy of successive orthogonal probes.

    Parameters
    ----------
    accuracies
        Label to accuracies (heads or seeds, probes); mean and range are drawn.
    """
    figure, axes = new_figure(height=3.2)
    ax = axes[0, 0]
    for i, (label, values) in enumerate(accuracies.items()):
        order = np.arange(1, values.shape[1] + 1)
        mean = values.mean(0)
        ax.plot(order, mean, color=PALETTE[i], marker=MARKERS[i], ls=LINES[i], label=label)
        ax.fill_between(order, values.min(0), values.max(0), color=PALETTE[i], alpha=0.15, lw=0)
    ax.axhline(0.5, color=MUTED, lw=1, ls=":")
    ax.text(order[0], 0.505, "chance", ha="left", va="bottom", color=MUTED, fontsize=9)
    ax.set_xticks(order)
    ax.set_xlabel("probe, each orthogonal to those before")
    ax.set_ylabel("balanced accuracy, held out")
    ax.legend()
    return figure


@styled
def strengths(points: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Accuracy, KL and cross-entropy along α.

    Parameters
    ----------
    points
        Method to a mapping with ``alpha``, ``mc1``, ``kl`` and ``ce``, equally long.
    """
    figure, axes = new_figure(1, 3, height=3.0)
    titles = {"mc1": "MC1", "kl": "KL (nats)", "ce": "cross-entropy (nats)"}
    for ax, (key, title) in zip(axes[0], titles.items(), strict=True):
        for i, (label, values) in enumerate(points.items()):
            ax.plot(
                values["alpha"],
                values[key],
                color=PALETTE[i],
                marker=MARKERS[i],
                ls=LINES[i],
                label=label,
            )
        ax.set_title(title)
        ax.set_xlabel("α")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


@styled
def frontiers(
    worlds: Mapping[str, Sequence[Mapping[str, Any]]], methods: Sequence[str], limit: float = 1.0
) -> Figure:
    """Accuracy against KL along α, one panel a world, mean over runs.

    Parameters
    ----------
    worlds
        Title to the rows of a study.
    methods
        Which methods to draw.
    limit
        Largest KL shown, in nats a token.
    """
    figure, axes = new_figure(1, len(worlds), height=3.9, sharey=True)
    for ax, (title, rows) in zip(axes[0], worlds.items(), strict=True):
        for i, method in enumerate(methods):
            kl, mc1 = analysis.frontier(rows, method)
            ax.plot(
                kl.mean(0),
                mc1.mean(0),
                color=PALETTE[i],
                marker=MARKERS[i],
                ls=LINES[i],
                ms=4,
                label=method,
            )
        ax.set_xlim(-0.02 * limit, limit)
        ax.set_title(title)
        ax.set_xlabel("KL, nats a token")
        ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes[0, 0].set_ylabel("MC1")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure
