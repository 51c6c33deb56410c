r"""Plan the smallest designs that Theorem 1 covers.

Take environments as the vertices of a tree and atoms as its n edges: each atom is conditioned on in
the two environments that its edge joins. Then M is the unsigned incidence matrix of a tree, which
has rank n; the one v with :math:`v^\top M = 0` is :math:`\pm 1` along the tree's two colours, so
:math:`(v^\top B)_i` is the difference of the atom's two valuations; and no edge contains another.
So Lemma 1's condition and Assumption 5 hold, and Assumption 4 as soon as each atom's two valuations
differ, with n + 1 environments and 2n conditionings, the fewest possible (Remark 2).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from conceptnb.common.validation import (
    Array,
    as_count,
    as_generator,
    as_points,
    as_positive,
)
from conceptnb.core.concepts import check_independent
from conceptnb.core.design import PAPER_VARIANCE, EnvironmentDesign
from conceptnb.core.distributions import GaussianMixture, acceptance_rate
from conceptnb.core.information import LogOddsFit, as_one

Edge = tuple[int, int]

_GRID = 24  # centres of an atom's two valuations that the planner tries
_MOST_DRAWS = 100_000  # random designs that are drawn before giving up


def tree_design(
    tree: Sequence[Edge] | Literal["path", "star"],
    valuations: ArrayLike,
    variance: float = PAPER_VARIANCE,
) -> EnvironmentDesign:
    """Build the design of n + 1 environments whose atoms are the edges of a tree.

    Parameters
    ----------
    tree : "path", "star" or sequence of (int, int)
        Atom i is conditioned on in environments ``tree[i]``, numbered from 0 to n. In
        the path environment e shares atom e with environment e + 1, which keeps acceptance rates
        high; in the star each atom is conditioned on alone, and all of them in the last one.
    valuations : array-like of shape (n, 2)
        Its valuation in each of the two, which must differ.
    variance : float
        Variance of q.
    """
    b = as_points(valuations, "valuations", 2)
    n = as_count(len(b), "the number of rows of valuations")
    edges = _tree_edges(tree, n)
    same = np.flatnonzero(b[:, 0] == b[:, 1])
    if len(same):
        raise ValueError(f"atoms {same.tolist()} have equal valuations: Assumption 4 fails")
    subsets: list[list[int]] = [[] for _ in range(n + 1)]
    values: list[list[float]] = [[] for _ in range(n + 1)]
    for i, (edge, pair) in enumerate(zip(edges, b, strict=True)):
        for e, value in zip(edge, pair, strict=True):
            subsets[e].append(i)
            values[e].append(float(value))
    return EnvironmentDesign(subsets, values, variance)


def propose_design(
    n: int,
    variance: float = PAPER_VARIANCE,
    base: GaussianMixture | None = None,
    atoms: ArrayLike | None = None,
    contrast: float = 3.0,
) -> EnvironmentDesign:
    """Propose a smallest design that satisfies Assumptions 4 and 5: a path.

    Atom i is conditioned on in environments i and i + 1, at two valuations that are `contrast`
    noise widths apart: larger values give larger margins in Assumption 4 and smaller acceptance
    rates. With a base distribution and `atoms` (n, d_z), their centres and their order are chosen
    so that the product of all acceptance rates (Lemma 4) is largest: exactly, over a grid, by
    dynamic programming along the path. Without, valuations lie around zero.
    """
    gap = as_positive(contrast, "contrast") * np.sqrt(as_positive(variance, "variance"))
    if (base is None) != (atoms is None):
        raise ValueError("base and atoms belong together: give both or neither")
    if base is None or atoms is None:
        return tree_design("path", np.tile([-gap / 2, gap / 2], (n, 1)), variance)
    rows = check_independent(atoms, "atoms")
    if len(rows) != n:
        raise ValueError(f"atoms must have n = {n} rows, got {len(rows)}")
    return tree_design("path", _best_path(base.linear_image(rows), variance, gap), variance)


def design_price(
    design: EnvironmentDesign,
    base: GaussianMixture | None = None,
    atoms: ArrayLike | None = None,
    *,
    rows: int = 3000,
    seed: int = 0,
) -> float:
    r"""Return what a design costs in samples: their total number times the squared error.

    With a linear mixing, known M and equal numbers of samples of the base and of each
    environment, a valuation that is fitted to N samples in all errs by :math:`\sqrt{c/N}` noise
    widths in the root mean square over base points and atoms; this is c. So an error of a tenth
    of a noise width takes 100 c samples.

    Parameters
    ----------
    design : EnvironmentDesign
        No two of its columns of M are equal.
    base, atoms : GaussianMixture and array-like of shape (n, n), optional
        By default a standard normal base whose coordinates are the atoms.
    rows : int
        Draws of each data set that the information is computed from.
    seed : int
        Of these draws.

    Raises
    ------
    ValueError
        If a linear mixing does not identify the atoms, so that no number of samples suffices.

    Examples
    --------
    >>> path = tree_design("path", [[-0.3, 0.3], [-0.3, 0.3]], variance=0.1)
    >>> 20 < design_price(path) < 30
    True
    """
    n, rng = design.n_atoms, np.random.default_rng(seed)
    if (base is None) != (atoms is None):
        raise ValueError("base and atoms belong together: give both or neither")
    base = GaussianMixture([1.0], [np.zeros(n)], [np.eye(n)]) if base is None else base
    vectors = np.eye(n) if atoms is None else check_independent(atoms, "atoms")
    M = design.M * design.variance
    if len(np.unique(M, axis=1).T) < n:
        raise ValueError("two atoms have equal columns of M: no number of samples tells them apart")
    sigma = design.variance**0.5
    concepts = design.concepts(vectors)
    samples = [base.sample(rows, rng)]
    samples += [base.condition(c, design.variance).sample(rows, rng) for c in concepts]
    # The constants follow from the others: each environment has as much density as the base.
    B = design.B * sigma
    constants = [-np.log(acceptance_rate(base, c, design.variance)) for c in concepts]
    constants -= (M * (B**2)).sum(axis=1) / 2
    fit = LogOddsFit.at(samples, M, as_one(vectors / sigma, B, constants, M))
    errors = fit.valuations(samples[0] - samples[0].mean(axis=0))[1]
    return float((errors**2).mean() * rows * len(samples))


def random_design(
    n: int, m: int, rng: np.random.Generator, variance: float = PAPER_VARIANCE
) -> EnvironmentDesign:
    """Draw a design that satisfies Assumptions 4 and 5, by rejection.

    Each of m > n environments (Remark 2) conditions on each of n atoms with probability one half;
    valuations are normal with standard deviation 3σ. ValueError if no such design was met.
    """
    if as_count(m, "m") <= as_count(n, "n"):
        raise ValueError(f"m must be at least n + 1 = {n + 1} (Remark 2), got {m}")
    as_generator(rng)
    scale = 3.0 * np.sqrt(as_positive(variance, "variance"))
    for _ in range(_MOST_DRAWS):
        occurs = rng.random((m, n)) < 0.5
        if not (occurs.any(axis=0).all() and occurs.any(axis=1).all()):
            continue
        subsets = [np.flatnonzero(row).tolist() for row in occurs]
        valuations = [rng.normal(scale=scale, size=len(subset)).tolist() for subset in subsets]
        design = EnvironmentDesign(subsets, valuations, variance)
        if design.check().satisfied:
            return design
    raise ValueError(
        f"no design with n = {n} and m = {m} among {_MOST_DRAWS} draws: random ones rarely "
        "satisfy the assumptions when n is large; use propose_design"
    )


def _tree_edges(tree: Sequence[Edge] | Literal["path", "star"], n: int) -> list[Edge]:
    """Return n edges that join the vertices 0, ..., n, or raise ValueError."""
    if isinstance(tree, str):
        if tree not in ("path", "star"):
            raise ValueError(f"tree must be 'path', 'star' or a list of edges, got {tree!r}")
        return [(i, i + 1 if tree == "path" else n) for i in range(n)]
    edges = [(int(a), int(b)) for a, b in as_points(tree, "tree", 2)]
    if len(edges) != n:
        raise ValueError(f"valuations must have one row per edge: {len(edges)}, got {n}")
    vertices = np.array(edges)
    if vertices.min() < 0 or vertices.max() > n:
        raise ValueError(f"tree must join vertices from 0 to {n}, got {edges}")
    graph = coo_array((np.ones(n), (vertices[:, 0], vertices[:, 1])), shape=(n + 1, n + 1))
    if connected_components(graph, directed=False)[0] > 1:
        raise ValueError(f"tree holds a cycle: n edges on n + 1 vertices need none, got {edges}")
    return edges


def _best_path(valuations: GaussianMixture, variance: float, gap: float) -> Array:
    """Choose each atom's two valuations, (b in i, b in i + 1), by best rates along the path."""
    n = valuations.d_z
    noisy = [valuations.linear_image(np.eye(n)[[i]], variance) for i in range(n)]
    states = np.stack([_candidate_pairs(marginal, gap) for marginal in noisy])
    score = noisy[0].log_density(states[0, :, :1])
    came_from = []
    for i in range(1, n):
        pair = valuations.linear_image(np.eye(n)[[i - 1, i]], variance)
        points = itertools.product(states[i - 1, :, 1], states[i, :, 0])
        joint = pair.log_density(np.array(list(points))).reshape(len(states[i]), -1)
        total = score[:, None] + joint
        came_from.append(total.argmax(axis=0))
        score = total.max(axis=0)
    state = int((score + noisy[-1].log_density(states[-1, :, 1:])).argmax())
    best = [states[-1, state]]
    for i in range(n - 2, -1, -1):
        state = int(came_from[i][state])
        best.append(states[i, state])
    return np.array(best[::-1])


def _candidate_pairs(marginal: GaussianMixture, gap: float) -> Array:
    """Pairs of valuations `gap` apart, in both orders, shape (2 * _GRID, 2)."""
    spread = np.sqrt(marginal.covariances[:, 0, 0])
    low, high = (marginal.means[:, 0] - 2 * spread).min(), (marginal.means[:, 0] + 2 * spread).max()
    centres = np.linspace(low, high, _GRID)[:, None]
    rising = centres + np.array([-gap / 2, gap / 2])
    return np.concatenate([rising, rising[:, ::-1]])
