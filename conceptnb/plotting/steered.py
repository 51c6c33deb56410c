"""Figures of steering a language model, and of the concepts in its states."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from conceptnb.plotting._style import (
    CARD,
    FAINT,
    MUTED,
    PALETTE,
    Row,
    draw_grid,
    new_figure,
    series_style,
    share_legend,
    styled,
)
from conceptnb.tables import steering_analysis as analysis


@styled
def strength_curves(points: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Draw MC1, KL and cross-entropy along the strength α, one line per technique.

    A technique has equally long sequences ``alpha``, ``mc1``, ``kl`` and ``ce``.
    """
    figure, axes = new_figure(1, 3, height=3.0)
    titles = {"mc1": "MC1", "kl": "KL (nats)", "ce": "cross-entropy (nats)"}
    for ax, (key, title) in zip(axes[0], titles.items(), strict=True):
        for i, (label, values) in enumerate(points.items()):
            ax.plot(values["alpha"], values[key], label=label, **series_style(i))
        ax.set(title=title, xlabel="α")
    share_legend(figure, 2)
    return figure


@styled
def frontiers(
    corpora: Mapping[str, Sequence[Row]], techniques: Sequence[str], limit: float = 1.0
) -> Figure:
    """Draw MC1 against KL along the strength α, mean over runs, one panel per toy corpus.

    `corpora` are rows of ``conceptnb reproduce steering`` by title; a KL above `limit`, in nats per
    token, is not shown.
    """
    figure, axes = new_figure(1, len(corpora), height=3.9, sharey=True)
    for ax, (title, rows) in zip(axes[0], corpora.items(), strict=True):
        for i, technique in enumerate(techniques):
            points = analysis.along_alpha(list(map(dict, rows)), technique)
            style = {**series_style(i), "label": technique, "markersize": 4}
            ax.plot(points["kl_asked"], points["mc1"], **style)
        ax.set(title=title, xlabel="KL, nats per token", xlim=(-0.02 * limit, limit))
    axes[0, 0].set_ylabel("MC1")
    share_legend(figure, 2)
    return figure


@styled
def vector_and_matrix() -> Figure:
    """Draw, for two kinds of question, one shift common to all and one shift of each kind.

    Returns
    -------
    Figure
        Two panels of the same drawn points: thin arrows lead from the false to the true answer of
        each, thick ones are the shifts by their mean (left) and by the mean of each kind (right).
    """
    rng = np.random.default_rng(0)
    kinds = [rng.normal(centre, 0.35, (9, 2)) for centre in ([-1.2, 0], [1.2, 0])]
    turns = [np.array([0.35, 0.95]), np.array([0.75, -0.65])]
    moves = [turn + rng.normal(0, 0.12, (9, 2)) for turn in turns]
    common = np.mean(moves, axis=(0, 1))
    figure, axes = new_figure(1, 2, height=3.1, sharex=True, sharey=True)
    shifts = {"a vector": [common, common], "a matrix": [m.mean(axis=0) for m in moves]}
    for ax, (title, shift) in zip(axes[0], shifts.items(), strict=True):
        arrows = {"angles": "xy", "scale_units": "xy", "scale": 1}
        for k, (points, move) in enumerate(zip(kinds, moves, strict=True)):
            style = series_style(k, "color", "marker")
            ax.plot(*points.T, linestyle="", markersize=4, label=f"question of kind {k}", **style)
            ax.quiver(*points.T, *move.T, color=FAINT, width=0.004, **arrows)
            start = points.mean(axis=0)
            ax.quiver(*start, *shift[k], color=style["color"], width=0.014, zorder=3, **arrows)
        ax.set(title=title, xticks=[], yticks=[], xlabel="one activation", aspect="equal")
        ax.set(xlim=(-2.2, 2.9), ylim=(-1.6, 1.9))
    axes[0, 0].set_ylabel("another")
    share_legend(figure, 2)
    return figure


@styled
def differences_along_kl(curves: pd.DataFrame, label: str, fixed: float | None = None) -> Figure:
    """Draw a difference of MC1 along KL, one line and band for each definition of KL.

    Parameters
    ----------
    curves
        Of `conceptnb.tables.steering_order.along_kl`: ``measured``, ``kl``, ``mean``, ``low`` and
        ``high``.
    label
        Which difference it is.
    fixed
        The KL of a comparison that was fixed before the runs, marked by an upright line.
    """
    figure, [[ax]] = new_figure(height=3.4)
    ax.axhline(0, color=MUTED, linestyle="--", linewidth=1)
    if fixed is not None:
        ax.axvline(fixed, color=MUTED, linestyle=":", linewidth=1.2)
    for k, (name, own) in enumerate(curves.groupby("measured", sort=False)):
        style = series_style(k, "color", "linestyle")
        ax.plot(own["kl"], own["mean"], label=f"KL of {name}", **style)
        ax.fill_between(own["kl"], own["low"], own["high"], color=PALETTE[k], alpha=0.15)
        for end in ("low", "high"):
            ax.plot(own["kl"], own[end], linewidth=0.8, **style)
    ax.set(xlabel="KL, nats per token", ylabel=label, xlim=(0, curves["kl"].max()))
    share_legend(figure, 2)
    return figure


@styled
def forest(groups: Mapping[str, pd.DataFrame], label: str) -> Figure:
    """Draw differences with their intervals, one line each, in groups under a heading each.

    Parameters
    ----------
    groups
        By heading, frames with columns ``name``, ``mean``, ``low`` and ``high``.
    label
        What the horizontal axis shows, with its unit.

    Returns
    -------
    Figure
        An interval that excludes zero is drawn with a full mark, one that includes it with an
        open one.
    """
    lines = sum(len(frame) + 1 for frame in groups.values())
    figure, [[ax]] = new_figure(height=0.4 + 0.27 * lines)
    ax.axvline(0, color=MUTED, linestyle="--", linewidth=1)
    places: list[int] = []
    names: list[str] = []
    place = 0
    for k, (heading, frame) in enumerate(groups.items()):
        places, names, place = [*places, place], [*names, heading], place + 1
        for entry in frame[["name", "mean", "low", "high"]].itertuples(index=False):
            name, mean, low, high = entry
            found = low > 0 or high < 0
            ax.plot([low, high], [place, place], color=PALETTE[k], linewidth=1.5)
            face = PALETTE[k] if found else CARD
            ax.plot(mean, place, "o", markeredgecolor=PALETTE[k], markerfacecolor=face)
            places, names, place = [*places, place], [*names, name], place + 1
    ax.set_yticks(places, names)
    for text in ax.get_yticklabels():
        text.set_fontweight("bold" if text.get_text() in groups else "normal")
    ax.set(xlabel=label, ylim=(place - 0.4, -0.6))
    ax.grid(axis="y", visible=False)
    return figure


@styled
def state_components(rows: Sequence[Row], concepts: Sequence[str]) -> Figure:
    """Draw mean η² of each method (down) and concept (across), one panel per toy corpus.

    The rows are of ``conceptnb reproduce neighbours``, of one number of components and of models
    either trained or not: ``row[concept]`` is a mean and a standard deviation.
    """
    corpora = list(dict.fromkeys(row["corpus"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    figure, axes = new_figure(1, len(corpora), height=0.36 * len(methods) + 1.1)
    for ax, corpus in zip(axes[0], corpora, strict=True):
        own = {row["method"]: row for row in rows if row["corpus"] == corpus}
        means = np.array([[own[method][c][0] for c in concepts] for method in methods])
        draw_grid(ax, means, methods, concepts)
        ax.set_title(corpus)
        ax.tick_params(axis="x", labelsize=8)
        ax.tick_params(axis="y", labelleft=ax is axes[0, 0])
    return figure
