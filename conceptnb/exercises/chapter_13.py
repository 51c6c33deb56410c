"""Exercises of chapter 13: conditioning three ways."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conceptnb.core.concepts import Concept
from conceptnb.core.conditioning import averaged_measure, bayesian_measure
from conceptnb.core.distributions import GaussianMixture
from conceptnb.exercises.exercise import construction, value


@value(
    entries="enforced, averaged, Bayesian",
    right="Two measures enforce the marginal. Acceptance multiplies it with the base's, and is "
    "narrower than both.",
    mistakes={
        "Acceptance multiplies q_V with p(v): precisions add.": [0.25, 0.25, 0.25],
        "Only acceptance narrows. Enforced and averaged have the marginal q_V exactly.": [0.2] * 3,
        "The third is a sum of variances; densities are multiplied.": [0.25, 0.25, 1.25],
        "Those are standard deviations.": lambda right: right**0.5,
    },
)
def ex_marginal() -> NDArray[np.float64]:
    """Return the variance of the valuation under each measure of Appendix C."""
    return np.array([0.25, 0.25, 1 / (1 / 1.0 + 1 / 0.25)])


def _base(first: float, coupling: float = 0.0, mean: float = 0.0) -> GaussianMixture:
    return GaussianMixture([1.0], [[mean, 0.5]], [[[first, coupling], [coupling, 1.0]]])


@construction(
    kind=GaussianMixture,
    right="Independent, so the first two are equal; nearly constant where q_V lives, so the third "
    "joins them.",
    example=lambda: _base(100.0),
    wrong={
        "two dimensions": lambda: GaussianMixture([1.0], [[0.0]], [[[100.0]]]),
        "depends on the first": lambda: _base(100.0, coupling=6.0),
        "acceptance still narrows": lambda: _base(1.0),
        "acceptance still moves": lambda: _base(20.0, mean=-40.0),
        "a single component": lambda: GaussianMixture(
            [0.5, 0.5], [[0.0, 0.0], [1.0, 1.0]], [100 * np.eye(2)] * 2
        ),
    },
)
def ex_cannot_tell(base: GaussianMixture) -> str | None:
    """Compare the measures of Appendix C for the atom (1, 0), b = 1, σ² = 0.1, within 5 %."""
    if base.means.shape[1] != 2:
        return f"The base has two dimensions; yours has {base.means.shape[1]}."
    if len(base.weights) != 1:
        return "Take a base of a single component, so that the comparison is plain."
    covariance = base.covariances[0]
    if abs(covariance[0, 1]) > 0.01 * np.sqrt(covariance[0, 0] * covariance[1, 1]):
        return "The second coordinate depends on the first: p(c | v) is not p(c)."
    atom = Concept(np.array([[1.0, 0.0]]), np.array([1.0]))
    averaged, accepted = averaged_measure(base, atom, 0.1), bayesian_measure(base, atom, 0.1)
    if not np.allclose(averaged.covariances, accepted.covariances, rtol=0.05):
        return "Here acceptance still narrows: make p(v) flatter where q_V lives."
    if not np.allclose(averaged.means, accepted.means, rtol=0.05):
        return "Here acceptance still moves the mean: make p(v) flatter where q_V lives."
    return None


@value(
    entries="enforced, averaged, Bayesian",
    right="Acceptance narrows each time: two acceptances are one with half the variance.",
    mistakes={
        "Acceptance multiplies by q_V again: the variance shrinks each time.": [True] * 3,
        "After the first time, the marginal of v is q_V and the rest is left alone. What does the "
        "second time change? Say so for averaged, too.": [True, False, False],
    },
)
def ex_three_twice() -> NDArray[np.bool_]:
    """Say which measures of Appendix C are idempotent, from their effect on p(v)."""
    enforced_once = averaged_once = 0.25
    accepted_once = 1 / (1 + 4.0)
    again = [0.25, 0.25, 1 / (1 / accepted_once + 4.0)]
    return np.isclose(again, [enforced_once, averaged_once, accepted_once])


@value(
    entries="the lowest and the highest ρ",
    right="Three concepts can be coupled as strongly as one likes, but not repel each other so.",
    mistakes={
        "That is for two atoms. Three cannot all be opposite to each other.": [-1.0, 1.0],
        "That is for four atoms: with n atoms the lower end is -1/(n - 1).": [-1 / 3, 1.0],
        "Negative couplings are possible too, down to some ρ.": [0.0, 1.0],
        "First the lowest.": [1.0, -0.5],
    },
)
def ex_coupling() -> NDArray[np.float64]:
    """Return for which ρ a matrix of equal correlations of three atoms is a solution of (80)."""
    grid = np.linspace(-1, 1, 2001)
    least = [np.linalg.eigvalsh((1 - rho) * np.eye(3) + rho)[0] for rho in grid]
    allowed = grid[np.array(least) > -1e-9]
    return np.array([allowed.min(), allowed.max()])
