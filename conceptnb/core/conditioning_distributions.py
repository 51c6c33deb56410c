r"""Environments drawn by other laws than Definition 3's, with their true log-odds.

The learner's log-odds (87) are quadratic because q is Gaussian (Assumption 3). Here q has
heavy tails or is a hard window, or the environment is one of Appendix C's other two
measures. Each law can be sampled, and its true log-odds are known, so the loss of the truth
is still the bound of every figure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from scipy import stats

from conceptnb.core.concepts import Concept
from conceptnb.core.conditioning import EnforcedMeasure, averaged_measure
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import GaussianMixture, log_acceptance, log_acceptance_rate
from conceptnb.core.validation import Array

__all__ = ["LAWS", "Law", "sample_law"]

Law = Literal["gaussian", "student", "window", "enforced", "averaged"]
LAWS: tuple[Law, ...] = get_args(Law)

LogDensity = Callable[[Array], Array]

_DEGREES = 3.0  # of freedom: the heaviest tails among whole numbers with a variance
_CHUNK = 1 << 17
_MOST_DRAWS = 20_000_000
_IMPOSSIBLE = -60.0
"""Log-odds written for points that an environment cannot contain: e^-60 of the base's density."""


def sample_law(
    law: Law,
    base: GaussianMixture,
    concept: Concept,
    variance: float,
    n: int,
    rng: np.random.Generator,
) -> tuple[Array, LogDensity]:
    r"""Draw an environment of some law, and return its true log-odds with it.

    Parameters
    ----------
    law : {"gaussian", "student", "window", "enforced", "averaged"}
        Definition 3 with Gaussian q; with a Student t of three degrees of freedom; with a
        uniform window; Appendix C's first and second measure. All q have the same variance.
    base : GaussianMixture
    concept : Concept
    variance : float
        Variance of q.
    n : int
        Samples.
    rng : numpy.random.Generator

    Returns
    -------
    Z : array of shape (n, d_z)
    log_odds : callable
        Maps latents (samples, d_z) to :math:`\ln p^e/p^0`, shape (samples,). For "student"
        and "window" the constant is estimated from the acceptance rate.

    Raises
    ------
    ValueError
        If there is no such law, or rejection would need too many draws.
    """
    if law == "gaussian":
        constant = log_acceptance_rate(base, concept, variance)
        return base.condition(concept, variance).sample(n, rng), (
            lambda Z: log_acceptance(concept, variance, Z) - constant
        )
    if law == "enforced":
        measure = EnforcedMeasure(base, concept, variance)
        return measure.sample(n, rng), lambda Z: measure.log_density(Z) - base.log_density(Z)
    if law == "averaged":
        mixture = averaged_measure(base, concept, variance)
        return mixture.sample(n, rng), lambda Z: mixture.log_density(Z) - base.log_density(Z)
    if law in ("student", "window"):
        return _by_rejection(law, base, concept, variance, n, rng)
    raise ValueError(f"law must be one of {', '.join(LAWS)}, got {law!r}")


def log_kernel(law: Law, gaps: Array, variance: float) -> Array:
    """Log of q at each gap Az - b, relative to its maximum, summed over a concept's rows.

    Parameters
    ----------
    law : {"student", "window"}
    gaps : array of shape (samples, d_C)
    variance : float
    """
    if law == "student":
        # A t of ν degrees has variance ν / (ν - 2) in units of its scale.
        scale = np.sqrt(variance * (_DEGREES - 2) / _DEGREES)
        q = stats.t(_DEGREES, scale=scale)
        return (q.logpdf(gaps) - q.logpdf(0.0)).sum(axis=1)
    inside = np.abs(gaps) <= np.sqrt(3 * variance)
    return np.where(inside.all(axis=1), 0.0, -np.inf)


def _by_rejection(
    law: Law,
    base: GaussianMixture,
    concept: Concept,
    variance: float,
    n: int,
    rng: np.random.Generator,
) -> tuple[Array, LogDensity]:
    """Algorithm 1 with another q; its acceptance rate is the normaliser (Lemma 4)."""
    kept: list[Array] = []
    n_kept = n_drawn = 0
    total = 0.0
    while n_kept < n:
        if n_drawn >= _MOST_DRAWS:
            raise ValueError(
                f"law {law!r}: {n_kept} of {n} samples from {n_drawn} draws of the base; choose "
                "a valuation b where the base has mass"
            )
        Z = base.sample(_CHUNK, rng)
        ratio = np.exp(log_kernel(law, concept.valuation(Z) - concept.b, variance))
        kept.append(Z[ratio > rng.uniform(size=len(Z))])
        n_kept, n_drawn, total = n_kept + len(kept[-1]), n_drawn + len(Z), total + ratio.sum()
    constant = np.log(total / n_drawn)

    def log_odds(Z: Array) -> Array:
        raw = log_kernel(law, concept.valuation(Z) - concept.b, variance)
        return np.maximum(raw - constant, _IMPOSSIBLE)

    return np.concatenate(kept)[:n], log_odds


def sample_design(
    law: Law,
    base: GaussianMixture,
    design: EnvironmentDesign,
    atoms: Array,
    n: int,
    rng: np.random.Generator,
) -> tuple[list[Array], Callable[[Array], Array]]:
    """Draw every environment of a design under one law.

    Returns
    -------
    Z : list of m arrays of shape (n, d_z)
    log_odds : callable
        Maps latents to true log-odds, shape (samples, m).
    """
    drawn = [
        sample_law(law, base, concept, design.variance, n, rng)
        for concept in design.concepts(atoms)
    ]
    return [Z for Z, _ in drawn], lambda Z: np.stack([f(Z) for _, f in drawn], axis=1)
