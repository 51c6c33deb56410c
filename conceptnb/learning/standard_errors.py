"""Standard errors of valuations that were learned from a table, where the theory gives them."""

import numpy as np
import torch
from numpy.typing import ArrayLike

from conceptnb.core.information import LogOddsFit, as_one
from conceptnb.core.validation import Array, as_points
from conceptnb.learning.encoders import LinearEncoder
from conceptnb.learning.environment_tables import ConceptReport
from conceptnb.learning.heads import TiedHead

_MOST = 200
"""Parameters of directions, above which information is not computed: it grows with their square."""


def valuation_errors(report: ConceptReport, X: ArrayLike | None = None) -> Array:
    """Return the standard error of each learned valuation, shape (samples, n).

    Of rows X (samples, d_x), or those of the table, in the unit of the valuations, one noise width
    of Definition 2. By the theorem on errors of the fit (ours, chapter 88): from Fisher's
    information on log-odds (87) and the number of rows that were not held out. They are errors
    relative to the mean of the base, hold where the assumptions do, and take the number of
    components as given.

    Raises
    ------
    ValueError
        If the theory gives none: for a network, after shrinkage, which trades errors for bias, for
        two concepts that were always looked for together, and for too many columns.
    """
    learner, table = report.learner, report.table
    head, whitening = learner._fit.model.head, learner._fit.whitening
    targets = np.asarray(learner.targets, dtype=float)
    if learner.encoder != "linear" or report.shrinkage:
        raise ValueError("standard errors need a linear encoder without shrinkage")
    if len(np.unique(targets, axis=1).T) < targets.shape[1]:
        raise ValueError("two concepts are looked for in the same environments: no standard errors")
    assert isinstance(head, TiedHead)
    assert whitening is not None
    encoder = learner._fit.model.encoder
    assert isinstance(encoder, LinearEncoder)
    weight: Array = encoder.layer.weight[0].detach().double().numpy()
    if weight.size > _MOST:
        raise ValueError(
            f"{weight.size} parameters of directions are too many for standard errors, which take "
            f"{_MOST}: learn from fewer components"
        )

    def white(rows: Array) -> Array:
        mean, matrix = (a[0].double() for a in (whitening.mean, whitening.matrix))
        return ((torch.as_tensor(rows) - mean) @ matrix).numpy()

    gamma, alpha = (a[0].detach().double().numpy() for a in (head.gamma, head.alpha))
    samples = [white(table.X[table.environment == e]) for e in range(len(table.names))]
    found = LogOddsFit.at(samples, targets, as_one(weight.T, gamma.T, alpha[0], targets))
    points = white(table.X if X is None else as_points(X, "X", table.X.shape[1]))
    return found.valuations(points)[1] / np.sqrt(1 - learner.held_out)
