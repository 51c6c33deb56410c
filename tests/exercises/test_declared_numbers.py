"""Numbers that stand in the .toml files, computed here from the definitions or by the library."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import null_space
from scipy.stats import norm

from conceptnb import exercises as check
from conceptnb.core.design import paper_design
from conceptnb.core.mixing import MLPMixing
from conceptnb.core.problems import PAPER_SEEDS, TABLE_1, TABLE_7, draw_problem
from conceptnb.embeddings import sentences
from conceptnb.embeddings.alignment import linear_cka

EXERCISES = check.exercises()


def agrees(name, *computed):
    """Compare the right answer, then the mistakes in their order, with what is computed."""
    exercise = EXERCISES[name]
    declared = [exercise.answer, *exercise.mistakes.values()][: len(computed)]
    for mine, number in zip(declared, computed, strict=True):
        np.testing.assert_allclose(mine, number, rtol=1e-4, err_msg=name)


def test_singular_values_of_random_atoms():
    rng = np.random.default_rng(11)
    draws = [rng.uniform(-0.3, 0.3, size=(1000, n, 6)) for n in (1, 2, 4, 5, 6)]
    values = [np.linalg.svd(atoms, compute_uv=False) for atoms in draws]
    ratios = np.array([np.mean(s[:, -1] / s[:, 0]) for s in values])
    agrees("ex_how_many", ratios, [s[:, -1].mean() for s in values], 1 / ratios)


def test_a_base_multiplied_by_a_noisy_look():
    moments = [
        quad(lambda z: z**k * np.exp(-(z**2) / 4 - (3 - z) ** 2 / 2), -20, 20)[0]  # noqa: B023
        for k in range(3)
    ]
    mean, square = np.divide(moments[1:], moments[0])
    variance = square - mean**2
    agrees("ex_peak", [mean, variance], [3, 1], [1, 2 / 3], [mean, np.sqrt(variance)], [2, 1 + 2])


def test_the_ratio_of_step_5():
    z, B = np.array([-1.0, 0.7, 2.0]), np.array([0.4, -0.4])
    w = np.array([z - B[1], B[0] - z])  # orthogonal to z - B
    assert np.allclose((w * (z - B[:, None])).sum(axis=0), 0)
    above, below = B @ w, w.sum(axis=0)
    agrees("ex_denominator", above / below, above, below, below / above)


def test_log_odds_of_an_intervention():
    z = np.array([-1.0, 0.0, 1.0])
    ratio = norm.logpdf(z, 2) - norm.logpdf(z)
    agrees("ex_shifted_root", np.polyfit(z, ratio, 2).round(9), [-0.5, 2, -2])
    before, after = norm.logpdf(1, -2 / 2), norm.logpdf(1, 2)
    constant = norm.logpdf(0)
    agrees(
        "ex_with_parent",
        after - before,
        after - constant,
        after + before - 2 * constant,
        before - after,
    )


def test_three_layers_that_bend():
    slopes = [1 - np.tanh(x) ** 2 + 0.1 for x in (0, 3)]
    ratio = slopes[0] / slopes[1]
    agrees("ex_compression", ratio**3, ratio, 3 * ratio, (slopes[0] / 0.1) ** 3)


def test_the_seed_whose_weakest_valuation_varies_least():
    def weakest(seed):
        problem = draw_problem(TABLE_1[0], seed, samples=2)
        base = problem.base
        covariance = np.tensordot(base.weights, base.covariances, 1)
        covariance += np.cov(base.means.T, aweights=base.weights, bias=True)
        return np.diag(problem.atoms @ covariance @ problem.atoms.T).min()

    hard = min(PAPER_SEEDS, key=weakest)
    agrees("ex_hard_seed", hard)
    assert sorted(PAPER_SEEDS).index(hard) == 1  # the place that one mistake names


def test_the_rank_of_random_networks():
    sizes = [(s.d_z, s.d_x) for s in TABLE_1 + TABLE_7 if s.mixing == "nonlinear"]
    rng = np.random.default_rng(0)
    full = []
    for d_z, d_x in sizes:
        mixing, point = MLPMixing.random(d_z, d_x, rng), rng.normal(size=d_z)
        steps = (mixing(point + 1e-6 * np.eye(d_z)) - mixing(point[None])) / 1e-6
        full.append(np.linalg.matrix_rank(steps, tol=1e-5) == d_z)
    assert [d_z for d_z, _ in sizes] == [3, 4, 8, 15, 20, 25]
    agrees("ex_which_rows", full, [1] * 6, [d_z < 15 for d_z, _ in sizes], np.invert(full))


def test_the_atoms_that_the_null_space_reaches():
    design = paper_design(4)
    covered = (np.abs(null_space(design.M.T).T @ design.B) > 1e-9).any(axis=0)
    agrees("ex_which_atom_folds", covered, design.M.any(axis=0), ~covered, [0] * 4)


def test_canonical_correlations_by_chance():
    """Of whitened independent samples the cross-covariance is Gaussian with variance 1 / n."""
    cross = np.random.default_rng(5).normal(size=(4000, 2, 2))
    chance = np.linalg.norm(cross, 2, axis=(1, 2)).mean() / np.sqrt(2000)
    agrees("ex_chance", chance, 2 / 2000, 0, np.sqrt(2 / 20))


@pytest.mark.parametrize(
    ("place", "fixed"),
    [(0, {"number", "negation", "tense"}), (1, {"number", "negation"})],
)
def test_sentences_of_the_grid(place, fixed):
    levels = {name: len(values) for name, values in sentences.FACTORS.items()}
    count = math.prod(levels.values()) // math.prod(levels[name] for name in fixed)
    exercise = EXERCISES["ex_grid_count"]
    assert (exercise.answer, *exercise.mistakes.values())[place] == count


def test_one_shared_column_and_a_high_cka():
    rng, d, v = np.random.default_rng(0), 64, math.sqrt(99 * 64)
    shared = math.sqrt(v) * rng.normal(size=(20_000, 1))
    first, second = (np.hstack([rng.normal(size=(20_000, d)), shared]) for _ in range(2))
    assert linear_cka(first, second) == pytest.approx(0.99, abs=0.001)
    agrees("ex_high_cka", v, 99 * 64, math.sqrt(99))
