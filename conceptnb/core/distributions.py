r"""Base distributions and concept conditional distributions (Section 4.2, Appendix H).

Conditioning keeps a draw :math:`z` of the base with a probability proportional to
:math:`\prod_k q((Az - b)_k)`, where q is the density of :math:`N(0, \sigma^2)` (Definition 3).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from tqdm import tqdm

from conceptnb.common.validation import (
    Array,
    as_array,
    as_count,
    as_generator,
    as_points,
    as_positive,
)
from conceptnb.core.concepts import Concept

_CHUNK = 1 << 17  # draws held in memory at a time: 10 MiB at d_z = 10


class Base(Protocol):
    """What rejection sampling needs to know of a base distribution: how to draw from it."""

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw `n` points, shape (n, d_z)."""
        ...  # pragma: no cover


class GaussianMixture:
    r"""Mixture of Gaussians, :math:`p(z) = \sum_k w_k N(z; \mu_k, \Sigma_k)`.

    The base distribution of the paper's synthetic experiments (Appendix G).

    Parameters
    ----------
    weights : array-like of shape (K,)
        Positive; normalised to sum to one.
    means : array-like of shape (K, d_z)
    covariances : array-like of shape (K, d_z, d_z)
        Symmetric and positive definite.
    """

    def __init__(self, weights: ArrayLike, means: ArrayLike, covariances: ArrayLike) -> None:
        self.weights = as_array(weights, "weights", ndim=1)
        self.means = as_points(means, "means")
        self.covariances = as_array(covariances, "covariances", ndim=3)
        K, d_z = self.means.shape
        if self.weights.shape != (K,):
            raise ValueError(f"weights must have shape ({K},), got {self.weights.shape}")
        if self.covariances.shape != (K, d_z, d_z):
            raise ValueError(
                f"covariances must have shape ({K}, {d_z}, {d_z}), got {self.covariances.shape}"
            )
        if (self.weights <= 0).any():
            raise ValueError("weights must be positive: drop components of weight zero")
        self.weights = self.weights / self.weights.sum()
        if not np.allclose(self.covariances, self.covariances.transpose(0, 2, 1)):
            raise ValueError("covariances must be symmetric")
        try:
            self._cholesky = np.linalg.cholesky(self.covariances)
        except np.linalg.LinAlgError:
            raise ValueError("covariances must be positive definite") from None

    @property
    def n_components(self) -> int:
        """Number K of components."""
        return len(self.weights)

    @property
    def d_z(self) -> int:
        """Dimension of the latent space."""
        return self.means.shape[1]

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw `n` points, shape (n, d_z)."""
        labels = as_generator(rng).choice(
            self.n_components, size=as_count(n, "n", minimum=0), p=self.weights
        )
        Z = rng.standard_normal((len(labels), self.d_z))
        for k, (mean, factor) in enumerate(zip(self.means, self._cholesky, strict=True)):
            Z[labels == k] = mean + Z[labels == k] @ factor.T
        return Z

    def component_log_density(self, Z: ArrayLike) -> Array:
        r"""Log of :math:`w_k N(z; \mu_k, \Sigma_k)`, (samples, d_z) to (samples, K)."""
        points = as_points(Z, "Z", self.d_z)
        terms = np.empty((len(points), self.n_components))
        for k, (mean, factor) in enumerate(zip(self.means, self._cholesky, strict=True)):
            white = solve_triangular(factor, (points - mean).T, lower=True)
            log_volume = np.log(np.diag(factor)).sum() + self.d_z / 2 * np.log(2 * np.pi)
            terms[:, k] = np.log(self.weights[k]) - log_volume - (white**2).sum(axis=0) / 2
        return terms

    def log_density(self, Z: ArrayLike) -> Array:
        """Log of the density p, (samples, d_z) to (samples,)."""
        return logsumexp(self.component_log_density(Z), axis=1)

    def linear_image(self, A: ArrayLike, noise_variance: float = 0.0) -> GaussianMixture:
        r"""Return the distribution of :math:`Az + \epsilon`, a mixture again.

        A (d_C, d_z) has linearly independent rows; the Gaussian noise on each entry is independent.
        """
        rows = as_points(A, "A", self.d_z)
        covariances = rows @ self.covariances @ rows.T + noise_variance * np.eye(len(rows))
        return GaussianMixture(self.weights, self.means @ rows.T, covariances)

    def condition(self, concept: Concept, variance: float) -> GaussianMixture:
        """Return the concept conditional distribution, exactly (Definition 3).

        With Gaussian q (of the given variance) the product in (2) is a Gaussian likelihood of the
        valuation, so each component is updated as by a noisy observation :math:`b` of :math:`Az`,
        and its weight by how well it explains :math:`b`. Components whose share is below the
        smallest float are left out.
        """
        A, b, noise = _check_conditioning(concept, variance, self.d_z)
        marginal = self.linear_image(A, noise)
        log_weights = marginal.component_log_density(b[None])[0]
        gain = self.covariances @ A.T @ np.linalg.inv(marginal.covariances)
        means = self.means + np.einsum("kzc,kc->kz", gain, b - marginal.means)
        # Joseph's form stays symmetric and positive definite in floating point.
        rest = np.eye(self.d_z) - gain @ A
        covariances = rest @ self.covariances @ rest.transpose(0, 2, 1)
        covariances += noise * gain @ gain.transpose(0, 2, 1)
        weights = np.exp(log_weights - logsumexp(log_weights))
        keep = weights > 0
        return GaussianMixture(weights[keep], means[keep], covariances[keep])


def random_mixture(d_z: int, rng: np.random.Generator, spread: float = 1.0) -> GaussianMixture:
    """Draw a base distribution of three components as the paper does (Appendix G).

    Weights are uniform on (0.3, 1) and then normalised, means uniform on (-spread, spread),
    variances uniform on (0.01, 0.015) and diagonal. The paper's spread is 1; small values give
    overlapping components, and so a connected support.
    """
    shape = (3, as_count(d_z, "d_z"))
    half_width = as_positive(spread, "spread")
    weights = as_generator(rng).uniform(0.3, 1.0, size=shape[0])
    means = rng.uniform(-half_width, half_width, size=shape)
    variances = rng.uniform(0.01, 0.015, size=shape)
    return GaussianMixture(weights, means, variances[:, :, None] * np.eye(d_z))


def _check_conditioning(
    concept: Concept, variance: float, d_z: int | None = None
) -> tuple[Array, Array, float]:
    if not isinstance(concept, Concept):
        raise TypeError(f"concept must be a Concept, got {type(concept).__name__}")
    if d_z is not None and concept.d_z != d_z:
        raise ValueError(
            f"concept lives in {concept.d_z} dimensions, the base distribution in {d_z}"
        )
    return concept.A, concept.b, as_positive(variance, "variance")


def log_acceptance(concept: Concept, variance: float, Z: ArrayLike) -> Array:
    r"""Log of the probability R that Algorithm 1 keeps each point, (samples, d_z) to (samples,).

    :math:`R = M^{-1} \prod_k q((Az - b)_k)` with :math:`M = \max(q)^{\dim C}`; for
    Gaussian q this is :math:`\exp(-|Az - b|^2 / 2\sigma^2)`.
    """
    _, b, noise = _check_conditioning(concept, variance)
    return -((concept.valuation(Z) - b) ** 2).sum(axis=1) / (2 * noise)


def acceptance_rate(
    base: GaussianMixture, concept: Concept, variance: float, *, log: bool = False
) -> float:
    """Share of base draws that Algorithm 1 keeps, N_C / M (Lemma 4), in closed form.

    Its inverse is the expected number of trials per sample (Corollary 1). With `log` the
    logarithm is returned: the rate of a far-off valuation is too small for a float.
    """
    A, b, noise = _check_conditioning(concept, variance, base.d_z)
    log_normaliser = base.linear_image(A, noise).log_density(b[None])[0]
    log_rate = float(log_normaliser + concept.dim / 2 * np.log(2 * np.pi * noise))
    return log_rate if log else float(np.exp(log_rate))


def information(base: GaussianMixture, concept: Concept, variance: float) -> float:
    r"""Information that one conditioned sample holds, in nats, in closed form.

    The Kullback-Leibler divergence of p_C from p: the mean over p_C of the log-odds of
    Lemma 3, which are :math:`-|Az - b|^2 / 2\sigma^2` minus the log of the acceptance rate.
    """
    _, b, noise = _check_conditioning(concept, variance, base.d_z)
    image = base.condition(concept, variance).linear_image(concept.A)
    spread = np.trace(image.covariances, axis1=1, axis2=2)
    misses = ((image.means - b) ** 2).sum(axis=1) + spread
    log_rate = acceptance_rate(base, concept, variance, log=True)
    return float(-(image.weights @ misses) / (2 * noise) - log_rate)


def sample_one(base: Base, concept: Concept, variance: float, rng: np.random.Generator) -> Array:
    """Draw one sample (d_z,) by Algorithm 1 line by line: the reference of `sample_rejection`.

    ValueError after 100,000 draws of the base that were not kept.
    """
    as_generator(rng)
    for _ in range(100_000):
        z = base.sample(1, rng)
        u = rng.uniform()
        r = np.exp(log_acceptance(concept, variance, z)[0])
        if r >= u:
            return z[0]
    raise ValueError(_hopeless("below 1e-5", 1, 100_000))


def sample_rejection(
    base: Base,
    concept: Concept,
    variance: float,
    n: int,
    rng: np.random.Generator,
    max_draws: int = 10**8,
) -> Array:
    """Sample the concept conditional distribution by rejection (Algorithm 1), shape (n, d_z).

    Draws are proposed and judged in large batches. Each is kept independently of the
    others, so the kept ones are independent samples (Theorem 3).

    The base is anything with ``sample(n, rng)``, and the variance that of q. ValueError if
    `max_draws` of the base are not enough: before the first draw where the acceptance rate is known
    in closed form, else when they are spent.
    """
    _check_conditioning(concept, variance)
    as_generator(rng)
    wanted, budget = as_count(n, "n", minimum=0), as_count(max_draws, "max_draws")
    if isinstance(base, GaussianMixture):
        log10_rate = acceptance_rate(base, concept, variance, log=True) / np.log(10)
        if wanted and np.log10(wanted) - log10_rate > np.log10(budget):
            raise ValueError(_hopeless(f"predicted to be 10^{log10_rate:.1f}", wanted, budget))

    kept: list[Array] = []
    n_kept = n_drawn = 0
    with tqdm(total=wanted, desc="rejection sampling", unit="sample", delay=2) as progress:
        while n_kept < wanted:
            if n_drawn >= budget:
                raise ValueError(_hopeless(f"{n_kept / n_drawn:.1e} so far", wanted, budget))
            # One tenth more than the rate seen so far asks for, so that few rounds do.
            rate = max(n_kept, 1) / n_drawn if n_drawn else 0.5
            size = int(min(1.1 * (wanted - n_kept) / rate + 32, _CHUNK, budget - n_drawn))
            Z = base.sample(size, rng)
            chosen = Z[log_acceptance(concept, variance, Z) >= np.log(rng.uniform(size=size))]
            kept.append(chosen[: wanted - n_kept])
            n_kept, n_drawn = n_kept + len(kept[-1]), n_drawn + size
            progress.update(len(kept[-1]))
    return np.concatenate(kept) if kept else np.empty((0, concept.d_z))


def _hopeless(rate: str, wanted: int, budget: int) -> str:
    return (
        f"{wanted} samples need more than max_draws = {budget} draws: the acceptance rate is "
        f"{rate}. Choose a valuation b where the base has mass, raise the variance, or use "
        "GaussianMixture.condition, which needs no rejection"
    )
