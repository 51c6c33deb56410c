"""How well learned valuations match the true ones, problem by problem (Section 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch

from conceptnb.common.validation import Array
from conceptnb.core import scores
from conceptnb.core.problems import Problem
from conceptnb.learning.data import stack
from conceptnb.learning.fitting import ConceptFit
from conceptnb.learning.losses import contrastive_loss

SCORED_SAMPLES = 5000
"""Base samples that scores are taken on, as in the authors' code."""

Measure = Callable[[Problem, Array, Array], Mapping[str, Any]]
"""Maps a problem, latents of its fresh samples and their representations to scores by name."""


class Learner(Protocol):
    """What can be scored: a ConceptFit, a baseline, or anything else with a ``transform``."""

    def transform(self, X: Array) -> Array:
        """Map observations (D, samples, d_x) to representations (D, samples, k)."""


def evaluate(
    problems: Sequence[Problem],
    learner: Learner,
    *,
    measure: Measure | None = None,
    observations: Sequence[Array] | None = None,
) -> list[dict[str, Any]]:
    """Score what was learned from problems against their truth, one row per problem.

    Parameters
    ----------
    problems : sequence of D Problem
    learner : Learner
        Fitted to the same problems, in the same order.
    measure : Measure, optional
        What to compute beside R² and MCC.
    observations : sequence of D arrays, optional
        Of the fresh samples ``problem.fresh(SCORED_SAMPLES)``, if not ``problem.mixing`` of them.

    Returns
    -------
    list of dict
        ``seed``; ``r2`` and ``mcc`` on 5000 fresh base samples, and what `measure` returns;
        ``r2_seen`` and ``mcc_seen`` on the first 5000 base samples of the fit, as in the paper.
        Of a ConceptFit also ``held_out_loss``, ``oracle_loss`` of the true log-odds on the same
        rows, and their difference ``excess_loss``, in nats per row.
    """
    fresh = [problem.fresh(SCORED_SAMPLES) for problem in problems]
    base = min(int((problems[0].environment == 0).sum()), SCORED_SAMPLES)
    if observations is None:
        observations = [p.mixing(Z) for p, Z in zip(problems, fresh, strict=True)]
    codes = learner.transform(np.stack(observations))
    codes_seen = learner.transform(np.stack([problem.X[:base] for problem in problems]))
    losses = _losses(problems, learner) if isinstance(learner, ConceptFit) else [{}] * len(fresh)
    rows: list[dict[str, Any]] = []
    for p, Z, code, seen, own in zip(problems, fresh, codes, codes_seen, losses, strict=True):
        truth, truth_seen = p.valuations(Z), p.valuations(p.Z[:base])
        row = {"seed": p.seed, "r2": scores.r2(truth, code), "mcc": scores.mcc(truth, code)}
        row |= {"r2_seen": scores.r2(truth_seen, seen), "mcc_seen": scores.mcc(truth_seen, seen)}
        more = measure(p, Z, code) if measure else {}
        rows.append(row | {**more} | own)
    return rows


def _losses(problems: Sequence[Problem], fit: ConceptFit) -> list[dict[str, float]]:
    """Return held-out losses of a fit, of the true log-odds, and their difference."""
    odds = stack([p.log_odds() for p in problems], problems[0].environment, dtype=torch.float64)
    rows = odds.rows(torch.as_tensor(fit.held_out))
    oracle = contrastive_loss(rows.x, rows, fit.recipe.training.loss).tolist()
    found = fit.held_out_loss.min(axis=1).tolist()
    names = ("held_out_loss", "oracle_loss", "excess_loss")
    return [
        dict(zip(names, (own, best, own - best), strict=True))
        for own, best in zip(found, oracle, strict=True)
    ]
