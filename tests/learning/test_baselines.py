"""Baselines: closed forms, independent computations of their objectives, their errors."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.decomposition import PCA, FastICA

torch = pytest.importorskip("torch")

from conceptnb.core.causal import LinearSCM, ratio_form  # noqa: E402
from conceptnb.core.problems import TABLE_1, Setting, draw_problem  # noqa: E402
from conceptnb.core.scores import mcc, r2  # noqa: E402
from conceptnb.learning.baselines.baseline import EachProblem, RandomProjection  # noqa: E402
from conceptnb.learning.baselines.ivae import IVAE, _Network  # noqa: E402
from conceptnb.learning.baselines.networks import Budget, EnvironmentClassifier  # noqa: E402
from conceptnb.learning.baselines.supervised import Supervised  # noqa: E402
from conceptnb.learning.fitting import fit  # noqa: E402
from conceptnb.learning.heads import InterventionalHead  # noqa: E402
from conceptnb.learning.recipes import INTERVENTIONAL  # noqa: E402

QUICK = Budget(epochs=2, batch_size=256)


@pytest.fixture(scope="module")
def linear_problem():
    return draw_problem(TABLE_1[0], 6, samples=400)


def test_principal_components_are_the_singular_vectors(linear_problem):
    X = linear_problem.X
    codes = EachProblem(PCA(3, whiten=True)).fit(X, linear_problem.environment).transform(X)
    centred = X - X.mean(axis=0)
    left, _, _ = np.linalg.svd(centred, full_matrices=False)
    expected = left[:, :3] * np.sqrt(len(X) - 1)
    signs = np.sign((codes * expected).sum(axis=0))
    np.testing.assert_allclose(codes, expected * signs, atol=1e-8)


def test_independent_components_of_independent_sources():
    rng = np.random.default_rng(0)
    sources = rng.uniform(-1, 1, size=(4000, 3))
    X = sources @ rng.normal(size=(3, 5))
    environment = np.repeat([0, 1], 2000)
    codes = EachProblem(FastICA(3, random_state=0)).fit(X, environment).transform(X)
    assert mcc(sources, codes) > 0.99


@pytest.mark.parametrize("encoder", ["linear", "mlp"])
def test_supervised_regression_solves_linear_mixing(linear_problem, encoder):
    p = linear_problem
    learner = Supervised(encoder, budget=QUICK).fit(p.X, p.environment, p.valuations())
    Z = p.fresh(1000)
    assert r2(p.valuations(Z), learner.transform(p.mixing(Z))) > (
        1 - 1e-6 if encoder == "linear" else 0.999
    )


def test_random_projection_is_affine_and_needs_no_more(linear_problem):
    X = linear_problem.X
    projection = RandomProjection(2, seed=1).fit(X, linear_problem.environment)
    a, b = X[:5], X[5:10]
    np.testing.assert_allclose(
        projection.transform(0.3 * a + 0.7 * b),
        0.3 * projection.transform(a) + 0.7 * projection.transform(b),
    )


def test_elbo_is_what_scipy_computes():
    """One row: log-likelihood by scipy, KL by quadrature, both at fixed parameters."""
    network = _Network(d_x=3, k=2, n_labels=2, seeds=[5], width=4, noise=0.2).double()
    with torch.no_grad():
        network.prior_log_variance += torch.tensor([[[0.3, -0.4], [0.1, 0.7]]])
    rng = np.random.default_rng(1)
    x, u = torch.as_tensor(rng.normal(size=(1, 4, 3))), torch.tensor([0, 1, 1, 0])
    noise = torch.as_tensor(rng.normal(size=(1, 4, 2)))
    with torch.no_grad():
        found = network.elbo(x, u, noise)[0].numpy()
        mean, log_variance = (part[0].numpy() for part in network.encode(x, u))
        scale = np.exp(log_variance / 2)
        z = mean + scale * noise[0].numpy()
        image = network.decoder(torch.as_tensor(z)[None])[0].numpy()
        prior_mean, prior_log = network.prior_mean[0].numpy(), network.prior_log_variance[0].numpy()
    for i in range(4):
        likelihood = multivariate_normal(image[i], 0.2 * np.eye(3)).logpdf(x[0, i].numpy())
        kl = 0.0
        for k in range(2):
            q = norm(mean[i, k], scale[i, k])
            p = norm(prior_mean[u[i], k], np.exp(prior_log[u[i], k] / 2))
            grid = np.linspace(mean[i, k] - 10 * scale[i, k], mean[i, k] + 10 * scale[i, k], 4001)
            kl += np.trapezoid(q.pdf(grid) * (q.logpdf(grid) - p.logpdf(grid)), grid)
        assert found[i] == pytest.approx(likelihood - kl, abs=1e-8)


def test_ivae_separates_latents_that_its_assumptions_cover():
    """Independent given the environment, variances modulated, more than 2k + 1 environments."""
    rng = np.random.default_rng(3)
    environment = np.repeat(np.arange(12), 400)
    scale = rng.uniform(0.2, 3.0, size=(12, 2))[environment]
    Z = scale * rng.normal(size=(len(environment), 2))
    X = Z @ np.array([[1.0, 0.6, -0.4], [-0.5, 1.0, 0.8]])
    learner = IVAE(2, budget=Budget(epochs=30, batch_size=256)).fit(X, environment)
    assert mcc(Z, learner.transform(X)) > 0.9


def chain_odds(nodes, Z):
    """Log-odds of interventions on a causal pair, by scipy's densities."""
    model = LinearSCM([[0, 0], [0.8, 0]], [0, 0], [1.0, 0.5])
    observed = model.distribution()
    columns, forms = [], []
    for node, mean, variance in nodes:
        p = model.intervene(node, mean, variance).distribution()
        columns.append(
            multivariate_normal(p.means[0], p.covariances[0]).logpdf(Z)
            - multivariate_normal(observed.means[0], observed.covariances[0]).logpdf(Z)
        )
        # ratio_form(p, q) is the precision of q less that of p.
        forms.append(ratio_form(observed, p))
    return model, np.stack(columns, axis=1), np.stack(forms)


def quadratic_form(head):
    """Q of each environment, with log-odds -½ hᵀQh + ...: intervened minus observed precision."""
    own = torch.diag_embed(2 * head.coefficients()[0].transpose(1, 2))
    return own - torch.einsum("pkt,plt,te->pekl", head.shared, head.shared, head.mask)


def test_interventional_head_has_the_form_of_single_node_interventions():
    """With the mechanisms' rows as the shared term, log-odds are exact, constants aside."""
    nodes = [(0, 0.5, 0.3), (1, -0.4, 0.2), (1, 0.9, 0.2)]
    Z = np.random.default_rng(0).normal(size=(50, 2))
    model, expected, forms = chain_odds(nodes, Z)
    targets = torch.tensor([[True, False], [False, True], [False, True]])
    head = InterventionalHead(1, targets).double()
    rows = (np.eye(2) - model.W) / np.sqrt(model.variances)[:, None]  # s_t, so Θ = Σ s sᵀ
    with torch.no_grad():
        head.shared.copy_(torch.as_tensor(rows.T)[None])
        for e, (node, mean, variance) in enumerate(nodes):
            head.scale[0, node, e] = (2 * variance) ** -0.5
            head.gamma[0, node, e] = mean / variance
        found = head(torch.as_tensor(Z)[None])[0].numpy()
        np.testing.assert_allclose(quadratic_form(head)[0].numpy(), forms, atol=1e-12)
    difference = found - expected
    np.testing.assert_allclose(difference - difference[0], 0, atol=1e-10)


def test_interventional_head_recovers_precision_differences_from_log_odds():
    """Least squares on exact log-odds of a causal pair, with the encoder known."""
    nodes = [(0, 0.5, 0.3), (1, -0.4, 0.2), (1, 0.9, 0.2)]
    Z = np.random.default_rng(2).normal(size=(300, 2))
    _, expected, forms = chain_odds(nodes, Z)
    head = InterventionalHead(1, torch.tensor([[1, 0], [0, 1], [0, 1]]).bool()).double()
    points, goal = torch.as_tensor(Z)[None], torch.as_tensor(expected)[None]
    optimiser = torch.optim.LBFGS(
        head.parameters(), max_iter=800, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def closure():
        optimiser.zero_grad()
        loss = (head(points) - goal).square().mean()
        loss.backward()
        return loss

    optimiser.step(closure)
    np.testing.assert_allclose(quadratic_form(head)[0].detach().numpy(), forms, atol=1e-3)


def test_a_stack_and_each_problem_alone_agree(linear_problem):
    """Networks of a stack share no parameter; the first problem does not feel the second."""
    other = draw_problem(TABLE_1[0], 5, samples=400)
    X = np.stack([linear_problem.X, other.X])
    environment = linear_problem.environment
    for method in (EachProblem(PCA(2)), EnvironmentClassifier(8, budget=QUICK)):
        together = clone(method).fit(X, environment).transform(X)[0]
        alone = clone(method).fit(X[0], environment).transform(X[0])
        np.testing.assert_allclose(together, alone, rtol=1e-3, atol=1e-3)
    recipe = replace(INTERVENTIONAL, training=replace(INTERVENTIONAL.training, epochs=2))
    together = fit([linear_problem, other], recipe).transform(X)[0]
    alone = fit([linear_problem], recipe).transform(X[:1])[0]
    np.testing.assert_allclose(together, alone, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "method",
    [
        RandomProjection(2),
        EachProblem(PCA(2)),
        EnvironmentClassifier(4, budget=QUICK),
        IVAE(2, budget=QUICK),
        Supervised("linear"),
        Supervised("mlp", budget=QUICK),
    ],
    ids=lambda method: type(method).__name__,
)
def test_every_baseline_is_an_estimator_of_scikit_learn(method, linear_problem):
    p = linear_problem
    learner = clone(method).fit(p.X, p.environment, p.valuations())
    assert repr(learner) == repr(method)
    codes = learner.transform(p.X[:7])
    assert codes.shape[0] == 7
    assert np.isfinite(codes).all()
    np.testing.assert_allclose(learner.transform(p.X[None, :7])[0], codes)
    again = clone(method).fit_transform(p.X, p.environment, valuations=p.valuations())
    np.testing.assert_allclose(again[:7], codes, atol=1e-6)


def test_errors_name_the_argument(linear_problem):
    p = linear_problem
    with pytest.raises(ValueError, match="environment has 2 entries for 3 rows"):
        RandomProjection(1).fit(np.eye(3), [0, 1])
    with pytest.raises(ValueError, match="valuations must be given: Supervised"):
        Supervised("linear").fit(p.X, p.environment)
    with pytest.raises(ValueError, match="valuations must have leading shape"):
        Supervised("linear").fit(p.X, p.environment, p.valuations()[:-1])
    with pytest.raises(ValueError, match="not fitted yet"):
        EachProblem(PCA(2)).transform(p.X)
    with pytest.raises(ValueError, match="was fitted to 1 of 4"):
        RandomProjection(1).fit(p.X, p.environment).transform(p.X[:, :3])
    with pytest.raises(ValueError, match="n_components=9 must be between"):
        EachProblem(PCA(9)).fit(p.X, p.environment)
    with pytest.raises(ValueError, match="X must have shape"):
        RandomProjection(1).fit(np.zeros(3), [0, 1, 1])
    with pytest.raises(ValueError, match="encoder must be"):
        Supervised("cubic").fit(p.X, p.environment, p.valuations())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="noise must be positive"):
        IVAE(2, noise=0.0).fit(p.X, p.environment)
    with pytest.raises(ValueError, match="n_components must be at least 1"):
        RandomProjection(0).fit(p.X, p.environment)
    with pytest.raises(ValueError, match="rate must be positive"):
        Budget(rate=0.0)


def test_supervised_bound_is_least_squares_where_the_encoder_is_linear(linear_problem):
    p = linear_problem
    Z = p.fresh(2000)
    codes = Supervised("linear").fit(p.X, p.environment, p.valuations()).transform(p.mixing(Z))
    assert r2(p.valuations(Z), codes) == pytest.approx(1, abs=1e-4)
    assert mcc(p.valuations(Z), codes) == pytest.approx(1, abs=1e-4)


def test_supervised_network_does_no_worse_than_least_squares():
    p = draw_problem(Setting("nonlinear", 2, 3, 4), 3, samples=1000)
    Z = p.fresh(3000)
    straight, bent = (
        method.fit(p.X, p.environment, p.valuations()).transform(p.mixing(Z))
        for method in (Supervised("linear"), Supervised("mlp", budget=Budget(10, rate=0.01)))
    )
    assert r2(p.valuations(Z), bent) > r2(p.valuations(Z), straight)
