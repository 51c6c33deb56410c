r"""Minimise weighted sums of black-box functions on the data manifold, many at a time.

In the latents a sum :math:`\sum_e w_e g_e` is convex (51). A chart adds no stationary points, so
that each one is a global minimum there too: descent cannot be trapped.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from conceptnb.common.validation import Array

_STEP = 5e-4  # finite-difference step in standardised chart coordinates
_FLOOR = 1e-6  # smallest curvature that a Newton step divides by, relative to the largest
_LONGEST = 2.0  # longest step, in standard deviations of the data
_NOISE = 1e-12  # gain, relative to the value, that a step must promise for another one to follow
_SHORTER = 0.5 ** np.arange(12)
"""Fractions of the Newton step that the line search tries, all at once."""


@dataclass(frozen=True, eq=False)
class Minima:
    """Minimisers (problems, d) of several weighted sums, one each of possibly many.

    There all black boxes have the values `ratios` (problems, m), and the weighted sum the second
    derivatives `hessians` (problems, d, d) in the chart.
    """

    points: Array
    ratios: Array
    hessians: Array


def minimise(
    ratios: Callable[[Array], Array], weights: Array, start: Array, max_iterations: int = 300
) -> Minima:
    """Minimise ``ratios(u) @ w`` for each row w of `weights` by damped Newton steps.

    `ratios` maps (samples, d) to (samples, m) in coordinates of unit scale; derivatives are central
    differences. Weights (problems, m) are non-negative. RuntimeError if one has not converged.
    """
    d = len(start)
    points = np.tile(start, (len(weights), 1))
    hessians = np.zeros((len(weights), d, d))
    active = np.arange(len(weights))
    left = np.inf
    for _ in range(max_iterations):
        gradient, hessian = _derivatives(ratios, points[active], weights[active])
        hessians[active] = hessian
        curvature, axes = np.linalg.eigh(hessian)
        largest = np.abs(curvature).max(axis=1, keepdims=True)
        steepness = np.einsum("pij,pi->pj", axes, gradient)
        # The absolute value makes the step descend where the chart bends the sum down.
        newton = steepness / np.maximum(np.abs(curvature), _FLOOR * largest)
        step = -np.einsum("pij,pj->pi", axes, newton)
        promise = (steepness * newton).sum(axis=1)
        step /= np.maximum(np.linalg.norm(step, axis=1, keepdims=True) / _LONGEST, 1.0)
        step, values = _line_search(ratios, points[active], step, weights[active])
        points[active] += step
        done = promise <= _NOISE * (1 + np.abs(values))
        left = float(np.abs(gradient).max())
        active = active[~done]
        if not len(active):
            return Minima(points, ratios(points), hessians)
    raise RuntimeError(
        f"{len(active)} of {len(weights)} minimisations have not converged after "
        f"{max_iterations} steps (largest derivative {left:.1e}): is the sum bounded below?"
    )


def jacobian(ratios: Callable[[Array], Array], points: Array) -> Array:
    """Differentiate each black box at each point, shape (samples, m, d)."""
    d = points.shape[1]
    step = _STEP / 5
    shifts = step * np.eye(d)
    up = ratios((points[:, None] + shifts).reshape(-1, d))
    down = ratios((points[:, None] - shifts).reshape(-1, d))
    difference = (up - down).reshape(len(points), d, -1) / (2 * step)
    return difference.transpose(0, 2, 1)


def _values(ratios: Callable[[Array], Array], points: Array, weights: Array) -> Array:
    """Weighted sums at several points per problem: (problems, k, d) -> (problems, k)."""
    count, k, d = points.shape
    G = ratios(points.reshape(count * k, d)).reshape(count, k, -1)
    return np.einsum("pke,pe->pk", G, weights)


def _derivatives(
    ratios: Callable[[Array], Array], points: Array, weights: Array
) -> tuple[Array, Array]:
    """Gradient (problems, d) and Hessian (problems, d, d) of the weighted sums."""
    d = points.shape[1]
    axes = _STEP * np.eye(d)
    rows, columns = np.triu_indices(d, 1)
    forward = np.concatenate([axes, axes[rows] + axes[columns], 2 * axes])
    stencil = np.concatenate([np.zeros((1, d)), forward, -forward])
    values = _values(ratios, points[:, None] + stencil, weights)
    centre, up, down = np.split(values, [1, 1 + len(forward)], axis=1)
    odd, second = up - down, up + down - 2 * centre
    gradient = (8 * odd[:, :d] - odd[:, -d:]) / (12 * _STEP)  # error of order _STEP⁴
    hessian = np.zeros((len(points), d, d))
    hessian[:, np.arange(d), np.arange(d)] = second[:, :d]
    mixed = (second[:, d:-d] - second[:, rows] - second[:, columns]) / 2
    hessian[:, rows, columns] = hessian[:, columns, rows] = mixed
    return gradient, hessian / _STEP**2


def _line_search(
    ratios: Callable[[Array], Array], points: Array, step: Array, weights: Array
) -> tuple[Array, Array]:
    """Return the tried move that lowers the sum most (problems, d), and the sum there."""
    values = _values(ratios, points[:, None] + _SHORTER[:, None] * step[:, None], weights)
    return _SHORTER[values.argmin(axis=1)][:, None] * step, values.min(axis=1)
