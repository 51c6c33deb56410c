"""Figures of recovery over many problems: Tables 1 and 7, limits, and baselines."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from conceptnb.common.validation import Array
from conceptnb.plotting._style import (
    INK,
    MUTED,
    PALETTE,
    Row,
    new_figure,
    series_style,
    share_legend,
    styled,
)

_BAR: dict[str, Any] = {"linestyle": "", "capsize": 2, "linewidth": 1.2}  # a deviation each way


@styled
def scores_by_level(rows: Sequence[Row], axis: str, *, log: bool = False) -> Figure:
    """Draw R², MCC and the loss above the oracle's over the levels of a study, with bounds.

    The rows are of one study of ``limits``, `axis` names its levels; with `log` 0 is not drawn.
    """
    levels = list(dict.fromkeys(row["level"] for row in rows))
    places = _places(levels, log)
    figure, axes = new_figure(1, 3, height=4.3)
    bounds = (("supervised", "supervised", "--"), ("projection", "random projection", "-."))
    for ax, metric in zip(axes[0, :2], ("r2", "mcc"), strict=True):
        for kind, label, line in bounds:
            key = f"{kind}_{metric}_mean"
            means = [[row[key] for row in rows if row["level"] == level] for level in levels]
            _bound(ax, places, means, label, line)
        _stretch_scores(ax, "y")
        ax.set_title({"r2": "R²", "mcc": "MCC"}[metric])
    series = list(dict.fromkeys(row["series"] for row in rows))
    for k, name in enumerate(series):
        own = {row["level"]: row for row in rows if row["series"] == name}
        for ax, metric in zip(axes[0], ("r2", "mcc", "excess_loss"), strict=True):
            mean, std = (_column(own, levels, f"{metric}_{part}") for part in ("mean", "std"))
            x, style = _beside(places, k, len(series), log), series_style(k)
            ax.errorbar(x, mean, yerr=std, capsize=2, linewidth=1.4, label=name, **style)
        for ax, metric in zip(axes[0, :2], ("read_r2", "read_mcc"), strict=True):
            read = _column(own, levels, f"{metric}_mean")
            if np.isfinite(read).any():
                ax.plot(places, read, "_", color=PALETTE[k], markersize=13, markeredgewidth=2)
    if any(row["read_mcc_mean"] is not None for row in rows):
        axes[0, 0].plot([], [], "_", color=MUTED, markersize=13, markeredgewidth=2,
                        label="read off the true log-odds")  # fmt: skip
    chance = np.nanmean([row["chance_mcc_mean"] for row in rows])
    axes[0, 0].axhline(0, color=MUTED, linestyle=":", linewidth=1.2, label="chance")
    axes[0, 1].axhline(chance, color=MUTED, linestyle=":", linewidth=1.2)
    axes[0, 2].axhline(0, color=MUTED, linewidth=1.2)
    axes[0, 2].set_title("Excess loss (nats)")
    for ax in axes[0]:
        _mark_levels(ax, levels, places, log)
    axes[0, 1].set_xlabel(axis)
    share_legend(figure, 3)
    return figure


@styled
def cost_by_dimension(rows: Sequence[Row]) -> Figure:
    """Draw CPU seconds and peak memory of a fit by dimension (study ``dimension`` of `limits`)."""
    dimensions = [row["dz"] for row in rows]
    figure, axes = new_figure(1, 2, height=2.9)
    titles = {"cpu_seconds": "CPU seconds per fit", "peak_gb": "Peak memory (GB)"}
    for k, (ax, name) in enumerate(zip(axes[0], titles, strict=True)):
        values = [row[name] for row in rows]
        ax.plot(dimensions, values, **series_style(k))
        ax.set(title=titles[name], xlabel="latent dimension", xticks=dimensions,
               ylim=(0, 1.15 * max(values)))  # fmt: skip
    return figure


@styled
def scores_against_time(runs: Sequence[Row], published: Mapping[str, Row]) -> Figure:
    """Draw the MCC of every run of `cauca` against its CPU seconds, beside what is published."""
    methods = list(dict.fromkeys(run["method"] for run in runs))
    settings = dict.fromkeys((run["scm"], run["n"], run["layers"]) for run in runs)
    figure, axes = new_figure(1, len(settings), height=4.1, sharey=True)
    for ax, setting in zip(axes[0], settings, strict=True):
        own = [run for run in runs if (run["scm"], run["n"], run["layers"]) == setting]
        for k, method in enumerate(methods):
            seen = [(run["cpu_seconds"], run["mcc"]) for run in own if run["method"] == method]
            style = series_style(k, "color", "marker") | {"linestyle": "", "markersize": 4}
            ax.plot(*np.reshape(seen, (-1, 2)).T, label=method, **style)
        theirs = published[", ".join(map(str, setting))]
        ax.plot(theirs["seconds"], theirs["mcc"], "*", color=INK, markersize=11, label="published")
        ax.set(title=f"{setting[0]}, {setting[2]} layers", xscale="log", xlim=(0.3, 1e5))
    axes[0, 0].set_ylabel("MCC")
    axes[0, len(settings) // 2].set_xlabel("seconds per fit")
    share_legend(figure, 3)
    return figure


@styled
def scores_by_method(rows: Sequence[Row]) -> Figure:
    """Draw R² and MCC of every method on every setting, by the rows of `baselines`."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    sizes = list(dict.fromkeys(_setting(row)[1:] for row in rows))
    height = np.arange(len(methods), dtype=np.float64)[::-1]
    figure, axes = new_figure(2, 2, height=6.6, sharex=True, sharey=True)
    for line, metric in zip(axes, ("mcc", "r2"), strict=True):
        for ax, mixing in zip(line, ("linear", "nonlinear"), strict=True):
            for k, size in enumerate(sizes):
                here = (mixing, *size)
                own = {row["method"]: row for row in rows if _setting(row) == here}
                mean, std = (_column(own, methods, f"{metric}_{p}") for p in ("mean", "std"))
                heights, style = height + 0.22 * (1 - k), series_style(k, "color", "marker") | _BAR
                ax.errorbar(mean, heights, xerr=std, label=f"(n, d_z, d_x) = {size}", **style)
            ax.set(title=f"{metric.upper().replace('R2', 'R²')}, {mixing} mixing", xlim=(0, 1.04))
            ax.set_yticks(height, methods)
    share_legend(figure, 3)
    return figure


@styled
def best_matches(true: ArrayLike, learned: Mapping[str, ArrayLike], atom: int = 0) -> Figure:
    """Draw each method's best matching output (samples, k) against one atom's true valuation."""
    valuation = np.asarray(true)[:, atom]
    figure, axes = new_figure(1, len(learned), height=2.9, sharex=True)
    for k, (ax, (name, values)) in enumerate(zip(axes[0], learned.items(), strict=True)):
        outputs = np.asarray(values)
        correlations = [np.corrcoef(valuation, column)[0, 1] for column in outputs.T]
        best = int(np.nanargmax(np.abs(correlations)))
        style = series_style(k, "color", "marker")
        ax.scatter(valuation, outputs[:, best], s=5, alpha=0.5, **style)
        title, x_label = f"{name}\n{correlations[best]:+.2f}", f"true, atom {atom + 1}"
        ax.set(title=title, xlabel=x_label, yticks=[])
    return figure


@styled
def tables_1_and_7(
    paper_rows: Sequence[Sequence[Any]],
    ours: Mapping[str, Sequence[Row]],
    *,
    supervised: Sequence[Row] = (),
    untrained: Sequence[Row] = (),
) -> Figure:
    """Draw Tables 1 and 7: the paper's mean ± std beside ours, one column per metric.

    `paper_rows` are those of ``conceptnb.results.paper.printed("table1_table7")``, `ours` the rows
    of result files by estimator. Two references of the same settings have one mark per row: what
    a `supervised` encoder reaches, a vertical bar, and what an `untrained` one has, a cross.
    """
    figure, axes = new_figure(1, 2, height=5.4, sharey=True)
    keys = [tuple(row[:4]) for row in paper_rows]
    height = np.arange(len(keys), dtype=np.float64)[::-1]
    for ax, metric, column in zip(axes[0], ("r2", "mcc"), (4, 5), strict=True):
        series = {"paper": [row[column] for row in paper_rows]}
        for name, rows in ours.items():
            found = {_setting(row): row for row in rows}
            series[name] = [(found[k][f"{metric}_mean"], found[k][f"{metric}_std"]) for k in keys]
        for i, (name, values) in enumerate(series.items()):
            mean, std = np.array(values, dtype=float).T
            style = {"color": (PALETTE[6], PALETTE[0], PALETTE[1])[i], **_BAR, "label": name}
            style |= series_style(i, "marker")
            ax.errorbar(mean, height + 0.25 * (1 - i), xerr=std, **style)
        references = (("supervised", supervised, "|", 15), ("untrained", untrained, "x", 6))
        for label, rows, marker, size in references:
            told = {_setting(row): row[f"{metric}_mean"] for row in rows}
            if told:
                ax.plot([told[k] for k in keys], height, marker, color=MUTED, markersize=size,
                        markeredgewidth=2, zorder=1, label=label)  # fmt: skip
        ax.set(xlabel={"r2": "R²", "mcc": "MCC"}[metric])
        _stretch_scores(ax, "x")
    axes[0, 0].set_yticks(height, [f"{k[0]} ({k[1]}, {k[2]}, {k[3]})" for k in keys])
    share_legend(figure, 3)
    return figure


def _setting(row: Row) -> tuple[Any, ...]:
    return row["mixing"], row["n"], row["dz"], row["dx"]


def _stretch_scores(ax: Axes, axis: str) -> None:
    """Scale an axis of scores from 0 to 1 so that those near 1 lie apart."""
    top, ticks = 1.05, [0, 0.5, 0.8, 0.9, 1]

    def forward(score: Any) -> Any:
        return -np.sqrt(np.maximum(top - score, 0))

    def inverse(place: Any) -> Any:
        return top - np.minimum(place, 0) ** 2

    getattr(ax, f"set_{axis}scale")("function", functions=(forward, inverse))
    getattr(ax, f"set_{axis}ticks")(ticks, [str(tick) for tick in ticks])
    getattr(ax, f"set_{axis}lim")(-0.05, top)


def _places(levels: Sequence[Any], log: bool) -> Array:
    """Where levels lie on the axis: numbers at their values if all can be told apart there."""
    if any(isinstance(level, str) for level in levels):
        return np.arange(len(levels), dtype=float)
    values = np.asarray(levels, dtype=float)
    if log:
        return np.where(values > 0, values, np.nan)
    crowded = np.diff(np.sort(values)).min(initial=np.inf) < 0.08 * np.ptp(values)
    return np.arange(len(levels), dtype=float) if crowded else values


def _beside(places: Array, k: int, count: int, log: bool) -> Array:
    """Shift a line's points a little, so that error bars do not hide each other."""
    shift = (k - (count - 1) / 2) * 0.012
    if log:
        return places * (np.nanmax(places) / np.nanmin(places)) ** shift
    return places + shift * float(np.ptp(places))


def _mark_levels(ax: Axes, levels: Sequence[Any], places: Array, log: bool) -> None:
    if log:
        ax.set_xscale("log")
    words, drawn = np.array([str(level) for level in levels]), np.isfinite(places)
    ax.set_xticks(places[drawn], words[drawn])
    ax.set_xticks([], minor=True)
    if max(map(len, words)) > 3:
        ax.tick_params(axis="x", rotation=40)


def _column(rows: Mapping[Any, Row], keys: Sequence[Any], name: str) -> Array:
    """Return one entry of the rows in the order of `keys`; NaN where there is none."""
    found = [rows[key].get(name) if key in rows else None for key in keys]
    return np.array([np.nan if value is None else value for value in found], dtype=float)


def _bound(ax: Axes, places: Array, means: list[list[float]], label: str, linestyle: str) -> None:
    """Draw a bound: its mean over the lines of a study, and the range between them."""
    low, high = [min(m) for m in means], [max(m) for m in means]
    ax.fill_between(places, low, high, color=MUTED, alpha=0.15, linewidth=0)
    middle = [np.mean(m) for m in means]
    ax.plot(places, middle, color=MUTED, linestyle=linestyle, linewidth=1.4, label=label)
