"""Random instances of Theorem 1's setting, and how well its proof recovers them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from conceptnb.core.concepts import random_atoms
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import random_mixture
from conceptnb.core.planner import random_design
from conceptnb.core.validation import as_generator
from conceptnb.theory.nonlinear_map import Diffeomorphism, Embedding
from conceptnb.theory.observables import World
from conceptnb.theory.standard_form import standard_form
from conceptnb.theory.theorem1 import evaluate, recover

VARIANCE = 0.01
"""Variance of q in the random instances."""


@dataclass(frozen=True)
class Recovery:
    """How well one instance was recovered.

    Attributes
    ----------
    n, m, d_z, d_x : int
        Its size.
    M_right : bool
        M agrees up to the order of atoms.
    B_error : float
        Largest absolute error of B in standard form, in units of σ.
    correlation : float
        Smallest absolute correlation, over atoms, of recovered with true valuations on
        new base samples.
    failure : str
        What stopped the recovery, if something did.
    """

    n: int
    m: int
    d_z: int
    d_x: int
    M_right: bool
    B_error: float
    correlation: float
    failure: str = ""


def random_world(design: EnvironmentDesign, d_z: int, d_x: int, rng: np.random.Generator) -> World:
    """Draw f, base, atoms and a chart around a given design (Section 5's setting).

    Parameters
    ----------
    design : EnvironmentDesign
    d_z, d_x : int
        Latent and observed dimensions, n <= d_z <= d_x.
    rng : numpy.random.Generator
    """
    return World(
        mixing=Embedding(d_z, d_x, rng),
        base=random_mixture(d_z, rng),
        atoms=random_atoms(design.n_atoms, d_z, rng),
        design=design,
        warp=Diffeomorphism(d_z, rng),
    )


def draw_instance(rng: np.random.Generator) -> World:
    """Draw an instance with n in 2..5, d_z in n..12, d_x in d_z..20, m in n+1..n+2."""
    n = int(as_generator(rng).integers(2, 6))
    d_z = int(rng.integers(n, 13))
    d_x = int(rng.integers(d_z, 21))
    design = random_design(n, int(rng.integers(n + 1, n + 3)), rng, VARIANCE)
    return random_world(design, d_z, d_x, rng)


def recover_seed(seed: int) -> Recovery:
    """Draw instance number `seed` and recover it: one row of the book's table."""
    rng = np.random.default_rng([5, seed])
    world = draw_instance(rng)
    try:
        return score(world, rng)
    except (RuntimeError, ValueError) as error:  # kept as a row: a failure is a result
        m, n = world.design.M.shape
        d_z, d_x = world.mixing.d_z, world.mixing.d_x
        return Recovery(n, m, d_z, d_x, False, np.inf, 0.0, str(error))


def score(world: World, rng: np.random.Generator, n_new: int = 200) -> Recovery:
    """Recover a world from its observables by Theorem 1's proof, and compare.

    Parameters
    ----------
    world : World
    rng : numpy.random.Generator
    n_new : int
        New base samples on which valuations are compared.

    Returns
    -------
    Recovery
    """
    design = world.design
    seen = world.observables(world.sample(500, rng))
    model = recover(seen)
    M, B, order = standard_form(design.M, design.B, design.variance)
    M_right = bool(model.M.shape == M.shape and (model.M == M).all())
    B_error = float(np.abs(model.B - B).max()) if M_right else np.inf
    correlation = 0.0
    if M_right:
        X = world.sample(n_new, rng)
        learned = evaluate(seen, model, world.coordinates(X))
        true = world.valuations(X)[:, order]
        pairs = zip(true.T, learned.T, strict=True)
        correlation = float(min(abs(np.corrcoef(a, b)[0, 1]) for a, b in pairs))
    m, n = design.M.shape
    return Recovery(n, m, world.mixing.d_z, world.mixing.d_x, M_right, B_error, correlation)
