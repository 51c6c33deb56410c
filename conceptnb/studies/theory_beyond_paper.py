"""``conceptnb reproduce theory-beyond``: finite samples of a linear mixing, recovery from poles."""

from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace

import numpy as np

from conceptnb.common.validation import Array
from conceptnb.core.distributions import GaussianMixture
from conceptnb.core.problems import log_odds
from conceptnb.results.runner import Plan, Row, Sample, Task
from conceptnb.results.summarise import grouped
from conceptnb.studies.theory_from_samples import linear_instance
from conceptnb.studies.theory_tables import recover_by_poles, summarise_recoveries, tasks_in_chunks
from conceptnb.theory.finite_samples import fit_log_odds

_SIZES, _DRAWS = (1_000, 10_000, 100_000), 200
_MANY = 30_000  # draws of each data set that the prediction is computed from


@cache
def _setting() -> tuple[list[GaussianMixture], Array, Array, Array, Array]:
    """Return base and environments, the observed plane's coordinates, and the true parameters."""
    base, atoms, design, mixing = linear_instance(np.random.default_rng([7, 0]))
    parts = [base, *(base.condition(c, design.variance) for c in design.concepts(atoms))]
    chart = np.linalg.svd(mixing.weight, full_matrices=False)[0].T @ mixing.weight
    constants = log_odds(base, design, atoms, np.zeros((1, base.d_z)))[0]
    sigma = design.variance**0.5
    return parts, chart, atoms @ np.linalg.inv(chart) / sigma, design.B * sigma, constants


def _draw(samples: int, seed: Sequence[int]) -> list[Array]:
    parts, chart, *_ = _setting()
    rng = np.random.default_rng(seed)
    return [part.sample(samples, rng) @ chart.T for part in parts]


def _finite_samples(
    seeds: Sequence[int], samples: int, share: float = 1.0, mislabelled: bool = False
) -> list[Row]:
    """Fit a data set of each seed, compare errors with the prediction, and count covered truths.

    ``distance`` is the squared error in units of the predicted covariance, per parameter: one is
    expected. ``valuations`` are root mean square errors at 50 base points, in σ as those of ``B``.
    Controls fit a `share` of the samples only, or number environments wrongly (`mislabelled`).
    """
    atoms, B, constants = truth = _setting()[2:]
    M = (B != 0).astype(float)
    used = M > 0
    points = _draw(50, [30])[0]
    exact = fit_log_odds(_draw(_MANY, [29]), M, truth, fixed=True)
    z_true, z_unit = exact.valuations(points)
    shrunk = np.sqrt(_MANY / samples)
    predicted = {
        "B_sd": (exact.standard_errors[1][used] * shrunk).tolist(),
        "valuations_sd": (np.sqrt((z_unit**2).mean(axis=0)) * shrunk).tolist(),
    }
    rows: list[Row] = []
    for seed in seeds:
        data = [X[: round(share * samples)] for X in _draw(samples, [31, seed, samples])]
        if mislabelled:
            data = [data[0], *data[:0:-1]]
        fit = fit_log_odds(data, M)
        sign = np.sign((fit.atoms * atoms).sum(axis=1))
        z, z_sd = fit.valuations(points)
        z_gap, gap = z * sign - z_true, (fit.B * sign - B)[used]
        turned = (fit.atoms * sign[:, None] - atoms).ravel()
        error = np.concatenate([turned, gap, fit.constants - constants]) / shrunk
        row: Row = {
            "seed": seed,
            "samples": samples,
            "distance": float(error @ np.linalg.solve(exact.covariance, error) / len(error)),
            "B": gap.tolist(),
            "B_covered": (np.abs(gap) < 1.96 * fit.standard_errors[1][used]).tolist(),
            "valuations": np.sqrt((z_gap**2).mean(axis=0)).tolist(),
            "valuations_covered": (np.abs(z_gap) < 1.96 * z_sd).mean(axis=0).tolist(),
        }
        rows.append(row | predicted)
    return rows


def _summarise_draws(runs: list[Row]) -> list[Row]:
    """Return measured over predicted deviations, and the share of truths covered, by samples."""
    rows: list[Row] = []
    for (samples,), group in grouped(runs, ["samples"]).items():
        columns = {key: np.array([run[key] for run in group]) for key in group[0]}
        row: Row = {"samples": samples, "draws": len(group)}
        row["distance"] = round(float(columns["distance"].mean()), 4)
        for key in ("B", "valuations"):
            measured = np.sqrt((columns[key] ** 2).mean(axis=0))
            row[f"{key}_ratios"] = (measured / columns[f"{key}_sd"][0]).round(3).tolist()
            row[f"{key}_covered"] = columns[f"{key}_covered"].mean(axis=0).round(4).tolist()
        rows.append(row)
    return rows


def plans(args: SimpleNamespace) -> list[Plan]:
    """Return the results files that the options ask for."""
    draws = [
        Task(_finite_samples, {"seeds": list(range(s, s + 20)), "samples": size})
        for size in _SIZES
        for s in range(0, _DRAWS, 20)
    ]
    poles = tasks_in_chunks(recover_by_poles, args.instances, 10)
    wrong = "environments numbered wrongly"
    halved, other = draws[0].but(share=0.5), draws[0].but(mislabelled=True)
    sample = Sample(draws[0], ("distance",), {"half of the data": halved, wrong: other})
    what = {"what": "errors of the maximum likelihood fit of log-odds, and their prediction"}
    finite = Plan("theory_finite_samples", draws, _summarise_draws, range(_DRAWS), what, sample)
    sample = Sample(poles[0], ("M_right", "correlation"), {wrong: poles[0].but(mislabelled=True)})
    what = {"what": "recovery from poles: unequal variances, an open set without minima"}
    seeds = range(args.instances)
    return [finite, Plan("theory_poles", poles, summarise_recoveries, seeds, what, sample)]
