"""Clustered bases: coordinates in which clusters are alike, and the estimator that uses them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers
from sklearn.mixture import GaussianMixture

torch = pytest.importorskip("torch")

from conceptnb.core.problems import Setting, draw_problem  # noqa: E402
from conceptnb.core.scores import mcc, r2  # noqa: E402
from conceptnb.learning.cluster_whitening import (  # noqa: E402  # noqa: E402
    ROWS,
    ClusterWhitening,
    slope_disagreement,
)
from conceptnb.learning.data import stack  # noqa: E402
from conceptnb.learning.fitting import fit  # noqa: E402
from conceptnb.learning.recipes import CLUSTER_WHITENED  # noqa: E402
from tests.learning.clusters import as_stack, islands  # noqa: E402


def coordinates_of(x, n_clusters=3, **options):
    data = as_stack(x)
    whitening = ClusterWhitening.fit_clusters(data, n_clusters, [0], **options)
    return whitening, whitening.coordinates(torch.as_tensor(x)[None])[0].numpy()


def test_one_cluster_is_plain_whitening():
    x = np.random.default_rng(0).normal(size=(2000, 3)) @ np.diag([1.0, 4.0, 0.2])
    whitening, found = coordinates_of(x, n_clusters=1)
    both = whitening(torch.as_tensor(x)[None])[0].numpy()
    np.testing.assert_allclose(both[:, : whitening.rank], found)
    np.testing.assert_allclose(np.cov(both[:, whitening.rank :].T), np.eye(3), atol=1e-6)
    # Equal up to a rotation: so are the inner products.
    np.testing.assert_allclose(found @ found.T, both[:, 3:] @ both[:, 3:].T, atol=1e-6)


@given(integers(0, 50))
def test_coordinates_undo_maps_that_differ_without_a_rotation(seed):
    rng = np.random.default_rng(seed)
    roots = [np.diag(rng.uniform(0.5, 2, size=2)) for _ in range(3)]
    z, x, cluster = islands(roots, rng)
    _, found = coordinates_of(x, shrinkage=0.0)
    assert slope_disagreement(found, cluster, z) < 0.03
    assert slope_disagreement(found, cluster, z) <= slope_disagreement(x, cluster, z) + 0.01


def test_coordinates_are_affine_in_z_where_mixing_is():
    rng = np.random.default_rng(1)
    one = rng.normal(size=(2, 2)) + 2 * np.eye(2)
    z, _, _ = islands([np.eye(2)] * 3, rng)
    _, found = coordinates_of(z @ one.T, shrinkage=0.0)
    assert r2(z, found) > 0.999


def test_responsibilities_are_those_of_the_mixture():
    rng = np.random.default_rng(2)
    _, x, _ = islands([np.eye(2)] * 3, rng, spread=1.0)
    whitening, _ = coordinates_of(x)
    unit = x.std()
    mixture = GaussianMixture(3, n_init=2, random_state=0).fit(x[:ROWS] / unit)
    np.testing.assert_allclose(
        whitening.responsibilities(torch.as_tensor(x)[None])[0].numpy(),
        mixture.predict_proba(x / unit),
        atol=1e-9,
    )


@given(integers(0, 50))
def test_disagreement_is_none_for_linear_codes_and_sees_a_mirrored_cluster(seed):
    rng = np.random.default_rng(seed)
    z, _, cluster = islands([np.eye(2)] * 3, rng, rows=6000)
    code = z @ rng.normal(size=(2, 2))
    assert slope_disagreement(z, cluster, code) == pytest.approx(0, abs=1e-12)
    mirrored = np.where(cluster[:, None] == 1, -code, code)
    # One third of the variance has the opposite slope; the best common one is a third of it.
    assert slope_disagreement(z, cluster, mirrored) == pytest.approx(8 / 9, abs=0.04)
    scaled = slope_disagreement(3 * z @ np.array([[1.0, 0.5], [0.0, 2.0]]) + 1, cluster, -mirrored)
    assert scaled == pytest.approx(slope_disagreement(z, cluster, mirrored), abs=1e-9)


@pytest.fixture(scope="module")
def problems():
    return [draw_problem(Setting("nonlinear", 2, 3, 4), seed, samples=400) for seed in (3, 5)]


@pytest.mark.slow
def test_a_problem_alone_ends_as_in_a_stack(problems):
    Z = problems[1].fresh(500)
    x = problems[1].mixing(Z)
    together = fit(problems, CLUSTER_WHITENED).transform([x, x])[1]
    alone = fit(problems[1:], CLUSTER_WHITENED)
    assert alone.held_out_loss.shape == (1, 1)  # of the network that is kept
    np.testing.assert_allclose(together, alone.transform([x])[0], atol=1e-2)
    assert mcc(problems[1].valuations(Z), together) > 0.9


def test_bad_arguments_say_what_is_wrong(problems):
    problem = problems[0]
    with pytest.raises(ValueError, match="n_clusters"):
        replace(CLUSTER_WHITENED, n_clusters=0)
    with pytest.raises(ValueError, match="n_clusters is 2000"):
        fit([problem], replace(CLUSTER_WHITENED, n_clusters=2000))
    constant = stack([0 * problem.X], problem.environment, problem.design.M > 0)
    with pytest.raises(ValueError, match="all rows of environment 0 are the same"):
        fit(constant, CLUSTER_WHITENED)
