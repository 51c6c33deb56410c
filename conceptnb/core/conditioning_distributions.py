"""Environments drawn from other conditioning distributions than Definition 3's Gaussian.

The learner's log-odds (87) are quadratic because q is Gaussian (Assumption 3). Those here can
be sampled, and their true log-odds are known: these still bound the learner's loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from scipy import stats

from conceptnb.common.validation import Array
from conceptnb.core.concepts import Concept
from conceptnb.core.conditioning import EnforcedMeasure, averaged_measure
from conceptnb.core.distributions import GaussianMixture, acceptance_rate, log_acceptance

Conditioning = Literal["gaussian", "student", "window", "enforced", "averaged"]
CONDITIONINGS: tuple[Conditioning, ...] = get_args(Conditioning)

LogOdds = Callable[[Array], Array]

_DEGREES = 3.0  # of freedom: the heaviest tails among whole numbers with a variance
_CHUNK = 1 << 17
_MOST_DRAWS = 20_000_000
_IMPOSSIBLE = -60.0
"""Log-odds written for points that an environment cannot contain: e^-60 of the base's density."""


def sample_conditioned(
    conditioning: Conditioning,
    base: GaussianMixture,
    concept: Concept,
    variance: float,
    n: int,
    rng: np.random.Generator,
) -> tuple[Array, LogOdds]:
    r"""Draw an environment, and return its true log-odds with it.

    Parameters
    ----------
    conditioning : {"gaussian", "student", "window", "enforced", "averaged"}
        Definition 3 with Gaussian q; with a Student t of three degrees of freedom; with a
        uniform window; Appendix C's first and second measure. All q have the same variance.
    variance : float
        Variance of q.

    Returns
    -------
    Z : ndarray of shape (n, d_z)
    log_odds : callable
        Maps latents (samples, d_z) to :math:`\ln p^e/p^0`, shape (samples,). For "student"
        and "window" the constant is estimated from the acceptance rate.
    """
    if conditioning == "gaussian":
        constant = acceptance_rate(base, concept, variance, log=True)
        return base.condition(concept, variance).sample(n, rng), (
            lambda Z: log_acceptance(concept, variance, Z) - constant
        )
    if conditioning in ("student", "window"):
        return _by_rejection(conditioning, base, concept, variance, n, rng)
    measure: EnforcedMeasure | GaussianMixture
    if conditioning == "enforced":
        measure = EnforcedMeasure(base, concept, variance)
    elif conditioning == "averaged":
        measure = averaged_measure(base, concept, variance)
    else:
        raise ValueError(
            f"conditioning must be one of {', '.join(CONDITIONINGS)}, got {conditioning!r}"
        )
    return measure.sample(n, rng), lambda Z: measure.log_density(Z) - base.log_density(Z)


def _log_kernel(conditioning: Conditioning, gaps: Array, variance: float) -> Array:
    """Log of q at each gap Az - b, relative to its maximum, summed over a concept's rows."""
    if conditioning == "student":
        # A t of ν degrees has variance ν / (ν - 2) in units of its scale.
        scale = np.sqrt(variance * (_DEGREES - 2) / _DEGREES)
        q = stats.t(_DEGREES, scale=scale)
        return (q.logpdf(gaps) - q.logpdf(0.0)).sum(axis=1)
    inside = np.abs(gaps) <= np.sqrt(3 * variance)
    return np.where(inside.all(axis=1), 0.0, -np.inf)


def _by_rejection(
    conditioning: Conditioning,
    base: GaussianMixture,
    concept: Concept,
    variance: float,
    n: int,
    rng: np.random.Generator,
) -> tuple[Array, LogOdds]:
    """Algorithm 1 with another q; its acceptance rate is the normaliser (Lemma 4)."""

    def log_kernel(Z: Array) -> Array:
        return _log_kernel(conditioning, concept.valuation(Z) - concept.b, variance)

    kept: list[Array] = []
    n_kept = n_drawn = 0
    total = 0.0
    while n_kept < n:
        if n_drawn >= _MOST_DRAWS:
            raise ValueError(
                f"{conditioning}: {n_kept} of {n} samples from {n_drawn} draws of the base; "
                "choose a valuation b where the base has mass"
            )
        Z = base.sample(_CHUNK, rng)
        ratio = np.exp(log_kernel(Z))
        kept.append(Z[ratio > rng.uniform(size=len(Z))])
        n_kept, n_drawn, total = n_kept + len(kept[-1]), n_drawn + len(Z), total + ratio.sum()
    constant = np.log(total / n_drawn)
    return np.concatenate(kept)[:n], lambda Z: np.maximum(log_kernel(Z) - constant, _IMPOSSIBLE)
