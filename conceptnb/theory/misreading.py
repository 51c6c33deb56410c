"""How often the design M is misread from samples of a Gaussian base, predicted and counted (ours).

Chapter "Beyond Theorem 1", the proposition on errors of an estimated M.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from conceptnb.common.validation import Array
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import GaussianMixture, acceptance_rate
from conceptnb.core.problems import log_odds
from conceptnb.theory.finite_samples import LogOddsFit, fit_log_odds
from conceptnb.theory.sampling_plans import estimated_design


def standard_base(n: int) -> GaussianMixture:
    """Return the standard normal distribution of n latents."""
    return GaussianMixture([1.0], [np.zeros(n)], [np.eye(n)])


def draw_data_sets(
    design: EnvironmentDesign, atoms: Array, count: int, rng: np.random.Generator
) -> list[Array]:
    """Draw `count` latents each, (count, n), from a standard normal base and its environments.

    Environments are concept conditional distributions (Definition 3) of `design` and `atoms`.
    """
    base = standard_base(atoms.shape[1])
    concepts = design.concepts(atoms)
    parts = [base, *(base.condition(concept, design.variance) for concept in concepts)]
    return [part.sample(count, rng) for part in parts]


def read_design(entries: Array) -> NDArray[np.bool_]:
    """Return which entries (..., m, n) of an estimated M are read as one: over half the largest."""
    return entries > entries.max(axis=-2, keepdims=True) / 2


def is_misread(samples: Sequence[Array], truth: NDArray[np.bool_]) -> bool:
    """Return whether M, estimated from base and environments, differs from the `truth` (m, n).

    The order of atoms does not matter. Samples that give no estimate count as misread.
    """
    try:
        found = read_design(estimated_design(samples)[0])
    except RuntimeError:
        return True
    return sorted(found.T.tolist()) != sorted(truth.T.tolist())


def predicted_misreading(
    truth: NDArray[np.bool_], covariance: Array, rng: np.random.Generator, draws: int = 20_000
) -> float:
    """Return the probability that normal errors of this covariance (m, n, m, n) change M (m, n)."""
    spread = covariance.reshape(truth.size, -1)
    normal = rng.multivariate_normal(truth.ravel().astype(float), spread, size=draws)
    return float((read_design(normal.reshape(-1, *truth.shape)) != truth).any((1, 2)).mean())


def fit_at_the_truth(
    design: EnvironmentDesign, atoms: Array, samples: Sequence[Array]
) -> LogOddsFit:
    """Return the log-odds of a design at its true parameters, with the information of samples."""
    sigma = design.variance**0.5
    base = standard_base(atoms.shape[1])
    constants = log_odds(base, design, atoms, np.zeros((1, atoms.shape[1])))[0]
    truth = (atoms / sigma, design.B * sigma, constants)
    return fit_log_odds(samples, design.M > 0, truth, fixed=True)


def prices(design: EnvironmentDesign, atoms: Array) -> list[float]:
    """Return base draws per sample, for the base (1) and every environment (Lemma 4)."""
    base = standard_base(atoms.shape[1])
    rates = [acceptance_rate(base, c, design.variance) for c in design.concepts(atoms)]
    return [1.0, *(1 / rate for rate in rates)]
