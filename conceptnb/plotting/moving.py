"""Figures that move: stills and data here; ``book/_static/moving`` has sliders and mathematics."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from conceptnb.core.concepts import Concept
from conceptnb.core.distributions import GaussianMixture
from conceptnb.plotting import _style, steered
from conceptnb.plotting.interactive import InteractiveFigure
from conceptnb.plotting.planes import conditioned_points
from conceptnb.tables import steering_analysis as analysis

_Shown = tuple[Figure, dict[str, Any]]  # the still, and what the script is given


def show(name: str, alt: str, *given: Any) -> InteractiveFigure:
    """Return a figure that moves on the book's site and is still elsewhere.

    `alt` says in words what the figure shows. What is `given` is, by name: "conditioning" a base
    and a concept in two dimensions, "folds" the variance of q, "mixing" two atoms (2, 2), "truth"
    a shift (2,), "steering" runs of one model, techniques and a budget of KL in nats per token.
    """
    if name not in _FIGURES:
        raise ValueError(f"name={name!r} is no figure that moves; there are {', '.join(_FIGURES)}")
    still, data = _FIGURES[name](*given)
    return InteractiveFigure({"moving": name, **data}, still, alt)


def _conditioning(base: GaussianMixture, concept: Concept) -> _Shown:
    still = conditioned_points(base, concept, [0.002, 0.05, 1.0], np.random.default_rng(0))
    mixture = {key: getattr(base, key) for key in ("weights", "means", "covariances")}
    return still, {**mixture, "atom": concept.A[0]}


@_style.styled
def _draw_folds() -> Figure:
    z = np.linspace(-2, 2, 201)
    figure, [[ax]] = _style.new_figure(height=3.0)
    ax.plot(z, z, label="the valuation itself")
    ax.plot(z, np.abs(z + 0.1) - 0.1, "--", label="its fold at $b_1$")
    ax.set(xlabel="true valuation", ylabel="learned valuation")
    ax.legend()
    return figure


@_style.styled
def _draw_mixing(atoms: np.ndarray) -> Figure:
    def bend(z: np.ndarray) -> np.ndarray:
        u = z[0] + 0.5 * np.sin(1.6 * z[1])
        return np.stack([u, z[1] + 0.5 * np.sin(1.6 * u)])

    views = {"Latent": lambda z: z, "Observed": bend, "Learned": lambda z: (atoms @ z)[::-1]}
    figure, axes = _style.new_figure(1, 3, height=2.8)
    for ax, (title, view) in zip(axes[0], views.items(), strict=True):
        for k, atom in enumerate(atoms):
            turned = np.outer([-atom[1], atom[0]], np.linspace(-2, 2, 101))
            for b in np.arange(-1.5, 2, 0.5):
                line = view((b * atom / (atom @ atom))[:, None] + turned)
                ax.plot(*line, _style.LINES[k], c=_style.PALETTE[k], lw=1.1, label=f"atom {k + 1}")
        ax.set(title=title, xlabel="1", ylabel="2", xticks=[], yticks=[])
    _style.share_legend(figure, 2, title="level lines")
    return figure


@_style.styled
def _draw_truth(delta: np.ndarray) -> Figure:
    theta, turn = delta / [16, 1], np.linspace(0, 2 * np.pi, 100)
    unit = theta / np.linalg.norm(theta)
    ends = [delta, np.linalg.norm(delta) * unit, delta - (unit @ delta) * unit]
    labels = "shift $\\delta$", "probe $\\theta$", "left of $\\delta$ without $\\theta$"
    figure, [[ax]] = _style.new_figure(height=3.4)
    for centre in (np.zeros(2), delta):
        ax.plot(*(centre[:, None] + [4 * np.cos(turn), np.sin(turn)]), color=_style.MUTED, lw=1)
    for k, (label, end) in enumerate(zip(labels, ends, strict=True)):
        look = {"color": _style.PALETTE[k], "ls": _style.LINES[k], "marker": _style.MARKERS[k]}
        ax.plot(*np.transpose([[0, 0], end]), label=label, markevery=[1], **look)
    ax.set(xlabel="first coordinate", ylabel="second coordinate", aspect="equal")
    _style.share_legend(figure, 3)
    return figure


def _steering(runs: Sequence[_style.Row], techniques: Sequence[str], budget: float) -> _Shown:
    rows = list(map(dict, runs))
    start, curves = analysis.accuracy_at_choice(rows, analysis.BASELINE), {}
    for name in techniques:
        curve = analysis.along_alpha(rows, name)
        gains = [np.zeros_like(start)] + [
            analysis.accuracy_at_choice([{**row, "alpha": alpha} for row in rows], name) - start
            for alpha in curve["alpha"][1:]
        ]
        half = 1.96 * np.std(gains, axis=1, ddof=1) / np.sqrt(len(start))
        curves[name] = {"alpha": curve["alpha"], "mc1": curve["mc1"], "kl": curve["kl_asked"]}
        curves[name] |= {"low": curve["mc1"] - half, "high": curve["mc1"] + half}
    still = steered.frontiers({"": rows}, techniques, limit=1.2)
    return still, {"techniques": curves, "budget": budget, "questions": len(start)}


_FIGURES: dict[str, Callable[..., _Shown]] = {
    "conditioning": _conditioning,
    "folds": lambda variance: (_draw_folds(), {"variance": variance}),
    "mixing": lambda atoms: (_draw_mixing(np.asarray(atoms)), {"atoms": atoms}),
    "truth": lambda delta: (_draw_truth(np.asarray(delta)), {"delta": delta}),
    "steering": _steering,
}
