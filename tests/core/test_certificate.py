"""The certificate: invariance, the known cases, and sharper than Assumption 4."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conceptnb.core.certificate import certify
from conceptnb.core.design import EnvironmentDesign, paper_design
from conceptnb.core.planner import propose_design, random_design


def random_matrices(rng, n, m):
    M = (rng.random((m, n)) < 0.5).astype(float)
    M[rng.integers(m, size=n), np.arange(n)] = 1.0
    return M, M * rng.choice([rng.normal(), rng.normal(), 0.0], size=(m, n))


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_verdicts_do_not_depend_on_order_unit_zero_or_basis(n, m, seed):
    rng = np.random.default_rng(seed)
    M, B = random_matrices(rng, n, m)
    verdicts = certify(M, B)
    order = rng.permutation(n)
    assert certify(M[:, order], B[:, order]) == tuple(verdicts[i] for i in order)
    rows = rng.permutation(m)
    assert certify(M[rows], B[rows]) == verdicts
    scale, shift = rng.choice([-3.0, 0.2, 1.0], size=n), rng.normal(size=n)
    assert certify(M, (B + shift * M) * scale) == verdicts
    mixed = rng.normal(size=(m, m)) + 3 * np.eye(m)
    assert certify(mixed @ M, mixed @ B) == verdicts


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_what_theorem_1_covers_is_identified_on_every_support(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    design = random_design(n, n + int(rng.integers(1, 3)), rng)
    assert set(design.check().identified) == {"always"}


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_full_support_settles_every_design_of_rank_n(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    M, B = random_matrices(rng, n, n + int(rng.integers(0, 2)))
    if np.linalg.matrix_rank(M) == n:
        assert "never" not in certify(M, B)


def test_assumption_4_is_not_sharp():
    """No v serves, and yet every support identifies both atoms."""
    design = EnvironmentDesign([[0, 1], [0, 1], [1]], [[0.1, 0.15], [-0.15, 0.15], [-0.1]], 0.01)
    assert not design.check().satisfied
    assert design.check().identified == ("always", "always")


def test_the_papers_designs_need_full_support():
    assert paper_design(2).check().identified == ("full support", "always")
    assert paper_design(3).check().identified == ("always", "full support", "full support")
    assert propose_design(3).check().identified == ("always",) * 3


def test_too_few_environments_leave_single_atoms():
    M = [[1, 0, 0], [0, 1, 1]]
    assert certify(M, np.zeros((2, 3))) == ("full support", "never", "never")


def test_twins_with_equal_ratios_are_never_told_apart_and_others_are():
    M = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    B = np.array([[0.3, -0.2], [0.1, 0.5], [-0.4, 0.7]])
    assert certify(M, B) == ("never", "never")
    M[:, 1] = [1.0, 2.0, 3.0]  # the second atom's variance differs by environment
    assert certify(M, B) == ("always", "always")


def test_an_atom_whose_valuation_never_varies_needs_full_support():
    M = [[1, 0], [0, 1], [1, 1], [1, 0]]
    assert certify(M, np.array(M) * [0.4, 0.0] + [[0, 0.1], [0, 0.3], [0, -0.2], [0, 0]])[0] == (
        "full support"
    )


@pytest.mark.parametrize(
    ("M", "B", "message"),
    [
        ([[1.0, 0.0]], [[0.0, 0.0]], r"columns \[1\] of M are zero"),
        ([[1.0]], [[0.0, 1.0]], "one shape"),
    ],
)
def test_bad_matrices_are_refused(M, B, message):
    with pytest.raises(ValueError, match=message):
        certify(M, B)
