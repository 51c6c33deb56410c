"""Figures of concepts in embeddings: images, valuations, planes, and two models compared."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from conceptnb.common.validation import Array
from conceptnb.embeddings.directions.evaluation import ValuationTable
from conceptnb.embeddings.shapes3d.factors import factor_labels, hue_to_rgb
from conceptnb.plotting._style import (
    CARD,
    MUTED,
    PALETTE,
    Row,
    new_figure,
    scatter_on_line,
    series_style,
    share_legend,
    styled,
)

Images = NDArray[np.uint8]


@styled
def image_grid(images: Images, titles: Sequence[str] | None = None) -> Figure:
    """Draw images (n, height, width, 3) in rows of eight, with titles if there are any."""
    n_rows = -(-len(images) // 8)
    figure, axes = new_figure(n_rows, 8, height=n_rows * (1.1 if titles else 0.92))
    for k, ax in enumerate(axes.flat):
        ax.set_axis_off()
        if k < len(images):
            _show(ax, images[k], titles[k] if titles else "")
    return figure


_CHAIN = {  # centre, text, and the series whose colour and line say what kind of thing it is
    "six\nfactors": ((0, 1), "seen"),
    "picture": ((1, 1), "seen"),
    "image\nencoder": ((2, 1), "trained"),
    "embedding\n$Z$": ((3, 1), "trained"),
    "valuation\n$\\langle a, Z\\rangle$": ((4, 1), "sought"),
    "caption": ((1, 0), "seen"),
    "text\nencoder": ((2, 0), "trained"),
}
_ARROWS = (((0, 1), (1, 1)), ((1, 1), (2, 1)), ((2, 1), (3, 1)), ((3, 1), (4, 1)),
           ((0, 1), (1, 0)), ((1, 0), (2, 0)), ((2, 0), (3, 1)))  # fmt: skip


@styled
def picture_to_valuation() -> Figure:
    """Draw what leads from a picture to a valuation, and what of it is seen, trained and sought.

    Returns
    -------
    Figure
        A chain of boxes from six factors to a valuation; below it caption and text encoder, which
        meet the embedding in training. The outline of a box says which of the three kinds it is.
    """
    kinds = ("seen", "trained", "sought")
    figure, [[ax]] = new_figure(height=2.0)
    for start, end in _ARROWS:
        ax.annotate(
            "", end, start,
            arrowprops={"arrowstyle": "-|>", "color": MUTED, "shrinkA": 36, "shrinkB": 36},
        )  # fmt: skip
    for text, (place, kind) in _CHAIN.items():
        style = series_style(kinds.index(kind), "color", "linestyle")
        box = {"boxstyle": "round", "edgecolor": style["color"], "linestyle": style["linestyle"]}
        ax.annotate(text, place, ha="center", va="center", bbox={**box, "facecolor": CARD})
    for k, kind in enumerate(kinds):
        ax.plot([], [], label=kind, **series_style(k, "color", "linestyle"))
    ax.set(xlim=(-0.45, 4.5), ylim=(-0.4, 1.4))
    ax.set_axis_off()
    share_legend(figure, 3)
    return figure


@styled
def mask_panels(masks: Array, size: int, image: Images) -> Figure:
    """Draw the masks (size * size, 4) of a scene and the image (size, size, 3) they compose."""
    figure, axes = new_figure(1, 5, height=1.8)
    for k, name in enumerate(("floor", "wall", "object", "highlight")):
        mask = masks[:, k].reshape(size, size)
        _show(axes[0, k], mask, name, cmap="gray", vmin=0, vmax=1)
    _show(axes[0, 4], image, "image")
    return figure


@styled
def valuation_violins(valuations: Mapping[str, Array], labels: ArrayLike, factor: str) -> Figure:
    """Draw valuations (samples,) by value as violins, with the concept planes as lines (Figure 2).

    A panel per model; `labels` (samples,) are the values of the `factor` of 3D Shapes.
    """
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
        ax.set(title=model, xlabel=factor.replace("_", " "))
    axes[0, 0].set_ylabel("valuation ⟨a, z⟩")
    return figure


@styled
def tables_2_to_4(
    ours: Mapping[str, Mapping[str, ValuationTable]],
    papers: Mapping[str, Mapping[str, Sequence[Sequence[float]]]],
) -> Figure:
    """Draw Tables 2 to 4, one panel per factor: ours as filled marks, the paper's as hollow ones.

    Valuations have no natural unit or sign, so each curve is standardised by its own means;
    bars are standard deviations on the same scale. `ours` are tables by model and factor, `papers`
    (mean, std) of each value by factor and model.
    """
    figure, axes = new_figure(2, 3, height=5.0)
    for ax, factor in zip(axes.flat, papers, strict=True):
        curves = [(name, t[factor].means[:, 0], t[factor].stds[:, 0]) for name, t in ours.items()]
        for name, column in papers[factor].items():
            mean, std = np.array(column).T
            curves.append((f"paper: {name}", mean, std))
        for k, (name, mean, std) in enumerate(curves):
            centre, spread = _standardised(mean, std)
            x = np.arange(len(centre)) + 0.08 * (k - 1.5)
            hollow = {"markerfacecolor": "none"} if name.startswith("paper") else {}
            style = {**series_style(k), **hollow, "markersize": 4, "linewidth": 1}
            ax.errorbar(x, centre, spread, elinewidth=0.7, label=name, **style)
        ticks = range(0, len(centre), 1 if len(centre) < 5 else 3)
        ax.set_xticks(ticks, [factor_labels(factor)[t] for t in ticks])
        ax.set_title(factor.replace("_", " "))
    share_legend(figure, 4, "above")
    figure.supylabel("standardised valuation")
    return figure


@styled
def agreement_scatter(
    first: Mapping[str, Array], second: Mapping[str, Array], names: tuple[str, str]
) -> Figure:
    """Draw the valuations (samples,) of two models against each other, one panel per factor.

    They are standardised, the second with the sign that makes the correlation positive.
    """
    figure, axes = new_figure(2, 3, height=4.8)
    for ax, factor in zip(axes.flat, first, strict=True):
        x, y = (np.ravel(v[factor]) for v in (first, second))
        r = np.corrcoef(x, y)[0, 1]
        x, y = (x - x.mean()) / x.std(), np.sign(r) * (y - y.mean()) / y.std()
        ax.scatter(x, y, s=3, alpha=0.25, color=PALETTE[0], linewidths=0, rasterized=True)
        ax.axline((0, 0), slope=1, color=MUTED, linestyle="--", linewidth=1, zorder=1)
        ax.set_title(f"{factor.replace('_', ' ')}, |ρ| = {abs(r):.2f}")
    figure.supxlabel(names[0])
    figure.supylabel(names[1])
    return figure


@styled
def hue_line_and_plane(line: Array, plane: Array, labels: ArrayLike) -> Figure:
    """Draw hues 0 to 9 along one direction (n,), and in a plane (n, 2), where they form a wheel."""
    hues = np.asarray(labels)
    figure, axes = new_figure(1, 2, height=3.4)
    left, right = axes[0]
    heights = hues + scatter_on_line(len(hues), 0.6)
    _dots(left, np.ravel(line), heights, hues)
    left.set_yticks(range(10), factor_labels("floor_hue"))
    left.set(xlabel="valuation in one dimension", ylabel="hue", title="one dimension")
    _wheel(right, plane, hues)
    right.set_title("two dimensions")
    return figure


@styled
def hue_planes(planes: Mapping[str, Array], labels: ArrayLike) -> Figure:
    """Draw the planes (n, 2) of hues 0 to 9, by model; a line joins neighbours on the wheel."""
    figure, axes = new_figure(1, len(planes), height=3.4)
    for ax, (model, plane) in zip(axes[0], planes.items(), strict=True):
        _wheel(ax, plane, np.asarray(labels))
        ax.set_title(model)
    return figure


@styled
def hue_readings(rows: Sequence[Row]) -> Figure:
    """Draw how well two models agree on hues for each way to read them, by the rows of `clip`."""
    kept = [row for row in rows if row["table"] == "readings"]
    factors = list(dict.fromkeys(row["factor"] for row in kept))
    names = list(dict.fromkeys(row["reading"] for row in kept))
    figure, axes = new_figure(1, len(factors), height=3.4, sharey=True)
    for row in kept:
        ax = axes[0, factors.index(row["factor"])]
        control = int(row["models"][0].endswith("-untrained"))
        y = np.full(len(row["canonical"]), names.index(row["reading"]) + 0.3 * control - 0.15)
        style = {**series_style(control), "linestyle": "none"}
        ax.plot(row["canonical"], y, markersize=3, alpha=0.6, **style)
        label = ("trained", "untrained")[control]
        ax.plot(row["canonical"][-1], y[-1], markersize=7, label=label, **style)
    for ax, factor in zip(axes[0], factors, strict=True):
        ax.axvline(0.8, color=MUTED, linestyle="--", linewidth=1)
        ax.set(title=factor.replace("_", " "), xlim=(-0.05, 1.05))
    axes[0, 0].set_yticks(range(len(names)), names)
    axes[0, 0].invert_yaxis()
    figure.supxlabel("canonical correlations; large mark: the smallest; dashed: .8")
    share_legend(figure, 2, "above")
    return figure


@styled
def valuation_plane(valuations: Array, labels: NDArray[np.integer], names: Sequence[str]) -> Figure:
    """Draw two valuations (samples, 2), and the name of each value (label) at its mean."""
    figure, [[ax]] = new_figure(height=3.4)
    for value, name in enumerate(names):
        points = valuations[labels == value]
        style = series_style(value, "color", "marker")
        ax.scatter(*points.T, s=12, alpha=0.55, linewidths=0, label=name, **style)
        ax.annotate(
            name, points.mean(axis=0), ha="center", va="center", fontweight="bold",
            bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.5},
        )  # fmt: skip
    ax.set(xlabel="first valuation", ylabel="second valuation")
    ax.set_aspect("equal", adjustable="datalim")
    return figure


def _show(ax: Axes, image: NDArray, title: str = "", **options: Any) -> None:
    ax.imshow(image, interpolation="nearest", **options)
    ax.set_axis_off()
    ax.set_title(title, fontsize=8, loc="center", fontweight="normal")


def _standardised(means: Array, stds: Array) -> tuple[Array, Array]:
    """Shift and scale so that means have mean 0 and deviation 1; the sign so that they fall."""
    centred, scale = means - means.mean(), means.std()
    sign = 1.0 if centred[: len(centred) // 2].sum() >= 0 else -1.0
    return sign * centred / scale, stds / scale


def _dots(ax: Axes, x: Array, y: Array, hues: NDArray) -> None:
    """Draw one point per image in the colour of its hue, dark enough for a light card."""
    ax.scatter(x, y, s=3, c=0.85 * hue_to_rgb(hues), linewidths=0, rasterized=True)


def _wheel(ax: Axes, plane: Array, hues: NDArray) -> None:
    _dots(ax, plane[:, 0], plane[:, 1], hues)
    centres = np.stack([plane[hues == hue].mean(axis=0) for hue in range(10)])
    ax.plot(*np.vstack([centres, centres[:1]]).T, color=MUTED, linewidth=0.8)
    for hue, centre in enumerate(centres):
        ax.annotate(f"{hue / 10:.1f}", centre, ha="center", va="center", fontweight="bold")
    ax.set(xlabel="first valuation", ylabel="second valuation")
