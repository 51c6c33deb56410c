"""What the atlas draws: every small design once, and the minimal designs, which are trees."""

import itertools

import numpy as np
import pytest

from conceptnb.core.certificate import certify
from conceptnb.plotting.identification import _small_designs, _trees, design_atlas

GENERAL = np.random.default_rng(5).normal(size=(2, 7, 6))


def orbit(M):
    """All matrices that are M in another order of rows and columns."""
    m, n = M.shape
    rows, columns = itertools.permutations(range(m)), list(itertools.permutations(range(n)))
    return {tuple(M[np.ix_(r, c)].ravel()) for r in rows for c in columns}


@pytest.mark.parametrize(("n", "m"), [(1, 4), (2, 2), (2, 4), (3, 2), (3, 3)])
def test_every_design_is_one_of_the_small_ones_and_these_differ(n, m):
    orbits = [orbit(M) for M in _small_designs(n, m)]
    every = {
        tuple(bits)
        for bits in itertools.product((0, 1), repeat=n * m)
        if np.reshape(bits, (m, n)).any(axis=0).all() and np.reshape(bits, (m, n)).any(axis=1).all()
    }
    assert sum(map(len, orbits)) == len(every)
    assert set.union(*orbits) == every


def test_there_are_as_many_trees_as_there_should_be():
    trees = _trees(6)
    assert [sum(M.shape[1] == n for M in trees) for n in range(1, 7)] == [1, 1, 2, 3, 6, 11]
    for M in trees:
        assert (M.sum(axis=0) == 2).all()
        assert np.linalg.matrix_rank(M) == M.shape[1] == len(M) - 1  # connected, no cycle


def all_always(M):
    m, n = M.shape
    first, second = (certify(M, M * B[:m, :n]) for B in GENERAL)
    assert first == second  # general valuations, whichever
    return set(first) == {"always"}


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_minimal_designs_are_trees(n):
    """Fewer environments never suffice, and with n + 1 the fewest conditionings are a tree's."""
    assert not any(all_always(M) for m in range(1, n + 1) for M in _small_designs(n, m))
    good = [M for M in _small_designs(n, n + 1) if all_always(M)]
    least = [M for M in good if M.sum() == min(M.sum() for M in good)]
    trees = [M for M in _trees(n) if M.shape[1] == n]
    assert len(least) == len(trees)
    for M in least:
        assert sum(tuple(T.astype(int).ravel()) in orbit(M) for T in trees) == 1


@pytest.mark.parametrize("n", [4, 5])
def test_of_all_graphs_those_without_a_cycle_are_identified(n):
    edges = list(itertools.combinations(range(n + 1), 2))
    for chosen in list(itertools.combinations(edges, n))[:: 1 if n == 4 else 7]:
        M = np.zeros((n + 1, n))
        for i, edge in enumerate(chosen):
            M[list(edge), i] = 1
        assert all_always(M) == (np.linalg.matrix_rank(M) == n == np.linalg.matrix_rank(_signed(M)))


def _signed(M):
    """Incidence with signs, whose rank is the number of vertices minus that of components."""
    signed = M.copy()
    for column in signed.T:
        column[np.flatnonzero(column)[0]] = -1
    return signed


def test_marks_are_one_per_entry():
    ax = design_atlas().axes[0]
    marks = {c.get_label(): len(c.get_offsets()) for c in ax.collections}
    every = [M for n in (1, 2, 3) for m in (1, 2, 3, 4) for M in _small_designs(n, m)]
    assert marks.pop("not conditioned on") == sum((M == 0).sum() for M in every)
    assert sum(marks.values()) == sum(M.sum() for M in every)
    assert set(marks) == {"always", "full support", "never"}
    assert (
        sum(len(line.get_xdata()) == 2 for line in ax.lines)
        == sum(M.shape[1] for M in _trees(6)) + 1
    )  # the two dots of the smallest tree
