"""``conceptnb reproduce theory``: random instances, broken designs and pairs of models.

Each part has a file; Theorem 1 from samples is in `conceptnb.studies.theory_from_samples`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
from scipy.optimize import linear_sum_assignment

from conceptnb.common.validation import Array, as_generator
from conceptnb.core.concepts import random_atoms
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import random_mixture
from conceptnb.core.planner import random_design, tree_design
from conceptnb.core.scores import match_columns
from conceptnb.results.runner import Plan, Row, Sample, Task
from conceptnb.results.summarise import grouped, summary
from conceptnb.studies.theory_from_samples import SIZES, estimation_errors
from conceptnb.theory import counterexamples
from conceptnb.theory.counterexamples import ModelPair, ambiguity
from conceptnb.theory.legendre import canonical_atoms, recover_from_poles
from conceptnb.theory.nonlinear_map import Diffeomorphism, SmoothMixing
from conceptnb.theory.observables import Instance, Observables
from conceptnb.theory.standard_form import StandardForm, standard_form
from conceptnb.theory.theorem1 import (
    codimensions,
    constants,
    environment_matrix,
    evaluate_valuations,
    recover,
    valuation_matrix_by_residues,
)
from conceptnb.theory.two_sample import classifier_test, projection_test

VARIANCE = 0.01
"""Variance of q in the random instances."""
VIOLATIONS = ("constant valuation", "conditioned once", "nested", "always together", "too few")
"""Ways in which `violation` breaks a design."""
PAIRS: dict[str, Callable[[np.random.Generator], ModelPair]] = {
    "always together": counterexamples.always_together,
    "constant valuations": counterexamples.constant_valuations,
    "too few environments": counterexamples.too_few_environments,
    "non-injective mixing": counterexamples.non_injective,
    "reflection": counterexamples.reflection,
    "ambiguity": ambiguity,
    "ambiguity with the sign of (4)": partial(ambiguity, shift_sign=-1.0),
}
_SPREAD = (0.5, 2.0)
"""Factors by which the variances of `recover_by_poles` differ from the design's."""
_POINTS = 400  # points that its learner may choose starting points from
_CONTROL_SHIFT = 0.5  # how far the control moves a valuation, in σ
_NOT_RECOVERED: Row = {"M_right": False, "B_error": None, "correlation": 0.0}


def random_instance(
    design: EnvironmentDesign, d_z: int, d_x: int, rng: np.random.Generator
) -> Instance:
    """Draw f, base, atoms and a chart around a design of n <= d_z <= d_x atoms (Section 5)."""
    return Instance(
        mixing=SmoothMixing(d_z, d_x, rng),
        base=random_mixture(d_z, rng),
        atoms=random_atoms(design.n_atoms, d_z, rng),
        design=design,
        warp=Diffeomorphism(d_z, rng),
    )


def draw_instance(rng: np.random.Generator) -> Instance:
    """Draw an instance with n in 2..5, d_z in n..12, d_x in d_z..20, m in n+1..n+2."""
    n = int(as_generator(rng).integers(2, 6))
    d_z = int(rng.integers(n, 13))
    d_x = int(rng.integers(d_z, 21))
    design = random_design(n, int(rng.integers(n + 1, n + 3)), rng, VARIANCE)
    return random_instance(design, d_z, d_x, rng)


def recover_instance(
    instance: Instance, rng: np.random.Generator, *, mislabelled: bool = False
) -> Row:
    """Recover an instance from its observables by Theorem 1's proof, and compare.

    As a control each environment's log ratio is `mislabelled`, with the next one's number.
    ``M_right`` is up to the order of atoms, ``B_error`` the largest of B in standard form, in σ, or
    None where M is wrong, and ``correlation`` the smallest over atoms of recovered with true
    valuations on new base samples.
    """
    seen = _observables(instance, rng, mislabelled)
    return _compared(instance, seen, recover(seen), rng)


def recover_instances(seeds: Sequence[int], mislabelled: bool = False) -> list[Row]:
    """Draw the instance of each seed and recover it: rows of `recover_instance`."""
    rows = []
    for seed in seeds:
        rng = np.random.default_rng([5, seed])
        instance = draw_instance(rng)
        try:
            row = recover_instance(instance, rng, mislabelled=mislabelled) | {"failure": ""}
        except (RuntimeError, ValueError) as error:  # kept as a row: a failure is a result
            row = _sizes(instance) | _NOT_RECOVERED | {"failure": str(error)}
        rows.append({"seed": seed, **row})
    return rows


def recover_nested(seeds: Sequence[int], mislabelled: bool = False) -> list[Row]:
    """Recover nested designs of at most four atoms by residues, as rows of `recover_instance`."""
    rows = []
    for seed in seeds:
        rng = np.random.default_rng([13, seed])
        design, _, _ = violation("nested", rng)
        while design.n_atoms > 4:
            design, _, _ = violation("nested", rng)
        d_z = design.n_atoms + int(rng.integers(0, 4))
        instance = random_instance(design, d_z, d_z + 2, rng)
        seen = _observables(instance, rng, mislabelled)
        prepared = seen.prepared()
        M = environment_matrix(codimensions(prepared)[0])
        B = valuation_matrix_by_residues(prepared, M, rng)
        model = StandardForm(M, B, constants(prepared, M, B))
        rows.append({"seed": seed, **_compared(instance, seen, model, rng)})
    return rows


def recover_by_poles(seeds: Sequence[int], mislabelled: bool = False) -> list[Row]:
    """Draw an instance with unequal variances for each seed, and recover it from poles.

    M is right if all its columns have cosine above 1 - 1e-8 with the true ones; ``B_error`` is in
    units of each atom's smallest noise. The rest is as in `recover_instance`.
    """
    return [_recover_from_points(seed, mislabelled) for seed in seeds]


def violation(
    kind: str, rng: np.random.Generator
) -> tuple[EnvironmentDesign, set[int], set[tuple[int, int]]]:
    """Break a random satisfying design in one known way.

    "constant valuation": one atom has the same valuation everywhere. "conditioned once": a new atom
    occurs alone, once. "nested": a new atom occurs wherever an old one does, and once alone.
    "always together": a new atom occurs exactly where an old one does. "too few": n environments,
    one per atom. Returned with the design are the atoms for which Assumption 4, and the pairs for
    which Assumption 5 now fails.
    """
    n = int(as_generator(rng).integers(2, 5))
    start = random_design(n, n + int(rng.integers(1, 3)), rng, VARIANCE)
    subsets: list[list[int]] = [list(S) for S in start.subsets]
    values: list[list[float]] = [list(b) for b in start.valuations]
    atoms: set[int] = set()
    pairs: set[tuple[int, int]] = set()
    old, new = int(rng.integers(n)), n

    def draw() -> float:
        return float(rng.normal(scale=0.3))

    if kind == "constant valuation":
        b = draw()
        values = [
            [b if i == old else value for i, value in zip(S, row, strict=True)]
            for S, row in zip(subsets, values, strict=True)
        ]
        atoms = {old}
    elif kind == "conditioned once":
        subsets.append([new])
        values.append([draw()])
        atoms = {new}
    elif kind in ("nested", "always together"):
        for S, row in zip(subsets, values, strict=True):
            if old in S:
                S.append(new)
                row.append(draw())
        pairs = {(old, new)}
        if kind == "nested":
            subsets.append([new])
            values.append([draw()])
        else:
            atoms, pairs = {old, new}, {(old, new), (new, old)}
    elif kind == "too few":
        subsets, values = [[i] for i in range(n)], [[draw()] for _ in range(n)]
        atoms = set(range(n))
    else:
        raise ValueError(f"kind must be one of {VIOLATIONS}, got {kind!r}")
    order = rng.permutation(len(subsets))
    design = EnvironmentDesign([subsets[e] for e in order], [values[e] for e in order], VARIANCE)
    return design, atoms, pairs


def check_violations(seeds: Sequence[int], transposed: bool = False) -> list[Row]:
    """Break designs in each way and compare the checker's report with the truth.

    ``named``: Assumption 4 fails for exactly the atoms, and Assumption 5 for exactly the pairs,
    that were broken. As a control these pairs are read `transposed`.
    """
    rows = []
    for seed in seeds:
        rng = np.random.default_rng([11, seed])
        for kind in VIOLATIONS:
            design, atoms, pairs = violation(kind, rng)
            report = design.check()
            holds = report.assumption5.T if transposed else report.assumption5
            found = set(np.flatnonzero(~report.assumption4).tolist())
            found_pairs = {(int(i), int(j)) for i, j in np.argwhere(~holds)}
            m, n = design.M.shape
            named = found == atoms and found_pairs == pairs
            rows.append({"seed": seed, "kind": kind, "n": n, "m": m, "named": named})
    return rows


def lemma1_trials(seeds: Sequence[int], designs: int = 500, values: int = 2) -> list[Row]:
    """Draw random trees of environments and random valuations; count failures.

    Lemma 1 does not apply to the distribution of two equally likely `values`: designs of n atoms
    pass with probability :math:`2^{-n}`. (More than two values are a control.) A row counts the
    ``failures`` of Assumption 4, whose ``smallest_margin`` over designs and atoms is in σ.
    """
    rows = []
    for seed in seeds:
        rng = np.random.default_rng([17, seed])
        for distribution in ("normal", "two values"):
            levels = None if distribution == "normal" else np.linspace(-1.0, 1.0, values)
            for n in (2, 3, 5, 8):
                margins = np.array([_random_tree_margin(n, levels, rng) for _ in range(designs)])
                row = {"seed": seed, "distribution": distribution, "n": n, "designs": designs}
                failures = int((margins <= 1e-9).sum())
                rows.append(row | {"failures": failures, "smallest_margin": float(margins.min())})
    return rows


def trial_pair(name: str, seed: int, samples: int = 100_000, moved: float = 0.0) -> list[Row]:
    """Test by samples whether two models have equal data, and compare their concepts.

    Of the models `PAIRS[name]` one valuation can be `moved` by as many σ, a control. The p-values
    of the one row are corrected for the number of environments, ``p_control`` is that of
    projections after a valuation was moved, and ``agreement`` the smallest matched correlation of
    the two models' valuations, None where f has no inverse.
    """
    pair = PAIRS[name](np.random.default_rng([23, seed]))
    tested = pair.moved(moved) if moved else pair
    rng = np.random.default_rng([19, seed, list(PAIRS).index(name)])
    paired = pair.first.encoder is not None
    row = {
        "seed": seed,
        "pair": pair.name,
        "broken": pair.broken,
        "samples": samples,
        "p_projection": tested.p_value(samples, rng, projection_test),
        "p_classifier": tested.p_value(samples, rng, classifier_test),
        "p_control": pair.moved(_CONTROL_SHIFT).p_value(samples, rng, projection_test),
        "agreement": float(pair.agreement(20_000, rng).min()) if paired else None,
    }
    return [row]


def _recover_from_points(seed: int, mislabelled: bool) -> Row:
    rng = np.random.default_rng([21, seed])
    instance = draw_instance(rng)
    design = instance.design
    variances = design.variance * rng.uniform(*_SPREAD, size=design.M.shape)
    used = design.M > 0
    M = np.where(used, 1 / variances, 0.0)
    B = np.where(used, design.B * design.variance / variances, 0.0)

    def ratios(U: Array) -> Array:
        v = instance.warp.inverse(U) @ instance.atoms.T
        return np.roll(v**2 @ M.T / 2 - v @ B.T, int(mislabelled), axis=1)

    Z, wide = np.empty((0, instance.mixing.d_z)), 1
    while not len(Z):  # any open set will do: where each point of the base holds a minimum, farther
        Z = wide * instance.base.sample(4 * _POINTS, rng)
        Z = Z[~_holds_minimum(M, B, Z @ instance.atoms.T)][:_POINTS]
        wide *= 2
    seen = Observables(ratios, instance.warp(Z), len(M))
    row: Row = {"seed": seed, "n": M.shape[1], "m": len(M), "d_z": Z.shape[1]}
    try:
        found = recover_from_poles(seen, rng)
    except (RuntimeError, ValueError) as error:  # kept as a row: a failure is a result
        nothing = {"misfit": None, "attempts": 0, "M_right": False, "B_error": None}
        return row | nothing | {"correlation": 0.0, "failure": str(error)}
    fresh = instance.base.sample(200, rng)
    learned = evaluate_valuations(seen, found.model, instance.warp(fresh))
    return row | {
        "misfit": found.misfit,
        "attempts": found.attempts,
        **_errors(M, B, found.model.M, found.model.B),
        "correlation": float(np.abs(match_columns(fresh @ instance.atoms.T, learned)[2]).min()),
        "failure": "",
    }


def _holds_minimum(M: Array, B: Array, valuations: Array) -> np.ndarray:
    """Tell at which points some w of one sign annihilates D(z): a minimum of w·G."""
    slope = M * valuations[:, None] - B
    kernel = np.linalg.svd(slope)[0][:, :, M.shape[1] :]
    if kernel.shape[2] == 1:
        trial = kernel
    else:
        angles = np.linspace(0, np.pi, 181)
        trial = kernel[:, :, :1] * np.cos(angles) + kernel[:, :, 1:2] * np.sin(angles)
    one_sign = (trial > -1e-3).all(axis=1) | (trial < 1e-3).all(axis=1)
    return np.asarray(one_sign.any(axis=1))  # type: ignore[call-overload] # an array, not a scalar


def _errors(M: Array, B: Array, other_M: Array, other_B: Array) -> Row:
    M, B = canonical_atoms(M, B)[:2]
    if M.shape != other_M.shape:
        return {"M_right": False, "B_error": None}
    unit, other = (columns / np.linalg.norm(columns, axis=0) for columns in (M, other_M))
    cosines = np.abs(unit.T @ other)
    order = linear_sum_assignment(-cosines)[1]
    right = bool((cosines[np.arange(len(order)), order] > 1 - 1e-8).all())
    gap = np.abs(np.abs(other_B[:, order]) - np.abs(B)).max()
    return {"M_right": right, "B_error": float(gap) if right else None}


def _observables(instance: Instance, rng: np.random.Generator, mislabelled: bool) -> Observables:
    seen = instance.observables(instance.sample(500, rng))
    shift = int(mislabelled)
    return replace(seen, ratios=lambda U: np.roll(seen.ratios(U), shift, axis=1))


def _sizes(instance: Instance) -> Row:
    m, n = instance.design.M.shape
    return {"n": n, "m": m, "d_z": instance.mixing.d_z, "d_x": instance.mixing.d_x}


def _compared(
    instance: Instance, seen: Observables, model: StandardForm, rng: np.random.Generator
) -> Row:
    design = instance.design
    M, B, order = standard_form(design.M, design.B, design.variance)
    if model.M.shape != M.shape or (model.M != M).any():
        return _sizes(instance) | _NOT_RECOVERED
    X = instance.sample(200, rng)
    learned = evaluate_valuations(seen, model, instance.coordinates(X))
    columns = zip(instance.valuations(X)[:, order].T, learned.T, strict=True)
    return _sizes(instance) | {
        "M_right": True,
        "B_error": float(np.abs(model.B - B).max()),
        "correlation": float(min(abs(np.corrcoef(a, b)[0, 1]) for a, b in columns)),
    }


def _random_tree_margin(n: int, levels: Array | None, rng: np.random.Generator) -> float:
    """Smallest margin of Assumption 4 of a random tree with normal or discrete valuations."""
    edges = [(int(rng.integers(i + 1)), i + 1) for i in range(n)]
    size = (n, 2)
    valuations = rng.standard_normal(size) if levels is None else rng.choice(levels, size=size)
    # Equal valuations are what is being counted, so the tree is checked apart from them.
    shape = tree_design(edges, np.tile([0.0, 1.0], (n, 1)), 1.0)
    position = {
        (i, e): b for i, edge in enumerate(edges) for e, b in zip(edge, valuations[i], strict=True)
    }
    values = [[position[i, e] for i in S] for e, S in enumerate(shape.subsets)]
    report = EnvironmentDesign(shape.subsets, values, 1.0).check()
    return float(report.valuation_margins.min())


def summarise_recoveries(runs: list[Row]) -> list[Row]:
    """Return, for each number of atoms, how many instances were recovered, and how well."""
    return [
        {
            "n": n,
            "instances": len(group),
            "M_right": sum(run["M_right"] for run in group),
            "B_within_1e-4": sum(run["M_right"] and run["B_error"] < 1e-4 for run in group),
            "largest_B_error": max(run["B_error"] for run in group if run["M_right"]),
            "smallest_correlation": min(run["correlation"] for run in group),
        }
        for (n,), group in sorted(grouped(runs, ["n"]).items())
    ]


def _summarise_violations(runs: list[Row]) -> list[Row]:
    """Return, for each way to break a design, in how many the checker named the fault."""
    return [
        {"kind": kind, "designs": len(group), "named": sum(run["named"] for run in group)}
        for (kind,), group in grouped(runs, ["kind"]).items()
    ]


def _summarise_lemma1(runs: list[Row]) -> list[Row]:
    """Return designs, failures and the smallest margin over all seeds."""
    return [
        {
            "distribution": distribution,
            "n": n,
            "designs": sum(run["designs"] for run in group),
            "failures": sum(run["failures"] for run in group),
            "smallest_margin": min(run["smallest_margin"] for run in group),
        }
        for (distribution, n), group in grouped(runs, ["distribution", "n"]).items()
    ]


def _summarise_estimates(runs: list[Row]) -> list[Row]:
    """Return means and deviations of the errors over instances, by number of samples."""
    return summary(runs, ["samples"], ["ratio_error", "M_right", "B_error", "valuation_error"])


def _unchanged(runs: list[Row]) -> list[Row]:
    return [dict(run) for run in runs]


def tasks_in_chunks(compute: Callable[..., list[Row]], seeds: int, chunk: int) -> list[Task]:
    """Return tasks for the seeds below `seeds`, `chunk` of them in each."""
    parts = [list(range(s, min(s + chunk, seeds))) for s in range(0, seeds, chunk)]
    return [Task(compute, {"seeds": part}) for part in parts]


_INSTANCES, _NESTED = (
    tasks_in_chunks(recover_instances, 500, 10),
    tasks_in_chunks(recover_nested, 100, 20),
)
_BROKEN, _TREES = tasks_in_chunks(check_violations, 500, 50), tasks_in_chunks(lemma1_trials, 5, 1)
_TESTED = {name: Task(trial_pair, {"name": name, "seed": 0}) for name in PAIRS}
_ESTIMATES = [
    Task(estimation_errors, {"seeds": [seed], "samples": size})
    for seed in range(5)
    for size in SIZES
]
_SAMPLED_PAIR = _TESTED["too few environments"]
_SAMPLED_SIZE = _ESTIMATES[0].but(seeds=list(range(5)), samples=SIZES[1])
_MISLABELLED = "environments numbered wrongly"
_PLANS = {
    "estimated": Plan(
        "theory_estimated",
        _ESTIMATES,
        _summarise_estimates,
        range(5),
        {"what": "Theorem 1's proof with log ratios estimated from samples, linear mixing"},
        Sample(
            _SAMPLED_SIZE,
            ("ratio_error",),
            {
                "half of the data": _SAMPLED_SIZE.but(share=0.5),
                _MISLABELLED: _SAMPLED_SIZE.but(mislabelled=True),
            },
            by=("samples",),
        ),
    ),
    "instances": Plan(
        "theory_instances",
        _INSTANCES,
        summarise_recoveries,
        range(500),
        {"what": "Theorem 1's proof on random instances with exact log ratios"},
        Sample(
            _INSTANCES[1],
            ("M_right", "correlation"),
            {_MISLABELLED: _INSTANCES[1].but(mislabelled=True)},
        ),
    ),
    "lemma1": Plan(
        "theory_lemma1",
        _TREES,
        _summarise_lemma1,
        range(5),
        {"what": "random designs under Lemma 1's condition"},
        Sample(
            _TREES[0],
            ("failures", "smallest_margin"),
            {"three values instead of two": _TREES[0].but(values=3)},
            by=("distribution", "n"),
        ),
    ),
    "nested": Plan(
        "theory_nested",
        _NESTED,
        summarise_recoveries,
        range(100),
        {"what": "recovery of designs that violate Assumption 5 only"},
        Sample(
            _NESTED[0], ("M_right", "correlation"), {_MISLABELLED: _NESTED[0].but(mislabelled=True)}
        ),
    ),
    "pairs": Plan(
        "theory_pairs",
        list(_TESTED.values()),
        _unchanged,
        range(1),
        {"what": "two-sample tests of models with equal data and different concepts"},
        Sample(
            _SAMPLED_PAIR,
            ("p_projection", "agreement"),
            {
                "one valuation of the second model moved by half a σ": _SAMPLED_PAIR.but(
                    moved=_CONTROL_SHIFT
                )
            },
            by=("pair",),
        ),
    ),
    "violations": Plan(
        "theory_violations",
        _BROKEN,
        _summarise_violations,
        range(500),
        {"what": "does the checker name the fault of designs broken on purpose, and only that"},
        Sample(
            _BROKEN[0],
            ("named",),
            {"pairs of Assumption 5 read the wrong way round": _BROKEN[0].but(transposed=True)},
            by=("kind",),
        ),
    ),
}


def plans(args: SimpleNamespace) -> list[Plan]:
    """Return the tables of the parts that are asked for."""
    return [_PLANS[name] for name in args.part]
