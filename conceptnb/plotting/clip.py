"""Figures of the chapters on 3D Shapes and CLIP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from conceptnb.embeddings.directions.evaluation import ValuationTable
from conceptnb.embeddings.shapes3d.factors import factor_labels, hue_to_rgb
from conceptnb.plotting.style import (
    HATCHES,
    LINES,
    MARKERS,
    MUTED,
    PALETTE,
    identity_line,
    new_figure,
    styled,
)

TITLES = {
    "floor_hue": "floor hue",
    "wall_hue": "wall hue",
    "object_hue": "object hue",
    "scale": "scale",
    "shape": "shape",
    "orientation": "orientation",
}


def _show(ax: Axes, image: NDArray[np.generic], title: str = "") -> None:
    ax.imshow(image, interpolation="nearest")
    ax.set_axis_off()
    if title:
        ax.set_title(title, fontsize=8, loc="center", fontweight="normal")


@styled
def images(
    pictures: NDArray[np.uint8], n_columns: int = 8, titles: Sequence[str] | None = None
) -> Figure:
    """Draw images (n, size, size, 3) in rows, with a title each if given."""
    n_rows = -(-len(pictures) // n_columns)
    figure, axes = new_figure(n_rows, n_columns, height=n_rows * (1.1 if titles else 0.92))
    for k, ax in enumerate(axes.flat):
        if k < len(pictures):
            _show(ax, pictures[k], titles[k] if titles else "")
        else:
            ax.set_axis_off()
    return figure


@styled
def masks(bank_entry: NDArray[np.floating], size: int, image: NDArray[np.uint8]) -> Figure:
    """Draw the four masks (size * size, 4) of a scene and the image composed from them."""
    figure, axes = new_figure(1, 5, height=1.8)
    names = ("floor", "wall", "object", "highlight")
    for k, name in enumerate(names):
        axes[0, k].imshow(bank_entry[:, k].reshape(size, size), cmap="gray", vmin=0, vmax=1)
        axes[0, k].set_axis_off()
        axes[0, k].set_title(name, loc="center")
    _show(axes[0, 4], image)
    axes[0, 4].set_title("image", loc="center")
    return figure


@styled
def factor_bars(
    groups: Mapping[str, Mapping[str, float]], label: str, bar: float | None = None
) -> Figure:
    """Draw one number a factor for several models or controls, side by side."""
    figure, axes = new_figure(1, 1, height=3.0)
    ax = axes[0, 0]
    width = 0.84 / len(groups)
    for k, (name, numbers) in enumerate(groups.items()):
        x = np.arange(len(numbers)) + (k - (len(groups) - 1) / 2) * width
        hatch, colour = HATCHES[k % len(HATCHES)], PALETTE[k % len(PALETTE)]
        heights = list(numbers.values())
        ax.bar(x, heights, 0.92 * width, label=name, color=colour, hatch=hatch, edgecolor="white")
    ax.set_xticks(np.arange(len(numbers)), [TITLES.get(name, name) for name in numbers])
    ax.set_ylabel(label)
    ax.set_ylim(0, 1.02)
    if bar is not None:
        ax.axhline(bar, color=MUTED, linestyle="--", linewidth=1)
    figure.legend(loc="outside upper center", ncols=min(4, len(groups)))
    return figure


@styled
def violins(
    valuations: Mapping[str, NDArray[np.floating]], labels: ArrayLike, factor: str
) -> Figure:
    """Draw valuations by value as violins, with the concept planes as lines (Figure 2)."""
    values = np.unique(np.asarray(labels))
    names = [factor_labels(factor)[int(value)] for value in values]
    figure, axes = new_figure(1, len(valuations), height=3.0)
    for ax, (model, v) in zip(axes[0], valuations.items(), strict=True):
        groups = [np.ravel(v)[np.asarray(labels) == value] for value in values]
        parts = ax.violinplot(groups, positions=range(len(values)), widths=0.8, showextrema=False)
        for body in parts["bodies"]:
            body.set(facecolor=PALETTE[0], alpha=0.55, edgecolor=PALETTE[0])
        for x, group in enumerate(groups):
            ax.axhline(group.mean(), color=MUTED, linewidth=0.7, linestyle=":")
            ax.plot(x, group.mean(), "D", color=PALETTE[1], markersize=4)
        ax.set_xticks(range(len(values)), names, rotation=0 if len(values) < 6 else 60)
        ax.set_title(model)
        ax.set_xlabel(TITLES[factor])
    axes[0, 0].set_ylabel("valuation ⟨a, z⟩")
    return figure


def _standard(means: NDArray[np.floating], stds: NDArray[np.floating]) -> tuple[NDArray, NDArray]:
    """Shift and scale so that means have mean 0 and deviation 1; the sign so that they fall."""
    centred, scale = means - means.mean(), means.std()
    sign = 1.0 if centred[: len(centred) // 2].sum() >= 0 else -1.0
    return sign * centred / scale, stds / scale


@styled
def tables(
    ours: Mapping[str, Mapping[str, ValuationTable]],
    papers: Mapping[str, Mapping[str, Sequence[Sequence[float]]]],
) -> Figure:
    """Draw Tables 2-4, one panel a factor: ours as filled marks, the paper's as hollow ones.

    Valuations have no natural unit or sign, so each curve is standardised by its
    own means; bars are standard deviations on the same scale.
    """
    figure, axes = new_figure(2, 3, height=5.0)
    for ax, factor in zip(axes.flat, papers, strict=True):
        curves = [(name, t[factor].means[:, 0], t[factor].stds[:, 0]) for name, t in ours.items()]
        for name, column in papers[factor].items():
            mean, std = np.array(column).T
            curves.append((f"paper: {name}", mean, std))
        for k, (name, mean, std) in enumerate(curves):
            centre, spread = _standard(mean, std)
            x = np.arange(len(centre)) + 0.08 * (k - 1.5)
            hollow = {"markerfacecolor": "none"} if name.startswith("paper") else {}
            ax.errorbar(
                x, centre, spread, color=PALETTE[k], marker=MARKERS[k], linestyle=LINES[k],
                markersize=4, linewidth=1, elinewidth=0.7, label=name, **hollow,
            )  # fmt: skip
        ticks = range(0, len(centre), 1 if len(centre) < 5 else 3)
        ax.set_xticks(ticks, [factor_labels(factor)[t] for t in ticks])
        ax.set_title(TITLES[factor])
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=4)
    figure.supylabel("standardised valuation")
    return figure


@styled
def agreement_scatter(
    first: Mapping[str, NDArray], second: Mapping[str, NDArray], names: tuple[str, str]
) -> Figure:
    """Draw the valuations of two models against each other, one panel a factor."""
    figure, axes = new_figure(2, 3, height=4.8)
    for ax, factor in zip(axes.flat, first, strict=True):
        x, y = (np.ravel(v[factor]) for v in (first, second))
        r = np.corrcoef(x, y)[0, 1]
        x, y = (x - x.mean()) / x.std(), np.sign(r) * (y - y.mean()) / y.std()
        ax.scatter(x, y, s=3, alpha=0.25, color=PALETTE[0], linewidths=0, rasterized=True)
        identity_line(ax)
        ax.set_title(f"{TITLES[factor]}, |ρ| = {abs(r):.2f}")
    figure.supxlabel(names[0])
    figure.supylabel(names[1])
    return figure


@styled
def hue_plane(line: NDArray[np.floating], plane: NDArray[np.floating], labels: ArrayLike) -> Figure:
    """Draw hues along one direction, where they overlap, and in two, where they form a wheel."""
    hues = np.asarray(labels)
    figure, axes = new_figure(1, 2, height=3.4)
    colours = hue_to_rgb(hues) * 0.85
    left, right = axes[0]
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(hues))
    left.scatter(np.ravel(line), hues + jitter, s=3, c=colours, linewidths=0, rasterized=True)
    left.set(xlabel="valuation in one dimension", yticks=range(10), title="one dimension")
    left.set_yticks(range(10), factor_labels("floor_hue"))
    left.set_ylabel("hue")
    _wheel(right, plane, hues)
    right.set_title("two dimensions")
    return figure


def _wheel(ax: Axes, plane: NDArray[np.floating], hues: NDArray[np.generic]) -> None:
    """Draw images in a hue plane, and the centres of neighbouring hues joined."""
    colours = hue_to_rgb(hues) * 0.85
    ax.scatter(plane[:, 0], plane[:, 1], s=3, c=colours, linewidths=0, rasterized=True)
    centres = np.stack([plane[hues == hue].mean(axis=0) for hue in range(10)])
    ax.plot(*np.vstack([centres, centres[:1]]).T, color=MUTED, linewidth=0.8)
    for hue, centre in enumerate(centres):
        ax.annotate(f"{hue / 10:.1f}", centre, ha="center", va="center", fontweight="bold")
    ax.set(xlabel="first valuation", ylabel="second valuation")


@styled
def hue_planes(planes: Mapping[str, NDArray[np.floating]], labels: ArrayLike) -> Figure:
    """Draw the hue planes (n, 2) of several models; a line joins neighbours on the wheel."""
    figure, axes = new_figure(1, len(planes), height=3.4)
    for ax, (model, plane) in zip(axes[0], planes.items(), strict=True):
        _wheel(ax, plane, np.asarray(labels))
        ax.set_title(model)
    return figure


@styled
def order_cosines(cosines: Mapping[str, NDArray[np.floating]]) -> Figure:
    """Draw how well directions of different pair orders agree, one row a factor."""
    figure, axes = new_figure(1, 1, height=2.8)
    ax = axes[0, 0]
    for row, values in enumerate(cosines.values()):
        spread = np.random.default_rng(row).uniform(-0.25, 0.25, len(values))
        ax.scatter(values, row + spread, s=4, alpha=0.4, color=PALETTE[0], linewidths=0)
        ax.plot(values.mean(), row, "D", color=PALETTE[1], label="mean" if row == 0 else None)
    ax.set_yticks(range(len(cosines)), [TITLES.get(name, name) for name in cosines])
    ax.axvline(1, color=MUTED, linestyle="--", linewidth=1)
    ax.set_xlim(-0.03, 1.03)
    ax.set_xlabel("|cos| between averaged directions of two orders")
    ax.legend()
    return figure


@styled
def accuracy_by_dimension(accuracies: Mapping[str, NDArray[np.floating]]) -> Figure:
    """Draw held-out accuracy against the dimension of the concept, one line a factor."""
    figure, axes = new_figure(1, 1, height=3.0)
    ax = axes[0, 0]
    for k, (name, values) in enumerate(accuracies.items()):
        x = np.arange(1, len(values) + 1)
        style = {"marker": MARKERS[k], "linestyle": LINES[k], "color": PALETTE[k]}
        ax.plot(x, values, label=TITLES.get(name, name), **style)
    ax.set(xlabel="dimensions k", ylabel="held-out accuracy", xticks=range(1, 5), ylim=(0, 1.03))
    ax.legend(ncols=2)
    return figure


@styled
def retrieval(before: NDArray[np.uint8], after: NDArray[np.uint8], titles: Sequence[str]) -> Figure:
    """Draw each image above the image that is nearest to its moved embedding."""
    figure, axes = new_figure(2, len(before), height=2.9)
    for k, title in enumerate(titles):
        _show(axes[0, k], before[k])
        _show(axes[1, k], after[k], title)
    return figure


@styled
def text_cosines(same: Mapping[str, NDArray], other: Mapping[str, NDArray]) -> Figure:
    """Draw cosines between image and caption differences, matched and mismatched."""
    figure, axes = new_figure(1, 1, height=3.0)
    ax = axes[0, 0]
    for k, (name, sets) in enumerate({"same pair": same, "another pair": other}.items()):
        means = [v.mean() for v in sets.values()]
        spreads = [v.std() for v in sets.values()]
        x = np.arange(len(means)) + 0.1 * (2 * k - 1)
        ax.errorbar(x, means, spreads, fmt=MARKERS[k], color=PALETTE[k], label=name, capsize=3)
    ax.axhline(0, color=MUTED, linewidth=1)
    ax.set_xticks(range(len(same)), [TITLES[name] for name in same])
    ax.set_ylabel("cosine")
    figure.legend(loc="outside upper center", ncols=2)
    return figure


@styled
def readings(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw agreement on hues for each way to read them, of ``conceptnb reproduce clip``.

    Parameters
    ----------
    rows : of the result; those of its table "readings" are drawn
    """
    kept = [row for row in rows if row["table"] == "readings"]
    factors = list(dict.fromkeys(row["factor"] for row in kept))
    names = list(dict.fromkeys(row["reading"] for row in kept))
    figure, axes = new_figure(1, len(factors), height=3.4, sharey=True)
    for row in kept:
        ax = axes[0, factors.index(row["factor"])]
        control = int(row["models"][0].endswith("-untrained"))
        y = np.full(len(row["canonical"]), names.index(row["reading"]) + 0.3 * control - 0.15)
        style = {"marker": MARKERS[control], "color": PALETTE[control], "linestyle": "none"}
        ax.plot(row["canonical"], y, markersize=3, alpha=0.6, **style)
        label = ("trained", "untrained")[control]
        ax.plot(row["canonical"][-1], y[-1], markersize=7, label=label, **style)
    for ax, factor in zip(axes[0], factors, strict=True):
        ax.set_title(TITLES[factor])
        ax.axvline(0.85, color=MUTED, linestyle="--", linewidth=1)
        ax.set_xlim(-0.05, 1.05)
    axes[0, 0].set_yticks(range(len(names)), names)
    axes[0, 0].invert_yaxis()
    figure.supxlabel("canonical correlations; large mark: the smallest; dashed: .85")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    found = dict(zip(labels, handles, strict=True))
    figure.legend(found.values(), found.keys(), loc="outside upper center", ncols=2)
    return figure
