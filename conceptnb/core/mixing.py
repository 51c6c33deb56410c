r"""Mixing functions f: latent z -> observation x = f(z), linear and nonlinear (Appendix G).

Theorem 1 asks of f only that it is injective and differentiable (Assumption 1). A
random mixing need not be: :func:`check_injectivity` says what can be known about one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from conceptnb.common.validation import Array, as_array, as_count, as_generator, as_points

Injectivity = Literal["injective", "not injective", "no violation found"]

_ZERO = 1e-9  # part of the largest one that a singular value or a ratio of distances needs to count


class Mixing(Protocol):
    """What every mixing offers: its two dimensions, its values and its Jacobian."""

    @property
    def d_z(self) -> int:
        """Latent dimension."""

    @property
    def d_x(self) -> int:
        """Observed dimension."""

    def __call__(self, Z: ArrayLike) -> Array:
        """Map latents of shape (samples, d_z) to observations of shape (samples, d_x)."""

    def jacobian(self, Z: ArrayLike) -> Array:
        """Return df/dz at each latent, of shape (samples, d_x, d_z)."""


@dataclass(frozen=True)
class LinearMixing:
    """x = W z without bias, W (d_x, d_z), the linear mixing of Tables 1 and 7 (Appendix G, i)."""

    weight: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", as_array(self.weight, "weight", ndim=2))

    @classmethod
    def random(cls, d_z: int, d_x: int, rng: np.random.Generator) -> LinearMixing:
        """Draw W with entries U(-1/√d_z, 1/√d_z), torch's default for a linear layer."""
        as_count(d_z, "d_z")
        as_count(d_x, "d_x")
        return cls(_uniform_layer(d_z, d_x, rng)[0])

    @property
    def d_z(self) -> int:
        """Latent dimension."""
        return self.weight.shape[1]

    @property
    def d_x(self) -> int:
        """Observed dimension."""
        return self.weight.shape[0]

    def __call__(self, Z: ArrayLike) -> Array:
        """Map latents of shape (samples, d_z) to observations of shape (samples, d_x)."""
        return as_points(Z, "Z", self.d_z) @ self.weight.T

    def jacobian(self, Z: ArrayLike) -> Array:
        """Return W for each sample, shape (samples, d_x, d_z)."""
        return np.broadcast_to(self.weight, (len(as_points(Z, "Z", self.d_z)), *self.weight.shape))


@dataclass(frozen=True)
class MLPMixing:
    """A small random network, the nonlinear mixing of Tables 1 and 7 (Appendix G, case ii).

    Linear(d_z, width), leaky ReLU, then one residual layer h + leaky(V h + c), then
    Linear(width, d_x). The paper's width is 16 and its slope 0.2. The map is
    piecewise linear, so it is differentiable except on the kinks.

    Parameters
    ----------
    weights : three arrays of shapes (width, d_z), (width, width), (d_x, width)
        Of the input, residual and output layer.
    biases : three arrays of shapes (width,), (width,), (d_x,)
    slope : float
        Slope of the leaky ReLU below zero, in (0, 1].
    """

    weights: tuple[Array, Array, Array]
    biases: tuple[Array, Array, Array]
    slope: float = 0.2

    def __post_init__(self) -> None:
        names = ("input", "residual", "output")
        weights = tuple(
            as_array(w, f"{n} weight", ndim=2) for w, n in zip(self.weights, names, strict=True)
        )
        biases = tuple(
            as_array(b, f"{n} bias", ndim=1) for b, n in zip(self.biases, names, strict=True)
        )
        width = weights[0].shape[0]
        if weights[1].shape != (width, width) or weights[2].shape[1] != width:
            raise ValueError(
                f"weights have shapes {[w.shape for w in weights]}; the residual layer must be "
                f"({width}, {width}) and the output layer (d_x, {width})"
            )
        if [b.shape for b in biases] != [w.shape[:1] for w in weights]:
            raise ValueError(
                f"biases have shapes {[b.shape for b in biases]}; give one entry for each row "
                f"of the weights: {[w.shape[:1] for w in weights]}"
            )
        if not 0 < self.slope <= 1:
            raise ValueError(f"slope is {self.slope}; it must lie in (0, 1], the paper's is 0.2")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "biases", biases)

    @classmethod
    def random(
        cls,
        d_z: int,
        d_x: int,
        rng: np.random.Generator,
        *,
        width: int = 16,
        slope: float = 0.2,
    ) -> MLPMixing:
        """Draw weights and biases U(-1/√fan_in, 1/√fan_in), torch's default."""
        as_count(d_z, "d_z")
        as_count(d_x, "d_x")
        as_count(width, "width")
        layers = [
            _uniform_layer(fan_in, fan_out, rng)
            for fan_in, fan_out in ((d_z, width), (width, width), (width, d_x))
        ]
        weights, biases = zip(*layers, strict=True)
        return cls(weights, biases, slope)  # type: ignore[arg-type]  # zip forgets the length

    @property
    def d_z(self) -> int:
        """Latent dimension."""
        return self.weights[0].shape[1]

    @property
    def d_x(self) -> int:
        """Observed dimension."""
        return self.weights[2].shape[0]

    @property
    def width(self) -> int:
        """Number of hidden units."""
        return self.weights[0].shape[0]

    def __call__(self, Z: ArrayLike) -> Array:
        """Map latents of shape (samples, d_z) to observations of shape (samples, d_x)."""
        first, second = self._preactivations(as_points(Z, "Z", self.d_z))
        hidden = self._leaky(first) + self._leaky(second)
        return hidden @ self.weights[2].T + self.biases[2]

    def jacobian(self, Z: ArrayLike) -> Array:
        """Return df/dz at each latent, of shape (samples, d_x, d_z), exact off the kinks."""
        first, second = self._preactivations(as_points(Z, "Z", self.d_z))
        outer = self._slopes(first)[:, :, None] * self.weights[0]
        inner = self._slopes(second)[:, :, None] * (self.weights[1] @ outer)
        return self.weights[2] @ (outer + inner)

    def _preactivations(self, Z: Array) -> tuple[Array, Array]:
        first = Z @ self.weights[0].T + self.biases[0]
        return first, self._leaky(first) @ self.weights[1].T + self.biases[1]

    def _leaky(self, values: Array) -> Array:
        return np.where(values > 0, values, self.slope * values)

    def _slopes(self, values: Array) -> Array:
        return np.where(values > 0, 1.0, self.slope)


@dataclass(frozen=True)
class InjectivityReport:
    """What is known about Assumption 1 for one mixing on one set of latents, and why.

    Only a linear map can be shown to be injective from samples. Others can be shown not to be;
    otherwise no violation was found, which is evidence, no proof. Where the smallest singular value
    of the Jacobian over the latents is 0, the inverse of f, if there is one, is not differentiable;
    a piecewise linear f is then not injective.
    """

    verdict: Injectivity
    reason: str
    smallest_singular_value: float

    def __bool__(self) -> bool:
        """Whether nothing speaks against Assumption 1."""
        return self.verdict != "not injective"


def check_injectivity(mixing: Mixing, Z: ArrayLike) -> InjectivityReport:
    """Check whether a mixing can satisfy Assumption 1 (f injective) on given latents.

    Three tests: every layer must be at least d_z wide (a continuous map into a lower
    dimension is never injective), no two different latents of the sample may share an
    observation, and the Jacobian of a piecewise linear map must have full column rank at
    every latent. Of a smooth map a singular Jacobian decides nothing: z³ is injective. Z (samples,
    d_z) are latents from the base distribution, at least two of them distinct.
    """
    latents = np.unique(as_points(Z, "Z", mixing.d_z), axis=0)
    if len(latents) < 2:
        raise ValueError(f"Z has {len(latents)} distinct rows; give at least two latents")
    bottleneck = min(mixing.d_x, getattr(mixing, "width", mixing.d_x))
    singular = np.linalg.svd(mixing.jacobian(latents), compute_uv=False).astype(np.float64)
    # With d_x < d_z the missing singular values are zero.
    smallest = float(singular[:, -1].min()) if mixing.d_x >= mixing.d_z else 0.0
    singular_there = smallest <= _ZERO * float(singular.max())
    ratios, slopes = _distance_ratios(latents, mixing(latents), singular[:, 0])
    verdict: Injectivity = "no violation found"
    reason = "locally injective at every latent of the sample"
    if bottleneck < mixing.d_z:
        verdict, reason = "not injective", f"d_z = {mixing.d_z} passes through {bottleneck}"
    elif singular_there and isinstance(mixing, (LinearMixing, MLPMixing)):
        verdict, reason = "not injective", "the Jacobian loses rank where the map is linear"
    elif (ratios <= _ZERO * slopes).any():
        verdict, reason = "not injective", "two different latents share an observation"
    elif isinstance(mixing, LinearMixing):
        verdict, reason = "injective", "the matrix has full column rank"
    elif singular_there:
        reason = "the Jacobian loses rank at a latent of the sample, which decides nothing"
    return InjectivityReport(verdict, reason, smallest)


def _distance_ratios(Z: Array, X: Array, slopes: Array) -> tuple[Array, Array]:
    """Return |x - x'| / |z - z'| of nearest neighbours in x, and the larger of their slopes."""
    distances, index = cKDTree(X).query(X, k=min(9, len(X)))
    gaps = np.linalg.norm(Z[index] - Z[:, None, :], axis=2)
    apart = gaps > 0  # rows of Z are distinct, so a zero gap is the sample itself
    steeper = np.maximum(slopes[index], slopes[:, None])
    return distances[apart] / gaps[apart], steeper[apart]


def _uniform_layer(fan_in: int, fan_out: int, rng: np.random.Generator) -> tuple[Array, Array]:
    bound = 1 / np.sqrt(fan_in)
    as_generator(rng)
    return rng.uniform(-bound, bound, (fan_out, fan_in)), rng.uniform(-bound, bound, fan_out)
