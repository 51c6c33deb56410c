"""Figures of one fit: its data, its loss, its starts, its valuations against the truth."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from conceptnb.common.validation import Array
from conceptnb.core.scores import match_columns
from conceptnb.plotting._style import MUTED, PALETTE, new_figure, series_style, share_legend, styled

_SHOWN = 400  # points per environment


@styled
def environment_points(X: ArrayLike, environment: ArrayLike) -> Figure:
    """Draw the observations (samples, d_x) of each environment over those of the base, number 0.

    The axes are the two leading principal components of the base.
    """
    points, labels = np.asarray(X), np.asarray(environment)
    base = points[labels == 0]
    leading = np.linalg.svd(base - base.mean(axis=0), full_matrices=False)[2][:2]
    flat = (points - base.mean(axis=0)) @ leading.T
    m = labels.max()
    figure, axes = new_figure(1, m, height=2.7, sharex=True, sharey=True)
    for e, ax in enumerate(axes[0], start=1):
        ax.scatter(*flat[labels == 0][:_SHOWN].T, s=5, color=MUTED, alpha=0.4, label="base")
        own = flat[labels == e][:_SHOWN]
        ax.scatter(*own.T, s=7, color=PALETTE[0], marker="^", alpha=0.7, label="environment")
        ax.set(title=f"Environment {e}", xlabel="component 1")
    axes[0, 0].set(ylabel="component 2")
    share_legend(figure, 2)
    return figure


@styled
def loss_curves(held_out: Array, oracle: ArrayLike, names: Sequence[str]) -> Figure:
    """Draw the held-out loss by epoch (problems, epochs), above the loss of the true log-odds.

    Both are in nats per row; `oracle` (problems,) is of the same rows.
    """
    figure, [[ax]] = new_figure(height=3.2)
    for k, curve in enumerate(held_out - np.asarray(oracle)[:, None]):
        ax.plot(curve, **series_style(k, "color", "linestyle"), label=names[k])
    ax.axhline(0, color=MUTED, linewidth=1)
    ax.set(xlabel="epoch", ylabel="loss above the oracle's (nats)")
    # Linear around zero, since a finite sample can put a model below the oracle.
    ax.set_yscale("symlog", linthresh=0.01)
    ax.legend()
    return figure


@styled
def recovered(
    true: ArrayLike, learned: ArrayLike, *, label: str = "learned $h_{}(x)$", digits: int = 3
) -> Figure:
    """Draw learned valuations (samples, n) against the true ones that MCC matches them with.

    Braces in the vertical `label` stand for the column; `digits` are the correlations'.
    """
    truth, found = np.asarray(true), np.asarray(learned)
    rows, columns, correlations = match_columns(truth, found)
    figure, axes = new_figure(1, len(rows), height=3.0)
    for k, (ax, i, j, value) in enumerate(zip(axes[0], rows, columns, correlations, strict=True)):
        style = series_style(k, "color", "marker")
        ax.scatter(truth[:1500, i], found[:1500, j], s=6, alpha=0.5, **style)
        ax.set(
            title=f"Atom {i + 1}: correlation {value:+.{digits}f}",
            xlabel=f"true $\\langle a_{i + 1}, z\\rangle$",
            ylabel=label.format(j + 1),
        )
    return figure


@styled
def story(
    true: ArrayLike, observed: ArrayLike, learned: ArrayLike, environment: ArrayLike
) -> Figure:
    """Draw a problem of two atoms in three panels: valuations, observations, what was learned.

    Valuations are (samples, 2): the learned ones are drawn in the order and with the signs that
    match the true ones, in their own unit. Observations (samples, d_x) are drawn in their two
    leading principal components; environment 0 is the base.
    """
    truth, found = np.asarray(true), np.asarray(learned)
    points, labels = np.asarray(observed), np.asarray(environment)
    rows, columns, _ = match_columns(truth, found)
    matched = found[:, columns[np.argsort(rows)]]
    for k in range(2):
        matched[:, k] *= np.sign(np.corrcoef(truth[:, k], matched[:, k])[0, 1])
    centred = points - points.mean(axis=0)
    seen = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    panels = (
        ("Concepts, unseen", truth, ("first atom", "second atom")),
        ("Observations", seen, ("component 1", "component 2")),
        ("Concepts, learned", matched, ("first output", "second output")),
    )
    figure, axes = new_figure(1, 3, height=2.9)
    for ax, (title, values, names) in zip(axes[0], panels, strict=True):
        for e in range(labels.max() + 1):
            own = values[labels == e][:350]
            style = {"color": MUTED, "marker": ".", "alpha": 0.35, "label": "base"}
            if e > 0:
                style = {"color": PALETTE[e - 1], **series_style(e, "marker"), "alpha": 0.6}
                style["label"] = f"environment {e}"
            ax.scatter(*own.T, s=9, linewidths=0, **style)
        ax.set(title=title, xlabel=names[0], ylabel=names[1], xticks=[], yticks=[])
    share_legend(figure, 4, markerscale=2.2)
    return figure


@styled
def bent_grid(
    true: ArrayLike, observed: ArrayLike, learned: ArrayLike, lines: Sequence[Sequence[ArrayLike]]
) -> Figure:
    """Draw level lines of two atoms in three panels: unseen, as observed, as learned.

    `true`, `observed` and `learned` are points in the three spaces, drawn behind the lines; of
    observations (samples, d_x) two principal components. `lines` holds the three curves of each
    level line, (points, 2), (points, d_x) and (points, 2): first all of one atom, then the other's.
    """
    truth, found = np.asarray(true), np.asarray(learned)
    rows, columns, _ = match_columns(truth, found)
    order = columns[np.argsort(rows)]
    signs = [np.sign(np.corrcoef(truth[:, k], found[:, c])[0, 1]) for k, c in enumerate(order)]
    points = np.asarray(observed)
    leading = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][:2].T
    maps = (
        lambda V: V,
        lambda X: (X - points.mean(axis=0)) @ leading,
        lambda H: H[:, order] * signs,
    )
    titles = ("What is there", "What you see", "What is learned")
    figure, axes = new_figure(1, 3, height=2.6)
    for k, (ax, title, into, cloud) in enumerate(
        zip(axes[0], titles, maps, (truth, points, found), strict=True)
    ):
        ax.scatter(*into(cloud).T, s=2, linewidths=0, color=MUTED, alpha=0.3)
        for n, curves in enumerate(lines):
            second = n >= len(lines) // 2
            style = {"color": PALETTE[1 if second else 0], "linestyle": "--" if second else "-"}
            ax.plot(*into(np.asarray(curves[k])).T, linewidth=1.3, **style)
        ax.set(title=title, xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    return figure


@styled
def loss_against_mcc(
    runs: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]], *, log: bool = True
) -> Figure:
    """Draw MCC of every run against how far it ended above the oracle's held-out loss.

    `runs` are, by panel and estimator, losses minus the oracle's on the same rows, in nats, and
    MCC. On a logarithmic axis losses below a tenth of a millinat are drawn there.
    """
    figure, axes = new_figure(1, len(runs), height=3.2, sharey=True)
    for ax, (title, estimators) in zip(axes[0], runs.items(), strict=True):
        for i, (name, (excess, mcc)) in enumerate(estimators.items()):
            shown = np.maximum(excess, 1e-4) if log else excess
            style = {**series_style(i), "linestyle": "", "markersize": 6}
            ax.plot(shown, mcc, alpha=0.75, label=name, **style)
        ax.set(xlabel="excess loss (nats)", title=title, ylim=(None, 1.02))
        ax.set_xscale("log" if log else "linear")
    axes[0, 0].set_ylabel("MCC")
    axes[0, 0].legend(loc="lower left")
    return figure
