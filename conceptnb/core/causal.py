"""A small causal model: conditioning against intervening (Appendix B)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from conceptnb.common.validation import Array, as_array, as_count, as_positive
from conceptnb.core.concepts import Concept
from conceptnb.core.distributions import GaussianMixture


@dataclass(frozen=True, eq=False)
class LinearSCM:
    r"""Linear Gaussian structural causal model :math:`Z = WZ + \epsilon` (Appendix B.1).

    Parameters
    ----------
    W : array-like of shape (d, d)
        ``W[j, i]`` is the effect of variable i on j > i: W is strictly lower triangular.
    means, variances : array-like of shape (d,)
        Of the noise.
    """

    W: Array
    means: Array
    variances: Array

    def __post_init__(self) -> None:
        W = as_array(self.W, "W", ndim=2)
        if W.shape[0] != W.shape[1] or np.triu(W).any():
            raise ValueError("W must be square and strictly lower triangular: order causes first")
        for name in ("means", "variances"):
            value = as_array(getattr(self, name), name, ndim=1)
            if len(value) != len(W):
                raise ValueError(f"{name} must have {len(W)} entries, got {len(value)}")
            object.__setattr__(self, name, value)
        if (self.variances <= 0).any():
            raise ValueError("variances must be positive")
        object.__setattr__(self, "W", W)

    @property
    def d(self) -> int:
        """Number of variables."""
        return len(self.W)

    @classmethod
    def chain(cls, effect: float = 0.9) -> "LinearSCM":
        """Return the causal chain of the book: cause -> concept -> effect, unit noise."""
        return cls(np.diag([effect, effect], k=-1), np.zeros(3), np.ones(3))

    def distribution(self) -> GaussianMixture:
        """Return the observational distribution, one Gaussian."""
        mix = np.linalg.inv(np.eye(self.d) - self.W)
        covariance = mix @ np.diag(self.variances) @ mix.T
        return GaussianMixture([1.0], (mix @ self.means)[None], covariance[None])

    def intervene(self, node: int, mean: float, variance: float) -> "LinearSCM":
        """Cut `node` from its causes and give it :math:`N(mean, variance)`: a stochastic do."""
        j = self._node(node)
        W, means, variances = self.W.copy(), self.means.copy(), self.variances.copy()
        W[j], means[j], variances[j] = 0.0, mean, as_positive(variance, "variance")
        return LinearSCM(W, means, variances)

    def atom(self, node: int, b: float) -> Concept:
        """Return the concept "variable `node` has value `b`"."""
        return Concept(np.eye(self.d)[[self._node(node)]], np.array([b]))

    def _node(self, node: int) -> int:
        if as_count(node, "node", minimum=0) >= self.d:
            raise ValueError(f"node must be below {self.d}, got {node}")
        return node


def ratio_form(first: GaussianMixture, second: GaussianMixture) -> Array:
    r"""Quadratic part of :math:`\ln p - \ln \tilde p` for two Gaussians, shape (d, d).

    For a concept conditional distribution it is :math:`A^\top A / \sigma^2`: positive
    semi-definite, of rank dim(C) (46). For an intervention on a variable that has causes
    it has a positive and a negative part and involves the causes.
    """
    if first.n_components != 1 or second.n_components != 1:
        raise ValueError("both distributions must be single Gaussians")
    return np.linalg.inv(second.covariances[0]) - np.linalg.inv(first.covariances[0])


def environments_needed(n: ArrayLike, d_z: ArrayLike) -> dict[str, np.ndarray]:
    """Numbers of environments that identify n atoms, the base included (Section 5, Appendix B.2).

    They suffice under each result's assumptions: iVAE has two statistics for each latent.
    """
    atoms, latents = np.broadcast_arrays(np.asarray(n), np.asarray(d_z))
    if (atoms < 1).any() or (atoms > latents).any():
        raise ValueError("n must be between 1 and d_z: atoms are independent directions")
    return {
        "Theorem 1: conditioning on concepts": atoms + 2,
        "Theorem 2: conditioning, rank 2n": 2 * atoms + 1,
        "interventions on single nodes": latents + 1,
        "iVAE, all latents, k = 2": 2 * latents + 1,
    }
