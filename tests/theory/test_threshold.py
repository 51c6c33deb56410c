r"""The threshold under full support: m = n environments, and a search for other models.

Two models of the same data have g(z̃) = g(z) with M and B of one, so that with C = M⁻¹B

    z̃_i² - 2 Σ_j C_ij z̃_j = z_i² - 2 Σ_j C_ij z_j     for all i.

A second model is a continuous choice of a solution z̃(z). Far from the origin there are 2^n real
solutions, one near (±z_1, ..., ±z_n) for each choice of signs. The search follows each of them
along straight lines across the concept space; one that ends, because it meets another one and
both turn complex, belongs to no model.
"""

import itertools
import os

import numpy as np
import pytest

from conceptnb.core.certificate import certify
from conceptnb.core.design import EnvironmentDesign
from conceptnb.studies.theory_tables import random_instance
from conceptnb.theory.standard_form import standard_form
from conceptnb.theory.theorem1 import (
    codimensions,
    environment_matrix,
    valuation_matrix_by_residues,
)

LINES, ROUNDS = 6, 12


def draw_square(rng, n=None):
    """A random 0-1 matrix of rank n with n rows, and valuations of its entries."""
    n = int(rng.integers(2, 5)) if n is None else n
    while True:
        M = (rng.random((n, n)) < rng.uniform(0.3, 0.8)).astype(float)
        if M.any(axis=0).all() and M.any(axis=1).all() and np.linalg.matrix_rank(M) == n:
            return M, np.where(M > 0, rng.standard_normal((n, n)), 0.0)


def predicted(M, B):
    """Signs of the models that the theorem names: reflections of atoms with a diagonal column."""
    C = np.linalg.solve(M, B)
    off = np.abs(C - np.diag(np.diag(C))).max(axis=0)
    return set(itertools.product(*[(1, -1) if size < 1e-9 else (1,) for size in off]))


def survivors(M, B, rng, tried):
    """Signs, of those tried, whose solution can be followed along all of a few lines."""
    C = np.linalg.solve(M, B)
    n, unit = len(C), 1 + np.abs(C).max()
    reach = 12 * unit

    def far():
        return reach * rng.uniform(0.3, 1, n) * rng.choice([-1.0, 1.0], n)

    def solve(y, z):
        target = z**2 - 2 * z @ C.T
        for _ in range(5):
            gap = y**2 - 2 * y @ C.T - target
            slope = 2 * (y[..., None] * np.eye(n) - C)
            slope += 1e-13 * reach * np.eye(n)
            y = y - np.linalg.solve(slope, gap[..., None])[..., 0]
        return y, np.abs(y**2 - 2 * y @ C.T - target).max(axis=1) < 1e-8 * reach**2

    alive, start = sorted(tried), far()
    while alive:  # far enough out for all solutions to be real
        y, ok = solve(np.array(alive) * start, np.tile(start, (len(alive), 1)))
        if ok.all() and len(np.unique(y.round(6), axis=0)) == len(alive):
            break
        reach *= 1.3
        start = far()
    steps = int(60 * reach / unit)
    for _ in range(LINES):
        if not alive:
            break
        end = far()
        y, ok = solve(np.array(alive) * start, np.tile(start, (len(alive), 1)))
        before = y - np.array(alive) * (end - start) / steps
        for t in np.arange(1, steps + 1) / steps:
            guess = 2 * y - before
            new, ok = solve(guess, np.tile(start + t * (end - start), (len(alive), 1)))
            moved = np.abs(y - before).max(axis=1)
            ok &= np.abs(new - guess).max(axis=1) < 0.5 * np.maximum(moved, reach / steps)
            alive = [s for s, good in zip(alive, ok, strict=True) if good]
            y, before = new[ok], y[ok]
            if not alive:
                break
    return set(alive)


def search(M, B, rng):
    """Signs of all models that the search leaves; more lines for those that are not predicted."""
    expected = predicted(M, B)
    left = survivors(M, B, rng, set(itertools.product((1, -1), repeat=len(M))))
    for _ in range(ROUNDS):
        if left <= expected:
            break
        left = (left & expected) | survivors(M, B, rng, left - expected)
    return left


def check(instances, seed):
    """How many instances have the predicted models and no others, and how many have reflections."""
    agreed = reflected = 0
    for k in range(instances):
        rng = np.random.default_rng([seed, k])
        M, B = draw_square(rng)
        assert set(certify(M, B)) == {"full support"}
        found = search(M, B, rng)
        agreed += found == predicted(M, B)
        reflected += len(found) > 1
    return agreed, reflected


def test_only_the_predicted_reflections_are_found():
    agreed, reflected = check(6, 0)
    assert agreed == 6
    assert 0 < reflected < 6


@pytest.mark.long
def test_only_the_predicted_reflections_are_found_in_many_instances():
    """THRESHOLD_INSTANCES=200 runs as many; about a second of CPU each."""
    instances = int(os.environ.get("THRESHOLD_INSTANCES", "40"))
    agreed, reflected = check(instances, 1)
    assert agreed == instances
    assert 0 < reflected < instances


def test_the_odd_cycle_has_no_reflection_and_separate_atoms_have_all():
    rng = np.random.default_rng(0)
    M = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    assert search(M, np.where(M > 0, rng.standard_normal((3, 3)), 0), rng) == {(1, 1, 1)}
    assert len(search(np.eye(3), np.diag([0.3, -1.0, 2.0]), rng)) == 8


def test_a_contrast_that_moves_off_zero_ends_the_reflection():
    """A triangular design: atom 1 may be reflected, atom 0 only while its valuations are equal."""
    M = np.array([[1.0, 0.0], [1.0, 1.0]])
    B = np.array([[0.4, 0.0], [0.4, -0.7]])
    rng = np.random.default_rng(1)
    assert len(search(M, B, rng)) == 4  # equal valuations of atom 0: both columns are diagonal
    B[1, 0] = 0.9
    assert search(M, B, rng) == {(1, 1), (1, -1)}


def test_m_and_b_are_recovered_from_as_many_environments_as_atoms():
    rng = np.random.default_rng(2)
    for n in (2, 3):
        M, B = draw_square(rng, n)
        subsets = [np.flatnonzero(row).tolist() for row in M]
        values = [0.1 * B[e, S] for e, S in enumerate(subsets)]
        design = EnvironmentDesign(subsets, values, 0.01)
        instance = random_instance(design, n + 1, n + 2, rng)
        seen = instance.observables(instance.sample(300, rng)).prepared()
        found = environment_matrix(codimensions(seen)[0])
        true_M, true_B, _ = standard_form(design.M, design.B, design.variance)
        np.testing.assert_array_equal(found, true_M)
        np.testing.assert_allclose(
            valuation_matrix_by_residues(seen, found, rng), true_B, atol=1e-5
        )
