"""Random smooth maps: diffeomorphisms, and mixings f of the latent space (Assumption 1).

They can be inverted in closed form: a black box needs that to evaluate a density at a point x of
the data manifold. They are deliberately not neural networks with unknown inverses.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from conceptnb.common.validation import Array, as_count, as_generator, as_points

_BEND = 0.7  # size of a layer's shear and of its bend: 0 would be a rotation


@dataclass(frozen=True, eq=False)
class _Layer:
    """Rotate, shear the second half of the coordinates by the first, bend each one."""

    rotation: Array
    weight: Array
    offset: Array

    def forward(self, Z: Array) -> Array:
        Y = Z @ self.rotation.T
        half = self.weight.shape[1]
        Y[:, half:] += np.tanh(Y[:, :half] @ self.weight.T + self.offset)
        return np.arcsinh(_BEND * Y) / _BEND

    def inverse(self, Y: Array) -> Array:
        Z = np.sinh(_BEND * Y) / _BEND
        half = self.weight.shape[1]
        Z[:, half:] -= np.tanh(Z[:, :half] @ self.weight.T + self.offset)
        return Z @ self.rotation


class Diffeomorphism:
    """A random smooth bijection of :math:`R^d` with a smooth inverse.

    Each of two layers rotates, shears (``y₂ += tanh(W y₁ + c)``) and bends coordinates by arsinh.
    """

    def __init__(self, d: int, rng: np.random.Generator) -> None:
        self.d = size = as_count(d, "d")
        generator = as_generator(rng)
        self._layers = []
        for _ in range(2):
            half = size // 2
            weight = _BEND * generator.standard_normal((size - half, half)) / max(half, 1) ** 0.5
            offset = generator.standard_normal(size - half)
            self._layers.append(_Layer(_rotation(size, generator), weight, offset))

    def __call__(self, Z: ArrayLike) -> Array:
        """Map points of shape (samples, d)."""
        Y = as_points(Z, "Z", self.d)
        for layer in self._layers:
            Y = layer.forward(Y)
        return Y

    def inverse(self, Y: ArrayLike) -> Array:
        """Map points of shape (samples, d) back."""
        Z = as_points(Y, "Y", self.d)
        for layer in reversed(self._layers):
            Z = layer.inverse(Z)
        return Z


class SmoothMixing:
    r"""A random smooth mixing f, a diffeomorphism onto its image (Assumption 1), for d_x >= d_z.

    :math:`f(z) = Q\,(h(z), \tanh(C h(z)))`: h a diffeomorphism, C random, Q orthogonal.
    """

    def __init__(self, d_z: int, d_x: int, rng: np.random.Generator) -> None:
        if as_count(d_x, "d_x") < as_count(d_z, "d_z"):
            raise ValueError(f"d_x must be at least d_z = {d_z} for an injective f, got {d_x}")
        self.d_z, self.d_x = d_z, d_x
        self._h = Diffeomorphism(d_z, rng)
        self._C = rng.standard_normal((d_x - d_z, d_z)) / np.sqrt(d_z)
        self._Q = _rotation(d_x, rng)

    def __call__(self, Z: ArrayLike) -> Array:
        """Map latents of shape (samples, d_z) to observations of shape (samples, d_x)."""
        H = self._h(Z)
        return np.hstack([H, np.tanh(H @ self._C.T)]) @ self._Q.T

    def inverse(self, X: ArrayLike) -> Array:
        """Map observations on the data manifold back to latents, shape (samples, d_z)."""
        return self._h.inverse((as_points(X, "X", self.d_x) @ self._Q)[:, : self.d_z])


def _rotation(d: int, rng: np.random.Generator) -> Array:
    """Draw an orthogonal matrix, shape (d, d)."""
    return np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float64)
