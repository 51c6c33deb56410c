r"""Recover a model from V(w) = w·G where w annihilates the derivative of G: no minima needed.

In latent coordinates :math:`\partial G/\partial z_i = M_i z_i - B_i`, so that any w with
:math:`w^\top D G = 0` has :math:`z_i = (w^\top B)_i / (w^\top M)_i` and

.. math:: V(w) := w^\top G = -\sum_i \frac{(w^\top B_i)^2}{2\, w^\top M_i} - w^\top c' .

Both w and V are seen in any coordinates. V is rational: its poles are the hyperplanes
:math:`w^\top M_i = 0`, its residues give :math:`B_i`. The program follows critical points of w·G
while w moves along lines, reads poles and residues of V on each, and fits all values of V at the
end; where no start shows all poles, several vote. Variances may differ by environment and atom.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev
from scipy.optimize import least_squares, linear_sum_assignment

from conceptnb.common.validation import Array, as_generator
from conceptnb.theory.minima import jacobian
from conceptnb.theory.observables import Observables
from conceptnb.theory.standard_form import StandardForm

_RANK = 1e-5  # relative singular value of the derivative of G below which it counts as zero
_TURN = 0.15  # angle between neighbouring lines, as a tangent
_STEPS = 45  # points on each side of a line
_LONGEST = 0.25  # longest step of a path, in standard deviations of the data
_FARTHEST = 12.0  # distance from the start, in the same unit, at which a path ends
_HOPELESS = 1e-2  # relative misfit after a few steps above which a fit is given up
_RESIDUAL = 1e-8  # relative misfit of V up to which a model counts as found
_SAME, _OTHER = 0.999, 0.95  # cosines above and below which poles are one pole, and two
_TIGHT = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-15)
_VOTES = 3  # starts that have to show a pole


@dataclass(frozen=True, eq=False)
class LegendreRecovery:
    """A model recovered from V, seen at `weights` (points, m), where it has `values` (points,).

    Parameters
    ----------
    model : StandardForm
        M real, each column with largest entry one in absolute value; columns of B orthogonal to
        those of M, with positive first non-zero entry. Pass it to `evaluate_valuations`.
    misfit : float
        Root mean square of V minus its fit, relative to the spread of V.
    attempts : int
        Starting points used.
    """

    model: StandardForm
    misfit: float
    attempts: int
    weights: Array
    values: Array


def recover_from_poles(
    seen: Observables, rng: np.random.Generator, attempts: int = 40
) -> LegendreRecovery:
    """Recover M, B and constants from black-box ratios in unknown coordinates.

    Paths start at points of `seen` and stay clear of all minima: a path ends before its w has
    entries of one sign only, which is where a weighted sum of the ratios would be least.

    Parameters
    ----------
    seen : Observables
        In any chart; points may come from any open set.
    attempts : int
        Starting points before their poles are put to the vote. A `misfit` above 1e-8 is a failure.

    Raises
    ------
    ValueError
        If there are no more environments than atoms: every w with w·DG = 0 is then zero.
    RuntimeError
        If no starting point led to a model.
    """
    as_generator(rng)
    centre, spread = np.median(seen.points, axis=0), seen.points.std(axis=0)

    def ratios(U: Array) -> Array:
        return seen.ratios(U * spread + centre)

    points = (seen.points - centre) / spread
    slopes = jacobian(ratios, points)
    n = _rank(slopes)
    m = seen.n_environments
    if m <= n:
        raise ValueError(f"{m} environments for {n} atoms: the poles of V need more than {n}")
    left = np.linalg.svd(slopes)[0][:, :, n:]
    at_points = np.einsum("sek,sk->se", left, rng.standard_normal(left[:, 0].shape))
    at_points /= np.linalg.norm(at_points, axis=1, keepdims=True)
    V_points = (at_points * ratios(points)).sum(axis=1)
    best: LegendreRecovery | None = None
    poles = []
    for attempt in range(1, attempts + 1):
        u, w = _start(ratios, points, n, rng)
        frame = _frame(w, rng)
        lines = np.vstack([frame[:1], frame[:1] + _TURN * frame[1:]])
        paths = [_follow(ratios, u, w, v, n) for v in lines]
        guess = _read_poles(paths, w, lines, n)
        if guess is None:
            continue
        on_lines = [w + t[:, None] * v for (t, _), v in zip(paths, lines, strict=True)]
        W = np.concatenate([at_points, *on_lines])
        V = np.concatenate([V_points, *[values for _, values in paths]])
        model, misfit = _fit(W, V, *guess)
        if best is None or misfit < best.misfit:
            best = LegendreRecovery(model, misfit, attempt, W, V)
        if best.misfit < _RESIDUAL:
            return best
        poles.append((guess[0] / np.linalg.norm(guess[0], axis=0)).T)
    if best is None:
        raise RuntimeError(f"no model found from {attempts} starting points")
    W, V = best.weights, best.values
    model, misfit = _fit(W, V, *_elected(W, V, np.concatenate(poles), n))
    return LegendreRecovery(model, misfit, attempts, W, V) if misfit < best.misfit else best


def legendre_values(M: Array, B: Array, constants: Array, W: Array) -> Array:
    r"""Evaluate :math:`V(w) = -\sum_i (w^\top B_i)^2 / (2 w^\top M_i) - w^\top c'`, c' of (46).

    Maps W of shape (points, m) to shape (points,).
    """
    return -((W @ B) ** 2 / (2 * (W @ M))).sum(axis=1) - W @ constants


def _rank(slopes: Array) -> int:
    singular = np.linalg.svd(slopes, compute_uv=False)
    return int(np.median((singular > _RANK * singular[:, :1]).sum(axis=1)))


def _start(
    ratios: Callable[[Array], Array], points: Array, n: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Choose a point and a w of mixed signs that annihilates DG there."""
    tried = points[rng.integers(len(points), size=24)]
    left, singular, _ = np.linalg.svd(jacobian(ratios, tried))
    kernel = left[:, :, n:]
    w = np.einsum("sek,sk->se", kernel, rng.standard_normal(kernel[:, 0].shape))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    mixed = np.minimum(w.max(axis=1), -w.min(axis=1)) > 0.05
    quality = np.where(mixed, singular[:, n - 1] / singular[:, 0], -1.0)
    chosen = int(quality.argmax())
    return tried[chosen], w[chosen]


def _frame(w: Array, rng: np.random.Generator) -> Array:
    basis = np.linalg.qr(np.column_stack([w, rng.standard_normal((len(w), len(w) - 1))]))[0]
    return basis[:, 1:].T


def _follow(
    ratios: Callable[[Array], Array], u: Array, w: Array, v: Array, n: int
) -> tuple[Array, Array]:
    """Values of V along w + t v, both ways from t = 0: arrays (points,), (points,)."""
    start, value, speed = _critical(ratios, u, w, v, n)
    t_all, V_all = [0.0], [value]
    for way in (1.0, -1.0):
        t, here, velocity = 0.0, start, speed
        for _ in range(_STEPS):
            step = way * min(_LONGEST / max(float(np.linalg.norm(velocity)), 1e-12), 0.2)
            trial = w + (t + step) * v
            if _one_sign(trial):
                break
            there, value, new = _critical(ratios, here + step * velocity, trial, v, n)
            if not np.isfinite(value) or np.linalg.norm(there - u) > _FARTHEST:
                break
            if np.linalg.norm(there - here) > 4 * _LONGEST:
                break
            t, here, velocity = t + step, there, new
            t_all.append(t)
            V_all.append(value)
    order = np.argsort(t_all)
    return np.array(t_all)[order], np.array(V_all)[order]


def _one_sign(w: Array) -> bool:
    return bool((w > -1e-3).all() or (w < 1e-3).all())


def _critical(
    ratios: Callable[[Array], Array], u: Array, w: Array, v: Array, n: int
) -> tuple[Array, float, Array]:
    """Newton's method for the critical point of w·G near u: point, value, velocity along v."""
    value, velocity = np.nan, np.zeros_like(u)
    for _ in range(6):
        slope = jacobian(ratios, u[None])[0]
        axes = np.linalg.svd(slope)[2][:n]
        hessian, value = _curvature(ratios, u, w, axes)
        gradient = axes @ (slope.T @ w)
        try:
            newton = np.linalg.solve(hessian, gradient)
            velocity = -axes.T @ np.linalg.solve(hessian, axes @ (slope.T @ v))
        except np.linalg.LinAlgError:
            return u, np.nan, velocity
        size = np.linalg.norm(newton)
        # w·G changes by half this when the remaining step is taken.
        gain = abs(newton @ gradient)
        if gain < 1e-14 * (1 + abs(value)):
            return u - axes.T @ newton, value - 0.5 * float(newton @ gradient), velocity
        u = u - axes.T @ newton * min(1.0, 1.0 / size)
    return u, np.nan, velocity


def _curvature(
    ratios: Callable[[Array], Array], u: Array, w: Array, axes: Array
) -> tuple[Array, float]:
    """Second derivatives of w·G along some axes, and its value."""
    h, n = 1e-3, len(axes)
    rows, columns = np.triu_indices(n, 1)
    shifts = h * np.concatenate([axes, axes[rows] + axes[columns]])
    values = ratios(np.concatenate([u[None], u + shifts, u - shifts])) @ w
    centre, up, down = values[0], values[1 : len(shifts) + 1], values[len(shifts) + 1 :]
    second = (up + down - 2 * centre) / h**2
    hessian = np.diag(second[:n])
    mixed = (second[n:] - second[rows] - second[columns]) / 2
    hessian[rows, columns] = hessian[columns, rows] = mixed
    return hessian, float(centre)


def _poles(t: Array, V: Array, n: int) -> tuple[Array, Array] | None:
    """Poles and residues of the rational function of type (n + 1, n) through V."""
    if len(t) < 2 * n + 6:
        return None
    middle, half = (t[-1] + t[0]) / 2, (t[-1] - t[0]) / 2
    s = (t - middle) / half
    P, Q = chebyshev.chebvander(s, n + 1), chebyshev.chebvander(s, n)
    weight = np.ones(len(t))
    for _ in range(6):  # Sanathanan and Koerner: divide by the last denominator
        both = np.hstack([P, -V[:, None] * Q]) * weight[:, None]
        scale = np.linalg.norm(both, axis=0)
        solution = np.linalg.svd(both / scale)[2][-1] / scale
        denominator = Q @ solution[n + 2 :]
        weight = 1 / np.maximum(np.abs(denominator), 1e-12 * np.abs(denominator).max())
    q = solution[n + 2 :]
    roots = chebyshev.chebroots(q)
    if len(roots) < n or np.abs(roots.imag).max() > 1e-2 * (1 + np.abs(roots.real).max()):
        return None
    roots = roots.real
    residues = chebyshev.chebval(roots, solution[: n + 2]) / chebyshev.chebval(
        roots, chebyshev.chebder(q)
    )
    return middle + half * roots, half * residues


def _read_poles(
    paths: list[tuple[Array, Array]], w: Array, lines: Array, n: int
) -> tuple[Array, Array] | None:
    """Return initial M and B from the poles and residues on all lines, or None."""
    found = [_poles(t, V, n) for t, V in paths]
    if any(one is None for one in found):
        return None
    # M is scaled so that w·M = 1; on the line a pole t has v·M = -1/t, linear in v.
    slopes: list[Array] = []
    levels: list[Array] = []
    for one in found:
        assert one is not None
        t, residue = one
        slope, level = -1 / t, 2 * residue / t  # level is (B·w at the pole)², up to sign
        if slopes:
            cost = np.abs(slope[None] - slopes[0][:, None]) / (np.abs(slopes[0][:, None]) + 0.1)
            cost = cost + 0.3 * np.abs(level[None] - levels[0][:, None]) / (
                np.abs(level[None]) + np.abs(levels[0][:, None]) + 1e-12
            )
            order = linear_sum_assignment(cost)[1]
            slope, level = slope[order], level[order]
        slopes.append(slope)
        levels.append(level)
    inverse = np.linalg.inv(np.vstack([w, lines]))
    M = inverse @ np.vstack([np.ones(n), slopes])
    sign = np.sign(np.median(levels, axis=0))
    B = np.empty_like(M)
    for i in range(n):
        at_pole = np.array([w - v / s[i] for v, s in zip(lines, slopes, strict=True)])
        sizes = np.sqrt(np.maximum(sign[i] * np.array([level[i] for level in levels]), 0.0))
        B[:, i] = np.linalg.lstsq(at_pole, sizes, rcond=None)[0]
    return (M * sign, B) if (sign != 0).all() and np.isfinite(B).all() else None


def _fit(W: Array, V: Array, M: Array, B: Array) -> tuple[StandardForm, float]:
    """Fit M, B and constants to all values of V, starting from a guess."""
    m, n = M.shape
    M, B = _unit_columns(M, B)
    constants = -np.linalg.lstsq(W, V - legendre_values(M, B, np.zeros(m), W), rcond=None)[0]
    scale = V.std()

    def split(x: Array) -> tuple[Array, Array, Array]:
        return x[: m * n].reshape(m, n), x[m * n : 2 * m * n].reshape(m, n), x[2 * m * n :]

    def residual(x: Array) -> Array:
        return (legendre_values(*split(x), W) - V) / scale

    def derivative(x: Array) -> Array:
        M, B, _ = split(x)
        z = (W @ B) / (W @ M)
        by_M = (W[:, :, None] * z[:, None, :] ** 2 / 2).reshape(len(W), -1)
        by_B = (-W[:, :, None] * z[:, None, :]).reshape(len(W), -1)
        return np.hstack([by_M, by_B, -W]) / scale

    x = np.concatenate([M.ravel(), B.ravel(), constants])
    for evaluations in (12, 60):
        fit = least_squares(residual, x, derivative, x_scale="jac", max_nfev=evaluations, **_TIGHT)
        x = fit.x
        if np.mean(fit.fun**2) > _HOPELESS**2:
            break
    M, B, constants = split(fit.x)
    M, B, shift = canonical_atoms(M, B)
    misfit = float(np.sqrt(np.mean(fit.fun**2)))
    return StandardForm(M, B, constants + shift), misfit


def _elected(W: Array, V: Array, poles: Array, n: int) -> tuple[Array, Array]:
    """Return M, of the poles that several starts show and of others that fit V best, and its B."""
    cosines = np.abs(poles @ poles.T)
    votes = (cosines > _SAME).sum(axis=1)
    chosen: list[int] = []
    for i in np.argsort(-votes, kind="stable"):
        if votes[i] >= _VOTES and len(chosen) < n and (cosines[i, chosen] < _OTHER).all():
            chosen.append(int(i))
    while len(chosen) < n:
        misfits = [_relaxed(W, V, poles[[*chosen, i]].T)[0].std() for i in range(len(poles))]
        chosen.append(int(np.argmin(misfits)))

    def columns(x: Array) -> Array:
        return x.reshape(-1, n) / np.linalg.norm(x.reshape(-1, n), axis=0)

    def residual(x: Array) -> Array:
        return _relaxed(W, V, columns(x))[0]

    M = columns(least_squares(residual, poles[chosen].T.ravel(), max_nfev=40, **_TIGHT).x)
    B = np.empty_like(M)
    for i, form in enumerate(_relaxed(W, V, M)[1]):  # (w·B)² is seen where w·M = 0
        off = np.eye(len(M)) - np.outer(M[:, i], M[:, i])
        sizes, axes = np.linalg.eigh(off @ form @ off)
        largest = np.abs(sizes).argmax()
        B[:, i] = np.sqrt(abs(sizes[largest])) * axes[:, largest]
        M[:, i] *= np.sign(sizes[largest])
    return M, B


def _relaxed(W: Array, V: Array, M: Array) -> tuple[Array, Array]:
    """Fit V with a quadratic form in place of each (w·B)²: residuals, and forms (n, m, m)."""
    m, n = M.shape
    rows, columns = np.triu_indices(m)
    squares = W[:, rows] * W[:, columns]
    terms = np.hstack([*(squares / (W @ M[:, [i]]) for i in range(n)), W])
    size = np.linalg.norm(terms, axis=0)
    solution = np.linalg.lstsq(terms / size, V, rcond=1e-11)[0] / size
    forms = np.zeros((n, m, m))
    forms[:, rows, columns] = -solution[:-m].reshape(n, -1)
    return (V - terms @ solution) / V.std(), forms + forms.transpose(0, 2, 1)


def _unit_columns(M: Array, B: Array) -> tuple[Array, Array]:
    size = np.abs(M).max(axis=0)
    return M / size, B / np.sqrt(size)


def canonical_atoms(M: Array, B: Array) -> tuple[Array, Array, Array]:
    """Fix unit, zero, sign and order of the atoms; what their constants gain, shape (m,)."""
    M, B = _unit_columns(M, B)
    zero = (M * B).sum(axis=0) / (M**2).sum(axis=0)
    # (w·(B + t M))² / 2w·M is (w·B)² / 2w·M and t w·B + t² w·M / 2.
    gained = ((B - M * zero) * zero + M * zero**2 / 2).sum(axis=1)
    B = B - M * zero
    first = np.abs(B).argmax(axis=0)
    B = B * np.sign(B[first, np.arange(B.shape[1])] + (B[first, np.arange(B.shape[1])] == 0))
    order = np.lexsort(-np.round(M[::-1], 3))
    return M[:, order], B[:, order], gained
