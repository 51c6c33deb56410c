r"""Theorem 1's proof as a program (Appendix A.2), one function per step.

The input is an :class:`~conceptnb.theory.observables.Observables`: black boxes
:math:`G_e(u)` in a chart. The output is the model in the standard form of Step 1.
"""

import itertools
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from conceptnb.common.validation import Array, as_points
from conceptnb.theory.minima import jacobian, minimise
from conceptnb.theory.observables import Observables
from conceptnb.theory.standard_form import StandardForm, normalise_columns

Subset = frozenset[int]

RANK_TOLERANCE = 1e-5
"""Curvature, relative to the largest, below which a direction counts as flat."""
_PENALTIES = 8.0 * 2.0 ** np.arange(7)
"""Weights of the constraint in Step 4, from which the limit is extrapolated."""


def subsets(m: int) -> list[Subset]:
    """List all subsets T of the m environments, the empty one first."""
    sizes = range(m + 1)
    return [frozenset(T) for size in sizes for T in itertools.combinations(range(m), size)]


def codimensions(
    seen: Observables, rank_tolerance: float = RANK_TOLERANCE
) -> tuple[dict[Subset, int], dict[Subset, Array]]:
    r"""Step 3, first half: read :math:`|S_T|` off the set :math:`I_T` of minimisers (50).

    The set where :math:`\sum_{e \in T} G_e` is least is an affine subspace of codimension
    :math:`|S_T|` in the latents (52), so a submanifold of the same codimension in any chart: the
    rank of the Hessian at one of its points. `seen` is as `Observables.prepared` returns it.

    Returns
    -------
    sizes : dict
        :math:`|S_T|` for every subset T of environments.
    spectra : dict
        What the rank was read from: eigenvalues, descending and divided by the largest.
    """
    family = [T for T in subsets(seen.n_environments) if T]
    weights = np.array([[float(e in T) for e in range(seen.n_environments)] for T in family])
    found = minimise(seen.ratios, weights, np.zeros(seen.d))
    sizes: dict[Subset, int] = {frozenset(): 0}
    spectra: dict[Subset, Array] = {}
    for T, hessian in zip(family, found.hessians, strict=True):
        values = np.linalg.eigvalsh(hessian)[::-1]
        spectra[T] = values / values[0]
        sizes[T] = int((spectra[T] > rank_tolerance).sum())
    return sizes, spectra


def environment_matrix(sizes: Mapping[Subset, int]) -> Array:
    """Step 3, second half: M (m, n), its columns in descending binary order.

    :math:`n - |S_T|` atoms occur only outside T. Inclusion and exclusion over subsets turns "only
    inside Q" into "exactly the environments P"; the paper's induction over m does the same, one
    environment at a time. ValueError if the sizes belong to no matrix.
    """
    everything = max(sizes, key=len)
    inside = {everything - T: sizes[everything] - size for T, size in sizes.items()}
    counts = {
        P: sum((-1) ** len(P - Q) * number for Q, number in inside.items() if Q <= P)
        for P in inside
    }
    impossible = sorted(sorted(P) for P, number in counts.items() if number < 0)
    if impossible or counts[frozenset()]:
        raise ValueError(
            f"no matrix M has these codimensions (negative counts for {impossible}): a rank "
            "was misread; look at the spectra and at rank_tolerance"
        )
    m = len(everything)
    columns = [[float(e in P) for e in range(m)] for P, k in counts.items() for _ in range(k)]
    return np.array(sorted(columns, reverse=True)).T


def valuation_matrix(seen: Observables, M: Array) -> Array:
    r"""Step 4: recover B column by column from differences of minima (57), in standard form.

    For atom i, :math:`T_i` are the environments without it. On the set
    :math:`I_{T_i}` where :math:`\sum_{T_i} G_e` is least all other atoms are constant
    (this is where Assumption 5 enters), and

    .. math:: \min_{I^{e_1}_{T_i}} G_{e_2} - \min_{I_{T_i}} G_{e_2}
              = \tfrac12 (B_{e_1 i} - B_{e_2 i})^2 .

    The minimum of :math:`G_e` on :math:`I_{T_i}` is the limit, as :math:`\mu \to \infty`,
    of the unconstrained minimum of :math:`G_e + \mu \sum_{T_i} G_{e'}`. What is measured
    there is a rational function of :math:`1/\mu`, so Richardson extrapolation gets the limit.
    ValueError if Assumption 5 fails for some pair of columns of M.
    """
    m, n = M.shape
    B = np.zeros((m, n))
    for i in range(n):
        users, others = np.flatnonzero(M[:, i]), np.flatnonzero(M[:, i] == 0)
        hidden = np.flatnonzero(~M[others].any(axis=0))
        if len(hidden) > 1:
            raise ValueError(
                f"Assumption 5 fails: column {sorted(set(hidden.tolist()) - {i})[0]} of M occurs "
                f"only together with column {i}; use valuation_matrix_by_residues"
            )
        gaps = _squared_gaps(seen, users, others)
        B[users, i] = _positions(np.sqrt(np.maximum(gaps, 0.0)))
    return normalise_columns(M, B)


def valuation_matrix_by_residues(seen: Observables, M: Array, rng: np.random.Generator) -> Array:
    r"""Recover B in standard form without Assumption 5 (not in the paper).

    For positive weights w the least value of :math:`\sum_e w_e G_e` is

    .. math:: V(w) = -\sum_i \frac{(w^\top B_i)^2}{2\, w^\top M_i} - w^\top c' ,

    a rational function of w with one pole for each distinct column of M. Its residue
    at :math:`w^\top M_i = 0` is :math:`(w^\top B_i)^2`, which determines the column
    :math:`B_i` up to sign and multiples of :math:`M_i`. Given M, V is linear in the
    matrices :math:`B_i B_i^\top` and in c', which least squares finds with twice as many random
    weights as there are unknowns. The columns of M, from Step 3, have to be distinct.
    """
    m, n = M.shape
    users = [np.flatnonzero(column) for column in M.T]
    pairs = [(i, *pair) for i in range(n) for pair in itertools.combinations(users[i], 2)]
    unknowns = len(pairs) + m
    w = rng.uniform(0.05, 1.0, size=(2 * unknowns, m))
    found = minimise(seen.ratios, w, np.zeros(seen.d))
    least = (w * found.ratios).sum(axis=1)
    # With the shift of z_i free, the numerator may be taken as Σ_{e<d} X_ed w_e w_d with
    # X_ed = (B_ei - B_di)²: for w·M_i = s, s Σ w_e B_e² - (Σ w_e B_e)² is that sum.
    terms = [w[:, e] * w[:, d] / (2 * (w @ M[:, i])) for i, e, d in pairs]
    solution = np.linalg.lstsq(np.stack([*terms, *w.T], axis=1), least, rcond=None)[0]
    B = np.zeros((m, n))
    for i in range(n):
        distances = np.zeros((m, m))
        for (column, e, d), value in zip(pairs, solution, strict=False):
            if column == i:
                distances[e, d] = distances[d, e] = np.sqrt(max(value, 0.0))
        B[users[i], i] = _positions(distances[np.ix_(users[i], users[i])])
    return normalise_columns(M, B)


def constants(seen: Observables, M: Array, B: Array) -> Array:
    r"""Recover :math:`c'_e` of (46) from :math:`\min G_e = -\tfrac12 \sum_i B_{ei}^2 - c'_e`.

    The proof needs equal constants in (58) and does not mention it; this is why they are.
    """
    m = len(M)
    least = np.diag(minimise(seen.ratios, np.eye(m), np.zeros(seen.d)).ratios)
    return -least - (B**2).sum(axis=1) / 2


def evaluate_valuations(seen: Observables, model: StandardForm, U: ArrayLike) -> Array:
    r"""Step 5: every atom's valuation at new points, in closed form, shape (samples, n).

    They are :math:`z_i = \pm\langle a_i, f^{-1}(x)\rangle/\sigma - \lambda_i`.

    The proof takes w with :math:`w^\top D_u G = 0`. The chain rule
    :math:`D_u G = (M\,\mathrm{diag}(z) - B)\, D_u z_c` and the rank of the last factor give (64),
    :math:`w_M^i z_i = w_B^i` with :math:`w_M = w^\top M` and :math:`w_B = w^\top B`: so
    :math:`z_i = (w^\top B)_i / (w^\top M)_i` wherever the denominator is not zero, which is almost
    everywhere (Assumption 4). With m > n + 1 there are several such w, and least squares uses them
    all. One Gauss-Newton refinement on :math:`g(z) = G(u)` removes the error of the finite
    differences. The black boxes `seen` take the chart coordinates `U` (samples, d) of the points.
    """
    points = as_points(U, "U", seen.d)
    n = model.M.shape[1]
    left = np.linalg.svd(jacobian(seen.ratios, points))[0]
    kernel = left[:, :, n:]
    on_M = np.einsum("sek,ei->ski", kernel, model.M)
    on_B = np.einsum("sek,ei->ski", kernel, model.B)
    weight = (on_M**2).sum(axis=1)
    z = (on_M * on_B).sum(axis=1) / np.maximum(weight, np.finfo(float).tiny)
    return _refine(model, z, seen.ratios(points))


def recover(seen: Observables) -> StandardForm:
    """Run Steps 3 and 4 on black boxes in any chart; `evaluate_valuations` is Step 5."""
    scaled = seen.prepared()
    sizes, _ = codimensions(scaled)
    M = environment_matrix(sizes)
    B = valuation_matrix(scaled, M)
    return StandardForm(M, B, constants(scaled, M, B))


def _squared_gaps(seen: Observables, users: np.ndarray, others: np.ndarray) -> Array:
    """Squared differences of one atom's valuations by (57), shape (users, users)."""
    weights = np.zeros((len(users), len(_PENALTIES), seen.n_environments))
    weights[np.arange(len(users)), :, users] = 1.0
    weights[:, :, others] = _PENALTIES[:, None]
    found = minimise(seen.ratios, weights.reshape(-1, seen.n_environments), np.zeros(seen.d))
    values = found.ratios.reshape(len(users), len(_PENALTIES), -1)[:, :, users]
    least = _extrapolate(values.transpose(1, 0, 2))
    return 2 * (least - np.diag(least))


def _positions(distances: Array) -> Array:
    """Place points on a line, each from the farther of the two that are farthest apart, (k,)."""
    first, last = np.unravel_index(distances.argmax(), distances.shape)
    from_first, from_last = distances[first], distances[last]
    return np.where(from_first > from_last, from_first, distances[first, last] - from_last)


def _extrapolate(values: Array) -> Array:
    """Limit at 1/μ = 0 of values measured at `_PENALTIES`, along the first axis (Neville)."""
    table = list(values)
    nodes = 1 / _PENALTIES
    for order in range(1, len(nodes)):
        table = [
            (nodes[k] * table[k + 1] - nodes[k + order] * table[k]) / (nodes[k] - nodes[k + order])
            for k in range(len(table) - 1)
        ]
    return table[0]


def _refine(model: StandardForm, z: Array, G: Array) -> Array:
    """Damped Gauss-Newton on g(z) = G, sample by sample; a step is kept if it helps."""
    residual = model.ratios(z) - G
    damping = np.full(len(z), 1e-8)
    for _ in range(8):
        slope = model.M * z[:, None] - model.B
        normal = np.einsum("sei,sej->sij", slope, slope)
        normal += damping[:, None, None] * np.eye(z.shape[1])
        target = np.einsum("sei,se->si", slope, residual)
        trial = z - np.linalg.solve(normal, target[..., None])[..., 0]
        trial_residual = model.ratios(trial) - G
        better = (trial_residual**2).sum(axis=1) < (residual**2).sum(axis=1)
        z = np.where(better[:, None], trial, z)
        residual = np.where(better[:, None], trial_residual, residual)
        damping = np.where(better, damping / 10, damping * 100)
    return z
