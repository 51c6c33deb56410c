r"""Pairs of models with equal observable distributions and different concepts.

Each pair breaks one assumption of Theorem 1. The second model is written in coordinates
:math:`\tilde z = \Phi(z)`, where :math:`\Phi` leaves every :math:`g_e` as it is (58) and yet
moves the concepts. Each is sampled by itself, with its *own* atoms, valuations and mixing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from conceptnb.common.validation import Array, as_generator
from conceptnb.core.design import EnvironmentDesign, paper_design
from conceptnb.core.distributions import GaussianMixture, sample_rejection
from conceptnb.core.scores import match_columns
from conceptnb.theory.nonlinear_map import SmoothMixing
from conceptnb.theory.two_sample import projection_test

Map = Callable[[Array], Array]
TwoSampleTest = Callable[[Array, Array, np.random.Generator], float]

_VARIANCE = 0.25  # variance of q in the pairs that are not the paper's


@dataclass(frozen=True, eq=False)
class Model:
    """A generative model with concepts: base distribution, mixing, atoms (n, d_z), environments.

    `draw` maps (n, rng) to base latents; `encoder` inverts `mixing`, None if not injective.
    """

    draw: Callable[[int, np.random.Generator], Array]
    mixing: Map
    encoder: Map | None
    atoms: Array
    design: EnvironmentDesign

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw `n` base latents, shape (n, d_z)."""
        return self.draw(n, rng)

    def observe(self, n: int, rng: np.random.Generator) -> list[Array]:
        """Draw `n` observations of the base and of each environment, m + 1 arrays."""
        concepts = self.design.concepts(self.atoms)
        latents = [self.draw(n, rng)]
        latents += [sample_rejection(self, c, self.design.variance, n, rng) for c in concepts]
        return [self.mixing(Z) for Z in latents]

    def valuations(self, X: Array) -> Array:
        """Evaluate each atom at observations, shape (samples, n)."""
        if self.encoder is None:
            raise ValueError("the mixing is not injective: an observation has no valuation")
        return self.encoder(X) @ self.atoms.T

    def transformed(self, forward: Map, backward: Map) -> "Model":
        r"""Write the model in coordinates :math:`\tilde z = \Phi(z)`: the same base data.

        `forward` is :math:`\Phi` and `backward` its inverse.
        """
        encoder = self.encoder
        if encoder is None:
            raise ValueError("the mixing is not injective: there is no encoder to transform")
        return replace(
            self,
            draw=lambda n, rng: forward(self.draw(n, rng)),
            mixing=lambda Z: self.mixing(backward(Z)),
            encoder=lambda X: forward(encoder(X)),
        )


@dataclass(frozen=True, eq=False)
class ModelPair:
    """Two models of the same data; `broken` names the assumption that fails."""

    name: str
    broken: str
    first: Model
    second: Model

    def p_value(
        self, n: int, rng: np.random.Generator, test: TwoSampleTest = projection_test
    ) -> float:
        """Test equality of the observed distributions in all environments at once (Bonferroni).

        There are n samples of each environment and model; `test` takes (X, Y, rng).
        """
        pairs = zip(self.first.observe(n, rng), self.second.observe(n, rng), strict=True)
        p_values = [test(X, Y, rng) for X, Y in pairs]
        return min(1.0, min(p_values) * len(p_values))

    def agreement(self, n: int, rng: np.random.Generator) -> Array:
        """Correlate the two models' valuations of the same observations, shape (n_atoms,).

        These are best-matched absolute correlations; Definition 4 asks for ones.
        """
        X = self.first.mixing(self.first.draw(n, rng))
        return np.abs(match_columns(self.first.valuations(X), self.second.valuations(X))[2])

    def moved(self, by: float) -> "ModelPair":
        """Move the second model's first valuation by `by` σ: what a test should notice."""
        design = self.second.design
        values = [list(row) for row in design.valuations]
        values[0][0] += by * design.variance**0.5
        second = replace(self.second, design=replace(design, valuations=values))
        return ModelPair(f"{self.name}, moved by {by:g} σ", self.broken, self.first, second)


def always_together(rng: np.random.Generator) -> ModelPair:
    """Rotate two atoms that always occur together: the data do not change.

    Breaks Assumption 5, and with it the rank of M in Assumption 4.
    """
    valuations = np.array([[0.6, -0.3], [-0.5, 0.4], [0.2, 0.8]])
    turn = _turn(np.pi / 4)
    first = _gaussian_model(rng, [[0, 1]] * 3, valuations)
    design = EnvironmentDesign([[0, 1]] * 3, (valuations @ turn.T).tolist(), _VARIANCE)
    second = replace(first, atoms=turn @ first.atoms, design=design)
    return ModelPair("always together", "Assumption 5 (and the rank of M)", first, second)


def too_few_environments(rng: np.random.Generator) -> ModelPair:
    r"""Swirl around the valuation of the only environment: that goes unnoticed.

    :math:`\Phi` turns the concept plane about b by an angle that grows with the distance from b.
    The one :math:`g_1` depends on that distance only. The concepts are not even linearly related.
    """
    b = np.array([0.3, -0.2])
    first = _gaussian_model(rng, [[0, 1]], b[None])

    def swirl(Z: Array, sign: float) -> Array:
        offset = Z[:, :2] - b
        angle = sign * 1.5 * (offset**2).sum(axis=1)
        cos, sin = np.cos(angle), np.sin(angle)
        u, v = offset.T
        return np.column_stack([b[0] + cos * u - sin * v, b[1] + sin * u + cos * v, Z[:, 2:]])

    second = first.transformed(lambda Z: swirl(Z, 1.0), lambda Z: swirl(Z, -1.0))
    return ModelPair("too few environments", "m < n: the rank of M", first, second)


def constant_valuations(rng: np.random.Generator) -> ModelPair:
    """Mirror one of two islands of data about a valuation that never varies."""
    design = EnvironmentDesign([[0], [1], [0, 1]], [[0.0], [-0.5], [0.0, 0.5]], _VARIANCE)
    return _islands(rng, design, offset=0.9, name="valuations that do not vary")


def reflection(rng: np.random.Generator) -> ModelPair:
    """Mirror one island in the paper's own two-atom environments, where atom 0 occurs once."""
    return _islands(rng, paper_design(2), offset=0.15, name="the paper's environments, two islands")


def non_injective(rng: np.random.Generator) -> ModelPair:
    r"""Fold :math:`z_0` to its square by f: valuations b and -b then look the same."""
    f = SmoothMixing(3, 4, as_generator(rng))
    base = GaussianMixture(
        [0.5, 0.5], [[0.0, 0.5, 0.0], [0.0, -0.5, 0.3]], np.tile(0.3 * np.eye(3), (2, 1, 1))
    )

    def fold(Z: Array) -> Array:
        return f(np.column_stack([Z[:, :1] ** 2, Z[:, 1:]]))

    def model(b: float) -> Model:
        subsets, values = [[0], [0, 1], [1]], [[0.9], [b, -0.3], [0.4]]
        design = EnvironmentDesign(subsets, values, _VARIANCE)
        return Model(base.sample, fold, None, np.eye(2, 3), design)

    return ModelPair("non-injective mixing", "Assumption 1", model(0.5), model(-0.5))


def ambiguity(rng: np.random.Generator, shift_sign: float = 1.0) -> ModelPair:
    r"""Definition 4's freedom: permutation, sign, scale, shift and a linear map at once.

    Here :math:`\tilde z = T(z + w)`, :math:`\tilde a = \lambda_i T^{-\top} a_i` and
    :math:`\tilde b = \lambda_i (b + \langle a_i, w\rangle)`, where Definition 4 leaves the
    scale out of :math:`\tilde A^e`. All :math:`|\lambda_i|` are equal, as Assumption 3 has
    one variance. Equation (4) prints :math:`b - Aw`, `shift_sign` -1; (34) has the plus that makes
    the observations agree.
    """
    subsets, order = [[0], [0, 1], [1]], [1, 0]
    values: list[list[float]] = [[0.5], [-0.4, 0.3], [-0.6]]
    atoms = np.array([[1.0, 0.2, 0.0], [-0.3, 0.9, 0.4]])
    first = _gaussian_model(rng, subsets, values, atoms)
    T = np.eye(3) + 0.4 * rng.standard_normal((3, 3))
    w = np.array([0.5, -0.7, 0.2])
    scale = 2.0 * np.array([1.0, -1.0])
    shift = shift_sign * atoms @ w
    design = EnvironmentDesign(
        [[order[i] for i in S] for S in subsets],
        [
            [scale[i] * (b + shift[i]) for i, b in zip(S, row, strict=True)]
            for S, row in zip(subsets, values, strict=True)
        ],
        4.0 * _VARIANCE,
    )
    second = replace(
        first.transformed(lambda Z: (Z + w) @ T.T, lambda Z: np.linalg.solve(T, Z.T).T - w),
        atoms=(scale[:, None] * np.linalg.solve(T.T, atoms.T).T)[order],
        design=design,
    )
    printed = "Definition 4 with the sign of (4)"
    name = "the freedom of Definition 4" if shift_sign > 0 else printed
    return ModelPair(name, "none", first, second)


def _turn(angle: float) -> Array:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def _gaussian_model(
    rng: np.random.Generator, subsets: list, valuations: object, atoms: Array | None = None
) -> Model:
    """Two atoms in three latent dimensions under a fixed two-component base."""
    f = SmoothMixing(3, 4, as_generator(rng))
    base = GaussianMixture(
        [0.6, 0.4],
        [[0.5, 0.0, -0.3], [-0.6, 0.4, 0.5]],
        [np.diag([0.20, 0.30, 0.20]), np.diag([0.15, 0.10, 0.30])],
    )
    rows = np.eye(2, 3) if atoms is None else atoms
    design = EnvironmentDesign(subsets, np.asarray(valuations, dtype=object).tolist(), _VARIANCE)
    return Model(base.sample, f, f.inverse, rows, design)


def _islands(
    rng: np.random.Generator, design: EnvironmentDesign, offset: float, name: str
) -> ModelPair:
    """Mirror the left of two islands of data about atom 0's valuation, by a diffeomorphism."""
    f = SmoothMixing(3, 4, as_generator(rng))
    b = design.valuations[0][0]
    radius, height = 0.6 * offset, 2.0 * offset
    left = np.array([b - offset, 0.0, -height])
    right = np.array([b + offset, 0.0, height])

    def draw(n: int, generator: np.random.Generator) -> Array:
        inside = generator.standard_normal((n, 3))
        inside /= np.linalg.norm(inside, axis=1, keepdims=True)
        inside *= radius * generator.random((n, 1)) ** (1 / 3)
        return inside + np.where(generator.random((n, 1)) < 0.6, left, right)

    def spin(Z: Array, sign: float) -> Array:
        offsets = Z - left
        distance = np.linalg.norm(offsets, axis=1)
        angle = sign * np.pi * (1 - _step((distance - radius) / (0.5 * radius)))
        cos, sin = np.cos(angle), np.sin(angle)
        u, v = offsets[:, 0], offsets[:, 2]
        turned = np.column_stack([cos * u - sin * v, offsets[:, 1], sin * u + cos * v])
        return left + turned

    def shear(Z: Array, sign: float) -> Array:
        below = 1 - _step((Z[:, 2] + height - radius) / (2 * (height - radius)))
        return Z + sign * 2 * offset * below[:, None] * np.array([1.0, 0.0, 0.0])

    first = Model(draw, f, f.inverse, np.eye(2, 3), design)
    second = first.transformed(
        lambda Z: shear(spin(Z, 1.0), 1.0), lambda Z: spin(shear(Z, -1.0), -1.0)
    )
    return ModelPair(name, "Assumption 4, atom 0", first, second)


def _step(t: Array) -> Array:
    """Smooth step from 0 (t <= 0) to 1 (t >= 1)."""
    s = np.clip(t, 0.0, 1.0)
    return s**3 * (10 - 15 * s + 6 * s**2)
