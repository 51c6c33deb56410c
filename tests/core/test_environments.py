"""Environments and their matrices M and B, equations (7) and (8)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conceptnb.core.concepts import random_atoms
from conceptnb.core.design import EnvironmentDesign, paper_design


@st.composite
def designs(draw) -> EnvironmentDesign:
    n = draw(st.integers(1, 5))
    atoms = st.permutations(range(n))
    subsets = [draw(atoms)[: draw(st.integers(1, n))] for _ in range(draw(st.integers(1, 6)))]
    subsets.append(draw(atoms))
    numbers = st.floats(-3, 3)
    valuations = [[draw(numbers) for _ in subset] for subset in subsets]
    return EnvironmentDesign(subsets, valuations, draw(st.floats(0.01, 4)))


@given(designs())
def test_matrices_hold_the_log_odds_of_equation_9(design):
    r"""-(Az - b)^2 / 2 sigma^2 is -M/2 <a,z>^2 + B <a,z> up to a constant."""
    rng = np.random.default_rng(0)
    atoms = random_atoms(design.n_atoms, 6, rng)
    Z = rng.standard_normal((9, 6))
    values = Z @ atoms.T
    quadratic = -(values**2) @ design.M.T / 2 + values @ design.B.T
    for e, concept in enumerate(design.concepts(atoms)):
        direct = -((concept.valuation(Z) - concept.b) ** 2).sum(axis=1) / (2 * design.variance)
        difference = direct - quadratic[:, e]
        np.testing.assert_allclose(difference, difference[0], atol=1e-8 / design.variance)


@given(designs())
def test_rows_of_m_name_the_subsets(design):
    for row, subset in zip(design.M, design.subsets, strict=True):
        assert set(np.flatnonzero(row)) == set(subset)
    assert set(np.unique(design.M)) <= {0.0, 1 / design.variance}


def test_papers_environments():
    """One atom an environment, m = n + 1, as the authors' code has it."""
    for n in (2, 3, 4):
        design = paper_design(n)
        assert (design.n_atoms, design.n_environments) == (n, n + 1)
        assert design.variance == 0.005
        assert (np.count_nonzero(design.M, axis=1) == 1).all()
    np.testing.assert_allclose(paper_design(2).B * 0.005, [[0.2, 0], [0, -0.2], [0, 0.1]])
    with pytest.raises(ValueError, match="n must be one of"):
        paper_design(5)


def test_order_within_an_environment_does_not_matter():
    one = EnvironmentDesign([[0, 2, 1]], [[1.0, 2.0, 3.0]], 0.1)
    two = EnvironmentDesign([[1, 0, 2]], [[3.0, 1.0, 2.0]], 0.1)
    np.testing.assert_array_equal(one.B, two.B)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([], [], 0.1), ValueError, "subsets is empty"),
        (([[0]], [[1.0], [2.0]], 0.1), ValueError, "subsets has 1 environments and valuations 2"),
        (([[0], []], [[1.0], []], 0.1), ValueError, r"subsets\[1\] is empty"),
        (([[0, 0]], [[1.0, 2.0]], 0.1), ValueError, r"subsets\[0\] names an atom twice"),
        (([[0, -1]], [[1.0, 2.0]], 0.1), ValueError, "negative index"),
        (([[0, 2]], [[1.0, 2.0]], 0.1), ValueError, r"atoms \[1\] are conditioned on in no"),
        (([[0], [10**8]], [[1.0], [2.0]], 0.1), ValueError, "subsets names atom 100000000"),
        (([[0.5]], [[1.0]], 0.1), TypeError, r"subsets\[0\] must hold integers"),
        (([0], [[1.0]], 0.1), TypeError, r"subsets\[0\] must be a list"),
        (([[0, 1]], [[1.0]], 0.1), ValueError, r"valuations\[0\] must have 2 entries"),
        (([[0]], [[np.nan]], 0.1), ValueError, r"valuations\[0\] holds 1 entries that are NaN"),
        (([[0]], [[1.0]], 0.0), ValueError, "variance must be positive"),
        (([[0]], [[1.0]], -1.0), ValueError, "variance must be positive"),
        (([[0]], [[1.0]], "a"), TypeError, "variance must be a number"),
    ],
)
def test_bad_designs_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        EnvironmentDesign(*arguments)


def test_atoms_must_fit_the_design(rng):
    design = paper_design(2)
    with pytest.raises(ValueError, match="atoms must have 2 rows"):
        design.concepts(random_atoms(3, 4, rng))
    with pytest.raises(ValueError, match="linearly dependent"):
        design.concepts([[1.0, 0.0], [2.0, 0.0]])
