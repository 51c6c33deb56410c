"""Every method on the same problems, with the same budget and the same metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from conceptnb.core import scores as metrics
from conceptnb.core.disentanglement import cross_fitted_mcc, cross_fitted_r2
from conceptnb.core.problems import Problem, Setting, draw_problem
from conceptnb.core.validation import Array
from conceptnb.learning.baselines.baseline import Baseline
from conceptnb.learning.baselines.classical import (
    IndependentComponents,
    PrincipalComponents,
    RandomProjection,
)
from conceptnb.learning.baselines.interventional import Interventional
from conceptnb.learning.baselines.ivae import IVAE
from conceptnb.learning.baselines.networks import EnvironmentClassifier, Supervised
from conceptnb.learning.best import fit_best
from conceptnb.results.show import Table

__all__ = ["METHODS", "Concepts", "compare", "comparison_table", "make_method", "mcc_within"]

SCORES = ("r2", "mcc", "mcc_within", "r2_cross", "mcc_cross")
SCORED_SAMPLES = 5000
"""Fresh base samples that the metrics are taken on."""


class Concepts(Baseline):
    """The book's best contrastive estimator, behind the interface of the baselines.

    Parameters
    ----------
    targets : bool array of shape (m, n)
        Which atoms each environment conditions on.
    linear : bool
        Whether the encoder is linear.
    seed : int
    """

    def __init__(self, targets: ArrayLike, *, linear: bool, seed: int = 0) -> None:
        self.targets = np.asarray(targets)
        self.linear = linear
        self.seed = seed

    def _fit(self, X: Array, environment: np.ndarray, valuations: Array | None) -> None:
        seeds = [self.seed + i for i in range(len(X))]
        self.result = fit_best(
            list(X), environment, self.targets, linear=self.linear, seeds=seeds, progress=False
        )

    def _transform(self, X: Array) -> Array:
        return self.result.valuations(list(X))


def _encoder(problem: Problem) -> Literal["linear", "mlp"]:
    return "linear" if problem.setting.mixing == "linear" else "mlp"


def _targets(problem: Problem) -> np.ndarray:
    return problem.design.M > 0


_FACTORIES: dict[str, Callable[[Problem, int], Baseline]] = {
    "random projection": lambda p, seed: RandomProjection(p.setting.n, seed=seed),
    "random, 32 codes": lambda p, seed: RandomProjection(32, seed=seed),
    "PCA": lambda p, seed: PrincipalComponents(p.setting.d_z, seed=seed),
    "FastICA": lambda p, seed: IndependentComponents(p.setting.d_z, seed=seed),
    "classifier": lambda p, seed: EnvironmentClassifier(seed=seed),
    "iVAE": lambda p, seed: IVAE(p.setting.d_z, seed=seed),
    "interventional": lambda p, seed: Interventional(_targets(p), encoder=_encoder(p), seed=seed),
    "concepts": lambda p, seed: Concepts(_targets(p), linear=_encoder(p) == "linear", seed=seed),
    "supervised": lambda p, seed: Supervised(_encoder(p), seed=seed),
}
METHODS = tuple(_FACTORIES)
"""From floor to ceiling; "concepts" is the book's best estimator."""


def make_method(name: str, problem: Problem, seed: int = 0) -> Baseline:
    """Return an unfitted method, told what it may know of a problem.

    All know n and d_z. Methods that look for the latents (PCA, FastICA, iVAE) get d_z
    codes; the classifier has 32, and so has a second random projection, its floor.
    Contrastive methods and the ceiling know whether the mixing is linear, and the
    contrastive ones which atom each environment conditions on, as in the paper's protocol.

    Parameters
    ----------
    name : str
        One of :data:`METHODS`.
    problem : Problem
        Read for its sizes and targets only.
    seed : int

    Raises
    ------
    ValueError
        If there is no such method.
    """
    if name not in _FACTORIES:
        raise ValueError(f"name must be one of {', '.join(METHODS)}, got {name!r}")
    return _FACTORIES[name](problem, seed)


def mcc_within(problem: Problem, Z: Array, codes: Array) -> float:
    """MCC in each component of the base by itself, averaged over components.

    Parameters
    ----------
    problem : Problem
    Z : array of shape (samples, d_z)
        Base samples; each counts for the component that most likely drew it.
    codes : array of shape (samples, k)
        Of the same samples.
    """
    component = problem.base.component_log_density(Z).argmax(axis=1)
    truth = problem.valuations(Z)
    found, counts = np.unique(component, return_counts=True)
    inside = [metrics.mcc(truth[component == k], codes[component == k]) for k in found[counts > 1]]
    return float(np.mean(inside))


def compare(
    setting: Setting, method: str, seeds: Sequence[int], *, samples: int = 5000
) -> dict[str, Any]:
    """Fit one method to a setting's problems and score its codes on fresh base samples.

    MCC matches codes to concepts by the best assignment, and R² fits an affine map, on the
    samples that they score. A method with k > n codes has more choice in both. The
    cross-fitted scores choose on one half and score on the other. MCC within components is
    taken in each component of the base by itself and averaged: a code that only tells
    components apart has none.

    Parameters
    ----------
    setting : Setting
        With the authors' environments.
    method : str
        One of :data:`METHODS`.
    seeds : sequence of int
        One problem each.
    samples : int
        Samples of each concept conditional environment.

    Returns
    -------
    dict
        Plain JSON values: means and population standard deviations over seeds, the scores
        of every seed, and CPU seconds of the fit a problem.
    """
    problems = [draw_problem(setting, seed, samples=samples) for seed in seeds]
    X = np.stack([p.X for p in problems])
    truth = np.stack([p.valuations() for p in problems])
    learner = make_method(method, problems[0], seed=int(seeds[0]))
    started = time.process_time()
    learner.fit(X, problems[0].environment, truth if learner.needs_valuations else None)
    cpu_seconds = (time.process_time() - started) / len(problems)
    fresh = [p.fresh(SCORED_SAMPLES) for p in problems]
    codes = learner.transform(np.stack([p.mixing(Z) for p, Z in zip(problems, fresh, strict=True)]))
    scores: dict[str, list[float]] = {name: [] for name in SCORES}
    for problem, Z, code in zip(problems, fresh, codes, strict=True):
        v = problem.valuations(Z)
        halves = np.random.default_rng((problem.seed, 2))
        scores["r2"].append(metrics.r2(v, code))
        scores["mcc"].append(metrics.mcc(v, code))
        scores["r2_cross"].append(cross_fitted_r2(v, code, halves))
        scores["mcc_cross"].append(cross_fitted_mcc(v, code, halves))
        scores["mcc_within"].append(mcc_within(problem, Z, code))
    row: dict[str, Any] = {
        "method": method,
        "mixing": setting.mixing,
        "n": setting.n,
        "dz": setting.d_z,
        "dx": setting.d_x,
        "codes": codes.shape[2],
    }
    for name, values in scores.items():
        row[f"{name}_mean"] = round(float(np.mean(values)), 4)
        row[f"{name}_std"] = round(float(np.std(values)), 4)
    row["cpu_seconds"] = round(cpu_seconds, 3)
    row |= {name: np.round(values, 4).tolist() for name, values in scores.items()}
    return row


def comparison_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return the scores of rows of :func:`compare` for display, mean ± std over seeds.

    Parameters
    ----------
    rows : sequence of dict
    """
    columns = {
        "R²": "r2",
        "MCC": "mcc",
        "within components": "mcc_within",
        "R² cross-fitted": "r2_cross",
        "MCC cross-fitted": "mcc_cross",
    }
    return Table(
        [
            {
                "mixing": row["mixing"],
                "(n, d_z, d_x)": f"({row['n']}, {row['dz']}, {row['dx']})",
                "method": row["method"],
                "codes": row["codes"],
            }
            | {label: [row[f"{key}_mean"], row[f"{key}_std"]] for label, key in columns.items()}
            for row in rows
        ],
        ".2f",
    )
