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
from conceptnb.learning.fitting import (
    _by_slopes,
    _generator,
    _linear_starts,
    _number_of_concepts,
    _prepare,
    _split,
    _start_linear,
)
from conceptnb.learning.model import ConceptModel, Whitening
from conceptnb.learning.recipes import CLUSTER_WHITENED, Recipe
from conceptnb.learning.training import StackTrainer

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

    Raises
    ------
    ValueError
        If targets are not known, or the base has fewer than two samples per cluster.
    """
    raw, recipe, numbers = _prepare(data, CLUSTER_WHITENED, seeds)
    n = _number_of_concepts(raw, recipe, None)
    exact = replace(raw, x=raw.x.double())
    gated = GatedWhitening.fit_clusters(exact, recipe.n_clusters, numbers)
    kinds = [whitening.to(raw.x) for whitening in (gated, rescaled(gated, exact))]
    members = [(w, _fit_in(w, raw, recipe, n, numbers, progress)) for w in kinds]
    return AveragedFit(members, _signs(members, raw.x[:, raw.environment == 0]))


def _fit_in(
    whitening: ClusterWhitening,
    raw: Stack,
    recipe: Recipe,
    n: int,
    seeds: Sequence[int],
    progress: bool,
) -> ConceptModel:
    """Return one model per problem, as `fit` would with this whitening."""
    rngs = [_generator(seed, recipe) for seed in seeds]
    kept, held = _split(raw, recipe, rngs)
    data = replace(raw, x=whitening(raw.x))
    train = data.rows(kept)
    own_seeds = [1000 * seed + start for seed in seeds for start in range(recipe.starts)]
    model = recipe.build(data.d_x, n, data.n_environments, data.targets, own_seeds)
    _start_linear(model, _linear_starts(train, whitening, recipe, rngs, recipe.starts, progress))
    trainer = StackTrainer(model, train, data.rows(held), recipe.training)
    trainer.run(progress)
    return model.choose(_by_slopes(trainer, whitening, raw.rows(kept)))


@torch.no_grad()
def _signs(members: Sequence[tuple[ClusterWhitening, ConceptModel]], base: Tensor) -> list[Tensor]:
    codes = [model.encode(whitening(base)) for whitening, model in members]
    centred = [code - code.mean(dim=1, keepdim=True) for code in codes]
    agree = [(code * centred[0]).sum(dim=1, keepdim=True) for code in centred]
    return [torch.where(covariance < 0, -1.0, 1.0).to(base) for covariance in agree]
