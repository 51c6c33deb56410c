r"""The other model, constructed: why an atom is not identified.

The certificate (`conceptnb.core.certificate`) says of each atom on which supports it is
identified. For every atom that is not identified on all of them, this module builds a
second model with the same log ratios: matrices :math:`\tilde M, \tilde B` and a map
:math:`\Phi` of the concept coordinates with :math:`\tilde G(\Phi(z)) = G(z)`.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp
from scipy.linalg import null_space, orth

from conceptnb.common.validation import Array, as_array, as_generator, as_points
from conceptnb.core.certificate import certify, shown_atoms, turn_of
from conceptnb.core.shared_poles import Turn

_TOLERANCE = 1e-8
_ITERATIONS = 25  # of Gauss-Newton, that converges in a few where there is no fold
_ATTEMPTS = 60
_CLOUD = 120  # points at which bends are measured
_FEW = 12  # of them, at which slopes are
_RADII = (1.0, 0.5, 0.25, 0.1, 0.03)  # of the ball on which a second model is computed
_CLEAR = 2e-3  # bend with which the search is content
_FAINT = 1e-5  # bend below which a model is not taken at all
_ANGLE = np.pi / 5  # by which the plane of two atoms with equal columns is turned
_TURN = np.array([[np.cos(_ANGLE), -np.sin(_ANGLE)], [np.sin(_ANGLE), np.cos(_ANGLE)]])


@dataclass(frozen=True, eq=False)
class _Competitor:
    r"""A second model of the same data, in concept coordinates.

    It is the rotation of two atoms with proportional columns of M, or a flow along the right kernel
    of D(z), both on every support, or a second parametrisation of the same log ratios, on a ball.
    Flows are the identity outside the ball; rotations move all points. `constants` are differences
    of the models' constants; `start` and `slope` the map's value and derivative at the centre.
    """

    kind: Literal["rotation", "flow", "reparametrisation"]
    M: Array
    B: Array
    second_m: Array
    second_b: Array
    constants: Array
    centre: Array
    radius: float
    start: Array
    slope: Array

    def __call__(self, Z: ArrayLike) -> Array:
        """Map concept coordinates (samples, n), of the ball, to those of the second model."""
        points = as_points(Z, "Z", self.M.shape[1])
        if self.kind == "rotation":
            return points @ self.slope.T
        if self.kind == "flow":
            moved = self._flow(points)
            inside = np.linalg.norm(points - self.centre, axis=1) < self.radius
            return np.where(inside[:, None], self._solve(points, moved), points)
        return self._solve(points, self.start + (points - self.centre) @ self.slope.T)

    def mismatch(self, Z: ArrayLike) -> float:
        """Largest difference of the two models' log ratios at `Z`: zero up to rounding."""
        points = as_points(Z, "Z", self.M.shape[1])
        first = _ratios(self.M, self.B, points)
        return float(np.abs(self._other(self(points)) - first).max())

    def bend(self, Z: ArrayLike, atom: int) -> float:
        """Smallest 1 - |r| of an atom of the first model with those of the second at `Z`."""
        points = as_points(Z, "Z", self.M.shape[1])
        others = self(points)
        both = np.corrcoef(points[:, atom], others, rowvar=False)[0, 1:]
        return float(1 - np.abs(np.nan_to_num(both)).max())

    def is_regular(self, Z: Array) -> bool:
        """Tell whether the map solves the second model at `Z` and folds nowhere there."""
        if self.mismatch(Z) > 1e-11:
            return False
        some, n, h = Z[:_FEW], Z.shape[1], 1e-5
        steps = h * np.vstack([np.eye(n), -np.eye(n)])
        moved = self((some[:, None] + steps).reshape(-1, n)).reshape(len(some), 2, n, n)
        slopes = (moved[:, 0] - moved[:, 1]) / (2 * h)
        signs = np.sign(np.linalg.det(slopes))
        steep = np.linalg.svd(slopes, compute_uv=False)
        return bool((signs == signs[0]).all() and steep[:, -1].min() > 1e-3 and steep.max() < 1e3)

    def _other(self, Z: Array) -> Array:
        return _ratios(self.second_m, self.second_b, Z) + self.constants

    def _solve(self, points: Array, start: Array) -> Array:
        """Gauss-Newton steps of least length on the second model's log ratios."""
        target = _ratios(self.M, self.B, points)
        found = start
        for _ in range(_ITERATIONS):
            slope = self.second_m * found[:, None] - self.second_b
            gap = self._other(found) - target
            if np.abs(gap).max() < 1e-15 * (1 + np.abs(target).max()):
                break
            step = np.linalg.pinv(slope, rcond=1e-9) @ gap[..., None]
            found = found - step[..., 0]
        return found

    def _flow(self, points: Array) -> Array:
        """Follow the kernel field, which fades out towards the edge of the ball."""
        rank = np.linalg.matrix_rank(self.M * self.centre - self.B, tol=_TOLERANCE)

        def field(_time: float, flat: Array) -> Array:
            Z = flat.reshape(points.shape)
            slope = self.M * Z[:, None] - self.B
            _, _, right = np.linalg.svd(slope)
            kernel = right[:, rank:]
            along = np.einsum("ski,skj,j->si", kernel, kernel, self.start)
            distance = ((Z - self.centre) ** 2).sum(axis=1) / self.radius**2
            return (along * (np.clip(1 - distance, 0, None) ** 3)[:, None]).ravel()

        span = (0, self.radius)
        return solve_ivp(field, span, points.ravel(), rtol=1e-8).y[:, -1].reshape(points.shape)


def competitor(M: ArrayLike, B: ArrayLike, atom: int, rng: np.random.Generator) -> _Competitor:
    r"""Construct a second model with the same log ratios in which an atom is another one.

    M and B (m, n) are in the units of one noise width. ValueError is raised for an atom whose
    certificate is "always", and RuntimeError if none of the random attempts bends the atom.
    Only atoms that share the pole of the atom are turned.
    """
    M, B = as_array(M, "M", ndim=2), as_array(B, "B", ndim=2)
    as_generator(rng)
    verdicts = certify(M, B)
    if verdicts[atom] == "always":
        raise ValueError(f"atom {atom} is identified on every support: there is no other model")
    n = M.shape[1]
    twins = [
        j for j in range(n) if j != atom and np.linalg.matrix_rank(M[:, [atom, j]], tol=1e-9) < 2
    ]
    if twins:
        return _rotation(M, B, atom, twins[0])
    seen, space = shown_atoms(M, B)
    best: tuple[float, _Competitor | None] = (_FAINT, None)
    for _ in range(_ATTEMPTS):
        centre = rng.standard_normal(n) * (1 + np.abs(B).max())
        kernel = null_space(M * centre - B, rcond=_TOLERANCE)
        if kernel.size and np.abs(kernel[atom]).max() > _TOLERANCE:
            direction = kernel @ kernel[atom] / np.linalg.norm(kernel[atom])
            zero = np.zeros(len(M))
            flow = _Competitor("flow", M, B, M, B, zero, centre, 1.0, direction, np.eye(n))
            best = max(best, (flow.bend(_cloud(flow, rng), atom), flow), key=_bent)
        else:
            second = (M.copy(), B.copy(), centre.copy())
            if seen[atom]:
                _turn(M, B, turn_of(M, B, seen, space, atom, rng), *second)
            else:
                _exchange_hidden(M, B, np.flatnonzero(~seen), *second, rng)
            found = _reparametrisation(M, B, centre, *second)
            best = max(best, _widest(found, atom, rng), key=_bent)
        if best[0] > _CLEAR:
            break
    if best[1] is None:
        raise RuntimeError(f"no second model found in {_ATTEMPTS} attempts for atom {atom}")
    return best[1]


def _widest(
    found: _Competitor, atom: int, rng: np.random.Generator
) -> tuple[float, _Competitor | None]:
    """Return the bend on the largest ball without a fold, and the model there."""
    for radius in _RADII:
        # Half the radius: away from the edge, where folds begin.
        wide, half = replace(found, radius=radius), replace(found, radius=radius / 2)
        if wide.is_regular(_cloud(wide, rng)):
            return half.bend(_cloud(half, rng), atom), half
    return _FAINT, None


def _bent(found: tuple[float, _Competitor | None]) -> float:
    return found[0]


def _cloud(found: _Competitor, rng: np.random.Generator) -> Array:
    """Draw points of the ball, uniform on a cube in it."""
    n = len(found.centre)
    return found.centre + found.radius * rng.uniform(-1, 1, size=(_CLOUD, n)) / n**0.5


def _ratios(M: Array, B: Array, Z: Array) -> Array:
    return Z**2 @ M.T / 2 - Z @ B.T


def _rotation(M: Array, B: Array, i: int, j: int) -> _Competitor:
    """Turn the plane of z_i and the rescaled z_j by an angle, with B, and keep M."""
    n = M.shape[1]
    # The coordinates z_i and z_j, times the lengths of their columns of M, are rotated.
    lengths = np.linalg.norm(M[:, [i, j]], axis=0)
    turn = np.eye(n)
    turn[np.ix_([i, j], [i, j])] = _TURN * lengths / lengths[:, None]
    other = B @ np.linalg.inv(turn)
    centre = np.zeros(n)
    return _Competitor("rotation", M, B, M, other, np.zeros(len(M)), centre, 1.0, centre, turn)


def _reparametrisation(
    M: Array, B: Array, centre: Array, other_M: Array, other_B: Array, start: Array
) -> _Competitor:
    """Describe the same log ratios near a point by other columns, from another start."""
    slope = M * centre - B
    other_slope = other_M * start - other_B
    into = np.linalg.pinv(other_slope, rcond=1e-9) @ slope
    first, second = (null_space(s, rcond=_TOLERANCE) for s in (slope, other_slope))
    if first.shape == second.shape:
        into = into + second @ first.T
    constants = (_ratios(M, B, centre[None]) - _ratios(other_M, other_B, start[None]))[0]
    return _Competitor(
        "reparametrisation", M, B, other_M, other_B, constants, centre, _RADII[0], start, into
    )


def _exchange_hidden(
    M: Array,
    B: Array,
    hidden: np.ndarray,
    other_M: Array,
    other_B: Array,
    start: Array,
    rng: np.random.Generator,
) -> None:
    """Exchange the atoms that no w shows, in place."""
    # The set of log ratios is invariant under translations along their columns of M and B: these
    # atoms may be exchanged for any whose columns lie in that span, if the rank stays.
    span = np.hstack([M[:, hidden], B[:, hidden]])
    if rng.random() < 0.5:
        other_M[:, hidden] = M[:, rng.choice(hidden, size=len(hidden))]
    size = 1 + np.abs(B).max()
    for k in hidden:
        free = _within(span, other_M[:, k] != 0)
        same = (other_M[:, k] == M[:, k]).all()
        change = free @ rng.standard_normal(free.shape[1])
        other_B[:, k] = (B[:, k] if same else 0.0) + 0.5 * size * change
    start[hidden] += 0.3 * size * rng.standard_normal(len(hidden))


def _turn(
    M: Array,
    B: Array,
    found: tuple[np.ndarray, Turn] | None,
    other_M: Array,
    other_B: Array,
    start: Array,
) -> None:
    """Turn the atoms that share the pole of the one that is to be bent, in place."""
    if found is None:
        raise RuntimeError("the certificate found a turn of the atom that is not found again")
    atoms, turn = found
    other_M[:, atoms], other_B[:, atoms] = turn.columns, turn.values
    start[atoms] = turn.slope @ start[atoms] + turn.shift


def _within(span: Array, support: np.ndarray) -> Array:
    """Basis of the vectors in the span of some columns that vanish off the support."""
    basis = orth(span, rcond=_TOLERANCE)
    return basis if support.all() else basis @ null_space(basis[~support], rcond=_TOLERANCE)
