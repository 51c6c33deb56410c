"""``conceptnb reproduce theory-users``: impure environments, unknown noise, prices of designs."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np

from conceptnb.common.validation import Array
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.planner import design_price, tree_design
from conceptnb.core.scores import match_columns
from conceptnb.learning.linear import fit_linear
from conceptnb.learning.noise import GAUSSIAN, fit_noise
from conceptnb.learning.purity import fit_impure
from conceptnb.results.runner import Plan, Row, Sample, Task
from conceptnb.results.summarise import grouped
from conceptnb.theory.misreading import draw_data_sets

_SIGMA = 0.1**0.5
_POINTS = 200  # of the base, at which valuations are compared
_ATOMS = (2, 3, 4)
_ROWS = {5_000: 36, 20_000: 6}
"""Rows of each environment, and the number of tables."""
_NOISE_ROWS, _NOISE_TABLES = 5_000, 6
_PRICED = range(2, 10)

_POTENTIALS: dict[str, Callable[[Array], Array]] = {
    "Gaussian": lambda u: u**2 / 2,
    "logistic": lambda u: 2 * np.log(np.cosh(u / np.sqrt(2))),
    "Student-3": lambda u: 2 * np.log1p(u**2 / 4),
}
"""-ln q, up to its value at zero, for noise whose potential has curvature one there."""


def impure_tables(seeds: Sequence[int], n: int, rows: int, mislabelled: bool = False) -> list[Row]:
    """Fit tables of a path whose environments hold a share .0 to .7 of base rows.

    ``share`` has the errors of the fitted base shares and ``share_errors`` their standard errors,
    both by environment; valuations are compared at base points, in σ; ``ignored`` are the root mean
    square errors and the length of valuations, relative to the truth, of the fit that takes all
    rows as looked for. The control numbers environments wrongly.
    """
    out: list[Row] = []
    for seed in seeds:
        rng = np.random.default_rng([38, seed, n, rows])
        shares = rng.uniform(0.0, 0.7, size=n + 1)
        ends = np.column_stack([rng.uniform(-0.45, -0.15, n), rng.uniform(0.15, 0.45, n)])
        atoms = np.linalg.qr(rng.normal(size=(n, n)))[0]
        design = tree_design("path", ends, _SIGMA**2)
        data = draw_data_sets(design, atoms, rows, rng)
        base = draw_data_sets(design, atoms, rows, rng)[0]
        for X, share in zip(data[1:], shares, strict=True):
            taken = rng.random(rows) < share
            X[taken] = base[taken]
        if mislabelled:
            data = [data[0], *data[:0:-1]]
        X, labels = np.vstack(data), np.repeat(np.arange(n + 2), rows)
        ignored = fit_linear(X, labels, design.M > 0, rng)[0]
        fit = fit_impure(X, labels, design.M > 0, ignored, rng)
        true = data[0][:_POINTS] @ atoms.T / _SIGMA
        gaps, lengths, order = _compare(data[0][:_POINTS] @ fit.W, true)
        plain, short, _ = _compare(data[0][:_POINTS] @ ignored.W, true)
        errors = fit.valuation_errors(data[0][:_POINTS])[:, order]
        gap = 1 - fit.purity - shares
        out.append(
            {"seed": seed, "n": n, "rows": rows}
            | {"share": gap.tolist(), "share_errors": fit.purity_errors.tolist()}
            | {"covered": float((np.abs(gaps) < 1.96 * errors).mean())}
            | {"error": float(np.sqrt((gaps**2).mean())), "length": float(lengths.mean())}
            | {"ignored": float(np.sqrt((plain**2).mean())), "ignored_length": float(short.mean())}
        )
    return out


def _compare(learned: Array, true: Array) -> tuple[Array, Array, np.ndarray]:
    """Return errors of valuations in σ, lengths relative to the truth, order of the learned."""
    _, order, r = match_columns(true, learned)
    matched = learned[:, order] * np.sign(r)
    return matched - true, matched.std(axis=0) / true.std(axis=0), order


def _summarise_impure(runs: list[Row]) -> list[Row]:
    out: list[Row] = []
    for (n, rows), group in grouped(runs, ["n", "rows"]).items():
        gaps = np.array([run["share"] for run in group])
        errors = np.array([run["share_errors"] for run in group])
        mean = {key: float(np.mean([run[key] for run in group])) for key in _MEANS}
        out.append(
            {"n": n, "rows": rows, "tables": len(group)}
            | {"bias": float(gaps.mean()), "spread": float(gaps.std())}
            | {"share_covered": float((np.abs(gaps) < 1.96 * errors).mean())}
            | mean
        )
    return out


_MEANS = ("covered", "error", "length", "ignored", "ignored_length")


def noisy_tables(seeds: Sequence[int], noise: str, n: int, mislabelled: bool = False) -> list[Row]:
    """Fit tables of a path with known noise of another kind: its potential learned, or Gaussian.

    Errors are root mean squares in σ (one over the root of the potential's curvature at zero),
    once with the learned unit and once in the best common one, which the data leave open.
    """
    potential, out = _POTENTIALS[noise], []
    for seed in seeds:
        rng = np.random.default_rng([39, seed, n])
        ends = np.column_stack([rng.uniform(-0.6, -0.2, n), rng.uniform(0.2, 0.6, n)])
        design = tree_design("path", ends, _SIGMA**2)
        data = [rng.normal(size=(_NOISE_ROWS, n))]
        for subset, b in zip(design.subsets, design.valuations, strict=True):
            data.append(_selected(list(subset), np.array(b), potential, n, rng))
        if mislabelled:
            data = [data[0], *data[:0:-1]]
        X, labels = np.vstack(data), np.repeat(np.arange(n + 2), _NOISE_ROWS)
        start = fit_linear(X, labels, design.M > 0, rng)[0]
        row: Row = {"seed": seed, "noise": noise, "n": n}
        true = data[0][:2000] / _SIGMA
        for name, known in (("learned", None), ("Gaussian", GAUSSIAN)):
            fit = fit_noise(X, labels, design.M > 0, start, potential=known)
            gaps, lengths, _ = _compare(data[0][:2000] @ fit.W, true)
            unit = float(np.median(lengths))
            row |= {
                f"{name} error": float(np.sqrt((gaps**2).mean())),
                f"{name} error, free unit": float(
                    np.sqrt((((gaps + true) / unit - true) ** 2).mean())
                ),
                f"{name} unit": unit,
                f"{name} correlation": float(_correlations(gaps + true, true).mean()),
                f"{name} loss": fit.loss,
            }
        out.append(row)
    return out


def _correlations(learned: Array, true: Array) -> Array:
    both = zip(learned.T, true.T, strict=True)
    return np.array([np.corrcoef(a, b)[0, 1] for a, b in both])


def _selected(
    subset: list[int],
    b: Array,
    potential: Callable[[Array], Array],
    n: int,
    rng: np.random.Generator,
) -> Array:
    """Draw one environment by Algorithm 1 with noise of any kind."""
    kept, count = [], 0
    while count < _NOISE_ROWS:
        Z = rng.normal(size=(8 * _NOISE_ROWS, n))
        rate = np.exp(-potential((Z[:, subset] - b) / _SIGMA).sum(axis=1))
        kept.append(Z[rng.random(len(Z)) < rate])
        count += len(kept[-1])
    return np.vstack(kept)[:_NOISE_ROWS]


def _summarise_noise(runs: list[Row]) -> list[Row]:
    out: list[Row] = []
    for (noise, n), group in grouped(runs, ["noise", "n"]).items():
        means = {
            key: float(np.mean([run[key] for run in group]))
            for key in group[0]
            if key.startswith(("learned", "Gaussian"))
        }
        out.append({"noise": noise, "n": n, "tables": len(group)} | means)
    return out


def few_environments(n: int) -> EnvironmentDesign:
    """Return the design of fewest environments for linear mixings: columns are binary numbers."""
    k = int(np.ceil(np.log2(n + 1)))
    subsets = [[i for i in range(n) if (i + 1) >> e & 1] for e in range(k)]
    values = [[0.3 if (i + e) % 2 else -0.3 for i in subset] for e, subset in enumerate(subsets)]
    return EnvironmentDesign(subsets, values, _SIGMA**2)


def price_of(n: int, seeds: Sequence[int], variance: float = _SIGMA**2) -> list[Row]:
    """Return prices of a path, a star and the design of fewest environments, of n atoms."""
    ends, out = np.tile([-0.3, 0.3], (n, 1)), []
    for seed in seeds:
        designs = {
            "path": tree_design("path", ends, variance),
            "star": tree_design("star", ends, variance),
            "fewest": few_environments(n),
        }
        for name, design in designs.items():
            k = design.n_environments
            price = design_price(design, rows=2000, seed=seed)
            row: Row = {"seed": seed, "n": n, "design": name, "environments": k, "price": price}
            out.append(row | {"ratio": price * k / n**2})
    return out


def _summarise_prices(runs: list[Row]) -> list[Row]:
    out: list[Row] = []
    for (n, name, k), group in grouped(runs, ["n", "design", "environments"]).items():
        price, ratio = (float(np.mean([run[key] for run in group])) for key in ("price", "ratio"))
        row: Row = {"n": n, "design": name, "environments": k}
        out.append(row | {"price": round(price, 2), "ratio": round(ratio, 2)})
    return out


def plans(_args: SimpleNamespace) -> list[Plan]:
    """Return the three results files."""
    wrong = "environments numbered wrongly"
    impure = [
        Task(impure_tables, {"seeds": list(range(s, s + 6)), "n": n, "rows": rows})
        for rows, tables in _ROWS.items()
        for n in _ATOMS
        for s in range(0, tables, 6)
    ]
    noisy = [
        Task(noisy_tables, {"seeds": list(range(_NOISE_TABLES)), "noise": noise, "n": n})
        for noise in _POTENTIALS
        for n in (2, 3)
    ]
    priced = [Task(price_of, {"n": n, "seeds": [0]}) for n in _PRICED]
    first, second = impure[0].but(seeds=[0, 1]), noisy[0].but(seeds=[0, 1])
    samples = [
        Sample(first, ("error", "length"), {wrong: first.but(mislabelled=True)}),
        Sample(second, ("learned error",), {wrong: second.but(mislabelled=True)}),
        Sample(priced[0], ("price",), {"another noise": priced[0].but(variance=0.3)}),
    ]
    what = [
        {"what": "environments of which an unknown share comes from the base"},
        {"what": "noise of three kinds, its potential learned or taken as Gaussian"},
        {"what": "total number of samples times the squared error of a valuation, in σ²"},
    ]
    return [
        Plan(
            "theory_purity",
            impure,
            _summarise_impure,
            range(max(_ROWS.values())),
            what[0],
            samples[0],
        ),
        Plan("theory_noise", noisy, _summarise_noise, range(_NOISE_TABLES), what[1], samples[1]),
        Plan("theory_price", priced, _summarise_prices, [0], what[2], samples[2]),
    ]
