"""Figures of the synthetic chapters: starts, Tables 1 and 7, what metrics see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from conceptnb.plotting.style import (
    LINES,
    MARKERS,
    MUTED,
    PALETTE,
    new_figure,
    stretch_scores,
    styled,
)


@styled
def starts(gaps: ArrayLike, scores: ArrayLike, best: tuple[float, float]) -> Figure:
    """Draw what each start of one problem reached: excess loss against MCC.

    Parameters
    ----------
    gaps : array-like of shape (starts,)
        Held-out loss less the oracle's on the same rows, in nats.
    scores : array-like of shape (starts,)
        MCC of each start.
    best : (float, float)
        Gap and MCC of the estimator that is compared with them.
    """
    figure, axes = new_figure(height=3.2)
    ax = axes[0, 0]
    ax.axvline(0, color=MUTED, linewidth=1)
    ax.plot(gaps, scores, MARKERS[0], color=PALETTE[0], label="one random start, Adam")
    ax.plot(*best, MARKERS[6], color=PALETTE[1], markersize=10, label="searched by group, L-BFGS")
    ax.set(xlabel="held-out loss less the oracle's (nats)", ylabel="MCC", ylim=(None, 1.02))
    ax.legend(loc="lower left")
    return figure


@styled
def tables(
    paper_rows: Sequence[Sequence[Any]],
    ours: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    supervised: Sequence[Mapping[str, Any]] = (),
    chance: Mapping[str, float] | None = None,
) -> Figure:
    """Draw Tables 1 and 7: the paper's mean ± std beside ours, one column a metric.

    Parameters
    ----------
    paper_rows : sequence of rows
        Of ``conceptnb.results.paper.printed("table1_table7")``.
    ours : mapping from an estimator's name to the rows of its result file
        Scores on the samples that the paper scores.
    supervised : sequence of dict
        Rows of the supervised estimator: a ceiling, drawn as vertical bars.
    chance : mapping of "r2" and "mcc" to float, optional
        A floor, drawn as a line.
    """
    figure, axes = new_figure(1, 2, height=5.4, sharey=True)
    keys = [tuple(row[:4]) for row in paper_rows]
    height = np.arange(len(keys))[::-1]
    for ax, metric, column in zip(axes[0], ("r2", "mcc"), (4, 5), strict=True):
        series = {"paper": [row[column] for row in paper_rows]}
        for name, rows in ours.items():
            found = {(r["mixing"], r["n"], r["dz"], r["dx"]): r for r in rows}
            series[name] = [(found[k][f"{metric}_mean"], found[k][f"{metric}_std"]) for k in keys]
        for i, (name, values) in enumerate(series.items()):
            mean, std = np.array(values, dtype=float).T
            ax.errorbar(
                mean,
                height + 0.25 * (1 - i),
                xerr=std,
                fmt=MARKERS[i],
                color=(PALETTE[6], PALETTE[0], PALETTE[1])[i],
                label=name,
                capsize=2,
                linewidth=1.2,
            )
        told = {(r["mixing"], r["n"], r["dz"], r["dx"]): r[f"{metric}_mean"] for r in supervised}
        if told:
            ax.plot([told[k] for k in keys], height, "|", color=MUTED, markersize=15,
                    markeredgewidth=2, zorder=1, label="supervised")  # fmt: skip
        if chance is not None:
            ax.axvline(chance[metric], color=MUTED, linestyle=":", linewidth=1.4, label="chance")
        ax.set(xlabel={"r2": "R²", "mcc": "MCC"}[metric])
        stretch_scores(ax, "x")
    axes[0, 0].set_yticks(height, [f"{k[0]} ({k[1]}, {k[2]}, {k[3]})" for k in keys])
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


@styled
def excess_losses(runs: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]]) -> Figure:
    """Draw MCC of every run against how far it ended above the oracle's loss.

    Parameters
    ----------
    runs : mapping from a kind of mixing to a mapping from an estimator's name to its runs
        Excess losses in nats, and MCC; a panel a kind. Losses below a tenth of a
        millinat above the oracle's are drawn there.
    """
    figure, axes = new_figure(1, len(runs), height=3.2, sharey=True)
    for ax, (mixing, estimators) in zip(axes[0], runs.items(), strict=True):
        for i, (name, (excess, mcc)) in enumerate(estimators.items()):
            shown = np.maximum(np.asarray(excess, dtype=float), 1e-4)
            ax.plot(shown, mcc, MARKERS[i], color=PALETTE[i], alpha=0.75, label=name)
        ax.set(xscale="log", xlabel="excess loss (nats)", title=f"{mixing} mixing")
    axes[0, 0].set_ylabel("MCC")
    axes[0, 0].legend(loc="lower left")
    return figure


@styled
def metric_profiles(levels: ArrayLike, scores: Mapping[str, ArrayLike], label: str) -> Figure:
    """Draw what several metrics say as one property of a code grows.

    Parameters
    ----------
    levels : array-like of shape (levels,)
    scores : mapping from a metric's name to an array of shape (levels,) or (levels, seeds)
        Means are drawn as lines, ± one standard deviation over seeds as bands.
    label : str
        What grows, for the horizontal axis.
    """
    figure, axes = new_figure(height=3.2)
    ax = axes[0, 0]
    for i, (name, values) in enumerate(scores.items()):
        table = np.asarray(values, dtype=float).reshape(len(np.asarray(levels)), -1)
        mean, std = table.mean(axis=1), table.std(axis=1)
        ax.plot(levels, mean, LINES[i], marker=MARKERS[i], color=PALETTE[i], label=name)
        ax.fill_between(levels, mean - std, mean + std, color=PALETTE[i], alpha=0.15)
    ax.set(xlabel=label, ylabel="score", ylim=(-0.03, 1.05))
    ax.legend(loc="best")
    return figure
