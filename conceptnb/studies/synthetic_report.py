"""Tables 1 and 7 as a chapter shows them: the paper's rows beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from conceptnb.core.problems import PAPER_SEEDS, Problem
from conceptnb.learning.cluster_whitening import ClusterWhitening, slope_disagreement
from conceptnb.learning.data import stack
from conceptnb.results import paper
from conceptnb.results.show import Table
from conceptnb.studies.summarise import grouped

if TYPE_CHECKING:
    from conceptnb.results.store import Result

__all__ = [
    "below_paper",
    "comparison",
    "outside_two_std",
    "paired_scores",
    "runs_above_oracle",
    "score_table",
    "slopes_of_the_truth",
]

_SETTING = ("mixing", "n", "dz", "dx")
_HIDDEN = 16
"""Width of the paper's nonlinear mixing: more latent dimensions do not pass injectively."""


def _paper_row(row: dict[str, Any]) -> list[Any]:
    """Return the paper's row of Table 1 or 7 for a computed one: sizes, R², MCC."""
    key = [row["mixing"], row["n"], row["dz"], row["dx"]]
    return next(r for r in paper.printed("table1_table7")["rows"] if r[:4] == key)


def comparison(**estimators: Sequence[dict[str, Any]]) -> Table:
    """Return R² and MCC of every row, the paper's beside those of our estimators.

    Parameters
    ----------
    **estimators : rows of ``conceptnb reproduce synthetic`` by the name of the estimator
        All with the same settings in the same order.
    """
    shown = []
    for rows in zip(*estimators.values(), strict=True):
        printed = _paper_row(rows[0])
        sizes = f"({printed[1]}, {printed[2]}, {printed[3]})"
        line: dict[str, Any] = {"mixing": printed[0], "(n, d_z, d_x)": sizes}
        for metric, column, label in (("r2", 4, "R²"), ("mcc", 5, "MCC")):
            line[f"{label} paper"] = printed[column]
            for name, row in zip(estimators, rows, strict=True):
                line[f"{label} {name}"] = [row[f"{metric}_mean"], row[f"{metric}_std"]]
        shown.append(line)
    return Table(shown, ".2f")


def outside_two_std(
    rows: Sequence[dict[str, Any]], solved: Sequence[dict[str, Any]] | None = None
) -> Table:
    """List the cells whose mean lies more than two of the paper's deviations from its mean.

    Parameters
    ----------
    rows : sequence of dict
        Of ``conceptnb reproduce synthetic``.
    solved : sequence of dict, optional
        The same rows by a better estimator on the same problems, to be shown beside them.

    Returns
    -------
    Table
        A row per cell: the paper's mean ± std, ours, and their difference in standard errors
        of a difference of two means over five seeds each.
    """
    lines: list[dict[str, Any]] = []
    cells = _cells(rows)
    others: Sequence[_Cell | None] = [None] * len(cells) if solved is None else _cells(solved)
    for cell, other in zip(cells, others, strict=True):
        if abs(cell.gap) <= 2 * cell.paper[1]:
            continue
        error = np.hypot(cell.ours[1], cell.paper[1]) / np.sqrt(len(PAPER_SEEDS) - 1)
        line: dict[str, Any] = {
            "cell": cell.name,
            "paper": list(cell.paper),
            "ours": list(cell.ours),
            "standard errors": cell.gap / error,
        }
        if other is not None:
            line["same problems, best"] = list(other.ours)
        lines.append(line)
    return Table(lines, ".2f")


def below_paper(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Name the cells whose mean lies below the paper's.

    Parameters
    ----------
    rows : sequence of dict
        Of ``conceptnb reproduce synthetic``.
    """
    return [
        f"{cell.name}: paper {cell.paper[0]:.2f} ± {cell.paper[1]:.2f}, ours {cell.ours[0]:.3f}"
        for cell in _cells(rows)
        if cell.gap < 0
    ]


@dataclass(frozen=True)
class _Cell:
    name: str
    paper: tuple[float, float]
    ours: tuple[float, float]

    @property
    def gap(self) -> float:
        """Our mean minus the paper's."""
        return self.ours[0] - self.paper[0]


def _cells(rows: Sequence[dict[str, Any]]) -> list[_Cell]:
    """Return mean and deviation of every cell, the paper's and ours."""
    return [
        _Cell(
            f"{row['mixing']} ({row['n']}, {row['dz']}, {row['dx']}) {label}",
            (_paper_row(row)[column][0], _paper_row(row)[column][1]),
            (row[f"{metric}_mean"], row[f"{metric}_std"]),
        )
        for row in rows
        for metric, column, label in (("r2", 4, "R²"), ("mcc", 5, "MCC"))
    ]


def runs_above_oracle(runs: Sequence[dict[str, Any]], mixing: str) -> tuple[np.ndarray, np.ndarray]:
    """Return how far every run ended above the oracle's held-out loss, and its MCC.

    Parameters
    ----------
    runs : sequence of dict
        Of a file of ``conceptnb reproduce synthetic``.
    mixing : {"linear", "nonlinear"}
        Which runs; of the nonlinear ones those whose mixing can be injective, for no
        function of x reaches the oracle's loss in the others.

    Returns
    -------
    excess : array of shape (runs,)
        In nats.
    mcc : array of shape (runs,)
    """
    chosen = [
        run
        for run in runs
        if run["mixing"] == mixing and (mixing == "linear" or run["dz"] <= _HIDDEN)
    ]
    return np.array([r["excess_loss"] for r in chosen]), np.array([r["mcc"] for r in chosen])


def paired_scores(first: Result, second: Result, metric: str) -> Table:
    """Compare two estimators problem by problem, on fresh base samples.

    Parameters
    ----------
    first, second : Result
        Files of ``conceptnb reproduce synthetic`` with the same seeds; rows that only one
        of them has are left out.
    metric : {"r2", "mcc"}

    Returns
    -------
    Table
        A row per setting: mean ± std of both, and of their difference the mean ± its
        standard error over seeds, and in how many problems it is positive.

    Raises
    ------
    ValueError
        If the files have other seeds.
    """
    if first.seeds != second.seeds:
        raise ValueError(f"the files have other seeds: {first.seeds} and {second.seeds}")
    one, other = (
        {
            setting: np.array([run[f"{metric}_fresh"] for run in runs])
            for setting, runs in grouped(result.runs, _SETTING).items()
        }
        for result in (first, second)
    )
    lines = []
    for setting in (s for s in one if s in other):
        gain = other[setting] - one[setting]
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        lines.append(
            {
                "(n, d_z, d_x)": str(setting[1:]),
                **{
                    result.rows[0]["estimator"]: [float(values.mean()), float(values.std())]
                    for result, values in ((first, one[setting]), (second, other[setting]))
                },
                "difference": [float(gain.mean()), float(error)],
                "higher in": f"{(gain > 0).sum()} of {len(gain)}",
            }
        )
    return Table(lines, ".3f")


def score_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return the fresh scores of :func:`~conceptnb.learning.evaluate` for display.

    Parameters
    ----------
    rows : sequence of dict

    Returns
    -------
    Table
        A row per problem, named by its seed, then their mean and population deviation.
    """
    scores = np.array([[row["r2"], row["mcc"]] for row in rows])
    names = [*(row["seed"] for row in rows), "mean", "std"]
    values = [*scores, scores.mean(axis=0), scores.std(axis=0)]
    return Table(
        [
            {"seed": str(name), "R²": float(r2), "MCC": float(mcc)}
            for name, (r2, mcc) in zip(names, values, strict=True)
        ],
        ".3f",
    )


def slopes_of_the_truth(problem: Problem, n_clusters: int = 3) -> dict[str, float]:
    """Ask how far the true valuations are from one slope in all clusters of the base.

    Parameters
    ----------
    problem : Problem
    n_clusters : int

    Returns
    -------
    dict
        `slope_disagreement` of the truth in ``whitened`` observations, and in the coordinates of
        ``clusters``: a check of the assumption of :data:`~conceptnb.learning.CLUSTER_WHITENED`,
        which needs the truth.
    """
    data = stack([problem.X], problem.environment)
    whitening = ClusterWhitening.fit_clusters(data, n_clusters, [problem.seed])
    base = data.x[:, data.environment == 0]
    cluster = whitening.responsibilities(base)[0].argmax(dim=1).numpy()
    truth = problem.valuations()[problem.environment == 0]
    columns = whitening(base)[0].double().numpy()
    parts = {"whitened": columns[:, whitening.rank :], "clusters": columns[:, : whitening.rank]}
    return {name: slope_disagreement(x, cluster, truth) for name, x in parts.items()}
