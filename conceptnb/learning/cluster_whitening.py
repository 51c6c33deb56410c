r"""Bases that fall into clusters: each is straightened by its own covariance.

The recipe ``CLUSTER_WHITENED`` (chapter "Tables 1 and 7") assumes more than the paper, whose
experiments nearly satisfy it (Appendix G): the base is a mixture of clusters of *one covariance* Σ
in latent space. On a small cluster a smooth mixing is nearly affine with Jacobian :math:`J_j`, so
:math:`C_j \approx J_j \Sigma J_j^\top`, and :math:`C_j^{-1/2}(x - m_j)` is
:math:`\Sigma^{-1/2}(z - \mu_j)` up to a rotation, taken to be the same in all clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from sklearn.mixture import GaussianMixture
from torch import Tensor

from conceptnb.common.validation import Array
from conceptnb.learning.data import Stack
from conceptnb.learning.model import Whitening

ROWS = 10_000
"""Base rows that find the clusters, at most."""


class ClusterWhitening(Whitening):
    r"""Whitened observations, and beside them coordinates in which clusters are alike.

    The first are :math:`\sum_j r_j(x) (\bar C^{-1/2} m_j + C_j^{-1/2} (x - m_j))`, whitened, where
    r are the responsibilities of a Gaussian mixture of the base with means m and covariances C,
    and :math:`\bar C` is the mean covariance. With one cluster they are whitened observations
    once more. Not in the paper.

    Parameters
    ----------
    plain : Whitening
        Of the observations.
    log_weights : tensor of shape (D, K)
    centres : tensor of shape (D, K, d_x)
    factors : tensor of shape (D, K, d_x, d_x)
        Such that precisions are ``factors @ factors.mT``.
    maps : tensor of shape (D, K, d_x, r)
    offsets : tensor of shape (D, K, r)
        Coordinates of x in cluster j are ``offsets + (x - centres) @ maps``.
    """

    log_weights: Tensor
    centres: Tensor
    factors: Tensor
    maps: Tensor
    offsets: Tensor

    def __init__(
        self,
        plain: Whitening,
        log_weights: Tensor,
        centres: Tensor,
        factors: Tensor,
        maps: Tensor,
        offsets: Tensor,
    ) -> None:
        super().__init__(plain.mean, plain.matrix)
        self.register_buffer("log_weights", log_weights)
        self.register_buffer("centres", centres)
        self.register_buffer("factors", factors)
        self.register_buffer("maps", maps)
        self.register_buffer("offsets", offsets)

    @property
    def rank(self) -> int:
        """Number r of columns that are coordinates; whitened observations follow."""
        return self.maps.shape[-1]

    @classmethod
    def fit_clusters(
        cls, data: Stack, n_clusters: int, seeds: Sequence[int], *, shrinkage: float = 1e-3
    ) -> ClusterWhitening:
        """Estimate from the rows of environment 0 of every problem, with a seed for each mixture.

        `shrinkage` is the part of the mean variance that is added to every covariance before it is
        inverted: a direction in which a cluster barely varies is not one to extrapolate along.
        """
        exact = replace(data, x=data.x.double())
        plain = Whitening.fit(exact)
        base = exact.x[:, data.environment == 0].numpy()
        if base.shape[1] < 2 * n_clusters:
            raise ValueError(
                f"n_clusters is {n_clusters}, but the base has {base.shape[1]} samples: "
                "give at least two per cluster"
            )
        parts = [
            _straighten(x, n_clusters, seed, shrinkage) for x, seed in zip(base, seeds, strict=True)
        ]
        mixture = [torch.as_tensor(np.stack(arrays)) for arrays in zip(*parts, strict=True)]
        rough = cls(plain, *mixture)
        # A last whitening, so that the search for linear encoders meets inputs of unit variance.
        last = Whitening.fit(replace(data, x=rough.coordinates(exact.x)))
        log_weights, centres, factors, maps, offsets = mixture
        maps, offsets = maps @ last.matrix[:, None], (offsets - last.mean) @ last.matrix
        return cls(plain, log_weights, centres, factors, maps, offsets).to(data.x)

    def responsibilities(self, x: Tensor) -> Tensor:
        """Return the probability of every cluster, (D, rows, K), of observations (D, rows, d_x)."""
        logs = []
        for j in range(self.centres.shape[1]):
            distance = ((x - self.centres[:, j, None]) @ self.factors[:, j]).square().sum(dim=2)
            volume = self.factors[:, j].diagonal(dim1=1, dim2=2).log().sum(dim=1)
            logs.append((self.log_weights[:, j] + volume)[:, None] - distance / 2)
        return torch.stack(logs, dim=2).softmax(dim=2)

    def coordinates(self, x: Tensor) -> Tensor:
        """Return coordinates in which clusters are alike, (D, rows, r)."""
        shares = self.responsibilities(x)
        return sum(
            shares[..., j, None]
            * (self.offsets[:, j, None] + (x - self.centres[:, j, None]) @ self.maps[:, j])
            for j in range(self.centres.shape[1])
        )  # type: ignore[return-value]  # sum starts from 0

    def forward(self, x: Tensor) -> Tensor:
        """Map (D, rows, d_x) to coordinates and whitened observations side by side."""
        return torch.cat([self.coordinates(x), super().forward(x)], dim=2)


def _straighten(
    x: Array, n_clusters: int, seed: int, shrinkage: float
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the arguments of `ClusterWhitening` for one problem, before the last whitening."""
    unit = x.std()  # sklearn adds a fixed amount to covariances
    mixture = GaussianMixture(n_clusters, n_init=2, random_state=seed).fit(x[:ROWS] / unit)
    mean_covariance = np.einsum("j,jab->ab", mixture.weights_, mixture.covariances_)
    floor = shrinkage * np.trace(mean_covariance) / len(mean_covariance)
    return (
        np.log(mixture.weights_),
        mixture.means_ * unit,
        mixture.precisions_cholesky_ / unit,
        np.stack([_inverse_root(c, floor) for c in mixture.covariances_]) / unit,
        mixture.means_ @ _inverse_root(mean_covariance, floor),
    )


def _inverse_root(covariance: Array, floor: float) -> Array:
    values, vectors = np.linalg.eigh(covariance)
    return (vectors / np.sqrt(np.maximum(values, 0) + floor)) @ vectors.T


def slope_disagreement(coordinates: Array, cluster: np.ndarray, learned: Array) -> float:
    """Share of the variance within clusters that one linear map for all of them leaves over.

    A valuation is linear in z, so in `coordinates` (samples, r) in which clusters are alike it has
    one slope in all of them; mirrored on one cluster, it has opposite slopes. The share is the mean
    over `learned` valuations (samples, n).
    """
    inputs, outputs = coordinates.copy(), learned.copy()
    for j in np.unique(cluster):
        rows = cluster == j
        inputs[rows] -= inputs[rows].mean(axis=0)
        outputs[rows] -= outputs[rows].mean(axis=0)
    left = outputs - inputs @ np.linalg.lstsq(inputs, outputs, rcond=None)[0]
    return float(((left**2).sum(axis=0) / (outputs**2).sum(axis=0)).mean())
