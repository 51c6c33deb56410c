"""``conceptnb reproduce cauca``: the problems of Causal Component Analysis, drawn here.

Liang et al. (2023) set one node of a causal model per environment and mix all nodes by a network.
The distributions are those of their published generators; the draws and the code are ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from conceptnb.common.validation import Array
from conceptnb.core import scores as metrics
from conceptnb.learning.data import stack
from conceptnb.learning.fitting import fit
from conceptnb.learning.interventions import InterventionLearner
from conceptnb.learning.recipes import BEST, INTERVENTIONAL
from conceptnb.results.runner import Plan, Row, Sample, Task
from conceptnb.results.summarise import summary
from conceptnb.studies.scored_fits import consecutive_seeds

__all__ = ["plans"]

_FIRST = 100  # seed of the first model; the learner was chosen on models 0 to 3
_STARTS = 3
_EPOCHS, _SHORT = 18, 2
_TEST = 4000  # fresh samples per environment, scored together as theirs are
_PAPERS_SAMPLES = 5000  # per environment, for the recipes of Table 1
_SETTINGS = (("linear", 4, 3), ("linear", 4, 2), ("location-scale", 4, 3))
_BY = ("scm", "n", "layers", "method")
_PUBLISHED = {
    "linear, 4, 3": {"mcc": 0.830, "median": 0.852, "seconds": 9392, "runs": 30},
    "linear, 4, 2": {"mcc": 0.897, "median": 0.955, "seconds": 11084, "runs": 38},
    "location-scale, 4, 3": {"mcc": 0.833, "median": 0.841, "seconds": 37182, "runs": 30},
}


def _bend(x: Array) -> Array:
    return np.tanh(x) + 0.1 * x


class _Model:
    """One random graph with its mechanisms and mixing; samples of (latents, observations)."""

    def __init__(self, scm: str, n: int, layers: int, seed: int) -> None:
        self.rng, self.n, self.scm = np.random.default_rng(seed), n, scm
        self.graph = np.zeros((n, n), dtype=bool)
        while not self.graph.any():
            self.graph = np.triu(self.rng.random((n, n)) < 0.5, k=1)
        self.effects = self.graph * self.rng.uniform(-1, 1, (n, n))
        causes = [np.flatnonzero(column) for column in self.graph.T]
        self.networks = [(self._network(len(c)), self._network(len(c))) for c in causes]
        self.mixing = [self._matrix() for _ in range(layers)]

    def _network(self, n: int) -> Callable[[Array], Array]:
        matrices = [self.rng.standard_normal((n, k)) for k in (n, n, 1)]

        def apply(x: Array) -> Array:
            for matrix in matrices:
                x = _bend(x @ matrix)
            return x[:, 0]

        return apply

    def _matrix(self) -> Array:
        matrix = self.rng.random((self.n, self.n))
        while abs(np.linalg.det(matrix)) < 0.1:
            matrix = self.rng.standard_normal((self.n, self.n))
        return matrix

    def sample(self, samples: int) -> tuple[Array, Array, np.ndarray]:
        """Return latents, observations and environments, the same number from each."""
        Z = np.concatenate([self._latents(samples, node) for node in (None, *range(self.n))])
        X = Z
        for matrix in self.mixing:
            X = _bend(X @ matrix)
        return Z, X, np.repeat(np.arange(self.n + 1), samples)

    def _latents(self, samples: int, target: int | None) -> Array:
        """Draw from the model, or after an intervention: noise of mean 2 and no parents."""
        Z = self.rng.standard_normal((samples, self.n))
        for node in range(self.n):
            parents = Z[:, self.graph[:, node]]
            if node == target:
                Z[:, node] += 2
            elif self.scm == "linear":
                Z[:, node] += Z @ np.where(self.graph[:, node], self.effects[:, node], 0)
            elif parents.size:
                location, scale = self.networks[node]
                Z[:, node] = location(parents) + scale(parents) * Z[:, node]
        return Z


def _run(
    setting: list[Any],
    seed: int,
    method: str,
    start: int = 0,
    samples: int = 100_000,
    wrong: str | None = None,
) -> list[Row]:
    """Draw one model, learn its latents by one method, and score them on fresh samples."""
    scm, n, layers = setting
    model = _Model(scm, n, layers, seed)
    Z, X, environment = model.sample(samples)
    truth, fresh, _ = model.sample(_TEST)
    if wrong == "labels":
        environment = np.random.default_rng(seed).permutation(environment)
    started = time.process_time()
    if method.startswith("concept") or method == "quadratic heads":
        few = np.concatenate(
            [np.flatnonzero(environment == e)[:_PAPERS_SAMPLES] for e in range(n + 1)]
        )
        data = stack([X[few]], environment[few], targets=np.eye(n))
        recipe = BEST if method.startswith("concept") else INTERVENTIONAL
        learned = fit(data, recipe, seeds=[start]).transform([fresh])[0]
    else:
        epochs = 1 if wrong == "half" else _SHORT if method.endswith("short") else _EPOCHS
        learner = InterventionLearner(model.graph, epochs=epochs, seed=start)
        learner.fit(X, environment, Z if method == "supervised" else None)
        learned = learner.transform(fresh)
    return [
        {
            "scm": scm,
            "n": n,
            "layers": layers,
            "method": method,
            "seed": seed,
            "start": start,
            "edges": int(model.graph.sum()),
            "mcc": round(metrics.mcc(truth, learned), 4),
            "mcc_spearman": round(metrics.mcc(truth, learned, method="spearman"), 4),
            "cpu_seconds": round(time.process_time() - started, 2),
        }
    ]


def _rows(runs: list[Row]) -> list[Row]:
    """Return a row per setting and method."""
    rows = summary(runs, _BY, ("mcc", "mcc_spearman", "cpu_seconds"))
    for row in rows:
        values = [run["mcc"] for run in runs if all(run[k] == row[k] for k in _BY)]
        row |= {"mcc_median": round(float(np.median(values)), 4), "runs": len(values)}
    return rows


def plans(args: SimpleNamespace) -> list[Plan]:
    """Return the results files that the options ask for."""
    seeds = consecutive_seeds(args.seeds, args.first_seed)
    first = _SETTINGS[0]
    cases = [(first, "interventions", start) for start in range(_STARTS)]
    cases += [(s, "interventions", 0) for s in _SETTINGS[1:]]
    cases += [(s, "supervised", 0) for s in (first, _SETTINGS[2])]
    cases += [(first, m, 0) for m in ("interventions, short", "quadratic heads", "concepts")]
    common = {"samples": args.samples}
    tasks = [
        Task(_run, {"setting": list(s), "seed": seed, "method": m, "start": start, **common})
        for s, m, start in cases
        for seed in seeds
    ]
    task = next(t for t in tasks if t.arguments["method"].endswith("short"))
    return [
        Plan(
            file="cauca",
            tasks=tasks,
            summarise=_rows,
            seeds=seeds,
            notes={
                "samples": args.samples,
                "epochs": {"interventions": _EPOCHS, "interventions, short": _SHORT},
                "samples_of_recipes": _PAPERS_SAMPLES,
                "data": "drawn here as Causal Component Analysis (Liang et al., 2023) describes",
                "scores": f"on {_TEST} fresh samples per environment",
                "published": _PUBLISHED,
                "chosen": "the learner was chosen on models 0 to 3; models from 100 on were then "
                "run once",
            },
            sample=Sample(
                task,
                ("mcc",),
                {"labels shuffled": task.but(wrong="labels"), "half": task.but(wrong="half")},
            ),
        )
    ]
