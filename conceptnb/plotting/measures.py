"""Figures of conditional measures (Appendix C) and of the causal comparison (Appendix B)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from conceptnb.core.causal import LinearSCM, environments_needed
from conceptnb.core.concepts import Concept
from conceptnb.core.conditioning import (
    EnforcedMeasure,
    averaged_measure,
    bayesian_measure,
    matching_covariance,
)
from conceptnb.core.distributions import GaussianMixture
from conceptnb.plotting._style import FAINT, INK, MUTED, PALETTE, new_figure, series_style, styled


@styled
def three_measures(
    base: GaussianMixture, concept: Concept, variance: float, rng: np.random.Generator
) -> Figure:
    """Draw Appendix C's three measures of one atom on a base in two dimensions."""
    drawn = {
        "enforced marginal": EnforcedMeasure(base, concept, variance).sample(700, rng),
        "averaged (do-like)": averaged_measure(base, concept, variance).sample(700, rng),
        "Bayesian acceptance": bayesian_measure(base, concept, variance).sample(700, rng),
    }
    background = base.sample(900, rng)
    along, across = concept.directions[0], concept.A[0] / np.linalg.norm(concept.A[0])
    figure, axes = new_figure(2, 3, height=4.8, height_ratios=[2, 1])
    for k, (name, Z) in enumerate(drawn.items()):
        ax, below = axes[:, k]
        ax.plot(*background.T, ".", color=FAINT, markersize=2)
        ax.plot(*Z.T, **series_style(k, "color", "marker"), linestyle="", markersize=2.5)
        ax.axline(tuple(concept.point), tuple(concept.point + along), color=INK, linewidth=1)
        ax.set(title=name, aspect="equal", xlabel="z₁", xlim=(-3.4, 3.4), ylim=(-3.4, 3.4))
        bins = np.linspace(-3.2, 3.2, 45)
        below.hist(background @ along, bins, density=True, color=FAINT)
        below.hist(Z @ along, bins, density=True, histtype="step", color=PALETTE[k], linewidth=1.8)
        below.set(xlabel="position in the plane", yticks=[])
        mean, spread = float((Z @ across).mean()), float((Z @ across).std())
        below.set_title(f"across it: {mean:.2f} ± {spread:.2f}", fontsize=9, fontweight="normal")
    axes[0, 0].set_ylabel("z₂")
    return figure


@styled
def couplings(concepts: Sequence[Concept], correlations: Sequence[float]) -> Figure:
    """Draw solutions of (80) for two atoms in the plane, by correlation; both marginals agree."""
    figure, [[ax]] = new_figure(height=3.4)
    for k, r in enumerate(correlations):
        covariance, _ = matching_covariance(concepts, [[1.0, r], [r, 1.0]])
        size, frame = np.linalg.eigh(covariance)
        angle = float(np.degrees(np.arctan2(frame[1, 1], frame[0, 1])))
        width, height = 2 * np.sqrt(np.maximum(size[::-1], 0))
        style = {**series_style(k, "color", "linestyle"), "label": f"correlation {r:g}"}
        ellipse = Ellipse((0, 0), width, height, angle=angle, fill=False, linewidth=2, **style)
        ax.add_patch(ellipse)
    for concept in concepts:
        for value in (-1, 1):
            x, y = concept.at([value]).point
            along = concept.directions[0]
            ax.axline((x, y), (x + along[0], y + along[1]), color=MUTED, linewidth=0.8)
    ax.set(xlim=(-3, 3), ylim=(-2, 2), aspect="equal", xlabel="z₁", ylabel="z₂")
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


@styled
def environments_against_dimension(n: int, largest: int) -> Figure:
    """Draw the number of environments that suffices for n atoms, by latent dimension."""
    d_z = np.unique(np.geomspace(n, largest, 60).astype(int))
    figure, [[ax]] = new_figure(height=3.3)
    for k, (name, count) in enumerate(environments_needed(n, d_z).items()):
        ax.plot(d_z, count, **series_style(k, "color", "linestyle"), label=name)
    ax.set(title=f"To learn {n} atoms", xscale="log", yscale="log")
    ax.set(xlabel="latent dimension", ylabel="environments, with the base")
    ax.legend()
    return figure


@styled
def conditioning_against_intervening(
    model: LinearSCM, node: int, value: float, variance: float
) -> Figure:
    """Draw each variable's marginal as observed, conditioned, intervened on, averaged.

    `value` and `variance` are wanted of the variable `node`.
    """
    p, atom = model.distribution(), model.atom(node, value)
    found = {
        "observed": p,
        "conditioned": p.condition(atom, variance),
        "intervened": model.intervene(node, value, variance).distribution(),
        "averaged": averaged_measure(p, atom, variance),
    }
    figure, axes = new_figure(1, model.d, height=2.9, sharey=True)
    grid = np.linspace(-4.5, 6, 400)
    for j, ax in enumerate(axes[0]):
        for k, (name, q) in enumerate(found.items()):
            marginal = q.linear_image(np.eye(model.d)[[j]])
            density = np.exp(marginal.log_density(grid[:, None]))
            ax.plot(grid, density, **series_style(k, "color", "linestyle"), label=name)
        ax.set(title=f"Z{j + 1}" + (" (wanted)" if j == node else ""), ylim=(0, 1.35), yticks=[])
        ax.set_xlabel("value")
    axes[0, 0].set_ylabel("density")
    axes[0, -1].legend(fontsize=8.5)
    return figure
