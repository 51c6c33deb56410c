"""Figures of concepts as planes: valuations, conditioning, and what noise costs."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy import stats

from conceptnb.common.validation import Array, as_points
from conceptnb.core.concepts import Concept
from conceptnb.core.distributions import (
    GaussianMixture,
    acceptance_rate,
    information,
    log_acceptance,
)
from conceptnb.core.mixing import Mixing
from conceptnb.plotting._style import (
    CARD,
    INK,
    MUTED,
    PALETTE,
    new_figure,
    series_style,
    share_legend,
    styled,
)
from conceptnb.plotting.interactive import InteractiveFigure

if TYPE_CHECKING:
    import plotly.graph_objects as go

_Piece = tuple[float, Array, Array]  # a valuation, the corners of its plane, points on it


def turnable_planes(
    concept: Concept, valuations: Sequence[float], Z: ArrayLike, alt: str
) -> InteractiveFigure:
    """Draw one atom's planes at several valuations, with points on each, to be turned (Figure 1).

    Points Z (samples, 3) move to their nearest plane; `alt` says in words what is shown.
    """
    points = np.array_split(as_points(Z, "Z", 3), len(valuations))
    planes = [concept.at([b]) for b in valuations]
    pieces = [(p.b[0], _corners(p), p.project(own)) for p, own in zip(planes, points, strict=True)]
    normal = concept.A[0] / np.linalg.norm(concept.A)
    arrow = np.stack([planes[0].point, planes[0].point + normal])
    return InteractiveFigure(_plotly_planes(pieces, arrow), _parallel_planes(pieces, arrow), alt)


@styled
def level_sets(
    concept: Concept, valuations: Sequence[float], Z: ArrayLike, mixing: Mixing
) -> Figure:
    """Draw level sets of an atom in two dimensions, points Z, and what the mixing makes of them."""
    points = as_points(Z, "Z", 2)
    figure, axes = new_figure(1, 2, height=3.4)
    along = np.linspace(-2.2, 2.2, 400)[:, None] * concept.directions
    views: tuple[Callable[[Array], Array], ...] = (lambda latent: latent, mixing)
    for ax, view in zip(axes[0], views, strict=True):
        colour = concept.valuation(points)[:, 0]
        dots = ax.scatter(*view(points).T, c=colour, s=5, alpha=0.7, rasterized=True)
        for k, b in enumerate(valuations):
            line = view(concept.at([b]).point + along)
            ax.plot(*line.T, color=PALETTE[1], **series_style(k, "linestyle"), label=f"{b:g}")
    axes[0, 0].set(title="Latent space: lines", xlabel="$z_1$", ylabel="$z_2$")
    axes[0, 1].set(title="What is observed: curves", xlabel="$x_1$", ylabel="$x_2$")
    share_legend(figure, len(valuations), title="level sets, $\\langle a, z\\rangle =$")
    figure.colorbar(dots, ax=axes[0, 1], label="valuation $\\langle a, z\\rangle$")
    return figure


@styled
def conditioned_points(
    base: GaussianMixture, concept: Concept, variances: Sequence[float], rng: np.random.Generator
) -> Figure:
    """Draw a base in two dimensions and its conditioning with several variances (Definition 3)."""
    figure, axes = new_figure(1, len(variances), height=2.9, sharex=True, sharey=True)
    everything = base.sample(1500, rng)
    line = concept.point + np.array([[-9.0], [9.0]]) * concept.directions
    low, high = everything.min() - 0.3, everything.max() + 0.3
    for ax, variance in zip(axes[0], variances, strict=True):
        kept = base.condition(concept, variance).sample(1500, rng)
        ax.scatter(*everything.T, s=4, color=MUTED, alpha=0.35, zorder=1, label="base $p$")
        ax.scatter(*kept.T, s=5, color=PALETTE[0], marker="^", alpha=0.6, label="kept $p_C$")
        ax.plot(*line.T, color=PALETTE[1], label="$\\langle a, z\\rangle = b$")
        share = acceptance_rate(base, concept, variance)
        title = f"$\\sigma^2 = {variance:g}$: keeps {share:.1%}"
        ax.set(title=title, xlabel="$z_1$", xlim=(low, high))
    axes[0, 0].set(ylabel="$z_2$", ylim=(low, high))
    share_legend(figure, 3)
    return figure


@styled
def valuation_densities(
    base: GaussianMixture, concept: Concept, variance: float, samples: Mapping[str, Array]
) -> Figure:
    """Draw the density of an atom's valuation: base, what q lets pass, and the result.

    Named samples (n, d_z) are drawn as histograms over the exact density.
    """
    image = base.linear_image(concept.A)
    conditional = base.condition(concept, variance).linear_image(concept.A)
    spread = 4 * np.sqrt(image.covariances.max())
    v = np.linspace(image.means.min() - spread, image.means.max() + spread, 800)
    figure, [[ax]] = new_figure(height=3.3)
    for k, (name, Z) in enumerate(samples.items()):
        style = {"color": PALETTE[2 + k], **series_style(k, "linestyle"), "label": name}
        values = concept.valuation(Z)[:, 0]
        ax.hist(values, 80, density=True, histtype="step", linewidth=1.4, **style)
    q = np.exp(-((v - concept.b[0]) ** 2) / (2 * variance))
    ax.plot(v, np.exp(image.log_density(v[:, None])), color=MUTED, linestyle="--", label="base $p$")
    ax.plot(v, np.exp(conditional.log_density(v[:, None])), color=PALETTE[0], label="exact $p_C$")
    ax.fill_between(v, q, color=PALETTE[1], alpha=0.2, label="chance to be kept, $q/\\max q$")
    ax.set(xlabel="valuation $\\langle a, z\\rangle$", ylabel="density")
    ax.legend()
    return figure


@styled
def acceptance_curves(
    base: GaussianMixture,
    concept: Concept,
    variances: Sequence[float],
    valuations: ArrayLike,
    rng: np.random.Generator,
) -> Figure:
    """Draw the acceptance rate against an atom's valuation: Lemma 4, and 20,000 draws counted."""
    figure, [[ax]] = new_figure(height=3.4)
    n = 20_000
    grid = np.asarray(valuations, dtype=float)
    Z = base.sample(n, rng)
    for k, variance in enumerate(variances):
        at = [concept.at([b]) for b in grid]
        predicted = np.array([acceptance_rate(base, c, variance) for c in at])
        counts = [(log_acceptance(c, variance, Z) >= np.log(rng.uniform(size=n))).sum() for c in at]
        # Exact 95 % intervals: symmetric ones would cross zero at small counts.
        interval = [stats.binomtest(int(c), n).proportion_ci(method="exact") for c in counts]
        rates = np.array(counts) / n
        bars = np.abs(np.array([[i.low, i.high] for i in interval]).T - rates)
        label = f"$\\sigma^2 = {variance:g}$"
        ax.plot(grid, predicted, **series_style(k, "color", "linestyle"), label=label)
        ax.errorbar(grid, rates, bars, **series_style(k, "color", "marker"), linestyle="", ms=4)
    ax.set(xlabel="valuation $b$", ylabel="acceptance rate", yscale="log", ylim=(0.3 / n, 1.5))
    ax.legend(title="lines: Lemma 4; marks: counted", loc="lower center", ncols=len(variances))
    return figure


@styled
def noise_trade_off(base: GaussianMixture, concept: Concept, variances: ArrayLike) -> Figure:
    """Draw what a sample costs and what it tells, against the variance of the condition."""
    grid = np.asarray(variances, dtype=float)
    nats = np.array([information(base, concept, variance) for variance in grid])
    rates = np.array([acceptance_rate(base, concept, variance) for variance in grid])
    figure, axes = new_figure(1, 3, height=2.7, sharex=True)
    panels = [
        (nats, "A sample tells", "nats"),
        (1 / rates, "A sample costs", "draws (Corollary 1)"),
        (1000 * nats * rates, "1000 draws tell", "nats"),
    ]
    for k, (ax, (values, title, label)) in enumerate(zip(axes[0], panels, strict=True)):
        ax.plot(grid, values, **series_style(k, "color", "marker"), markevery=4)
        ax.set(title=title, ylabel=label, xlabel="$\\sigma^2$", xscale="log", yscale="log")
    return figure


@styled
def _parallel_planes(pieces: list[_Piece], arrow: Array) -> Figure:
    figure, [[ax]] = new_figure(height=4.6, subplot_kw={"projection": "3d"})
    for k, (b, corners, points) in enumerate(pieces):
        ax.plot_surface(*corners, color=PALETTE[k], alpha=0.25)
        label = f"$\\langle a, z\\rangle = {b:g}$"
        ax.scatter(*points.T, **series_style(k, "color", "marker"), s=16, label=label)
    start, normal = arrow[0], arrow[1] - arrow[0]
    ax.quiver(*start, *normal, color=INK, linewidth=1.8, arrow_length_ratio=0.15)
    ax.text(*(start + 1.1 * normal), "$a$", color=INK, fontsize=13)
    ax.set(xlabel="$z_1$", ylabel="$z_2$", zlabel="$z_3$", box_aspect=(1, 1, 1))
    ax.view_init(elev=18, azim=-50)
    ax.legend(loc="upper left")
    return figure


def _plotly_planes(pieces: list[_Piece], arrow: Array) -> "go.Figure":
    import plotly.graph_objects as go  # noqa: PLC0415 - slow to import, for one figure

    figure = go.Figure()
    symbols = ("circle", "square", "diamond", "cross")
    for k, (b, corners, points) in enumerate(pieces):
        x, y, z = corners
        colour = {"colorscale": [[0, PALETTE[k]], [1, PALETTE[k]]], "showscale": False}
        figure.add_surface(x=x, y=y, z=z, opacity=0.3, hoverinfo="skip", **colour)
        x, y, z = points.T
        figure.add_scatter3d(
            x=x, y=y, z=z, mode="markers", name=f"valuation {b:g}",
            marker={"size": 3.5, "color": PALETTE[k], "symbol": symbols[k % len(symbols)]},
        )  # fmt: skip
    x, y, z = arrow.T
    line = {"color": INK, "width": 5}
    figure.add_scatter3d(x=x, y=y, z=z, mode="lines+text", text=["", "a"], name="atom a", line=line)
    figure.update_layout(paper_bgcolor=CARD, font_color=INK, margin=dict.fromkeys("lrtb", 0))
    figure.update_layout(legend={"x": 0, "y": 1, "itemsizing": "constant"})
    figure.update_scenes(aspectmode="cube", camera_eye={"x": 1.3, "y": -1.7, "z": 0.6})
    for i, axis in enumerate("xyz", start=1):
        look = {"title": {"text": f"z<sub>{i}</sub>"}, "backgroundcolor": CARD}
        figure.update_scenes({f"{axis}axis": look})
    return figure


def _corners(concept: Concept) -> Array:
    """Return the corners (3, 2, 2) of a square of plane around its point nearest to the origin."""
    steps = np.array([-1.9, 1.9])
    along, across = concept.directions
    corners = concept.point + steps[:, None, None] * along + steps[None, :, None] * across
    return np.moveaxis(corners, -1, 0)
