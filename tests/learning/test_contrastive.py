"""The contrastive learner: its formulas, its bound, and that stacking changes nothing."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from conceptnb.core.design import paper_design  # noqa: E402
from conceptnb.core.problems import TABLE_1, draw_problem  # noqa: E402
from conceptnb.core.scores import mcc, r2  # noqa: E402
from conceptnb.learning.data import stack  # noqa: E402
from conceptnb.learning.encoders import LinearEncoder, MLPEncoder  # noqa: E402
from conceptnb.learning.fitting import fit, oracle_loss  # noqa: E402
from conceptnb.learning.heads import GeneralHead, TargetHead, TiedHead  # noqa: E402
from conceptnb.learning.losses import contrastive_loss  # noqa: E402
from conceptnb.learning.model import ConceptModel, Whitening  # noqa: E402
from conceptnb.learning.problem_scores import evaluate  # noqa: E402
from conceptnb.learning.recipes import (  # noqa: E402
    AUTHORS,
    BEST,
    CLUSTER_WHITENED,
    UNKNOWN_TARGETS,
    Recipe,
)
from conceptnb.learning.training import StackTrainer, TrainingConfig  # noqa: E402

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
        trainer = StackTrainer(model, *stacked(chosen).split(), config)
        trainer.run()
        return model, trainer

    together, trainer = train(drawn, [3, 4, 5])
    for i, problem in enumerate(drawn):
        alone, single = train([problem], [3 + i])
        assert trainer.best[i].item() == pytest.approx(single.best[0].item(), abs=1e-5)
        for name, value in alone.named_parameters():
            expected = dict(together.named_parameters())[name][i]
            torch.testing.assert_close(value[0], expected, atol=1e-4, rtol=1e-3)


def test_best_epoch_is_kept():
    data = stacked(problems(2))
    model = ConceptModel(LinearEncoder(4, 2, [0, 1]), TargetHead(2, TARGETS))
    trainer = StackTrainer(model, *data.split(), TrainingConfig(epochs=5, encoder_rate=0.3))
    trainer.run()
    lowest = torch.stack(trainer.held_out_curve).min(dim=0).values
    torch.testing.assert_close(model.loss(data.split()[1]), lowest, atol=1e-6, rtol=1e-6)


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
    recipe = Recipe(
        whitening="plain", starts=4, training=TrainingConfig(epochs=30, encoder_rate=0.02)
    )
    found = fit(drawn, recipe)
    assert found.train_curve.shape == found.held_out_curve.shape == (2, 30)
    assert found.held_out_loss.shape == (2, 4)
    for row in evaluate(drawn, found):
        assert min(row[name] for name in ("r2", "mcc", "r2_seen", "mcc_seen")) > 0.98
        assert row["held_out_loss"] == pytest.approx(row["oracle_loss"], abs=0.01)


def test_scores_are_those_of_the_paper_on_seen_and_unseen_samples():
    drawn = problems(2, samples=200)

    class Projection:
        def transform(self, X):
            return X[..., :2]

    for p, row in zip(drawn, evaluate(drawn, Projection()), strict=True):
        Z, seen = p.fresh(5000), p.environment == 0
        assert row["seed"] == p.seed
        assert row["r2"] == pytest.approx(r2(p.valuations(Z), p.mixing(Z)[:, :2]))
        assert row["mcc_seen"] == pytest.approx(mcc(p.valuations()[seen], p.X[seen][:, :2]))
        assert "oracle_loss" not in row
    other = [p.mixing(p.fresh(5000)) + 1.0 for p in drawn]
    shifted = evaluate(
        drawn,
        Projection(),
        measure=lambda p, Z, code: {"mean": code.mean()},
        observations=other,
    )
    assert shifted[0]["mean"] == pytest.approx(other[0][:, :2].mean())


def test_oracle_of_an_evaluation_is_on_the_rows_that_the_fit_held_out():
    drawn = problems(2)
    found = fit(drawn, replace(AUTHORS, training=TrainingConfig(epochs=1)))
    oracle = oracle_loss([p.log_odds() for p in drawn], drawn[0].environment)
    assert [row["oracle_loss"] for row in evaluate(drawn, found)] == pytest.approx(list(oracle))
    held = oracle_loss(found.log_odds([p.X for p in drawn]), drawn[0].environment)
    np.testing.assert_allclose(held, found.held_out_loss[:, 0], atol=1e-5)


def test_problems_and_their_arrays_are_fitted_alike():
    drawn = problems(2)
    recipe = replace(AUTHORS, training=TrainingConfig(epochs=2))
    data = stack([p.X for p in drawn], drawn[0].environment, drawn[0].design.M > 0)
    arrays = fit(data, replace(recipe, encoder="linear"), seeds=[p.seed for p in drawn])
    X = [p.X[:50] for p in drawn]
    np.testing.assert_array_equal(fit(drawn, recipe).transform(X), arrays.transform(X))
    assert fit(data, recipe).recipe.encoder == "mlp"


def test_no_part_of_the_truth_enters_a_fit():
    """Other atoms and valuations of the same samples and targets change nothing."""
    drawn = problems(1)
    design = drawn[0].design
    told = replace(drawn[0], atoms=-3 * drawn[0].atoms, design=paper_design(2))
    assert design.subsets == told.design.subsets
    recipe = replace(BEST, training=replace(BEST.training, epochs=1))
    X = [drawn[0].X[:20]]
    np.testing.assert_array_equal(fit(drawn, recipe).transform(X), fit([told], recipe).transform(X))


def test_an_epoch_of_a_part_of_the_rows_takes_the_next_ones_in_turn():
    data = stacked(problems(1)).split()
    model = ConceptModel(LinearEncoder(4, 2, [0]), TargetHead(1, TARGETS))
    trainer = StackTrainer(model, *data, TrainingConfig(epochs=3, rows=800))
    seen = []
    for _ in range(3):
        seen.append(trainer._rows_of_epoch().tolist())
        trainer.step_epoch()
    assert [*seen[0], *seen[1], *seen[2]][:1920] == list(range(1920))
    assert seen[2][320:] == list(range(480))


@pytest.mark.slow
def test_a_fit_in_parts_is_judged_on_rows_that_it_did_not_see():
    drawn = problems(1, setting=TABLE_1[1], samples=300)
    found = fit(drawn, replace(BEST, training=replace(BEST.training, rows=1000)))
    assert len(np.unique(found.held_out)) == len(found.held_out) == len(drawn[0].Z) // 5
    h = found.transform([drawn[0].X])[0]
    assert mcc(drawn[0].valuations(), h) > 0.9
    [row] = evaluate(drawn, found)
    odds = stack(found.log_odds([drawn[0].X]), drawn[0].environment, dtype=torch.float64)
    held = odds.rows(torch.as_tensor(found.held_out))
    again = contrastive_loss(held.x, held, "softmax").item()
    assert again == pytest.approx(row["held_out_loss"], abs=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"targets": None}, "head='targets' needs targets"),
        ({"recipe": UNKNOWN_TARGETS, "targets": None}, "say n_concepts"),
        ({"n_concepts": 3}, "targets must have n_concepts = 3 columns"),
        ({"targets": [[True, False]]}, r"targets must have shape \(3, n\)"),
        ({"targets": [[0.5, 1.0], [1.0, 0.0], [0.0, 1.0]]}, "True and False, or 1 and 0"),
        ({"targets": [[np.nan, 1.0], [1.0, 0.0], [0.0, 1.0]]}, "True and False, or 1 and 0"),
        ({"targets": [[1, 0]] * 3}, "column without True"),
        ({"targets": [[1, 0], [0, 1], [0, 0]]}, "row without True"),
        ({"recipe": replace(AUTHORS, held_out=1.0)}, "held_out must lie"),
        ({"seeds": [1, 2]}, "seeds has 2 entries for 1 problems"),
        ({"environment": np.array([0, 2, 2])}, r"got the values \[0, 2\]"),
        ({"environment": np.array([0.0, 1.0])}, "must hold integers"),
        ({"environment": np.zeros((2, 2), int)}, "one axis"),
        ({"observations": []}, "observations is empty"),
        ({"observations": [np.full((2400, 4), np.nan)]}, "NaN"),
        ({"observations": [np.zeros((3, 4))]}, "2400 rows"),
        ({"recipe": BEST, "observations": [np.zeros((2400, 4))]}, "all rows of environment 0 are"),
    ],
)
def test_bad_arguments_say_what_is_wrong(arguments, message):
    problem = problems(1)[0]
    options = {"recipe": AUTHORS, "targets": problem.design.M > 0, "n_concepts": None}
    options |= {"observations": [problem.X], "environment": problem.environment, "seeds": None}
    options |= arguments
    with pytest.raises((ValueError, TypeError), match=message):
        fit(
            stack(options["observations"], options["environment"], options["targets"]),
            options["recipe"],
            n_concepts=options["n_concepts"],
            seeds=options["seeds"],
        )


def test_problems_that_do_not_go_together_are_refused():
    drawn = problems(1)
    with pytest.raises(ValueError, match="data is empty"):
        fit([])
    with pytest.raises(ValueError, match="of one setting"):
        fit([*drawn, draw_problem(TABLE_1[1], 3, samples=400)])
    with pytest.raises(ValueError, match="one problem at a time, got 2"):
        fit(problems(2), replace(BEST, training=replace(BEST.training, rows=100)))
    found = fit(drawn, replace(AUTHORS, training=TrainingConfig(epochs=1)))
    with pytest.raises(ValueError, match="X holds 2 arrays"):
        found.transform([drawn[0].X] * 2)


@pytest.mark.parametrize(
    ("recipe", "changes", "message"),
    [
        (AUTHORS, {"head": "two"}, "head must be one of"),
        (AUTHORS, {"encoder": "tree"}, "encoder must be one of"),
        (AUTHORS, {"whitening": "zca"}, "whitening must be one of"),
        (AUTHORS, {"starts": 0}, "starts must be at least 1"),
        (AUTHORS, {"selection": "slopes"}, "selection='slopes' needs"),
        (BEST, {"head": "general"}, "search needs head='tied'"),
        (BEST, {"skip": False}, "search needs skip=True"),
        (CLUSTER_WHITENED, {"encoder": "linear"}, "needs encoder='mlp'"),
    ],
)
def test_recipes_that_contradict_themselves_are_refused(recipe, changes, message):
    with pytest.raises(ValueError, match=message):
        replace(recipe, **changes)


@pytest.mark.parametrize("arguments", [{"epochs": 0}, {"loss": "hinge"}, {"l1": -1.0}, {"rows": 0}])
def test_bad_configuration_is_refused(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        TrainingConfig(**arguments)
