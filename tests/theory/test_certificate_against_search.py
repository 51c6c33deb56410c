"""The certificate against tests that know nothing of poles: linear algebra, and a blind search.

`CERTIFICATE_DESIGNS=5000 pytest tests/theory/test_certificate_against_search.py -m slow` runs
the comparison on as many designs; the default is what a test run can afford.
"""

import os

import numpy as np
import pytest
from scipy.linalg import null_space

from conceptnb.core.certificate import certify
from conceptnb.theory.competitors import competitor


def random_design(rng):
    """Draw a design of n <= 4 and m <= 6, often with equal, constant or two-valued columns."""
    n, m = int(rng.integers(1, 5)), int(rng.integers(1, 7))
    M = (rng.random((m, n)) < rng.choice([0.4, 0.6, 0.8])).astype(float)
    M[rng.integers(m, size=n), np.arange(n)] = 1.0
    kind = rng.integers(4, size=n)
    B = rng.normal(size=(m, n))
    for i in np.flatnonzero(kind == 1):
        B[:, i] = rng.normal()
    for i in np.flatnonzero(kind == 2):
        B[:, i] = rng.choice([-0.5, 1.0], size=m)
    if n > 1 and rng.random() < 0.2:
        M[:, 0] = M[:, 1]
    if n > 2 and rng.random() < 0.3:  # a column that is the sum of two, or what a third leaves
        M[:, 0] = np.where(rng.random() < 0.5, np.maximum(M[:, 1], M[:, 2]), 1 - M[:, 1])
        M[0, 0] = M[:, 0].any() or 1.0
    M = M[M.any(axis=1)]
    return M, B[: len(M)] * M


def lorentz_design(rng):
    """Draw one in which two atoms share a pole beside constant ones."""
    m = int(rng.integers(4, 7))
    whole = np.ones(m)
    first = np.zeros(m)
    first[rng.permutation(m)[: rng.integers(2, m - 1)]] = 1.0
    M = np.column_stack([first, whole - first, whole])
    if rng.random() < 0.5:
        M = np.column_stack([M, (rng.random(m) < 0.5) | (np.arange(m) == 0)]).astype(float)
    B = M * rng.normal(size=M.shape)
    B[:, 2:] = M[:, 2:] * rng.normal(size=M.shape[1] - 2)
    return M, B


def infinitesimally_open(M, B, rng, points=60):
    """Tell which atoms some smooth deformation of B and the constants bends, M fixed."""
    m, n = M.shape
    support = np.argwhere(M > 0)
    rows, slopes, at = [], [], rng.normal(size=(points, n)) * 1.5
    open_ = np.zeros(n, dtype=bool)
    for z in at:
        D = M * z - B
        # Change of the log ratios by each entry of B, and by each constant.
        change = np.zeros((m, len(support) + m))
        change[support[:, 0], np.arange(len(support))] = z[support[:, 1]]
        change[:, len(support) :] = np.eye(m)
        rows.append(null_space(D.T, rcond=1e-9).T @ change)
        slopes.append(np.linalg.pinv(D, rcond=1e-9) @ change)
        open_ |= np.abs(null_space(D, rcond=1e-9)).sum(axis=1) > 1e-7
    equations = np.vstack(rows)
    free = null_space(equations, rcond=1e-9) if len(equations) else np.eye(len(support) + m)
    moves = np.array(slopes) @ free  # (points, n, deformations)
    spread = np.ptp(moves, axis=0).max(axis=1, initial=0)
    return open_ | (spread > 1e-5 * (1 + np.abs(moves).max(initial=0)))


def bent_by_search(M, B, atom, rng, starts=6, points=40):
    """Look blindly for another M, B and points of equal log ratios in which the atom is bent."""
    m, n = M.shape
    Z = rng.normal(size=n) + 0.3 * rng.uniform(-1, 1, size=(points, n))
    target = Z**2 @ M.T / 2 - Z @ B.T
    for _ in range(starts):
        other = M.copy()
        for i in np.flatnonzero(rng.random(n) < 0.5):
            other[:, i] = M[:, rng.integers(n)] if rng.random() < 0.5 else rng.random(m) < 0.5
        if not other.any(axis=0).all():
            continue
        found = _fit(other, target, Z, rng)
        if found is None:
            continue
        near = Z - Z.mean(axis=0)
        squares = (near[:, :, None] * near[:, None]).reshape(points, -1)
        smooth = np.hstack([np.ones((points, 1)), near, squares])
        slopes = np.linalg.lstsq(smooth, found, rcond=None)[0]
        rest = found - smooth @ slopes
        line = np.column_stack([np.ones(points), Z[:, atom]])
        bend = found - line @ np.linalg.lstsq(line, found, rcond=None)[0]
        steep = np.linalg.svd(slopes[1 : n + 1], compute_uv=False)[-1]
        if steep > 0.02 and np.abs(rest).max() < 0.02 and np.abs(bend).max(axis=0).min() > 1e-4:
            return other
    return None


def _fit(other, target, Z, rng):
    """Levenberg's steps for valuations, constants and points, from an affine image of Z."""
    (points, n), m = Z.shape, other.shape[0]
    support = np.argwhere(other > 0)
    found = Z @ (np.eye(n) + 0.7 * rng.normal(size=(n, n))) + rng.normal(size=n)
    B, c = other * rng.normal(size=other.shape), np.zeros(m)
    k, damping = len(support), 1e-2
    gap = found**2 @ other.T / 2 - found @ B.T + c - target
    for _ in range(60):
        J = np.zeros((points, m, points * n + k + m))
        D = other * found[:, None] - B
        for p in range(points):
            J[p, :, p * n : (p + 1) * n] = D[p]
            J[p, support[:, 0], points * n + np.arange(k)] = -found[p, support[:, 1]]
        J[:, :, points * n + k :] = np.eye(m)
        J = J.reshape(points * m, -1)
        step = -np.linalg.solve(J.T @ J + damping * np.eye(J.shape[1]), J.T @ gap.ravel())
        there = found + step[: points * n].reshape(points, n)
        B_there, c_there = B.copy(), c + step[points * n + k :]
        B_there[support[:, 0], support[:, 1]] += step[points * n : points * n + k]
        gap_there = there**2 @ other.T / 2 - there @ B_there.T + c_there - target
        if np.abs(gap_there).sum() < np.abs(gap).sum():
            found, B, c, gap, damping = there, B_there, c_there, gap_there, max(damping / 5, 1e-9)
        else:
            damping *= 8
        if np.abs(gap).max() < 1e-11:
            return found
    return None


def agree(M, B, rng):
    """Compare the verdicts of one design with deformations and with constructed models."""
    verdicts = np.array(certify(M, B))
    moved = infinitesimally_open(M, B, rng)
    assert not (moved & (verdicts == "always")).any(), (M, B, verdicts, moved)
    for atom in np.flatnonzero(verdicts != "always"):
        other = competitor(M, B, atom, rng)
        assert ((other.second_m == 0) | (other.second_m == 1)).all()
        np.testing.assert_allclose(other.second_b[other.second_m == 0], 0, atol=1e-10)
        n = M.shape[1]
        cloud = other.centre + other.radius * rng.uniform(-1, 1, size=(200, n)) / n**0.5
        assert other.mismatch(cloud) < 1e-10, (M, B, atom, other.mismatch(cloud))
        assert other.bend(cloud, atom) > 5e-4, (M, B, atom)
    return verdicts


@pytest.mark.slow
def test_verdicts_agree_with_deformations_and_with_constructed_models():
    rng = np.random.default_rng(38)
    count = int(os.environ.get("CERTIFICATE_DESIGNS", "300"))
    for k in range(count):
        agree(*(lorentz_design if k % 5 == 4 else random_design)(rng), rng)


@pytest.mark.parametrize("seed", range(3))
def test_a_few_of_them(seed):
    rng = np.random.default_rng(seed)
    for draw in (random_design, random_design, lorentz_design):
        agree(*draw(rng), rng)


@pytest.mark.slow
def test_a_blind_search_bends_no_atom_that_shares_its_pole_and_is_called_identified():
    rng = np.random.default_rng(5)
    M = np.array([[1.0, 0, 1], [1, 0, 1], [0, 1, 1], [0, 1, 1]])
    for _ in range(3):
        B = M * rng.normal(size=M.shape)
        B[:, 2] = M[:, 2] * rng.normal()
        assert certify(M, B)[:2] == ("always", "always")
        assert bent_by_search(M, B, 0, rng) is None
    equal = np.ones((3, 2))  # the search does find what there is
    assert bent_by_search(equal, rng.normal(size=(3, 2)), 0, rng, starts=20) is not None


# Rows are environments. The first two share a pole with factor -1 and with factor +1; in the last,
# atoms 2 to 4 are constant and the first two are turned by a hyperbolic turn.
OPEN = ("full support",)
COLUMNS = [
    (["1100", "0011", "1111"], [2], ("always", "always", "full support")),
    (["11001011", "00111011", "11001100", "00111100"], [2, 3], ("always",) * 2 + OPEN * 2),
    (["101010", "010101", "110000", "001100", "000011"], [2, 3, 4], OPEN * 5),
    # The second column holds the first and what is constant: both may move into it.
    (["110000", "111111", "001111"], [2], OPEN * 3),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "constant", "expected"), COLUMNS)
def test_atoms_that_share_a_pole(columns, constant, expected):
    rng = np.random.default_rng(0)
    M = np.array([[float(c) for c in column] for column in columns]).T
    B = M * rng.normal(size=M.shape)
    B[:, constant] = M[:, constant] * rng.normal(size=len(constant))
    assert tuple(agree(M, B, rng)) == expected
