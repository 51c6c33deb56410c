r"""Concepts as affine subspaces (Section 4.1, Definitions 1 and 2).

A concept is a linear map :math:`A` on the latent space; a valuation :math:`b` picks
one of its parallel level sets :math:`\{z : Az = b\}`. Concepts with one row are atoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from conceptnb.common.validation import (
    Array,
    as_array,
    as_count,
    as_generator,
    as_points,
    as_positive,
)


def check_independent(rows: ArrayLike, name: str) -> Array:
    """Return the rows as an array (n, d_z) if they are linearly independent (Assumption 2).

    If not, ValueError says so by the `name` that the caller gives them.
    """
    array = as_array(rows, name, ndim=2)
    if 0 in array.shape:
        raise ValueError(f"{name} must have at least one row and one column, got {array.shape}")
    rank = np.linalg.matrix_rank(array)
    if rank < len(array):
        raise ValueError(
            f"the {len(array)} rows of {name} are linearly dependent (rank {rank}): "
            "drop the rows that are combinations of others (Assumption 2)"
        )
    return array


@dataclass(frozen=True, eq=False)
class Concept:
    """A concept :math:`A` at a valuation :math:`b` (Definition 1).

    A latent point :math:`z` and its observation :math:`f(z)` satisfy it if :math:`Az = b`.

    Parameters
    ----------
    A : array-like of shape (d_C, d_z)
        The linear map, with linearly independent rows; with one row it is an atom (Definition 2).
    b : array-like of shape (d_C,)
        The valuation, one entry per row of `A`.

    Examples
    --------
    >>> red = Concept([[1.0, 0.0, 0.0]], [2.0])
    >>> red.dim, red.valuation([[2.0, 5.0, 7.0]]).tolist()
    (1, [[2.0]])
    """

    A: Array
    b: Array

    def __post_init__(self) -> None:
        A = check_independent(self.A, "A")
        b = as_array(self.b, "b", ndim=1)
        if len(b) != len(A):
            raise ValueError(f"b must have one entry per row of A: {len(A)}, got {len(b)}")
        for array in (A, b):
            array.setflags(write=False)
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "b", b)

    @property
    def dim(self) -> int:
        """Dimension of the concept, dim(C): the number of rows of `A`."""
        return self.A.shape[0]

    @property
    def d_z(self) -> int:
        """Dimension of the latent space: the number of columns of `A`."""
        return self.A.shape[1]

    @cached_property
    def _pinv(self) -> Array:
        return np.linalg.pinv(self.A).astype(np.float64)

    @property
    def projector(self) -> Array:
        """Orthogonal projector :math:`A^+A` on the row space of `A`, shape (d_z, d_z)."""
        return self._pinv @ self.A

    @property
    def row_space(self) -> Array:
        r"""Orthonormal basis :math:`(A A^\top)^{-1/2} A` of the row space of `A`, shape (d_C, d_z).

        These rows are nearest to those of A: an atom's direction keeps its sign.
        """
        left, _, right = np.linalg.svd(self.A, full_matrices=False)
        return (left @ right).astype(np.float64)

    @property
    def point(self) -> Array:
        r"""The point of the subspace nearest to the origin, :math:`A^+b`, shape (d_z,)."""
        return self._pinv @ self.b

    @cached_property
    def directions(self) -> Array:
        """Orthonormal directions that keep the valuation, shape (d_z - d_C, d_z)."""
        return np.linalg.svd(self.A)[2][self.dim :].astype(np.float64)

    def at(self, b: ArrayLike) -> Concept:
        """Return the same concept at another valuation `b`, of shape (d_C,)."""
        return Concept(self.A, np.asarray(b))

    def atoms(self) -> list[Concept]:
        """Return the concept's atoms, one per row of `A` (Definition 2)."""
        return [Concept(self.A[[k]], self.b[[k]]) for k in range(self.dim)]

    def valuation(self, Z: ArrayLike) -> Array:
        """Evaluate the concept at points (samples, d_z): ``Z @ A.T``, shape (samples, d_C)."""
        return as_points(Z, "Z", self.d_z) @ self.A.T

    def satisfied_by(self, Z: ArrayLike, atol: float = 1e-8) -> np.ndarray:
        """Tell which points (samples, d_z) satisfy the concept (Definition 1), shape (samples,).

        `atol` is the largest Euclidean distance to the subspace that counts as none.
        """
        points = as_points(Z, "Z", self.d_z)
        distance = np.linalg.norm(points - self.project(points), axis=1)
        return distance <= as_positive(atol, "atol")

    def project(self, Z: ArrayLike) -> Array:
        """Move each point to the nearest one that satisfies the concept, shape (samples, d_z)."""
        points = as_points(Z, "Z", self.d_z)
        return points - (points @ self.A.T - self.b) @ self._pinv.T


def intersection(concepts: Sequence[Concept]) -> Concept:
    """Return the concept of all of them together (Section 4.1): rows stay linearly independent."""
    if not concepts:
        raise ValueError("concepts must hold at least one Concept")
    widths = {concept.d_z for concept in concepts}
    if len(widths) > 1:
        raise ValueError(f"concepts live in latent spaces of different dimensions: {widths}")
    return Concept(
        np.concatenate([concept.A for concept in concepts]),
        np.concatenate([concept.b for concept in concepts]),
    )


def random_atoms(n: int, d_z: int, rng: np.random.Generator) -> Array:
    """Draw atoms with entries uniform on (-0.3, 0.3) (Appendix G), shape (n, d_z).

    Rows are linearly independent, with probability one; `n` is at most `d_z`.
    """
    if as_count(n, "n") > as_count(d_z, "d_z"):
        raise ValueError(f"n must be at most d_z: {n} atoms in {d_z} dimensions are dependent")
    return as_generator(rng).uniform(-0.3, 0.3, size=(n, d_z))
