"""Every figure of the book on small data: labelled, inside its card, a case for each function."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy import stats

from conceptnb import plotting
from conceptnb.core.causal import LinearSCM
from conceptnb.core.concepts import Concept
from conceptnb.core.design import EnvironmentDesign, paper_design
from conceptnb.core.distributions import GaussianMixture
from conceptnb.core.mixing import LinearMixing
from conceptnb.plotting.interactive import InteractiveFigure

RNG = np.random.default_rng(0)
BASE = GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])
ATOM = Concept([[1.0, 0.4]], [0.3])
SPACE_ATOM = Concept([[1.0, 0.4, 0.2]], [0.3])
POINTS = RNG.normal(size=(60, 2))
SEEN = np.random.default_rng(1).normal(size=(60, 4))
ENVIRONMENT = np.repeat([0, 0, 1, 2], 15)
FACTORS = ("floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation")
SIZES = (10, 10, 10, 8, 4, 15)
PICTURES = RNG.integers(0, 255, size=(4, 8, 8, 3), dtype=np.uint8)
HUES = np.arange(60) % 10


def mean_and_std(*names):
    return {f"{name}_{part}": 0.8 if part == "mean" else 0.05 for name in names
            for part in ("mean", "std")}  # fmt: skip


def limit_rows(levels):
    scores = ("r2", "mcc", "supervised_r2", "supervised_mcc", "projection_r2", "projection_mcc")
    every = mean_and_std(*scores, "read_r2", "read_mcc", "chance_mcc", "excess_loss")
    return [{"level": level, "series": name, **every} for name in ("linear", "nonlinear")
            for level in levels]  # fmt: skip


def setting_rows(**more):
    sizes = [(2, 3, 4), (3, 4, 6), (4, 6, 10)]
    return [
        {"mixing": mixing, "n": n, "dz": dz, "dx": dx, **mean_and_std("r2", "mcc"), **more}
        for mixing in ("linear", "nonlinear")
        for n, dz, dx in sizes
    ]


def paper_rows():
    return [
        [row["mixing"], row["n"], row["dz"], row["dx"], (0.9, 0.1), (0.85, 0.1)]
        for row in setting_rows()
    ]


@dataclass
class Moments:
    """What a figure reads of a table of valuations."""

    means: np.ndarray
    stds: np.ndarray


def valuation_tables():
    return {
        name: Moments(np.linspace(1, -1, size)[:, None], np.full((size, 1), 0.1))
        for name, size in zip(FACTORS, SIZES, strict=True)
    }


def by_factor(values):
    return dict.fromkeys(FACTORS, values)


def reading_rows():
    return [
        {"table": "readings", "factor": factor, "reading": reading, "models": [model, "other"],
         "canonical": [0.9, 0.4]}
        for factor in FACTORS[:3]
        for reading in ("averaged", "in a plane")
        for model in ("vit", "vit-untrained")
    ]  # fmt: skip


def steering_rows():
    run = {"world": "alike", "model_seed": 0, "seed": 0, "fold": 0, "alpha": 0.0, "tested": "11"}
    point = {"alpha": 0.0, "kl": 0.0, "kl_asked": 0.0, "ce": 2.0, "right": "10"}
    curve = [{**point, "alpha": alpha, "kl_asked": alpha / 9} for alpha in (0.0, 1.0, 2.0)]
    return [{"method": name, "curve": curve, **run} for name in ("baseline", "mass mean shift")]


def environment_report():
    names = ["base", "red", "round"]
    return SimpleNamespace(
        table=SimpleNamespace(names=names, environment=ENVIRONMENT),
        valuations=POINTS,
        concepts=["redness", "roundness"],
        learner=SimpleNamespace(targets=np.eye(2)),
    )


def image_report():
    labels = np.array(["unripe", "ripe"])[np.arange(60) % 2]
    concept = SimpleNamespace(classes_=["unripe", "ripe"])
    found = SimpleNamespace(factor="ripeness", concept=concept, labels=labels,
                            valuations=POINTS[:, 0], eta2=0.5)  # fmt: skip
    return SimpleNamespace(factors={"ripeness": found, "size": found})


def question_report():
    scores = SimpleNamespace(mc1=np.array([1.0, 0.0, 1.0]))
    questions = [SimpleNamespace(category=name) for name in ("towns", "herbs", "towns")]
    return SimpleNamespace(questions=questions, scores={"no steering": scores, "a vector": scores})


def pair_report():
    layers = pd.DataFrame({"layer": [1, 2, 3], "agreement of held-out pairs": [0.6, 0.9, 1.0]})
    kl = {"strength": [0.0, 1.0, 2.0], "KL": [0.0, 0.1, 0.3], "KL, random direction": [0, 0.1, 0.2]}
    return SimpleNamespace(
        layers=layers, disturbance=pd.DataFrame(kl), vector=SimpleNamespace(layers=[2])
    )


def instance():
    """An instance of Theorem 1 in two dimensions, observed without distortion."""
    design = EnvironmentDesign([[0], [0, 1], [1]], [[0.1], [-0.15, 0.1], [-0.1]], 0.01)
    atoms = np.eye(2)

    def ratio(X):
        gaps = X @ atoms.T
        return 0.5 * (design.M * gaps[:, None] ** 2).sum(-1) - gaps @ design.B.T

    def same(X):
        return X

    same.inverse = same
    return SimpleNamespace(design=design, atoms=atoms, mixing=same, warp=same, log_ratio=ratio,
                           coordinates=same, sample=BASE.sample)  # fmt: skip


def model_pair():
    first = SimpleNamespace(mixing=lambda Z: Z, draw=BASE.sample, valuations=lambda X: X)
    return SimpleNamespace(first=first, second=SimpleNamespace(valuations=lambda X: -X))


def theory_rows():
    return [
        {"n": n, "d_z": d_z, "M_right": True, "B_error": 1e-6, "correlation": 0.999999}
        for n in (2, 3)
        for d_z in (3, 5)
    ]


def draw_rows():
    drawn = {"B": [0.1, -0.2], "B_sd": [0.15, 0.15], "B_covered": [True, False]}
    drawn |= {"valuations": [0.1], "valuations_sd": [0.1], "valuations_covered": [0.96]}
    return [{"samples": size, **drawn} for size in (1000, 10_000) for _ in range(3)]


def sample_rows():
    errors = {"ratio_error": 0.5, "B_error": 0.1, "valuation_error": 0.2}
    return [
        {"samples": size, "M_right": seed > 0, **{k: e / size**0.5 for k, e in errors.items()}}
        for size in (100, 1000, 10_000)
        for seed in range(3)
    ]


def pair_rows():
    chances = {"p_projection": 0.5, "p_classifier": 0.9, "p_control": 0.0}
    return [{"pair": name, **chances} for name in ("always together", "too few environments")]


CASES = {
    "cubes.concept_map": ([[1.0, 0.5], [-0.4, 1.0]],),
    "cubes.selection": (),
    "embedded.agreement_scatter": (
        by_factor(POINTS[:, 0]), by_factor(POINTS[:, 1]), ("one model", "another")
    ),
    "embedded.hue_line_and_plane": (POINTS[:, :1], POINTS, HUES),
    "embedded.hue_planes": ({"one": POINTS, "another": POINTS}, HUES),
    "embedded.hue_readings": (reading_rows(),),
    "embedded.image_grid": (PICTURES,),
    "embedded.mask_panels": (RNG.uniform(size=(64, 4)), 8, PICTURES[0]),
    "embedded.picture_to_valuation": (),
    "embedded.tables_2_to_4": (
        {"small-vit": valuation_tables()},
        {name: {"ViT": [(size - k, 0.2) for k in range(size)]}
         for name, size in zip(FACTORS, SIZES, strict=True)},
    ),
    "embedded.valuation_plane": (POINTS, np.arange(60) % 3, ["past", "present", "future"]),
    "embedded.valuation_violins": (
        {"one": POINTS[:, 0], "another": POINTS[:, 1]}, np.arange(60) % 4, "shape"
    ),
    "field.chart": (
        pd.DataFrame({"line of work": ["this paper", "probes"], "needs": [2, 1],
                      "promises": [2, 0]}),
    ),
    "fits.environment_points": (POINTS, ENVIRONMENT),
    "fits.loss_against_mcc": (
        {kind: {"best": ([0.1, 0.01], [0.8, 0.9])} for kind in ("linear", "nonlinear")},
    ),
    "fits.loss_curves": (1 + np.exp(-np.arange(20.0)) * [[1], [2]], [1.0, 1.0], ["one", "two"]),
    "fits.recovered": (POINTS, POINTS[:, ::-1]),
    "fits.story": (POINTS, RNG.normal(size=(60, 4)), -POINTS, ENVIRONMENT),
    "fits.bent_grid": (POINTS, SEEN, -POINTS, [(POINTS, SEEN, POINTS)] * 4),
    "identification.two_parabolas": (1.0, -1.5),
    "identification.acceptance_rates": (
        {"the paper's": paper_design(2)}, BASE, np.array([[1.0, 0.0], [0.6, 0.8]])
    ),
    "identification.argmin_sets": (instance(), np.random.default_rng(0)),
    "identification.design_atlas": (),
    "identification.design_matrices": (paper_design(3).check(),),
    "identification.error_curves": (sample_rows(),),
    "identification.exceptional_sets": (
        np.linspace(-3, 3, 5),
        np.linspace(-7, -4, 50).reshape(5, 5, 2),
        np.linspace(-1, 1, 25).reshape(5, 5),
    ),
    "identification.finite_sample_errors": (draw_rows(),),
    "identification.instance_errors": (theory_rows(),),
    "identification.pair_p_values": (pair_rows(),),
    "identification.spectra": (
        {frozenset({0}): np.array([1.0, 1e-9]), frozenset({0, 1}): np.array([1.0, 0.2])}, 1e-4
    ),
    "identification.model_pairs": (
        {"mirror": model_pair(), "same": model_pair()}, 60, np.random.default_rng(0)
    ),
    "measures.conditioning_against_intervening": (
        LinearSCM(np.array([[0.0, 0.0], [1.0, 0.0]]), [0.0, 0.0], [1.0, 0.5]), 1, 1.0, 0.1
    ),
    "measures.couplings": ([Concept([[1.0, 0.0]], [0.0]), Concept([[0.6, 0.8]], [0.0])], [0, 0.5]),
    "measures.environments_against_dimension": (4, 1000),
    "measures.three_measures": (BASE, ATOM, 0.1, np.random.default_rng(0)),
    "moving.show": ("folds", "A line and a V.", 0.1),
    "planes.acceptance_curves": (
        BASE, ATOM, [0.05, 0.5], [-1.0, 0.0, 1.0], np.random.default_rng(0)
    ),
    "planes.conditioned_points": (BASE, ATOM, [0.05, 0.5], np.random.default_rng(0)),
    "planes.level_sets": (ATOM, [-0.5, 0.5], POINTS, LinearMixing(np.array([[1, 1], [0, 1.0]]))),
    "planes.noise_trade_off": (BASE, ATOM, np.geomspace(1e-3, 1, 9)),
    "planes.turnable_planes": (
        SPACE_ATOM, [-0.5, 0.5], RNG.normal(size=(20, 3)), "two planes"
    ),
    "planes.valuation_densities": (BASE, ATOM, 0.1, {"drawn": POINTS}),
    "recovery.best_matches": (POINTS, {"PCA": POINTS, "ICA": -POINTS}),
    "recovery.cost_by_dimension": ([{"dz": d, "cpu_seconds": d, "peak_gb": 1.0} for d in (3, 6)],),
    "recovery.scores_by_level": (limit_rows([2, 4, 8]), "number of atoms"),
    "recovery.scores_by_method": (setting_rows(method="PCA") + setting_rows(method="ICA"),),
    "recovery.scores_against_time": (
        [
            {"scm": "linear", "n": 4, "layers": k, "method": m, "mcc": 0.9, "cpu_seconds": k * 9}
            for k in (2, 3)
            for m in ("ours", "supervised")
        ],
        {f"linear, 4, {k}": {"mcc": 0.8, "seconds": 9000} for k in (2, 3)},
    ),
    "recovery.tables_1_and_7": (paper_rows(), {"ours": setting_rows()}),
    "reports.choices_by_category": (question_report(),),
    "reports.disturbance_and_layers": (pair_report(),),
    "reports.valuations_by_environment": (environment_report(),),
    "reports.valuations_by_value": (image_report(),),
    "steered.frontiers": ({"alike": steering_rows()}, ["mass mean shift"]),
    "steered.state_components": (
        [{"corpus": w, "method": m, "truth": [0.5, 0.1], "speaker": [0.9, 0.1]}
         for w in ("alike", "by-category") for m in ("labels", "PCA")],
        ["truth", "speaker"],
    ),
    "steered.forest": (
        {"minus the unsteered model": pd.DataFrame(
            {"name": ["a vector", "a matrix"], "mean": [0.02, 0.01], "low": [0.01, -0.01],
             "high": [0.03, 0.03]})},
        "MC1 gained",
    ),
    "steered.vector_and_matrix": (),
    "steered.differences_along_kl": (
        pd.DataFrame(
            [(name, kl, 0.1, 0.0, 0.2) for name in ("an edit", "another") for kl in (0.1, 0.2)],
            columns=["measured", "kl", "mean", "low", "high"],
        ),
        "MC1: one minus the other",
        0.15,
    ),
    "steered.strength_curves": (
        {"a vector": {key: [0.1, 0.2] for key in ("alpha", "mc1", "kl", "ce")}},
    ),
    "summaries.concept_dots": (
        {"one": {"shape": 0.9, "scale": [0.4, 0.6]}, "another": {"shape": 0.5, "scale": 0.2}},
        "η²", [0.5, 0.25],
    ),
    "summaries.cosine_maps": ({"tense": np.eye(3), "number": -np.eye(3)}, ["food", "farm", "sea"]),
    "summaries.profiles": (
        [1, 2, 4], {"MCC": [0.1, 0.2, 0.3], "R²": RNG.uniform(size=(3, 5))}, "count"
    ),
    "summaries.value_grid": (np.eye(3), ["a", "b", "c"], ["x", "y", "z"]),
}  # fmt: skip
OPTIONS = {
    "moving.show": [
        (("conditioning", "Points and a line.", BASE, ATOM), {}),
        (("mixing", "Level lines.", [[1.0, 0.4], [-0.3, 1.0]]), {}),
        (("truth", "Two ellipses.", [4.0, 1.5]), {}),
        (("steering", "Curves.", steering_rows(), ["mass mean shift"], 0.3), {}),
    ],
    "fits.loss_against_mcc": [
        (({"Starts": {"Adam": ([0.1, 0.02], [0.5, 0.8]), "L-BFGS": (0.0, 0.9)}},), {"log": False})
    ],
    "recovery.scores_by_level": [
        ((limit_rows([0, 10, 100]), "samples"), {"log": True}),
        ((limit_rows(["Gaussian", "uniform"]), "conditioning distribution"), {}),
    ],
    "recovery.tables_1_and_7": [
        ((paper_rows(), {"ours": setting_rows(), "best": setting_rows()}),
         {"supervised": setting_rows(), "untrained": setting_rows()})
    ],
    "summaries.profiles": [
        (([1, 10, 100], {"probe": [0.9, 0.8, 0.7]}, "count"), {"log": True, "chance": 0.5})
    ],
    "summaries.concept_dots": [
        (({"one": {"a": [0.1, 0.2, 0.3], "b": [0.4, 0.5, 0.9]}, "two": {"a": 0.5, "b": 0.2}},
          "η²", [[0.5], [0.25]]), {"interval": True})
    ],
    "embedded.image_grid": [((PICTURES,), {"titles": ["a", "b", "c", "d"]})],
}  # fmt: skip
DRAWN = [pytest.param(name, arguments, {}, id=name) for name, arguments in CASES.items()]
DRAWN += [
    pytest.param(name, *case, id=f"{name}-{k}")
    for name, cases in OPTIONS.items()
    for k, case in enumerate(cases, start=2)
]


def figure_functions():
    """Names of all public functions of `conceptnb.plotting` that return a figure."""
    for module in pkgutil.iter_modules(plotting.__path__):
        found = importlib.import_module(f"{plotting.__name__}.{module.name}")
        for name, member in inspect.getmembers(found, inspect.isfunction):
            returns = inspect.signature(member).return_annotation
            own = member.__module__ == found.__name__ and not name.startswith("_")
            if own and getattr(returns, "__name__", returns) in ("Figure", "InteractiveFigure"):
                yield f"{module.name}.{name}"


def test_every_figure_has_a_case():
    assert sorted(figure_functions()) == sorted(CASES)


def test_every_module_of_figures_is_offered():
    modules = {module.name for module in pkgutil.iter_modules(plotting.__path__)}
    assert {*plotting.__all__} == modules - {"_style"}
    with pytest.raises(AttributeError, match="no attribute 'concepts'"):
        _ = plotting.concepts


def drawn(name, arguments, options):
    module, function = name.split(".")
    shown = getattr(getattr(plotting, module), function)(*arguments, **options)
    if isinstance(shown, InteractiveFigure):
        shown = shown.static
    assert isinstance(shown, Figure)
    FigureCanvasAgg(shown).draw()
    return shown


def told(ax, axis, figure):
    """Return whether a reader is told what an axis shows: a label or names at its ticks."""
    label = getattr(ax, f"get_{axis}label")() or getattr(figure, f"get_sup{axis}label")()
    ticks = [tick.get_text() for tick in getattr(ax, f"get_{axis}ticklabels")()]
    named = any(any(c.isalpha() for c in tick) for tick in ticks)
    return bool(label) or named or not any(ticks)


@pytest.mark.parametrize(("name", "arguments", "options"), DRAWN)
def test_a_figure_is_labelled_and_inside_its_card(name, arguments, options):
    figure = drawn(name, arguments, options)
    shown = [ax for ax in figure.axes if ax.axison]
    # Along a row or a column of panels one label is enough.
    assert not shown or any(told(ax, "x", figure) for ax in shown), "what x is, is not told"
    titles = all(ax.get_title(loc="left") or ax.get_title() for ax in shown)
    assert titles or any(told(ax, "y", figure) for ax in shown), "what y is, is not told"
    for ax in shown:
        words = (ax.get_title(loc="left"), ax.get_title(), ax.get_xlabel(), ax.get_ylabel())
        assert any(words) or told(ax, "x", figure), "a panel says nothing"
    drawn_to, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(drawn_to.x0, drawn_to.y0) > -0.03, "text leaves the card"
    assert drawn_to.x1 < width + 0.03, "text leaves the card on the right"
    assert drawn_to.y1 < height + 0.03, "text leaves the card above"


def test_a_bar_is_the_interval_that_scipy_gives():
    values = [0.1, 0.2, 0.6]
    figure = plotting.summaries.concept_dots({"m": {"c": values}}, "η²", interval=True)
    (bar,) = figure.axes[0].containers
    ends = bar.lines[2][0].get_segments()[0][:, 1]
    expected = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert np.allclose(ends, expected)


def test_a_series_may_end_before_the_last_level():
    figure = plotting.summaries.profiles(range(1, 5), {"long": [0.1] * 4, "short": [0.2] * 3}, "k")
    assert [len(line.get_xdata()) for line in figure.axes[0].lines] == [4, 3]


def test_a_mark_is_full_where_the_interval_excludes_zero():
    frame = pd.DataFrame({"name": ["one", "two", "three"], "mean": [0.2, -0.2, 0.1],
                          "low": [0.1, -0.3, -0.1], "high": [0.3, -0.1, 0.3]})  # fmt: skip
    [ax] = plotting.steered.forest({"differences": frame}, "MC1").axes
    marks = [line for line in ax.lines if line.get_marker() == "o"]
    full = [line.get_markerfacecolor() == line.get_markeredgecolor() for line in marks]
    assert full == [True, True, False]
