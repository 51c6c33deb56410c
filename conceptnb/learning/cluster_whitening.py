r"""Bases that fall into clusters: each is straightened by its own covariance.

Where an environment has no samples, no contrastive loss says on which side of its plane a part
of the base lies (chapter "Tables 1 and 7"). :func:`fit_clustered` adds what the base itself
says, under an assumption that the paper does not make, though its experiments nearly satisfy it
(Appendix G): the base is a mixture of clusters that have *one covariance* Σ in latent space. On
a small cluster a smooth mixing is nearly affine, :math:`f(z) \approx m_j + J_j (z - \mu_j)`, so
the cluster's covariance in x is :math:`C_j \approx J_j \Sigma J_j^\top`, and
:math:`C_j^{-1/2}(x - m_j)` is :math:`\Sigma^{-1/2}(z - \mu_j)` up to a rotation. Clusters are
joined as if that rotation were the same in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.mixture import GaussianMixture
from torch import Tensor

from conceptnb.core.validation import Array, as_count
from conceptnb.learning.best import CORRECTION, linear_starts, start_networks
from conceptnb.learning.data import Stack, stack
from conceptnb.learning.fitting import (
    ConceptFit,
    check_seeds,
    check_targets,
    keep_starts,
    seeds_of_starts,
    smallest_of_the_best,
)
from conceptnb.learning.linear import LinearFit
from conceptnb.learning.losses import softmax_losses
from conceptnb.learning.model import Whitening, repeat_rows
from conceptnb.learning.training import Trainer

__all__ = ["ClusterWhitening", "fit_clustered", "slope_disagreement"]

ROWS = 10_000
"""Base rows that find the clusters, at most."""
TRAINING = replace(CORRECTION, decay=1e-4)
"""As ``fit_best`` trains; the networks see twice as many inputs, and want more decay."""


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
        """Estimate from the rows of environment 0 of every problem.

        Parameters
        ----------
        data : Stack
        n_clusters : int
            Number K of clusters.
        seeds : sequence of D int
            Fix the starts of the mixtures.
        shrinkage : float
            Part of the mean variance that is added to every covariance before it is inverted:
            a direction in which a cluster hardly varies is not one to extrapolate along.
        """
        exact = replace(data, x=data.x.double())
        plain = Whitening.fit(exact)
        base = exact.x[:, data.environment == 0].numpy()
        if base.shape[1] < 2 * n_clusters:
            raise ValueError(
                f"n_clusters is {n_clusters}, but the base has {base.shape[1]} samples: "
                "give at least two a cluster"
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


def fit_clustered(
    observations: Sequence[ArrayLike],
    environment: ArrayLike,
    targets: ArrayLike,
    *,
    n_clusters: int = 3,
    starts: int = 3,
    seeds: Sequence[int] | None = None,
    held_out: float = 0.2,
    progress: bool = True,
) -> ConceptFit:
    """Learn concepts with known targets, where the base falls into clusters that are alike.

    As :func:`~conceptnb.learning.fit_best` with a nonlinear encoder, but linear encoders
    are found in the coordinates of :class:`ClusterWhitening`, and networks see these and
    the whitened observations. Of the networks between which held-out losses do not decide,
    the one with the smallest :func:`slope_disagreement` is kept. The truth is never looked at.

    Parameters
    ----------
    observations : sequence of D arrays of shape (N, d_x)
        In one unit: unlike those of ``fit_best``, results change if columns are rescaled.
    environment : int array of shape (N,)
        0 for the base distribution, 1 to m for the concept conditional environments.
        Within an environment, rows must come in no particular order.
    targets : bool array of shape (m, n)
        Which concepts each environment conditions on.
    n_clusters : int
        Of the base; the paper's experiments have three.
    starts : int
        Networks a problem.
    seeds : sequence of D int, optional
        Fix the starts of each problem; by default 0, 1, ...
    held_out : float
        Share of every environment that is held out.
    progress : bool

    Returns
    -------
    ConceptFit
        With a :class:`ClusterWhitening`. Losses are those of the softmax, and
        ``held_out_loss`` has one column: that of the network which is kept.
    """
    raw = stack(observations, environment)
    mask = check_targets(targets, raw.n_environments)
    numbers = check_seeds(seeds, raw.n_problems)
    count = as_count(starts, "starts")
    whitening = ClusterWhitening.fit_clusters(raw, as_count(n_clusters, "n_clusters"), numbers)
    train, held = replace(raw, x=whitening(raw.x)).split(held_out)
    coordinates = replace(train, x=train.x[:, :, : whitening.rank])
    fits = linear_starts(coordinates, mask, numbers, count, progress)
    fits = [_widen(fit, train.d_x) for fit in fits]
    networks = start_networks(fits, mask, seeds_of_starts(numbers, count))
    trainer = Trainer(networks, train, held, TRAINING)
    trainer.run(progress=progress)
    return _most_alike(trainer, whitening, raw.split(held_out)[0])


def _widen(fit: LinearFit, width: int) -> LinearFit:
    """Let a linear encoder of the first columns ignore the others."""
    return replace(fit, W=np.pad(fit.W, ((0, width - len(fit.W)), (0, 0))))


def slope_disagreement(coordinates: Array, cluster: np.ndarray, learned: Array) -> float:
    """Share of the variance within clusters that one linear map for all of them leaves over.

    A valuation is linear in z, so in coordinates in which clusters are alike it has one slope
    in all of them; mirrored on one cluster, it has opposite slopes.

    Parameters
    ----------
    coordinates : array of shape (samples, r)
    cluster : int array of shape (samples,)
    learned : array of shape (samples, n)
        Learned valuations.

    Returns
    -------
    float
        In [0, 1], mean over the n concepts.
    """
    inputs, outputs = coordinates.copy(), learned.copy()
    for j in np.unique(cluster):
        rows = cluster == j
        inputs[rows] -= inputs[rows].mean(axis=0)
        outputs[rows] -= outputs[rows].mean(axis=0)
    left = outputs - inputs @ np.linalg.lstsq(inputs, outputs, rcond=None)[0]
    return float(((left**2).sum(axis=0) / (outputs**2).sum(axis=0)).mean())


@torch.no_grad()
def _most_alike(trainer: Trainer, whitening: ClusterWhitening, raw: Stack) -> ConceptFit:
    """Keep one network a problem: among those of equal held-out loss, the one of one slope."""
    model, train, held = trainer.model, trainer.train, trainer.held_out
    starts = model.n_models // train.n_problems
    base = train.environment == 0
    clusters = whitening.responsibilities(raw.x[:, base]).argmax(dim=2).numpy()
    valuations = model.encoder(repeat_rows(train.x[:, base], model.n_models)).double().numpy()
    odds = model(repeat_rows(held.x, model.n_models))
    losses = softmax_losses(odds, held.environment, held.log_prior).double().numpy()
    chosen = []
    for problem in range(train.n_problems):
        own = np.arange(problem * starts, (problem + 1) * starts)
        coordinates = train.x[problem, base, : whitening.rank].double().numpy()
        disagreement = [
            slope_disagreement(coordinates, clusters[problem], valuations[i]) for i in own
        ]
        order = own[np.argsort(disagreement)]
        chosen.append(int(order[smallest_of_the_best(losses[order])]))
    fit = keep_starts(trainer, whitening, torch.as_tensor(chosen))
    # The lowest loss of the starts need not be that of the one which is kept.
    return replace(fit, held_out_loss=trainer.best[chosen, None].double().numpy())
