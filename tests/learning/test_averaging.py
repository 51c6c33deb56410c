"""Averages over two kinds of coordinates of a clustered base."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats, integers

torch = pytest.importorskip("torch")

from conceptnb.core.problems import Setting, draw_problem  # noqa: E402
from conceptnb.core.scores import r2  # noqa: E402
from conceptnb.learning import averaging  # noqa: E402
from conceptnb.learning.averaging import GatedWhitening, fit_averaged, rescaled  # noqa: E402
from conceptnb.learning.cluster_whitening import ClusterWhitening  # noqa: E402
from conceptnb.learning.data import stack  # noqa: E402
from conceptnb.learning.fitting import fit  # noqa: E402
from conceptnb.learning.recipes import CLUSTER_WHITENED  # noqa: E402
from tests.learning.clusters import as_stack, islands  # noqa: E402


def coordinates_of(x, power, n_clusters=3):
    data = as_stack(x)
    plain = ClusterWhitening.fit_clusters(data, n_clusters, [0], shrinkage=0.0)
    whitening = rescaled(plain, data, power, shrinkage=0.0)
    return whitening.coordinates(torch.as_tensor(x)[None])[0].numpy()


@given(integers(0, 50), floats(-0.5, 0.5))
def test_rescaled_clusters_have_one_covariance(seed, power):
    rng = np.random.default_rng(seed)
    # Well conditioned: the mixture itself adds a fixed amount to covariances.
    turns, _ = np.linalg.qr(rng.normal(size=(3, 2, 2)))
    _, x, cluster = islands(turns * rng.uniform(0.5, 2, size=(3, 1, 2)), rng)
    found = coordinates_of(x, power)
    first, *others = (np.cov(found[cluster == j].T) for j in range(3))
    for other in others:
        np.testing.assert_allclose(other, first, rtol=0, atol=0.02 * np.trace(first))


@given(floats(-0.5, 0.5))
def test_rescaled_coordinates_are_affine_where_mixing_is(power):
    rng = np.random.default_rng(1)
    z, _, _ = islands([np.eye(2)] * 3, rng)
    found = coordinates_of(z @ (rng.normal(size=(2, 2)) + 2 * np.eye(2)), power)
    assert r2(z, found) > 0.999


def test_rescaled_maps_are_those_of_the_page():
    maps = [np.diag([3.0, 0.5]), [[2.0, 1.0], [0.0, 0.5]], [[1.0, -1.0], [0.3, 0.6]]]
    _, x, _ = islands(maps, np.random.default_rng(4))
    data = as_stack(x)
    plain = ClusterWhitening.fit_clusters(data, 3, [0], shrinkage=0.0)
    points = torch.as_tensor(x)[None]
    cluster = plain.responsibilities(points)[0].argmax(dim=1).numpy()
    centres, factors = plain.centres[0].numpy(), plain.factors[0].numpy()
    weights = plain.log_weights[0].exp().numpy()

    def power(covariance, p):
        values, vectors = np.linalg.eigh(covariance)
        return vectors * values**p @ vectors.T

    def page(p):
        C = np.linalg.inv(factors @ factors.transpose(0, 2, 1))
        G = power(np.einsum("j,jab->ab", weights, C), -p)
        A = np.stack([G @ power(G @ c @ G, -0.5) for c in C])
        own = ((x - centres[cluster])[:, None] @ A[cluster])[:, 0]
        return own + (centres @ np.einsum("j,jab->ab", weights, A))[cluster]

    found = rescaled(plain, data, 0.2, shrinkage=0.0).coordinates(points)[0].numpy()
    assert 1 - r2(page(0.2), found) < 1e-8
    assert min(1 - r2(page(p), found) for p in (-0.2, 0.0)) > 1e-8


def test_one_rescaled_cluster_is_plain_whitening():
    x = np.random.default_rng(0).normal(size=(2000, 3)) @ np.diag([1.0, 4.0, 0.2])
    found = coordinates_of(x, 0.2, n_clusters=1)
    exact = np.linalg.inv(np.cov(x.T))
    inner = (x - x.mean(axis=0)) @ exact @ (x - x.mean(axis=0)).T
    np.testing.assert_allclose(found @ found.T, inner, atol=1e-6)


def test_gated_inputs_add_up_to_the_coordinates():
    rng = np.random.default_rng(2)
    _, x, _ = islands([np.eye(2), 2 * np.eye(2), 0.5 * np.eye(2)], rng)
    gated = GatedWhitening.fit_clusters(as_stack(x), 3, [0])
    points = torch.as_tensor(x)[None]
    inputs = gated(points)[0].numpy()
    assert inputs.shape[1] == 5 * gated.rank  # coordinates, whitened x and one block per cluster
    shares = gated.responsibilities(points)[0].numpy()
    placed = shares @ gated.offsets[0].numpy()
    blocks = inputs[:, 2 * gated.rank :].reshape(len(x), 3, gated.rank).sum(axis=1)
    np.testing.assert_allclose(placed + blocks, inputs[:, : gated.rank], atol=1e-9)


@pytest.fixture(scope="module")
def problems():
    return [draw_problem(Setting("nonlinear", 2, 3, 4), seed, samples=400) for seed in (3, 5)]


@pytest.mark.slow
def test_a_member_is_what_fit_returns_in_the_same_coordinates(problems):
    own = fit(problems, CLUSTER_WHITENED)
    again = fit(problems, CLUSTER_WHITENED, whitening=own.whitening)
    X = np.stack([p.mixing(p.fresh(300)) for p in problems])
    np.testing.assert_array_equal(again.transform(X), own.transform(X))
    averaged = fit_averaged(problems)
    whitening, model = averaged.members[1]
    alone = replace(averaged, members=averaged.members[1:], signs=[torch.ones(2, 1, 2)])
    member = fit(problems, CLUSTER_WHITENED, whitening=whitening)
    assert model.n_models == len(problems)
    np.testing.assert_allclose(alone.transform(X), member.transform(X), atol=1e-5)


@pytest.mark.slow
def test_average_of_a_fit_and_its_mirror_image_is_the_fit(problems):
    found = fit_averaged(problems)
    gated, other = (member[0] for member in found.members)
    assert isinstance(gated, GatedWhitening)
    assert not isinstance(other, GatedWhitening)
    assert not torch.allclose(gated.maps, other.maps, rtol=1e-2)
    X = np.stack([p.mixing(p.fresh(300)) for p in problems])
    whitening, model = found.members[0]
    mirrored = model.choose(torch.arange(2))
    with torch.no_grad():
        for layer in (mirrored.encoder.last, mirrored.encoder.skip):
            for parameter in layer.parameters():
                parameter.neg_()
    base = torch.as_tensor(np.stack([p.X[p.environment == 0] for p in problems]))
    members = [(whitening, model), (whitening, mirrored)]
    signs = averaging._signs(members, base.to(whitening.mean))
    assert (signs[0] == 1).all()
    assert (signs[1] == -1).all()
    both = replace(found, members=members, signs=signs).transform(X)
    alone = replace(found, members=members[:1], signs=signs[:1]).transform(X)
    np.testing.assert_allclose(both, alone, atol=1e-6)
    # Each member alone finds the concepts, and so does their mean.
    for codes in (both, found.transform(X)):
        pairs = zip(problems, codes, strict=True)
        assert min(r2(p.valuations(p.fresh(300)), h) for p, h in pairs) > 0.9


def test_bad_arguments_say_what_is_wrong(problems):
    own = ClusterWhitening.fit_clusters(stack([problems[0].X], problems[0].environment), 3, [0])
    learned = averaging.AveragedFit([(own, None)], [])
    with pytest.raises(ValueError, match="X holds 2 arrays; give one per problem, 1 in all"):
        learned.transform([problems[0].X, problems[1].X])
    with pytest.raises(ValueError, match="needs targets"):
        fit_averaged(stack([problems[0].X], problems[0].environment))
    with pytest.raises(ValueError, match="data is empty"):
        fit_averaged([])
    with pytest.raises(ValueError, match="it needs encoder='mlp'"):
        fit_averaged([draw_problem(Setting("linear", 2, 3, 4), 3, samples=10)])
