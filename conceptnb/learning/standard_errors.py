"""Standard errors of valuations that were learned from a table, where the theory gives them."""

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike

from conceptnb.common.validation import Array, as_points
from conceptnb.core.information import LogOddsFit, as_one
from conceptnb.learning.encoders import LinearEncoder
from conceptnb.learning.environment_tables import ConceptReport
from conceptnb.learning.heads import TiedHead

_ROWS_EACH = 20
"""Rows per parameter, below which a fit errs by more than its information says."""
_MOST = 20_000
"""Rows that information is computed from; it is then that of all, in proportion."""


def valuation_errors(report: ConceptReport, X: ArrayLike | None = None) -> Array:
    """Return the standard error of each learned valuation, shape (samples, n).

    Of rows X (samples, d_x), or those of the table, in the unit of the valuations, one noise width
    of Definition 2. By the theorem on errors of the fit (ours, research note N1): from Fisher's
    information on log-odds (87) and the number of rows that were not held out. They are errors
    relative to the mean of the base, for many rows and where the assumptions hold, and take the
    number of components as given.

    Raises
    ------
    ValueError
        If the theory gives none: for a network, after shrinkage, which trades errors for bias, for
        two concepts that were always looked for together, for an environment that does not overlap
        with the base, and for fewer than 20 rows per parameter.
    """
    learner, table = report.learner, report.table
    head, whitening = learner._fit.model.head, learner._fit.whitening
    targets = np.asarray(learner.targets, dtype=float)
    if learner.encoder != "linear" or report.shrinkage:
        raise ValueError(
            "standard errors need a linear encoder without shrinkage: fit with encoder='linear' "
            "and shrinkage=[0]"
        )
    if len(np.unique(targets, axis=1).T) < targets.shape[1]:
        raise ValueError("two concepts are looked for in the same environments: no standard errors")
    assert isinstance(head, TiedHead)
    assert whitening is not None
    encoder = learner._fit.model.encoder
    assert isinstance(encoder, LinearEncoder)
    weight: Array = encoder.layer.weight[0].detach().double().numpy()
    parameters, rows = int(weight.size + targets.sum() + len(targets)), len(table.X)
    if rows < _ROWS_EACH * parameters:
        raise ValueError(
            f"{rows} rows are too few for standard errors of {parameters} parameters, which need "
            f"{_ROWS_EACH} rows each: learn from fewer components"
        )
    if apart := [name for name, area in report.separation.items() if area > 0.999]:
        raise ValueError(f"{apart} do not overlap with the base: no standard errors")
    if isinstance(X, pd.DataFrame) and table.columns:
        X = X[table.columns]

    def white(rows: Array) -> Array:
        mean, matrix = (a[0].double() for a in (whitening.mean, whitening.matrix))
        return ((torch.as_tensor(learner._inputs(rows)) - mean) @ matrix).numpy()

    gamma, alpha = (a[0].detach().double().numpy() for a in (head.gamma, head.alpha))
    some = np.random.default_rng(0).permutation(rows)[:_MOST]
    parts = [white(table.X[some[table.environment[some] == e]]) for e in range(len(table.names))]
    found = LogOddsFit.at(parts, targets, as_one(weight.T, gamma.T, alpha[0], targets))
    points = white(table.X if X is None else as_points(X, "X", table.X.shape[1]))
    return found.valuations(points)[1] * np.sqrt(len(some) / rows / (1 - learner.held_out))
