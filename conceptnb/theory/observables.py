r"""What a learner may see: the functions G_e on the data manifold, in some chart.

Models with the same observable distributions share :math:`G_e(x) = \ln p^0_X(x) - \ln p^e_X(x)`
on the data manifold (48), and Theorem 1 uses nothing else. A learner holds coordinates u, an
unknown diffeomorphism of the latents z, and can ask for :math:`G_e` anywhere.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from conceptnb.common.validation import Array, as_points
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import GaussianMixture
from conceptnb.core.problems import log_odds
from conceptnb.theory.minima import minimise
from conceptnb.theory.nonlinear_map import Diffeomorphism, SmoothMixing


@dataclass(frozen=True, eq=False)
class Observables:
    """The functions G_e as black boxes in a chart of the data manifold (Step 2).

    `ratios` maps chart coordinates (samples, d) to ``G`` (samples, m). The base data `points`
    (samples, d) set where searches start and the scale of steps.
    """

    ratios: Callable[[Array], Array]
    points: Array
    n_environments: int

    @property
    def d(self) -> int:
        """Dimension of the data manifold, d_z."""
        return self.points.shape[1]

    def prepared(self) -> "Observables":
        r"""Return the same functions in the chart that the steps of the proof use.

        The data have unit spread, and the origin is where :math:`\sum_e G_e` is least: any
        chart would do, but in this one searches start near their ends.
        """
        centre, spread = np.median(self.points, axis=0), self.points.std(axis=0)

        def scaled(U: Array) -> Array:
            return self.ratios(U * spread + centre)

        origin = minimise(scaled, np.ones((1, self.n_environments)), np.zeros(self.d)).points
        return Observables(
            lambda U: scaled(U + origin),
            (self.points - centre) / spread - origin,
            self.n_environments,
        )


@dataclass(frozen=True, eq=False)
class Instance:
    """An instance of Section 5's setting, kept from the learner: f, base, atoms (n, d_z), design.

    Chart coordinates are ``u = warp(z)``.
    """

    mixing: SmoothMixing
    base: GaussianMixture
    atoms: Array
    design: EnvironmentDesign
    warp: Diffeomorphism

    def log_ratio(self, X: ArrayLike) -> Array:
        r"""Evaluate :math:`G_e(x) = \ln p^0 - \ln p^e` (48), (samples, d_x) to (samples, m).

        The Jacobian of f cancels between the two densities.
        """
        return -log_odds(self.base, self.design, self.atoms, self.mixing.inverse(X))

    def chart(self, U: ArrayLike) -> Array:
        """Map chart coordinates to points of the manifold, shape (samples, d_x)."""
        return self.mixing(self.warp.inverse(U))

    def coordinates(self, X: ArrayLike) -> Array:
        """Map points of the manifold to chart coordinates, shape (samples, d_z)."""
        return self.warp(self.mixing.inverse(X))

    def valuations(self, X: ArrayLike) -> Array:
        r"""Return the true valuations :math:`\langle a_i, f^{-1}(x)\rangle`, shape (samples, n)."""
        return self.mixing.inverse(X) @ self.atoms.T

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw base observations, shape (n, d_x)."""
        return self.mixing(self.base.sample(n, rng))

    def observables(self, X: ArrayLike) -> Observables:
        """Hide everything but the black boxes and base data `X`, shape (samples, d_x)."""
        points = self.coordinates(as_points(X, "X", self.mixing.d_x))
        return Observables(
            lambda U: self.log_ratio(self.chart(U)), points, self.design.n_environments
        )
