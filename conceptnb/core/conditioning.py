r"""Three ways to condition on a concept (Appendix C), and several concepts at once.

A concept :math:`\{z : Az = b\}` splits the latent space into the directions along it,
:math:`C_0`, and the row space V of A; ``z = (c, v)``. A distribution :math:`q_V` on V says
which valuations are wanted. The three measures differ in what happens to c:

1. `EnforcedMeasure`: :math:`q_V(v)\,p(c \mid v)`, the wanted valuations exactly, and in
   the plane what the base has there;
2. `averaged_measure`: :math:`q_V(v)\,p(c)`, "vaguely" an intervention on v;
3. `bayesian_measure`: proportional to :math:`p(c, v)\,q_V(v)`, acceptance of what looks
   right (78): the one that Definition 3 and the rest of the book use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag
from scipy.stats import multivariate_normal

from conceptnb.common.validation import (
    Array,
    as_array,
    as_count,
    as_generator,
    as_points,
    as_positive,
)
from conceptnb.core.concepts import Concept, intersection
from conceptnb.core.distributions import GaussianMixture

Width = Literal["valuation", "isotropic"]
"""Where q has variance σ²: in the entries of Az (Definition 3), or along V, as in (79)."""


def wanted_valuation(
    concept: Concept, variance: float, width: Width = "valuation"
) -> tuple[Array, Array]:
    r"""Mean and covariance of :math:`q_V` on V, in orthonormal coordinates, (d_C,) and (d_C, d_C).

    Parameters
    ----------
    width : {"valuation", "isotropic"}
        "valuation": :math:`Az \sim N(b, \sigma^2 I)` as in Definition 3; then the
        covariance on V is :math:`\sigma^2 (A^\top A)^+`, the pseudo-inverse where
        Appendix C prints an inverse. "isotropic": :math:`N(v_C, \sigma^2 I_V)`, as in
        (79). They are the same if and only if A has orthonormal rows.
    """
    scale = as_positive(variance, "variance")
    V = concept.row_space
    mean = V @ concept.point
    if width == "isotropic":
        return mean, scale * np.eye(concept.dim)
    if width == "valuation":
        root = np.linalg.inv(concept.A @ V.T)
        return mean, scale * root @ root.T
    raise ValueError(f"width must be 'valuation' or 'isotropic', got {width!r}")


class EnforcedMeasure:
    r"""Appendix C's first measure: :math:`q_V(v)\,p(c, v) / \int p(c', v)\,dc'`.

    The base is p; the variance is that of q, see `wanted_valuation`.
    """

    def __init__(self, base: GaussianMixture, concept: Concept, variance: float) -> None:
        _check_space(base, concept)
        self._base, self._V = base, concept.row_space
        self._mean, self._covariance = wanted_valuation(concept, variance)
        self._marginal = base.linear_image(self._V)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        r"""Draw :math:`v \sim q_V`, then :math:`z \sim p(\cdot \mid v)`, shape (n, d_z).

        A draw from a component of the mixture is moved so that its v is the wanted one;
        for a Gaussian that gives the conditional distribution (Matheron's rule).
        """
        v = as_generator(rng).multivariate_normal(
            self._mean, self._covariance, size=as_count(n, "n", minimum=0)
        )
        logits = self._marginal.component_log_density(v)
        # The Gumbel trick draws each point's component with its posterior probability.
        labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        Z = np.empty((n, self._base.d_z))
        for k in range(self._base.n_components):
            chosen = labels == k
            mean, covariance = self._base.means[k], self._base.covariances[k]
            prior = rng.multivariate_normal(mean, covariance, size=int(chosen.sum()))
            gain = covariance @ self._V.T @ np.linalg.inv(self._marginal.covariances[k])
            Z[chosen] = prior + (v[chosen] - prior @ self._V.T) @ gain.T
        return Z

    def log_density(self, Z: ArrayLike) -> Array:
        """Log density, shape (samples,)."""
        points = as_points(Z, "Z", self._base.d_z)
        v = points @ self._V.T
        wanted_there = multivariate_normal(self._mean, self._covariance).logpdf(v)
        kept = self._base.log_density(points) - self._marginal.log_density(v)
        return np.reshape(wanted_there, len(points)) + kept


def averaged_measure(base: GaussianMixture, concept: Concept, variance: float) -> GaussianMixture:
    r"""Appendix C's second measure: :math:`q_V(v) \int p(c, v')\,dv'`, v and c independent."""
    _check_space(base, concept)
    V, C = concept.row_space, concept.directions
    frame = np.vstack([V, C])
    mean, covariance = wanted_valuation(concept, variance)
    if not len(C):
        return GaussianMixture([1.0], (mean @ V)[None], (V.T @ covariance @ V)[None])
    plane = base.linear_image(C)
    means = [np.concatenate([mean, m]) @ frame for m in plane.means]
    blocks = [block_diag(covariance, S) for S in plane.covariances]
    return GaussianMixture(plane.weights, means, [frame.T @ S @ frame for S in blocks])


def bayesian_measure(base: GaussianMixture, concept: Concept, variance: float) -> GaussianMixture:
    """Appendix C's third measure (78), which is Definition 3."""
    return base.condition(concept, variance)


def matching_covariance(
    concepts: Sequence[Concept], coupling: ArrayLike | None = None
) -> tuple[Array, Array]:
    r"""Solve (80): :math:`A^e \Sigma (A^e)^\top = I` for all concepts e, on their sum V.

    With all rows stacked into A, :math:`\Sigma = A^+ S (A^+)^\top` solves (80) for every
    symmetric S >= 0 whose diagonal blocks are identities, and there are no other
    solutions on V. The blocks off the diagonal are free, so (80) does *not* have one
    solution, not even for orthogonal spaces, where Appendix C calls that clear. S = I is
    the solution of largest entropy: the valuations of different concepts are independent.

    The `coupling` S (d, d), by default the identity, is returned after the covariance (d_z, d_z).
    """
    joint = intersection(concepts)
    S = np.eye(joint.dim) if coupling is None else as_array(coupling, "coupling", ndim=2)
    blocks = block_diag(*[np.ones((concept.dim, concept.dim)) for concept in concepts]) > 0
    if S.shape != blocks.shape:
        raise ValueError(f"coupling must have shape {blocks.shape}, got {S.shape}")
    if not np.allclose(S[blocks], np.eye(joint.dim)[blocks]) or not np.allclose(S, S.T):
        raise ValueError("coupling must be symmetric with identities on its diagonal blocks")
    if np.linalg.eigvalsh(S)[0] < -1e-12:
        raise ValueError("coupling must be positive semi-definite: weaken the couplings")
    inverse = np.linalg.pinv(joint.A)
    return inverse @ S @ inverse.T, S


def _check_space(base: GaussianMixture, concept: Concept) -> None:
    if base.d_z != concept.d_z:
        raise ValueError(
            f"concept lives in {concept.d_z} dimensions, the base distribution in {base.d_z}"
        )
