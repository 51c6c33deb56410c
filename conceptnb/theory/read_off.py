r"""What can be read off the true log-odds of one point: the bound without inductive bias.

An encoder that knew the true log-odds :math:`g(x) \in R^m` of every point would still have to
solve :math:`g_e = c_e - \tfrac{1}{2\sigma^2} \sum_{i \in S_e} (v_i - b_i^e)^2` for the valuations
v. Under Assumption 4 almost every point has one solution. Where there are several, only
smoothness or linearity of the encoder can choose between them.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike

from conceptnb.common.validation import Array, as_points
from conceptnb.core.design import EnvironmentDesign

_MOST_ATOMS = 8
_SOLVED = 1e-6
"""Largest error of log-odds, relative to their size plus one, of what counts as a solution."""


def peeling_order(design: EnvironmentDesign) -> list[tuple[int, int]] | None:
    """Return pairs (atom, environment) in which environments give atoms one by one, or None.

    Environment e gives atom i once all other atoms of e are known, up to the sign of its
    distance from the valuation conditioned on. Trees, and the authors' design, can be peeled.
    """
    known: set[int] = set()
    order: list[tuple[int, int]] = []
    while len(order) < design.n_atoms:
        open_atoms = [(e, set(subset) - known) for e, subset in enumerate(design.subsets)]
        step = next(((e, rest) for e, rest in open_atoms if len(rest) == 1), None)
        if step is None:
            return None
        atom = step[1].pop()
        known.add(atom)
        order.append((atom, step[0]))
    return order


def read_valuations(design: EnvironmentDesign, quadratic: ArrayLike) -> Array:
    r"""Solve each point's log-odds for its valuations (samples, n), always with the same signs.

    Atoms are peeled off one by one; each has two candidates, above and below its valuation.
    The environments that are left over decide between the :math:`2^n` branches. Of several
    solutions the first is taken, above before below: valuations on the other side of a
    reflection that the log-odds do not see are then read with the wrong sign.

    The design has a peeling order and at most eight atoms; `quadratic` (samples, m) are true
    log-odds without their constants, :math:`-\tfrac12 \sum_i M_{ei} (v_i - b_i^e)^2`.
    """
    g = as_points(quadratic, "quadratic", design.n_environments)
    n = design.n_atoms
    if n > _MOST_ATOMS:
        raise ValueError(f"design has {n} atoms: at most {_MOST_ATOMS}, as 2^n branches are tried")
    order = peeling_order(design)
    if order is None:
        raise ValueError(
            "design conditions on some atoms only together: its log-odds cannot be solved one "
            "atom at a time; add an environment with one of them alone"
        )
    unit = np.sqrt(design.variance)
    occurs, b = design.M > 0, design.B * unit  # valuations in units of σ
    found = np.zeros((len(g), n))
    error = np.full(len(g), np.inf)
    for signs in itertools.product((1.0, -1.0), repeat=n):
        v = np.zeros((len(g), n))
        for sign, (atom, e) in zip(signs, order, strict=True):
            others = occurs[e] & (np.arange(n) != atom)
            rest = -2 * g[:, e] - ((v - b[e]) ** 2 * others).sum(axis=1)
            v[:, atom] = b[e, atom] + sign * np.sqrt(np.maximum(rest, 0))
        forms = -0.5 * (((v[:, None, :] - b) ** 2) * occurs).sum(axis=2)
        miss = (np.abs(forms - g) / (1 + np.abs(g))).max(axis=1)
        # A later branch replaces an earlier one only where that one was no solution.
        better = (error > _SOLVED) & (miss < error)
        found[better], error[better] = v[better], miss[better]
    return found * unit
