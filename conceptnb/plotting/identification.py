"""Figures of the chapters on identifiability: designs, proofs, failures."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import minimize
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import pdist, squareform

from conceptnb.common.validation import Array
from conceptnb.core.certificate import certify
from conceptnb.core.concepts import Concept
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import GaussianMixture, acceptance_rate
from conceptnb.core.diversity import DiversityReport
from conceptnb.plotting._style import (
    BLUES,
    FAINT,
    INK,
    MUTED,
    PALETTE,
    Row,
    draw_grid,
    new_figure,
    series_style,
    share_legend,
    styled,
)
from conceptnb.theory.counterexamples import ModelPair
from conceptnb.theory.observables import Instance
from conceptnb.theory.theorem1 import Subset

_TILES, _UNUSED = 11, "not conditioned on"  # designs in a row of the atlas


@styled
def exceptional_sets(grid: Array, errors: Array, determinant: Array) -> Figure:
    """Draw where the formula of Step 5 is inaccurate, for the chapter's design of two atoms.

    `errors` (points, points, 2) are logarithms of the errors of both valuations on the square of
    `grid` (points,), `determinant` (points, points) that of the paper's proof.
    """
    figure, axes = new_figure(1, 2, height=3.6, sharey=True)
    for i, ax in enumerate(axes[0]):
        shown = ax.pcolormesh(grid, grid, errors[..., i], vmin=-7, vmax=-4, rasterized=True)
        ax.contour(grid, grid, determinant, [0], colors="white", linestyles="dotted")
        line = ax.axhline if i == 0 else ax.axvline
        line(-1 if i == 0 else 1, color=INK, linestyle="dashed")
        ax.set(title=f"atom {i}", xlabel="$z_0$", aspect="equal")
        ax.grid(visible=False)
    axes[0, 0].set_ylabel("$z_1$")
    figure.colorbar(shown, ax=axes[0], label="log₁₀ of the error")
    return figure


@styled
def two_parabolas(first: float, second: float) -> Figure:
    """Draw the log ratios of two environments of one atom, and their difference, with σ = 1.

    Parameters
    ----------
    first, second
        The valuations that the two environments were selected for.

    Returns
    -------
    Figure
        Three panels: one log ratio, with two points that it cannot tell apart; both log ratios;
        their difference, which is a straight line.
    """
    z = np.linspace(-3, 3, 121)
    one, other = ((z - b) ** 2 / 2 for b in (first, second))
    figure, axes = new_figure(1, 3, height=2.9)
    left, middle, right = axes[0]
    twins = np.array([first - 1.2, first + 1.2])
    left.plot(z, one, **series_style(0, "color", "linestyle"))
    left.plot(twins, (twins - first) ** 2 / 2, "o", color=INK)
    left.annotate("the same height", (first, 0.72), (0, 3), textcoords="offset points", ha="center")
    left.set(title="one pile", ylabel="log ratio")
    for k, values in enumerate((one, other)):
        middle.plot(z, values, **series_style(k, "color", "linestyle"))
    middle.set(title="two piles")
    right.plot(z, one - other, color=PALETTE[2])
    right.set(title="their difference")
    for ax in axes[0]:
        ax.set(xlabel="valuation $z$")
    for ax in (left, middle):
        ax.set(ylim=(-0.3, 6))
    return figure


@styled
def design_matrices(report: DiversityReport) -> Figure:
    """Draw M and B in standard units; a cross marks atoms for which Assumption 4 fails."""
    figure, [[left, right]] = new_figure(1, 2, height=1.3 + 0.32 * len(report.M))
    largest = max(np.abs(report.B).max(), 1e-9)
    environments = [str(e + 1) for e in range(len(report.M))]
    atoms = [f"{i}" if ok else f"{i} ×" for i, ok in enumerate(report.assumption4)]
    shown = np.where(report.M > 0, report.B, np.nan)
    limits = (-largest, largest)
    draw_grid(left, report.M, environments, atoms, form="{:.0f}")
    draw_grid(right, shown, environments, atoms, form="{:.1f}", limits=limits, colours="RdBu_r")
    left.set_title("M  (1 = conditioned on)")
    right.set_title("B  (valuations, in σ)")
    for ax in (left, right):
        ax.set_xlabel("atom" if report.assumption4.all() else "atom (× Assumption 4 fails)")
    left.set_ylabel("environment")
    return figure


@styled
def acceptance_rates(
    designs: Mapping[str, EnvironmentDesign], base: GaussianMixture, atoms: Array
) -> Figure:
    """Compare designs for atoms (n, d_z) by acceptance rate (Lemma 4) and Assumption 4."""
    figure, axes = new_figure(1, 2, height=3.0)
    for k, (name, design) in enumerate(designs.items()):
        rates = [acceptance_rate(base, c, design.variance) for c in design.concepts(atoms)]
        margins = np.sort(design.check().valuation_margins)
        style = {**series_style(k), "label": name}
        axes[0, 0].plot(np.arange(1, len(rates) + 1), np.sort(rates), **style)
        axes[0, 1].plot(np.arange(1, len(margins) + 1), margins, **style)
    axes[0, 0].set(yscale="log", xlabel="environment, sorted", ylabel="acceptance rate")
    axes[0, 1].margins(y=0.25)
    axes[0, 1].set(xlabel="atom, sorted", ylabel="margin of Assumption 4 (σ)", ylim=(0, None))
    axes[0, 0].legend()
    return figure


@styled
def argmin_sets(instance: Instance, rng: np.random.Generator) -> Figure:
    """Draw Step 3 in two latent dimensions: level sets of sums of G_e in a chart.

    The learner sees the lower row. A sum is least on a curve or at a point. The instance has
    d_z = 2 and environments that condition on {0}, {0, 1} and {1}; base data set the extent.
    """
    X = instance.sample(400, rng)
    latents, charted = instance.mixing.inverse(X), instance.coordinates(X)
    sums = {"G₁": [1, 0, 0], "G₃": [0, 0, 1], "G₁ + G₃": [1, 0, 1]}
    figure, axes = new_figure(2, 3, height=5.0, sharex="row", sharey="row")
    lines = [_valley(instance.design, instance.atoms, weights) for weights in sums.values()]
    for row, points in enumerate((latents, charted)):
        low, high = points.min(axis=0) - 0.4, points.max(axis=0) + 0.4
        grid = np.stack(np.meshgrid(*np.linspace(low, high, 120).T), axis=-1)
        flat = grid.reshape(-1, 2)
        Z = instance.warp.inverse(flat) if row else flat
        G = instance.log_ratio(instance.mixing(Z)).reshape(120, 120, -1)
        for column, (name, weights) in enumerate(sums.items()):
            ax = axes[row, column]
            value = G @ np.array(weights, dtype=float)
            levels = np.quantile(value, np.linspace(0.02, 0.9, 9))
            style = {"cmap": BLUES, "linewidths": 0.8}
            ax.contour(grid[..., 0], grid[..., 1], value, np.unique(levels), **style)
            valley = instance.warp(lines[column]) if row else lines[column]
            point = "o" if len(valley) == 1 else ""
            ax.plot(*valley.T, color=PALETTE[1], linewidth=2.6, marker=point)
            ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
            ax.grid(visible=False)
            if row == 0:
                ax.set_title(name)
    axes[0, 0].set_ylabel("latents (hidden)")
    axes[1, 0].set_ylabel("chart (seen)")
    figure.supxlabel("first coordinate; upwards the second", fontsize=9.5)
    return figure


@styled
def spectra(found: Mapping[Subset, Array], tolerance: float) -> Figure:
    """Draw the relative eigenvalues from which Step 3 reads |S_T|, one column per subset T.

    `tolerance` is the line between curvature and noise.
    """
    figure, [[ax]] = new_figure(height=3.2)
    ordered = sorted(found, key=lambda T: (len(T), sorted(T)))
    for column, T in enumerate(ordered):
        values = np.maximum(np.abs(found[T]), 1e-13)
        above = values > tolerance
        ax.plot(np.full(above.sum(), column), values[above], "o", color=PALETTE[0])
        ax.plot(np.full((~above).sum(), column), values[~above], "x", color=PALETTE[1])
        ax.text(column, 6.0, str(int(above.sum())), ha="center", color=INK, fontsize=9)
    ax.axhline(tolerance, color=MUTED, linestyle="--", linewidth=1)
    labels = ["{" + ",".join(str(e + 1) for e in sorted(T)) + "}" for T in ordered]
    ax.set_xticks(range(len(ordered)), labels, rotation=90, fontsize=8)
    ax.set(yscale="log", ylim=(1e-14, 60), xlabel="subset T", ylabel="eigenvalue / largest")
    ax.set_title("Rank = |S_T| (numbers), at the minimum of the sum over T")
    return figure


@styled
def instance_errors(rows: Sequence[Row]) -> Figure:
    """Draw error of B and 1 - correlation in many instances (``results/theory_instances.json``)."""
    figure, axes = new_figure(1, 2, height=3.2)
    for k, n in enumerate(sorted({row["n"] for row in rows})):
        chosen = [row for row in rows if row["n"] == n and row["M_right"]]
        style = {**series_style(k), "linestyle": "", "markersize": 3}
        d_z = np.array([row["d_z"] for row in chosen]) + 0.16 * (k - 1.5)
        error = [max(row["B_error"], 1e-16) for row in chosen]
        missing = [max(1 - row["correlation"], 1e-16) for row in chosen]
        axes[0, 0].plot(d_z, error, label=f"n = {n}", **style)
        axes[0, 1].plot(d_z, missing, **style)
    labels = ("largest error of B (σ)", "1 − correlation, worst atom")
    for ax, label in zip(axes[0], labels, strict=True):
        ax.axhline(1e-4, color=INK, linestyle="--", linewidth=1)
        ax.set(yscale="log", xlabel="latent dimension", ylabel=label)
    axes[0, 0].legend(ncols=4, fontsize=8, loc="lower left", bbox_to_anchor=(-0.1, 1.0))
    return figure


@styled
def error_curves(rows: Sequence[Row]) -> Figure:
    """Draw errors by samples, and how often M is right (``results/theory_estimated.json``)."""
    sizes = np.array(sorted({row["samples"] for row in rows}))
    figure, axes = new_figure(1, 2, height=3.3, width_ratios=[2, 1])
    names = {
        "ratio_error": "log ratios (nats)",
        "B_error": "B (σ)",
        "valuation_error": "valuations (σ)",
    }
    for k, (key, name) in enumerate(names.items()):
        kept = [row for row in rows if row[key] is not None]
        values = {n: [row[key] for row in kept if row["samples"] == n] for n in sizes}
        logs = {size: np.log10(found) for size, found in values.items() if len(found) > 1}
        xs = list(logs)
        means, spread = np.array([(log.mean(), log.std()) for log in logs.values()]).T
        slope = np.polyfit(np.log10(xs), means, 1)[0]
        centre = 10**means
        bars = [centre - centre * 10**-spread, centre * 10**spread - centre]
        style = {**series_style(k), "label": f"{name}: slope {slope:.2f}"}
        axes[0, 0].errorbar(xs, centre, bars, capsize=2, **style)
    axes[0, 0].set(xscale="log", yscale="log", xlabel="samples per environment", ylabel="error")
    axes[0, 0].legend(fontsize=8.5)
    right = [np.mean([row["M_right"] for row in rows if row["samples"] == size]) for size in sizes]
    axes[0, 1].plot(sizes, right, marker="o", color=PALETTE[5])
    axes[0, 1].set(xscale="log", ylim=(-0.05, 1.05), xlabel="samples", title="share with M right")
    return figure


@styled
def finite_sample_errors(rows: Sequence[Row]) -> Figure:
    """Draw measured and predicted errors, and coverage (``results/theory_finite_samples.json``)."""
    sizes = np.array(sorted({row["samples"] for row in rows}))
    figure, axes = new_figure(1, 2, height=3.3, width_ratios=[3, 2])
    groups = [[row for row in rows if row["samples"] == size] for size in sizes]
    for k, key in enumerate(("B", "valuations")):
        measured = [np.sqrt(np.mean([np.square(row[key]) for row in group])) for group in groups]
        line = [np.sqrt(np.mean(np.square(group[0][f"{key}_sd"]))) for group in groups]
        predicted = series_style(k, "color", "linestyle")
        axes[0, 0].plot(sizes, line, label=f"{key}, predicted", **predicted)
        dots = series_style(k, "color", "marker") | {"linestyle": ""}
        axes[0, 0].plot(sizes, measured, label=f"{key}, measured", **dots)
        for size, group in zip(sizes, groups, strict=True):
            covered = np.mean([row[f"{key}_covered"] for row in group], axis=0)
            apart = size * (1.35 if k else 0.75) * np.geomspace(0.9, 1.1, len(covered))
            axes[0, 1].plot(apart, 100 * covered, **dots)
    axes[0, 0].set(xscale="log", yscale="log", xlabel="samples per data set", ylabel="error (σ)")
    axes[0, 0].legend(fontsize=8.5)
    axes[0, 1].axhspan(93, 97, color=FAINT, alpha=0.4)
    axes[0, 1].axhline(95, color=INK, linewidth=1)
    axes[0, 1].set(xscale="log", ylim=(88, 100), xlabel="samples per data set")
    axes[0, 1].set_ylabel("coverage of 95 % intervals (%)")
    return figure


@styled
def design_atlas() -> Figure:
    """Draw all small designs with the certificate of each atom, and the minimal designs as trees.

    Designs have general valuations. Minimal is one of fewest environments, and then conditionings,
    in which all atoms are identified on every support.
    """
    figure, [[ax]] = new_figure(height=9.2)
    found: dict[str, list[tuple[float, float]]] = {}
    general, y = np.random.default_rng(1).normal(size=(4, 3)), 0.0
    for n in (1, 2, 3):
        designs = [M for m in (1, 2, 3, 4) for M in _small_designs(n, m)]
        tiles = [(M, certify(M, M * general[: len(M), :n])) for M in designs]
        tiles.sort(key=lambda tile: (len(tile[0]), sorted(tile[1])))
        ax.text(-0.5, y + 0.1, f"n = {n}, m ≤ 4: {len(tiles)} designs", weight="bold")
        for k, (M, verdicts) in enumerate(tiles):
            for (e, i), used in np.ndenumerate(M):
                at = k % _TILES + 0.22 * i - 0.4, y - 1.15 * (k // _TILES) - 0.22 * e - 0.2
                found.setdefault(verdicts[i] if used else _UNUSED, []).append(at)
        y -= 1.15 * ((len(tiles) - 1) // _TILES) + 1.55
    ax.text(-0.5, y + 0.1, "Minimal designs: environments are dots, atoms lines", weight="bold")
    for k, M in enumerate(_trees(6)):
        far = squareform(shortest_path(M @ M.T, unweighted=True))
        x = np.cos(2.4 * np.arange(2.0 * len(M)))
        x = minimize(lambda x, far: ((pdist(x.reshape(-1, 2)) / far - 1) ** 2).sum(), x, far).x
        x = x.reshape(-1, 2)
        x = (x - x.mean(axis=0)) @ np.linalg.svd(x - x.mean(axis=0))[2].T / max(np.ptp(x), 2.0)
        x += np.array([k % 8 * 1.4 + 0.2, y - k // 8 * 1.2 - 0.6])
        ends = x[M.T.nonzero()[1].reshape(-1, 2)]
        ax.plot(*ends.transpose(2, 1, 0), color=PALETTE[0])
        ax.plot(*x.T, "o", color=INK, markersize=3.5)
    marks = (("always", PALETTE[0], "s", 26), ("full support", PALETTE[1], "^", 20))
    for name, colour, mark, size in (*marks, ("never", INK, "x", 20), (_UNUSED, FAINT, ".", 3)):
        ax.scatter(*np.transpose(found[name]), size, colour, marker=mark, label=name)
    ax.set(aspect="equal", title="Rows are environments, columns are atoms")
    ax.set_axis_off()
    share_legend(figure, 4, "above")
    return figure


def _small_designs(n: int, m: int) -> list[Array]:
    """All 0-1 matrices (m, n) without a zero row or column, up to the order of both."""
    rows = list(itertools.product((0, 1), repeat=n))[1:]
    every = [np.array(M) for M in itertools.combinations_with_replacement(rows, m)]
    orders = list(itertools.permutations(range(n)))
    first = {str(min(sorted(M[:, p].tolist()) for p in orders)): M for M in every}
    return [M for M in first.values() if M.any(axis=0).all()]


def _trees(most: int) -> list[Array]:
    """Incidence matrices of all trees with 1 to `most` < 10 edges, told apart by their spectra."""
    trees = [[np.zeros((1, 0))]]
    for k in range(most):
        grown = [np.pad(M, ((0, 1), (0, 1))) for M in trees[-1] for _ in range(k + 1)]
        for v, M in enumerate(grown):
            M[[v % (k + 1), k + 1], k] = 1
        kinds = {str(abs(np.linalg.eigvalsh(M @ M.T)).round(5)): M for M in grown}
        trees.append(list(kinds.values()))
    return [M for same in trees[1:] for M in same]


@styled
def model_pairs(pairs: Mapping[str, ModelPair], n: int, rng: np.random.Generator) -> Figure:
    """Show the same n observations in the concept coordinates of both models, for each pair.

    Parameters
    ----------
    pairs
        Pairs of models with two atoms or more, by the name that stands above their column.
    n
        Number of observations of each pair, drawn from its first model.
    rng
        Draws the observations.

    Returns
    -------
    Figure
        The first models above, the second below. Colours are the first model's valuation of
        atom 0, below whose median points are triangles.
    """
    figure, axes = new_figure(2, len(pairs), height=5.0)
    for (top, bottom), (name, pair) in zip(axes.T, pairs.items(), strict=True):
        X = pair.first.mixing(pair.first.draw(n, rng))
        first = pair.first.valuations(X)
        colour = first[:, 0]
        below = colour <= np.median(colour)
        limits = {"vmin": colour.min(), "vmax": colour.max(), "cmap": BLUES, "s": 7}
        for ax, values in ((top, first), (bottom, pair.second.valuations(X))):
            for chosen, marker in ((below, "^"), (~below, "o")):
                ax.scatter(*values[chosen].T[:2], c=colour[chosen], marker=marker, **limits)
        top.set(title=name)
        bottom.set(xlabel="atom 0")
    for ax, model in zip(axes[:, 0], ("first model", "second model"), strict=True):
        ax.set(ylabel=f"atom 1, {model}")
    return figure


@styled
def pair_p_values(rows: Sequence[Row]) -> Figure:
    """Draw the p-values of pairs of models, and of controls (``results/theory_pairs.json``)."""
    figure, [[ax]] = new_figure(height=0.9 + 0.42 * len(rows))
    tests = {
        "p_projection": "projections",
        "p_classifier": "classifier",
        "p_control": "projections, one valuation moved",
    }
    height = np.arange(len(rows))[::-1]
    for k, (key, name) in enumerate(tests.items()):
        values = [max(row[key], 1e-30) for row in rows]
        style = {**series_style(k), "linestyle": "", "label": name}
        ax.plot(values, height + 0.15 * (1 - k), **style)
    ax.axvline(0.01, color=INK, linestyle="--", linewidth=1)
    ax.set_yticks(height, [row["pair"] for row in rows])
    ax.set(xscale="log", xlim=(3e-31, 5), xlabel="p-value (at 1e-30: that or less)")
    ax.legend(loc="lower center", bbox_to_anchor=(0.3, 1.0), ncols=3, fontsize=8)
    return figure


def _valley(design: EnvironmentDesign, atoms: Array, weights: Sequence[float]) -> Array:
    """Points in two latent dimensions where a weighted sum is least (52), by its formula."""
    M, B = np.array(weights) @ design.M, np.array(weights) @ design.B
    used = M > 0
    b, rows = B[used] / M[used], atoms[used]
    if used.all():
        return np.linalg.solve(rows, b)[None].astype(np.float64)
    concept = Concept(rows, b)
    steps = np.linspace(-9.0, 9.0, 400, dtype=np.float64)[:, None]
    return np.asarray(concept.point + steps * concept.directions[0], dtype=np.float64)
