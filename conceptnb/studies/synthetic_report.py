"""Tables 1 and 7 as a chapter shows them: the paper's rows beside ours, and what a fit costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from conceptnb.core.problems import PAPER_SEEDS, Problem, Setting, draw_problem
from conceptnb.learning.cluster_whitening import ClusterWhitening, slope_disagreement
from conceptnb.learning.data import stack
from conceptnb.learning.encoders import Encoder, LinearEncoder, MLPEncoder
from conceptnb.learning.fitting import ConceptFit
from conceptnb.learning.heads import TargetHead
from conceptnb.learning.model import ConceptModel
from conceptnb.learning.training import Trainer, TrainingConfig
from conceptnb.results import paper
from conceptnb.results.show import Table
from conceptnb.studies.one_at_a_time import train_one_at_a_time
from conceptnb.studies.synthetic_tables import SCORED_SAMPLES, score

if TYPE_CHECKING:
    import pandas as pd

    from conceptnb.results.store import Result

__all__ = [
    "below_paper",
    "compare_speed",
    "comparison",
    "excess_losses",
    "outside_two_std",
    "paired_scores",
    "paper_row",
    "score_on_fresh",
    "slopes_of_the_truth",
]


HIDDEN = 16
"""Width of the paper's nonlinear mixing: more latent dimensions do not pass injectively."""


def paper_row(row: dict[str, Any]) -> list[Any]:
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
        printed = paper_row(rows[0])
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
        A row a cell: the paper's mean ± std, ours, and their difference in standard errors
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
        """Our mean less the paper's."""
        return self.ours[0] - self.paper[0]


def _cells(rows: Sequence[dict[str, Any]]) -> list[_Cell]:
    """Return mean and deviation of every cell, the paper's and ours."""
    return [
        _Cell(
            f"{row['mixing']} ({row['n']}, {row['dz']}, {row['dx']}) {label}",
            (paper_row(row)[column][0], paper_row(row)[column][1]),
            (row[f"{metric}_mean"], row[f"{metric}_std"]),
        )
        for row in rows
        for metric, column, label in (("r2", 4, "R²"), ("mcc", 5, "MCC"))
    ]


def excess_losses(
    rows: Sequence[dict[str, Any]], by_seed: Sequence[dict[str, Any]], mixing: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return how far every run ended above the oracle's held-out loss, and its MCC.

    Parameters
    ----------
    rows, by_seed : sequences of dict
        Of a file of ``conceptnb reproduce synthetic``, and of its notes.
    mixing : {"linear", "nonlinear"}
        Which rows; of the nonlinear ones those whose mixing can be injective, for no
        function of x reaches the oracle's loss in the others.

    Returns
    -------
    excess : array of shape (runs,)
        In nats.
    mcc : array of shape (runs,)
    """
    chosen = [
        seeds
        for row, seeds in zip(rows, by_seed, strict=True)
        if row["mixing"] == mixing and (mixing == "linear" or row["dz"] <= HIDDEN)
    ]
    gaps = [np.subtract(seeds["held_out_loss"], seeds["oracle_loss"]) for seeds in chosen]
    return np.concatenate(gaps), np.concatenate([seeds["mcc"] for seeds in chosen])


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
        A row a setting: mean ± std of both, and of their difference the mean ± its
        standard error over seeds, and in how many problems it is positive.
    """
    if first.seeds != second.seeds:
        raise ValueError(f"the files have other seeds: {first.seeds} and {second.seeds}")
    key = f"{metric}_fresh"
    scores = [
        {
            (row["mixing"], row["n"], row["dz"], row["dx"]): np.array(seeds[key])
            for row, seeds in zip(result.rows, result.notes["by_seed"], strict=True)
        }
        for result in (first, second)
    ]
    lines = []
    for setting in (s for s in scores[0] if s in scores[1]):
        one, other = scores[0][setting], scores[1][setting]
        gain = other - one
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        lines.append(
            {
                "(n, d_z, d_x)": str(setting[1:]),
                **{
                    result.rows[0]["estimator"]: [float(values.mean()), float(values.std())]
                    for result, values in ((first, one), (second, other))
                },
                "difference": [float(gain.mean()), float(error)],
                "higher in": f"{(gain > 0).sum()} of {len(gain)}",
            }
        )
    return Table(lines, ".3f")


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
        ``clusters``: a check of the assumption of
        :func:`~conceptnb.learning.fit_clustered`, which needs the truth.
    """
    data = stack([problem.X], problem.environment)
    whitening = ClusterWhitening.fit_clusters(data, n_clusters, [problem.seed])
    base = data.x[:, data.environment == 0]
    cluster = whitening.responsibilities(base)[0].argmax(dim=1).numpy()
    truth = problem.valuations()[problem.environment == 0]
    columns = whitening(base)[0].double().numpy()
    parts = {"whitened": columns[:, whitening.rank :], "clusters": columns[:, : whitening.rank]}
    return {name: slope_disagreement(x, cluster, truth) for name, x in parts.items()}


def compare_speed(
    setting: Setting, seeds: Sequence[int] = PAPER_SEEDS, epochs: int = 2
) -> dict[str, float]:
    """Time the faithful protocol stacked, and one problem of it in an ordinary loop.

    Parameters
    ----------
    setting : Setting
    seeds : sequence of int
        Problems of the stack; the first is the one that is trained alone.
    epochs : int
        Of the protocol's 100; every epoch does the same work.

    Returns
    -------
    dict
        CPU seconds that 100 epochs of a problem take ``alone`` and ``stacked``, by
        proportion, and their ``ratio``.
    """
    problems = [draw_problem(setting, seed) for seed in seeds]
    config = replace(TrainingConfig(), epochs=epochs)
    train, held = stack([p.X for p in problems], problems[0].environment).split()
    targets = torch.as_tensor(problems[0].design.M > 0)
    linear = setting.mixing == "linear"
    kind: type[Encoder] = LinearEncoder if linear else MLPEncoder
    encoder = kind(setting.d_x, setting.n, seeds)  # type: ignore[call-arg]
    trainer = Trainer(ConceptModel(encoder, TargetHead(len(seeds), targets)), train, held, config)
    started = time.process_time()
    trainer.run(progress=False)
    stacked = (time.process_time() - started) / len(seeds) * 100 / epochs
    started = time.process_time()
    train_one_at_a_time(
        train.problems([0]),
        held.problems([0]),
        targets,
        linear=linear,
        seed=seeds[0],
        config=config,
    )
    alone = (time.process_time() - started) * 100 / epochs
    return {"alone": alone, "stacked": stacked, "ratio": alone / stacked}


def score_on_fresh(problems: Sequence[Problem], fit: ConceptFit) -> pd.DataFrame:
    """Score a fit on base samples that it has not seen, for display.

    Parameters
    ----------
    problems : sequence of D Problem
    fit : ConceptFit
        Of the same problems, in the same order.

    Returns
    -------
    pandas.DataFrame
        Columns ``R²`` and ``MCC`` (Section 6); a row a problem, named by its seed, then
        their mean and their standard deviation.
    """
    import pandas as pd  # noqa: PLC0415 - needed for display alone

    fresh = [problem.fresh(SCORED_SAMPLES) for problem in problems]
    learned = fit.valuations([p.mixing(Z) for p, Z in zip(problems, fresh, strict=True)])
    pairs = [score(*triple) for triple in zip(problems, learned, fresh, strict=True)]
    scores = np.array([*pairs, np.mean(pairs, axis=0), np.std(pairs, axis=0)])
    rows = pd.Index([*(problem.seed for problem in problems), "mean", "std"], name="seed")
    return pd.DataFrame(scores, rows, ["R²", "MCC"]).round(3)
