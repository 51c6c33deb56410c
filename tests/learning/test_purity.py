"""Unknown purities: found with the concepts, with errors of the size that is reported."""

import numpy as np
import pytest

from conceptnb.core.distributions import GaussianMixture
from conceptnb.core.planner import tree_design
from conceptnb.learning import ConceptLearner
from conceptnb.learning.purity import ImpureLikelihood

SIGMA = 0.1**0.5


def impure_table(purities, rows, rng):
    """Draw a path of environments of which a share comes from the base; atoms are coordinates."""
    n = len(purities) - 1
    design = tree_design("path", np.tile([-0.3, 0.3], (n, 1)), SIGMA**2)
    base = GaussianMixture([1.0], [np.zeros(n)], [np.eye(n)])
    parts = [base.sample(rows, rng)]
    for concept, purity in zip(design.concepts(np.eye(n)), purities, strict=True):
        looked_for = rng.random(rows) < purity
        found = base.condition(concept, design.variance).sample(rows, rng)
        parts.append(np.where(looked_for[:, None], found, base.sample(rows, rng)))
    return np.vstack(parts), np.repeat(np.arange(n + 2), rows), design.M > 0


def test_purities_and_widths_are_found_that_are_wrong_if_impurity_is_ignored():
    truth = np.array([0.6, 0.6, 0.6])
    mixing = np.array([[1.0, 0.3], [-0.4, 0.9]])
    Z, environment, targets = impure_table(truth, 6000, np.random.default_rng(0))
    X = Z @ mixing.T
    kinds = {None: 0.3, "estimate": 1.0}  # length of the learned valuations, of the true
    for purity, expected in kinds.items():
        learner = ConceptLearner(2, targets=targets, encoder="linear", purity=purity)
        h = learner.fit(X, environment).transform(X)
        r = np.corrcoef(h.T, Z.T)[:2, 2:]
        assert np.abs(r).max(axis=1).min() > 0.98
        width = h.std(axis=0) / (Z.std(axis=0) / SIGMA)[np.abs(r).argmax(axis=1)]
        assert np.abs(width - expected).max() < 0.12
    assert (np.abs(learner.purity_ - truth) < 4 * learner.purity_errors_).all()
    assert learner.purity_errors_.max() < 0.03
    # The log-odds are those of the mixtures: no row can be rarer than among what was looked for.
    assert (np.exp(learner.log_odds(X)) > 1 - learner.purity_ - 1e-6).all()
    assert learner.valuation_errors(X[:5]).shape == (5, 2)


@pytest.mark.long
def test_intervals_hold_the_truth_as_often_as_they_say():
    scores = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        truth = rng.uniform(0.3, 0.95, size=3)
        Z, environment, targets = impure_table(truth, 4000, rng)
        learner = ConceptLearner(2, targets=targets, encoder="linear", purity="estimate")
        learner.fit(Z, environment)
        scores.extend((learner.purity_ - truth) / learner.purity_errors_)
    assert 0.9 < np.mean(np.abs(scores) < 1.96) <= 1
    assert 0.8 < np.std(scores) < 1.2
    assert abs(np.mean(scores)) < 0.3


def test_the_gradient_is_the_slope_of_the_loss_and_the_covariance_is_one_at_the_fit():
    rng = np.random.default_rng(1)
    Z, environment, targets = impure_table([0.5, 0.8, 0.7], 300, rng)
    task = ImpureLikelihood(Z, environment, targets.astype(float))
    W, gamma = np.eye(2) / SIGMA, rng.normal(size=(3, 2)) * targets
    theta = task.pack(W, gamma, rng.normal(size=3), np.array([0.5, 0.8, 0.7]))
    _, gradient = task.objective(theta)
    steps = 1e-6 * np.eye(len(theta))
    slopes = [(task.objective(theta + s)[0] - task.objective(theta - s)[0]) / 2e-6 for s in steps]
    np.testing.assert_allclose(gradient, slopes, atol=1e-6)
    fitted, _ = task.descend(theta, 300)
    assert (np.linalg.eigvalsh(task.covariance(fitted)) > -1e-9).all()


def test_a_saved_learner_keeps_its_purities(tmp_path):
    Z, environment, targets = impure_table([0.6, 0.8, 0.7], 500, np.random.default_rng(2))
    learner = ConceptLearner(2, targets=targets, encoder="linear", purity="estimate")
    learner.fit(Z, environment).save(tmp_path / "x.safetensors")
    again = ConceptLearner.load(tmp_path / "x.safetensors")
    np.testing.assert_array_equal(again.purity_, learner.purity_)
    np.testing.assert_allclose(again.log_odds(Z), learner.log_odds(Z))
    np.testing.assert_allclose(again.valuation_errors(Z), learner.valuation_errors(Z))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"purity": "guess", "encoder": "linear"}, "purity must be None or 'estimate'"),
        ({"purity": "estimate", "encoder": "linear"}, "needs targets and encoder='linear'"),
        ({"purity": "estimate", "targets": np.eye(2)}, "needs targets and encoder='linear'"),
    ],
)
def test_purities_need_known_targets_and_a_linear_encoder(parameters, message):
    X, environment = np.zeros((30, 2)), np.repeat([0, 1, 2], 10)
    with pytest.raises(ValueError, match=message):
        ConceptLearner(2, **parameters).fit(X, environment)


def test_without_purities_there_are_none_of_their_errors():
    Z, environment, targets = impure_table([0.9, 0.9, 0.9], 200, np.random.default_rng(3))
    learner = ConceptLearner(2, targets=targets, encoder="linear").fit(Z, environment)
    assert not hasattr(learner, "purity_")
    with pytest.raises(ValueError, match="come with purity='estimate'"):
        learner.valuation_errors(Z)
