"""The contrastive learner: its formulas, its bound, and that stacking changes nothing."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from conceptnb.core.design import paper_design  # noqa: E402
from conceptnb.core.problems import TABLE_1, draw_problem  # noqa: E402
from conceptnb.core.scores import mcc, r2  # noqa: E402
from conceptnb.learning.data import stack  # noqa: E402
from conceptnb.learning.encoders import LinearEncoder, MLPEncoder  # noqa: E402
from conceptnb.learning.fitting import fit_concepts, oracle_loss  # noqa: E402
from conceptnb.learning.heads import GeneralHead, TargetHead, TiedHead  # noqa: E402
from conceptnb.learning.model import ConceptModel, Whitening, contrastive_loss  # noqa: E402
from conceptnb.learning.training import Trainer, TrainingConfig, evaluate  # noqa: E402

TARGETS = torch.tensor([[1, 0], [0, 1], [0, 1]], dtype=torch.bool)


def problems(count, setting=TABLE_1[0], samples=400):
    return [draw_problem(setting, seed, samples=samples) for seed in range(3, 3 + count)]


def stacked(drawn):
    return stack([p.X for p in drawn], drawn[0].environment)


def randomised(head, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for parameter in head.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator)
    return head


@pytest.mark.parametrize(
    "head", [GeneralHead(2, 2, 3), TargetHead(2, TARGETS), TiedHead(2, TARGETS)]
)
def test_heads_are_equation_87(head):
    head = randomised(head)
    h = torch.randn(2, 4, 2, generator=torch.Generator().manual_seed(1))
    beta, gamma = head.coefficients()
    for p in range(2):
        for row in range(4):
            for e in range(3):
                expected = head.alpha[p, 0, e]
                for k in range(2):
                    expected = expected - beta[p, k, e] * h[p, row, k] ** 2
                    expected = expected + gamma[p, k, e] * h[p, row, k]
                torch.testing.assert_close(head(h)[p, row, e], expected)


def test_known_targets_silence_every_other_concept():
    for head in (TargetHead(1, TARGETS), TiedHead(1, TARGETS)):
        beta, gamma = randomised(head).coefficients()
        assert (beta[0].T[~TARGETS] == 0).all()
        assert (gamma[0].T[~TARGETS] == 0).all()
        assert (beta[0].T[TARGETS] > 0).all()


def test_true_log_odds_are_a_tied_head_on_the_true_valuations():
    """Lemma 3 with h = <a, z>/σ: β = 1/2 and γ = b/σ reproduce ln p^e/p^0 up to α."""
    problem = problems(1)[0]
    sigma = problem.design.variance**0.5
    head = TiedHead(1, torch.as_tensor(problem.design.M > 0)).double()
    head.gamma.data = torch.as_tensor(problem.design.B * sigma).T[None]
    h = torch.as_tensor(problem.valuations()[None] / sigma)
    gap = head(h)[0].detach().numpy() - problem.log_odds()
    np.testing.assert_allclose(gap, np.broadcast_to(gap[0], gap.shape), atol=1e-9)


def test_binary_loss_is_equation_88():
    """Against the expectation of (88) written out, with equal halves an environment."""
    problem = problems(1)[0]
    data = stack([problem.X], problem.environment, dtype=torch.float64)
    odds = stack([problem.log_odds()], problem.environment, dtype=torch.float64).x
    partner, environment = data.partner.numpy(), data.environment.numpy()
    total = 0.0
    for e in (1, 2, 3):
        g = odds[0, :, e - 1].numpy()
        probability = np.exp(g) / (1 + np.exp(g))
        own = np.log(probability[environment == e]).mean()
        base = np.log(1 - probability[(environment == 0) & (partner == e)]).mean()
        total -= (own + base) / 2
    assert contrastive_loss(odds, data).item() == pytest.approx(total / 3, abs=1e-12)


def test_losses_do_not_see_unequal_numbers_of_samples_as_log_odds():
    """With identical distributions, log-odds 0 minimise both losses at any group sizes."""
    environment = np.repeat([0, 1, 2], [600, 100, 300])
    data = stack([np.zeros((1000, 1))], environment, dtype=torch.float64)
    for kind in ("binary", "softmax"):
        odds = torch.zeros(1, 1000, 2, dtype=torch.float64)
        shift = torch.zeros(2, dtype=torch.float64, requires_grad=True)
        contrastive_loss(odds + shift, data, kind).sum().backward()
        torch.testing.assert_close(shift.grad, torch.zeros_like(shift), atol=1e-12, rtol=0)


@pytest.mark.parametrize("kind", ["binary", "softmax"])
def test_no_perturbed_log_odds_beat_the_oracle(kind):
    problem = draw_problem(TABLE_1[0], 3, samples=20_000)
    truth = problem.log_odds()
    oracle = oracle_loss([truth], problem.environment, kind=kind)[0]
    for wrong in (truth + 0.2, 1.2 * truth, 0.8 * truth, truth + 0.3 * np.sin(9 * truth)):
        assert oracle_loss([wrong], problem.environment, kind=kind)[0] > oracle


@pytest.mark.parametrize("encoder", [LinearEncoder, MLPEncoder])
def test_a_model_learns_alone_what_it_learns_in_a_stack(encoder):
    drawn = problems(3)
    config = TrainingConfig(epochs=4, batch_size=256)

    def train(chosen, seeds):
        model = ConceptModel(encoder(4, 2, seeds), TargetHead(len(seeds), TARGETS))
        trainer = Trainer(model, *stacked(chosen).split(), config)
        trainer.run(progress=False)
        return model, trainer

    together, trainer = train(drawn, [3, 4, 5])
    for i, problem in enumerate(drawn):
        alone, single = train([problem], [3 + i])
        assert trainer.best[i].item() == pytest.approx(single.best[0].item(), abs=1e-5)
        for name, value in alone.named_parameters():
            expected = dict(together.named_parameters())[name][i]
            torch.testing.assert_close(value[0], expected, atol=1e-4, rtol=1e-3)


def test_stopped_training_resumes_without_loss(tmp_path):
    data = stacked(problems(1)).split()
    config = TrainingConfig(epochs=6, batch_size=256)

    def trainer():
        return Trainer(ConceptModel(MLPEncoder(4, 2, [0]), TargetHead(1, TARGETS)), *data, config)

    whole = trainer()
    whole.run(progress=False)
    stopped = trainer()
    for _ in range(2):
        stopped.step_epoch()
    torch.save(stopped.state_dict(), tmp_path / "state.pt")
    resumed = trainer()
    resumed.run(checkpoint=tmp_path / "state.pt", every=1, progress=False)
    for a, b in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=0, rtol=0)
    finished = trainer()
    finished.run(checkpoint=tmp_path / "state.pt", progress=False)
    assert finished.epoch == 6
    other = Trainer(whole.model, *data, TrainingConfig(epochs=7))
    with pytest.raises(ValueError, match="checkpoint was written with"):
        other.run(checkpoint=tmp_path / "state.pt", progress=False)


def test_best_epoch_is_kept():
    data = stacked(problems(2))
    model = ConceptModel(LinearEncoder(4, 2, [0, 1]), TargetHead(2, TARGETS))
    trainer = Trainer(model, *data.split(), TrainingConfig(epochs=5, encoder_rate=0.3))
    trainer.run(progress=False)
    lowest = torch.stack(trainer.held_out_curve).min(dim=0).values
    torch.testing.assert_close(evaluate(model, data.split()[1]), lowest, atol=1e-6, rtol=1e-6)


def test_whitening_gives_the_base_mean_zero_and_unit_covariance():
    drawn = problems(2)
    data = stacked(drawn)
    white = Whitening.fit(data)(data.x)[:, data.environment == 0].numpy()
    assert white.shape[2] == 3  # a linear mixing of three latents spans three directions
    for x in white:
        np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-4)
        np.testing.assert_allclose(np.cov(x.T), np.eye(3), atol=1e-3)


def test_split_holds_out_a_share_of_every_environment():
    kept, held = stacked(problems(1)).split(0.25)
    assert torch.bincount(held.environment).tolist() == [300, 100, 100, 100]
    assert torch.bincount(kept.environment).tolist() == [900, 300, 300, 300]


@pytest.mark.slow
def test_first_setting_linear_is_learned():
    """Table 1, first row: the paper reports R² and MCC of .98."""
    drawn = [draw_problem(TABLE_1[0], seed) for seed in (3, 5)]
    fit = fit_concepts(
        [p.X for p in drawn],
        drawn[0].environment,
        targets=paper_design(2).M > 0,
        encoder="linear",
        config=TrainingConfig(epochs=30, encoder_rate=0.02),
        progress=False,
    )
    assert fit.train_curve.shape == fit.held_out_curve.shape == (2, 30)
    learned = fit.valuations([p.mixing(p.fresh(2000)) for p in drawn])
    for problem, h in zip(drawn, learned, strict=True):
        truth = problem.valuations(problem.fresh(2000))
        assert r2(truth, h) > 0.98
        assert mcc(truth, h) > 0.98
    oracle = oracle_loss([p.log_odds() for p in drawn], drawn[0].environment)
    np.testing.assert_allclose(fit.held_out_loss.min(axis=1), oracle, atol=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"targets": None}, "either n_concepts"),
        ({"n_concepts": 2}, "either n_concepts"),
        ({"targets": [[True, False]]}, r"targets must have shape \(3, n\)"),
        ({"targets": [[1, 0]] * 3}, "column without True"),
        ({"encoder": "tree"}, "encoder must be"),
        ({"held_out": 1.0}, "held_out must lie"),
        ({"seeds": [1, 2]}, "seeds has 2 entries for 1 problems"),
        ({"environment": np.array([0, 2, 2])}, r"got the values \[0, 2\]"),
        ({"environment": np.array([0.0, 1.0])}, "must hold integers"),
        ({"environment": np.zeros((2, 2), int)}, "one axis"),
        ({"observations": []}, "observations is empty"),
        ({"observations": [np.full((2400, 4), np.nan)]}, "NaN"),
        ({"observations": [np.ones((2400, 4))]}, "constant"),
        ({"observations": [np.ones((7, 4))]}, r"observations\[0\] has shape \(7, 4\)"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    problem = problems(1)[0]
    defaults = {
        "observations": [problem.X],
        "environment": problem.environment,
        "targets": TARGETS.numpy(),
        "progress": False,
    }
    with pytest.raises((ValueError, TypeError), match=message):
        fit_concepts(**(defaults | arguments))


@pytest.mark.parametrize("arguments", [{"epochs": 0}, {"loss": "hinge"}, {"l1": -1.0}])
def test_bad_configuration_is_refused(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        TrainingConfig(**arguments)
