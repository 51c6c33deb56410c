"""Tables 1 and 7 as a chapter shows them: the paper's rows beside ours."""

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import factorial
from scipy.stats import sem, t

from conceptnb.core.problems import PAPER_SEEDS, Problem
from conceptnb.learning.cluster_whitening import ClusterWhitening, slope_disagreement
from conceptnb.learning.data import stack
from conceptnb.results import paper
from conceptnb.results.runner import Row
from conceptnb.results.show import Table
from conceptnb.results.summarise import grouped

if TYPE_CHECKING:
    from conceptnb.results.store import Result


_SETTING = ("mixing", "n", "dz", "dx")
_ROOT = np.sqrt(len(PAPER_SEEDS) - 1)  # a standard error is this much less than a deviation
_HIDDEN = 16
"""Width of the paper's nonlinear mixing: more latent dimensions do not pass injectively."""


def row_of_paper(row: Row) -> list[Any]:
    """Return the row of the paper's Tables 1 and 7 that has the setting of one of ours."""
    key = [row[column] for column in _SETTING]
    return next(r for r in paper.printed("table1_table7")["rows"] if r[:4] == key)


def comparison(**estimators: Sequence[Row]) -> Table:
    """Return R² and MCC of every row, the paper's beside those of our estimators by name.

    All estimators have the same settings in the same order.
    """
    shown = []
    for rows in zip(*estimators.values(), strict=True):
        printed = row_of_paper(rows[0])
        line = {"mixing": printed[0], "(n, d_z, d_x)": str(tuple(printed[1:4]))}
        for metric, column, label in (("r2", 4, "R²"), ("mcc", 5, "MCC")):
            line[f"{label} paper"] = printed[column]
            for name, row in zip(estimators, rows, strict=True):
                line[f"{label} {name}"] = [row[f"{metric}_mean"], row[f"{metric}_std"]]
        shown.append(line)
    return Table(shown, ".2f")


def five_of_twenty(runs: Sequence[Row]) -> Table:
    """Compare rows of the authors' protocol on twenty problems with the paper's, on five.

    Parameters
    ----------
    runs : sequence of rows
        Runs of the authors' protocol, with R² and MCC of the samples that were fitted, as in the
        paper.

    Returns
    -------
    Table
        By setting and metric: the paper's mean and deviation, those over all problems, and how
        probable it is that five problems drawn from these, with replacement, have a mean as far
        out on the paper's side as the paper's, up to its rounding.
    """
    shown = []
    for key, group in grouped(runs, _SETTING).items():
        printed = row_of_paper(group[0])
        line = {"mixing": key[0], "(n, d_z, d_x)": str(key[1:])}
        for metric, column, label in (("r2", 4, "R²"), ("mcc", 5, "MCC")):
            values = np.array([run[metric] for run in group])
            line[f"{label}, paper"] = printed[column]
            line[f"{label}, {len(values)} problems"] = [
                float(values.mean()),
                float(values.std(ddof=1)),
            ]
            line[f"{label}, probability"] = _probability_as_far(values, printed[column][0])
        shown.append(line)
    return Table(shown, ".3f")


def _probability_as_far(values: np.ndarray, printed: float, size: int = len(PAPER_SEEDS)) -> float:
    """Sum the probabilities of all draws of a few values whose mean is as far out as `printed`."""
    drawn = np.array(list(itertools.combinations_with_replacement(range(len(values)), size)))
    times = (drawn[:, :, None] == np.arange(len(values))).sum(axis=1)
    weights = factorial(size) / factorial(times).prod(axis=1) / float(len(values)) ** size
    side = np.sign(printed - values.mean())
    rounding = 0.005  # two digits are printed
    return float(weights[side * values[drawn].mean(axis=1) >= side * printed - rounding].sum())


def outside_two_std(rows: Sequence[Row], solved: Sequence[Row]) -> Table:
    """List the cells whose mean lies more than two of the paper's deviations from its mean.

    The difference is given in standard errors of a difference of two means over five seeds each;
    `solved` has the same rows by a better estimator on the same problems.
    """
    return Table(
        [
            {
                "cell": name,
                "paper": paper,
                "ours": ours,
                "standard errors": _ROOT * gap / np.hypot(ours[1], paper[1]),
                "same problems, best": best,
            }
            for (name, paper, ours, gap), (_, _, best, _) in zip(
                _cells(rows), _cells(solved), strict=True
            )
            if abs(gap) > 2 * paper[1]
        ],
        ".2f",
    )


def below_paper(rows: Sequence[Row]) -> list[str]:
    """Name the cells of ``conceptnb reproduce synthetic`` whose mean lies below the paper's."""
    return [
        f"{name}: paper {paper[0]:.2f} ± {paper[1]:.2f}, ours {ours[0]:.3f}"
        for name, paper, ours, gap in _cells(rows)
        if gap < 0
    ]


def _cells(rows: Sequence[Row]) -> Iterator[tuple[str, list[float], list[float], float]]:
    """Yield each cell's name, the paper's mean and deviation, ours, and how far our mean is off."""
    for row in rows:
        for metric, column, label in (("r2", 4, "R²"), ("mcc", 5, "MCC")):
            name = f"{row['mixing']} ({row['n']}, {row['dz']}, {row['dx']}) {label}"
            paper, ours = row_of_paper(row)[column], [row[f"{metric}_mean"], row[f"{metric}_std"]]
            yield name, paper, ours, ours[0] - paper[0]


def runs_above_oracle(runs: Sequence[Row], mixing: str) -> tuple[np.ndarray, np.ndarray]:
    """Return how far each run ended above the oracle's held-out loss, in nats, and its MCC.

    Of those with nonlinear `mixing` only the runs whose mixing can be injective count.
    """
    largest = np.inf if mixing == "linear" else _HIDDEN
    chosen = [run for run in runs if run["mixing"] == mixing and run["dz"] <= largest]
    return np.array([r["excess_loss"] for r in chosen]), np.array([r["mcc"] for r in chosen])


def paired_scores(first: "Result", second: "Result", metric: str) -> Table:
    """Compare two estimators problem by problem, on fresh base samples.

    A row per setting that both tables have: mean ± std of both, of their difference the mean ± its
    standard error over seeds, and in how many problems it is positive.
    """
    if first.seeds != second.seeds:
        raise ValueError(f"the files have other seeds: {first.seeds} and {second.seeds}")
    one, other = (grouped(result.runs, _SETTING) for result in (first, second))
    names, lines = [result.rows[0]["estimator"] for result in (first, second)], []
    for setting in (s for s in one if s in other):
        pair = np.array([[r[f"{metric}_fresh"] for r in runs[setting]] for runs in (one, other)])
        gain = pair[1] - pair[0]
        cells = np.column_stack([pair.mean(axis=1), pair.std(axis=1)]).tolist()
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        lines.append(
            {"(n, d_z, d_x)": str(setting[1:]), **dict(zip(names, cells, strict=True))}
            | {"difference": [float(gain.mean()), float(error)]}
            | {"higher in": f"{(gain > 0).sum()} of {len(gain)}"}
        )
    return Table(lines, ".3f")


def interval(values: Sequence[float]) -> str:
    """Write the mean of values over problems with its 95 % t interval."""
    mean, half = np.mean(values), t.ppf(0.975, len(values) - 1) * sem(values)
    return f"{mean:.3f} [{mean - half:.3f}, {mean + half:.3f}]"


def overall_gain(first: Sequence[Row], second: Sequence[Row], metric: str) -> str:
    """Write how much more `second` scores on fresh base samples, over the problems of both runs."""
    one, other = (
        {(*(run[c] for c in _SETTING), run["seed"]): run[f"{metric}_fresh"] for run in runs}
        for runs in (first, second)
    )
    return interval([other[problem] - one[problem] for problem in one if problem in other])


def intervals_beside_paper(**estimators: Sequence[Row]) -> Table:
    """Return MCC and R² of all nonlinear rows: the paper's means, and intervals of our runs."""
    runs = {name: grouped(own, _SETTING) for name, own in estimators.items()}
    lines = []
    for *setting, r2, mcc in paper.printed("table1_table7")["rows"]:
        if setting[0] == "linear":
            continue
        for score, printed, column in (("MCC", mcc, "mcc"), ("R²", r2, "r2")):
            line = {"(n, d_z, d_x)": str(tuple(setting[1:])), "score": score}
            line["paper"] = f"{printed[0]:.2f}"
            line |= {
                name: interval([run[column] for run in own[tuple(setting)]])
                for name, own in runs.items()
            }
            lines.append(line)
    return Table(lines)


def score_table(rows: Sequence[Row]) -> Table:
    """Return the fresh scores of `evaluate`, one row per seed, their mean and deviation."""
    scores = np.array([[row["r2"], row["mcc"]] for row in rows])
    names = [*(str(row["seed"]) for row in rows), "mean", "std"]
    values = [*scores.tolist(), scores.mean(axis=0).tolist(), scores.std(axis=0).tolist()]
    lines = zip(names, values, strict=True)
    return Table([{"seed": name, "R²": r2, "MCC": mcc} for name, (r2, mcc) in lines], ".3f")


def slopes_of_the_truth(problem: Problem) -> dict[str, float]:
    """Return how far the true valuations are from one slope in all three clusters of the base.

    That is `slope_disagreement` of the truth in ``whitened`` observations and in the coordinates of
    ``clusters``: a check, by the truth, of what `CLUSTER_WHITENED` assumes.
    """
    data = stack([problem.X], problem.environment)
    whitening = ClusterWhitening.fit_clusters(data, 3, [problem.seed])
    base = data.x[:, data.environment == 0]
    cluster = whitening.responsibilities(base)[0].argmax(dim=1).numpy()
    truth = problem.valuations()[problem.environment == 0]
    columns = whitening(base)[0].double().numpy()
    parts = {"whitened": columns[:, whitening.rank :], "clusters": columns[:, : whitening.rank]}
    return {name: slope_disagreement(x, cluster, truth) for name, x in parts.items()}
