"""The learner of interventions against closed forms, and on problems that it can solve."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

from conceptnb.core.scores import mcc
from conceptnb.learning.interventions import InterventionLearner, _Mechanisms

CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])


def chain(samples, rng, target=None):
    """Latents of z0 -> z1 -> z2 with effects .8 and -.6, or with one node set to N(2, 1)."""
    Z = rng.standard_normal((samples, 3))
    for node, effect in enumerate((0.0, 0.8, -0.6)):
        Z[:, node] += 2 if node == target else effect * Z[:, node - 1]
    return Z


def environments(samples, seed):
    rng = np.random.default_rng(seed)
    Z = np.concatenate([chain(samples, rng, target) for target in (None, 0, 1, 2)])
    return Z, np.repeat(np.arange(4), samples)


def test_log_odds_are_those_of_gaussian_mechanisms():
    head, Z = _Mechanisms(CHAIN != 0), chain(50, np.random.default_rng(0))
    effects, scale = np.array([[9, 0.8, 9], [9, 9, -0.6], [9, 9, 9]]), np.array([0.5, 1.5, 2.0])
    with torch.no_grad():
        head.effects.copy_(torch.as_tensor(effects))
        head.log_scale.copy_(torch.as_tensor(np.log(scale)))
        head.gamma.copy_(torch.tensor([2.0, -1.0, 0.5]))
        head.alpha.copy_(torch.as_tensor(np.log(scale)))
        found = head(torch.as_tensor(Z, dtype=torch.float32)).numpy()
    location = np.column_stack([0 * Z[:, 0], 0.8 * Z[:, 0], -0.6 * Z[:, 1]])
    exact = norm.logpdf(Z, [2.0, -1.0, 0.5]) - norm.logpdf(Z, location, scale)
    np.testing.assert_allclose(found, exact, atol=1e-4)


def small(seed=0):
    return InterventionLearner(CHAIN, width=32, depth=1, epochs=10, batch_size=256, seed=seed)


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(1)
    matrix = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    Z, environment = environments(4000, 2)
    return Z @ matrix, environment, matrix


def test_latents_of_a_linear_mixing_are_found_and_noise_labels_find_nothing(mixed):
    X, environment, matrix = mixed
    fresh, _ = environments(2000, 3)
    assert mcc(fresh, small().fit(X, environment).transform(fresh @ matrix)) > 0.97
    shuffled = np.random.default_rng(4).permutation(environment)
    assert mcc(fresh, small().fit(X, shuffled).transform(fresh @ matrix)) < 0.9


def test_columns_belong_to_nodes(mixed):
    X, environment, matrix = mixed
    fresh, _ = environments(2000, 3)
    learned = small().fit(X, environment).transform(fresh @ matrix)
    found = np.corrcoef(fresh.T, learned.T)[:3, 3:]
    assert (np.abs(found).argmax(axis=1) == np.arange(3)).all()


def test_a_seed_fixes_the_fit_and_leaves_torchs_own_state(mixed):
    X, environment, _ = mixed
    state = torch.get_rng_state()
    first, second, other = (small(s).fit(X, environment).transform(X) for s in (0, 0, 1))
    assert torch.equal(state, torch.get_rng_state())
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_latents_given_make_it_a_regression(mixed):
    X, environment, _ = mixed
    Z, _ = environments(4000, 2)
    learned = small().fit(X, environment, Z).transform(X)
    assert np.sqrt(np.mean((learned - Z) ** 2)) < 0.2


@pytest.mark.parametrize(
    ("graph", "said"),
    [(np.zeros((2, 3)), "graph must be square"), (np.ones((2, 2)), "graph has a cycle")],
)
def test_graphs_that_are_none_are_refused(graph, said):
    with pytest.raises(ValueError, match=said):
        InterventionLearner(graph)


def test_an_environment_per_node_is_asked_for(mixed):
    X, environment, _ = mixed
    kept = environment < 3
    with pytest.raises(ValueError, match="environment must have 12000 entries from 0 to 3"):
        small().fit(X[kept], environment[kept])
    with pytest.raises(ValueError, match="environment must have"):
        small().fit(X, environment[:-1])
