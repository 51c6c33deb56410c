"""Figures of reports on a reader's own data."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from conceptnb.plotting._style import (
    INK,
    MUTED,
    PALETTE,
    new_figure,
    scatter_on_line,
    series_style,
    styled,
)
from conceptnb.plotting.summaries import concept_dots

if TYPE_CHECKING:
    from conceptnb.embeddings.own_images import DirectionReport
    from conceptnb.learning.environment_tables import ConceptReport
    from conceptnb.steering.own_pairs import PairReport
    from conceptnb.steering.own_questions import SteeringReport

_AS_TYPED: Any = {
    "text.parse_math": False
}  # names are the reader's own, and may hold half a formula


@rc_context(_AS_TYPED)
@styled
def valuations_by_environment(report: "ConceptReport") -> "Figure":
    """Draw quartiles of every valuation by environment, filled where it looked for the concept."""
    table, learned = report.table, report.valuations
    targets = np.asarray(report.learner.targets)
    n, height = len(report.concepts), 1.1 + 0.3 * len(table.names)
    figure, axes = new_figure(1, n, height=height, sharey=True)
    places = np.arange(len(table.names))
    for k, (ax, concept) in enumerate(zip(axes[0], report.concepts, strict=True)):
        for e in places:
            own = learned[table.environment == e, k]
            low, middle, high = np.percentile(own, [25, 50, 75])
            looked = e > 0 and targets[e - 1, k]
            colour = PALETTE[0] if looked else MUTED
            ax.plot([low, high], [e, e], color=colour, linewidth=3 if looked else 1.2)
            face = colour if looked else "white"
            ax.plot(middle, e, "o", color=colour, markerfacecolor=face, markersize=7)
        middle = np.median(learned[table.environment == 0, k])
        ax.axvline(middle, color=INK, linewidth=0.8, linestyle=":")
        ax.set(title=concept, xlabel="learned valuation")
        ax.grid(axis="y", visible=False)
    axes[0, 0].set_yticks(places, table.names)
    axes[0, 0].invert_yaxis()
    return figure


@rc_context(_AS_TYPED)
@styled
def valuations_by_value(report: "DirectionReport") -> "Figure":
    """Draw the valuations of held-out images along each factor's direction, by value."""
    n = len(report.factors)
    figure, axes = new_figure(1, n, height=2.9)
    for ax, found in zip(axes[0], report.factors.values(), strict=True):
        for k, name in enumerate(found.concept.classes_):
            own = found.valuations[found.labels == name]
            places = k + scatter_on_line(len(own), 0.3)
            style = {**series_style(k % len(PALETTE)), "linestyle": "", "markersize": 2.5}
            ax.plot(own, places, alpha=0.6, **style)
            ax.plot([own.mean()] * 2, [k - 0.35, k + 0.35], color=INK, linewidth=2)
        ax.set_yticks(range(len(found.concept.classes_)), found.concept.classes_)
        ax.set(title=f"{found.factor} (η² {found.eta2:.2f})", xlabel="valuation")
        ax.grid(axis="y", visible=False)
    return figure


@rc_context(_AS_TYPED)
def choices_by_category(report: "SteeringReport") -> "Figure":
    """Draw the share of questions answered truly (MC1), by category and technique."""
    category = np.array([question.category or "all" for question in report.questions])
    names = list(dict.fromkeys(category.tolist()))
    shares = {
        technique: {name: found.mc1[category == name].mean() for name in names}
        for technique, found in report.scores.items()
    }
    return concept_dots(shares, "answered truly (MC1)")


@styled
def disturbance_and_layers(report: "PairReport") -> "Figure":
    """Draw KL on neutral text along strength (left), and held-out agreement by layer (right)."""
    figure, axes = new_figure(1, 2, height=2.9)
    left, right = axes[0]
    shown = {"KL": "the vector", "KL, random direction": "a random direction"}
    for k, (column, label) in enumerate(shown.items()):
        left.plot(
            report.disturbance["strength"], report.disturbance[column], label=label,
            **series_style(k),
        )  # fmt: skip
    left.set(xlabel="strength", ylabel="KL, nats per token")
    left.legend()
    layers = report.layers["layer"]
    right.plot(layers, report.layers["agreement of held-out pairs"], **series_style(0))
    [steered] = report.vector.layers
    right.axvline(steered, color=MUTED, linestyle=":", linewidth=1.2)
    right.set(
        xlabel="layer (dotted: the one that is steered)", ylabel="agreement", ylim=(None, 1.05)
    )
    return figure
