"""Averages of fits in two kinds of coordinates of a clustered base.

Cluster whitening leaves a rotation per cluster open and takes it to be the same in all of them. How
wrong that is depends on the scale of the columns of x in which the roots of the covariances are
taken, and on what a network may change on a single cluster. :func:`fit_averaged` fits twice, with
another choice of each, and averages. Not in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from conceptnb.common.validation import Array, as_points
from conceptnb.core.problems import Problem
from conceptnb.learning.cluster_whitening import ClusterWhitening
from conceptnb.learning.data import Stack
from conceptnb.learning.fitting import fit, prepare
from conceptnb.learning.model import ConceptModel, Whitening
from conceptnb.learning.recipes import CLUSTER_WHITENED

POWER = 0.2
"""Of the mean covariance: what x is scaled by in the second kind, see `rescaled`."""
SHRINKAGE = 0.005
"""Added before roots are taken in the second kind of coordinates, see `rescaled`."""


class GatedWhitening(ClusterWhitening):
    """Coordinates and whitened observations, and what a network may use on one cluster alone.

    The inputs of :class:`~conceptnb.learning.ClusterWhitening` are followed, for each cluster, by
    the coordinates about its centre times its responsibility.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Map (D, rows, d_x) to coordinates, whitened observations and gated coordinates."""
        shares = self.responsibilities(x)
        gated = [
            shares[..., j, None] * ((x - self.centres[:, j, None]) @ self.maps[:, j])
            for j in range(self.centres.shape[1])
        ]
        return torch.cat([super().forward(x), *gated], dim=2)


def rescaled(
    whitening: ClusterWhitening, data: Stack, power: float = POWER, shrinkage: float = SHRINKAGE
) -> ClusterWhitening:
    r"""Take the roots of covariances in scaled observations, and put clusters by their mean root.

    With the metric :math:`G = \bar C^{-p}`, p the `power`, the map of cluster j becomes
    :math:`A_j = G (G C_j G)^{-1/2}` and its place :math:`\bar A^\top m_j`, where means over
    clusters are weighted. Not in the paper.

    Parameters
    ----------
    whitening : ClusterWhitening
        Its clusters are kept.
    data : Stack
        Observations that it was fitted to.
    power : float
        Of the mean covariance; 0 leaves x as it is.
    shrinkage : float
        Added to every scaled covariance before its root, where the mean covariance is first
        divided by its mean variance. (The metric has 1e-3 added to the eigenvalues of that mean.)
    """
    covariances = torch.linalg.inv(whitening.factors @ whitening.factors.mT)
    weights = whitening.log_weights.exp()[..., None, None]
    mean = (weights * covariances).sum(dim=1, keepdim=True)
    size = mean.diagonal(dim1=2, dim2=3).mean(dim=2)[..., None, None]
    metric = _power(mean / size, -power, 1e-3)
    maps = metric @ _power(metric @ covariances @ metric / size, -0.5, shrinkage)
    offsets = whitening.centres @ (weights * maps).sum(dim=1)
    mixture = whitening.log_weights, whitening.centres, whitening.factors
    rough = ClusterWhitening(whitening, *mixture, maps, offsets)
    last = Whitening.fit(replace(data, x=rough.coordinates(data.x)))
    maps, offsets = maps @ last.matrix[:, None], (offsets - last.mean) @ last.matrix
    return ClusterWhitening(whitening, *mixture, maps, offsets)


def _power(covariances: Tensor, power: float, floor: float) -> Tensor:
    values, vectors = torch.linalg.eigh(covariances)
    return (vectors * (values.clamp(min=0) + floor)[..., None, :] ** power) @ vectors.mT


@dataclass(frozen=True, eq=False)
class AveragedFit:
    """Concept models of D problems in several coordinates, whose valuations are averaged.

    Parameters
    ----------
    members : sequence of (ClusterWhitening, ConceptModel)
        Coordinates, and the models of all problems in them.
    signs : sequence of tensors of shape (D, 1, n)
        What a member's valuations are multiplied with: 1 where they have the sign of the first
        member's over the base, else -1. A tied head leaves no other scale open.
    """

    members: Sequence[tuple[ClusterWhitening, ConceptModel]]
    signs: Sequence[Tensor]

    @torch.no_grad()
    def transform(self, X: Sequence[ArrayLike] | Array) -> Array:
        """Return mean learned valuations (D, samples, n) of X (D, samples, d_x), new or old."""
        x = np.stack([as_points(rows, f"X[{i}]") for i, rows in enumerate(X)])
        first = self.members[0][0].mean
        if len(x) != len(first):
            raise ValueError(f"X holds {len(x)} arrays; give one per problem, {len(first)} in all")
        own = torch.as_tensor(x).to(first)
        codes = [
            sign * model.encode(whitening(own))
            for (whitening, model), sign in zip(self.members, self.signs, strict=True)
        ]
        return torch.stack(codes).mean(dim=0).double().numpy()


def fit_averaged(
    data: Stack | Sequence[Problem],
    *,
    seeds: Sequence[int] | None = None,
    progress: bool = False,
) -> AveragedFit:
    """Fit `CLUSTER_WHITENED` in gated and in rescaled coordinates, and average.

    For nonlinear mixing, on the CPU. What a fit is told, and its starts, training and choice
    between starts, are those of :func:`~conceptnb.learning.fit` with that recipe. With linear
    mixing `fit` searches without training; this refuses it. Not in the paper.

    Parameters
    ----------
    data : Stack or sequence of D Problem
        With nonlinear mixing; of your own arrays, ``stack([X], environment, targets)``.
    seeds : sequence of D int, optional
        As in :func:`~conceptnb.learning.fit`.
    progress : bool
        Show bars.

    Returns
    -------
    AveragedFit
        Two members per problem, with their signs.

    Raises
    ------
    ValueError
        If targets are not known, or the base has fewer than two samples per cluster.
    """
    raw, recipe, numbers = prepare(data, CLUSTER_WHITENED, seeds)
    if raw.targets is None:
        raise ValueError("fit_averaged needs targets: give them to stack()")
    exact = replace(raw, x=raw.x.double())
    gated = GatedWhitening.fit_clusters(exact, recipe.n_clusters, numbers)
    kinds = [whitening.to(raw.x) for whitening in (gated, rescaled(gated, exact))]
    members = [
        (w, fit(raw, recipe, seeds=numbers, whitening=w, progress=progress).model) for w in kinds
    ]
    return AveragedFit(members, _signs(members, raw.x[:, raw.environment == 0]))


@torch.no_grad()
def _signs(members: Sequence[tuple[ClusterWhitening, ConceptModel]], base: Tensor) -> list[Tensor]:
    codes = [model.encode(whitening(base)) for whitening, model in members]
    centred = [code - code.mean(dim=1, keepdim=True) for code in codes]
    agree = [(code * centred[0]).sum(dim=1, keepdim=True) for code in centred]
    return [torch.where(covariance < 0, -1.0, 1.0).to(base) for covariance in agree]
