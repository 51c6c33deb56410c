"""The best estimator: gradients, global optimum of the linear fit, rows of the tables."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats, integers, lists
from scipy.optimize import check_grad
from scipy.special import log_softmax
from sklearn.linear_model import LinearRegression

torch = pytest.importorskip("torch")

from conceptnb import cli, results  # noqa: E402
from conceptnb.core.design import EnvironmentDesign  # noqa: E402
from conceptnb.core.problems import PAPER_SEEDS, TABLE_1, Setting, draw_problem  # noqa: E402
from conceptnb.core.scores import mcc, r2  # noqa: E402
from conceptnb.learning import linear  # noqa: E402
from conceptnb.learning.best import fit_best  # noqa: E402
from conceptnb.learning.data import stack  # noqa: E402
from conceptnb.learning.encoders import MLPEncoder  # noqa: E402
from conceptnb.learning.fitting import oracle_loss  # noqa: E402
from conceptnb.learning.model import contrastive_loss  # noqa: E402
from conceptnb.learning.training import TrainingConfig  # noqa: E402
from conceptnb.studies.commands import reproduce_synthetic  # noqa: E402
from conceptnb.studies.one_at_a_time import train_one_at_a_time  # noqa: E402
from conceptnb.studies.reflections import true_sides  # noqa: E402
from conceptnb.studies.supervised import fit_supervised, supervised_row  # noqa: E402
from conceptnb.studies.synthetic_report import (  # noqa: E402
    below_paper,
    compare_speed,
    comparison,
    excess_losses,
    outside_two_std,
)
from conceptnb.studies.synthetic_tables import fit_problems, reproduce_row  # noqa: E402


def whitened(problem):
    base = problem.X[problem.environment == 0]
    values, vectors = np.linalg.eigh(np.cov(base.T))
    keep = values > 1e-8 * values.max()
    return (problem.X - base.mean(axis=0)) @ (vectors[:, keep] / np.sqrt(values[keep]))


def test_softmax_loss_and_gradient():
    rng = np.random.default_rng(0)
    environment = np.repeat([0, 1, 2], [5, 3, 4])
    odds = 3 * rng.normal(size=(12, 2))
    softmax = linear._Softmax(environment)
    logits = np.column_stack([np.zeros(12), odds]) + np.log(np.array([5, 3, 4]) / 12)
    expected = -log_softmax(logits, axis=1)[np.arange(12), environment].mean()
    assert softmax(odds)[0] == pytest.approx(expected, abs=1e-12)
    assert (
        check_grad(
            lambda v: softmax(v.reshape(12, 2))[0],
            lambda v: softmax(v.reshape(12, 2))[1].ravel(),
            odds.ravel(),
        )
        < 1e-6
    )
    assert softmax.losses(odds).mean() == pytest.approx(expected, abs=1e-12)
    data = stack([odds], environment, dtype=torch.float64)
    assert contrastive_loss(data.x, data, "softmax").item() == pytest.approx(expected, abs=1e-12)


def test_groups_are_atoms_that_share_environments():
    targets = np.array([[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]], bool)
    groups = [(e.tolist(), a.tolist()) for e, a in linear._groups(targets)]
    assert groups == [([0], [0]), ([1, 2], [1, 2]), ([3], [3])]


@pytest.mark.parametrize(
    "design",
    [None, EnvironmentDesign([[0], [1], [0, 1]], [[0.1], [-0.1], [-0.2, 0.1]], 0.005)],
    ids=["one atom an environment", "one environment with both"],
)
def test_linear_fit_reaches_the_oracle(design):
    """With linear mixing the model holds the truth, so its loss is at most the oracle's."""
    problem = draw_problem(TABLE_1[0], 6, samples=2000, design=design)
    X = whitened(problem)
    targets = problem.design.M > 0
    fit = linear.fit_linear(X, problem.environment, targets, np.random.default_rng(0))
    oracle = linear._Softmax(problem.environment)(problem.log_odds())[0]
    assert oracle - 0.01 < fit.loss <= oracle + 1e-4
    learned = X @ fit.W
    assert mcc(problem.valuations(), learned) > 0.99
    assert r2(problem.valuations(), learned) > 0.99
    assert linear._Softmax(problem.environment)(fit.log_odds(X, targets))[0] == pytest.approx(
        fit.loss, abs=1e-9
    )
    # In units of σ the length of a direction is no longer free: h is ± v/σ.
    sigma = problem.design.variance**0.5
    ratio = learned.std(axis=0) / (problem.valuations().std(axis=0) / sigma)
    np.testing.assert_allclose(ratio, 1, atol=0.1)


@given(
    lists(lists(floats(0, 10), min_size=1, max_size=3).map(sorted), min_size=1, max_size=4),
    integers(1, 9),
)
def test_cheapest_ways_are_those_of_a_full_search(losses, keep):
    ways = linear._cheapest(losses, keep)
    totals = [sum(group[i] for group, i in zip(losses, way, strict=True)) for way in ways]
    every = sorted(sum(choice) for choice in itertools.product(*losses))
    assert len(set(ways)) == len(ways) == min(keep, len(every))
    np.testing.assert_allclose(totals, every[: len(ways)], atol=1e-12)


def test_minima_differ_by_their_directions_up_to_sign():
    def fit(loss, *columns):
        return linear.LinearFit(np.array(columns, float).T, np.zeros(1), np.zeros((1, 2)), loss)

    best, mirrored = fit(0.1, [1, 0], [0, 1]), fit(0.3, [-2, 0], [0, 1])
    other = fit(0.2, [1, 0], [1, 1])
    kept = linear._different([mirrored, other, best])
    assert [f.loss for f in kept] == [0.1, 0.2]


def test_rivals_begin_with_the_best_fit():
    problem = draw_problem(TABLE_1[2], 3, samples=1000)
    X, targets = whitened(problem), problem.design.M > 0
    arguments = (X, problem.environment, targets)
    best = linear.fit_linear(*arguments, np.random.default_rng(0), starts=4)
    rivals = linear.fit_linear_rivals(*arguments, np.random.default_rng(0), keep=3, starts=4)
    np.testing.assert_array_equal(rivals[0].W, best.W)
    assert 1 <= len(rivals) <= 3


def test_best_network_is_the_one_with_the_lowest_held_out_loss():
    problem = draw_problem(Setting("nonlinear", 2, 3, 4), 3, samples=300)
    targets = problem.design.M > 0
    fit = fit_best(
        [problem.X], problem.environment, targets, linear=False, starts=2, progress=False
    )
    assert fit.held_out_loss.shape == (1, 2)
    held = oracle_loss(fit.log_odds([problem.X]), problem.environment, kind="softmax")
    assert held[0] == pytest.approx(fit.held_out_loss.min(), abs=1e-5)


def test_encoder_starts_as_the_linear_map():
    encoder = MLPEncoder(3, 2, [0, 1], skip=True)
    weight = torch.randn(2, 3, 2, generator=torch.Generator().manual_seed(0))
    encoder.start_linear(weight)
    x = torch.randn(2, 50, 3, generator=torch.Generator().manual_seed(1))
    gap = (encoder(x) - x @ weight).abs().max()
    assert 0 < gap < 0.2
    with pytest.raises(ValueError, match="skip=True"):
        MLPEncoder(3, 2, [0]).start_linear(weight[:1])


@pytest.mark.slow
def test_where_a_network_lowers_the_held_out_loss_it_is_nearer_to_the_valuations():
    """In four of five problems. In seed 4 an atom is nearly zero, and the loss knows nothing."""
    problems = [draw_problem(Setting("nonlinear", 2, 3, 4), seed) for seed in PAPER_SEEDS]
    targets, environment = problems[0].design.M > 0, problems[0].environment
    fresh = [problem.fresh(5000) for problem in problems]
    truth = [p.valuations(Z) for p, Z in zip(problems, fresh, strict=True)]
    scores, losses = {}, {}
    for is_linear in (True, False):
        fit = fit_best(
            [problem.X for problem in problems],
            environment,
            targets,
            linear=is_linear,
            seeds=PAPER_SEEDS,
            progress=False,
        )
        learned = fit.valuations([p.mixing(Z) for p, Z in zip(problems, fresh, strict=True)])
        scores[is_linear] = np.array([r2(t, h) for t, h in zip(truth, learned, strict=True)])
        losses[is_linear] = fit.held_out_loss.min(axis=1)
    lower = losses[True] - losses[False] > 0.001
    assert lower.sum() >= 4
    assert np.all(scores[False][lower] > scores[True][lower])


def test_a_row_has_the_columns_of_the_tables():
    row = reproduce_row(TABLE_1[0], "best", seeds=[5, 6], samples=1000, progress=False)
    assert row["mcc"] == pytest.approx([1, 1], abs=0.01)
    assert row["r2_fresh_mean"] == pytest.approx(np.mean(row["r2_fresh"]), abs=1e-4)
    assert row["mcc_std"] == pytest.approx(np.std(row["mcc"]), abs=1e-4)
    wanted = "mixing n dz dx estimator r2_mean r2_std mcc_mean mcc_std seeds cpu_seconds"
    assert set(wanted.split()) < set(row)
    np.testing.assert_allclose(row["held_out_loss"], row["oracle_loss"], atol=0.05)
    line = reproduce_synthetic.format_row(row)
    assert line.startswith("linear    (2, 3, 4)")
    assert "0.98 ± 0.01" in line  # the paper's


def test_unknown_estimator_is_refused():
    with pytest.raises(ValueError, match="estimator must be"):
        fit_problems([draw_problem(TABLE_1[0], 5, samples=50)], "oracle", progress=False)


@pytest.mark.slow
def test_command_writes_rows_with_provenance(tmp_path, capsys):
    out = tmp_path / "rows.json"
    words = ["reproduce", "synthetic", "--table", "1", "--estimator", "best"]
    words += ["--seeds", "1", "--first-seed", "5", "--out", str(out)]
    monkey = reproduce_synthetic.TABLES["1"]
    reproduce_synthetic.TABLES["1"] = TABLE_1[:1]
    try:
        assert cli.main(words) == 0
    finally:
        reproduce_synthetic.TABLES["1"] = monkey
    written = json.loads(out.read_text())
    assert [row["mixing"] for row in written["rows"]] == ["linear"]
    assert written["seeds"] == [5]
    assert "R² paper" in capsys.readouterr().out
    assert cli.main([*words, "--seeds", "0"]) == 1


@pytest.mark.slow
def test_stacked_training_learns_what_an_ordinary_loop_learns():
    """Same protocol one problem at a time: losses and R² agree within noise of the seed."""
    problem = draw_problem(Setting("linear", 2, 3, 4), 6, samples=1000)
    data = stack([problem.X], problem.environment)
    config = TrainingConfig(epochs=60, batch_size=512)
    targets = torch.as_tensor(problem.design.M > 0)
    encoder, loss = train_one_at_a_time(*data.split(), targets, linear=True, seed=6, config=config)
    with torch.no_grad():
        alone = r2(problem.valuations(), encoder(data.x[0]).numpy())
    from conceptnb.learning.fitting import fit_concepts  # noqa: PLC0415

    fit = fit_concepts(
        [problem.X],
        problem.environment,
        targets=targets.numpy(),
        encoder="linear",
        whiten=False,
        starts=1,
        seeds=[6],
        config=config,
        progress=False,
    )
    stacked = r2(problem.valuations(), fit.valuations([problem.X])[0])
    assert abs(alone - stacked) < 0.05
    assert fit.held_out_loss[0, 0] == pytest.approx(loss, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["faithful", "best"])
def test_stored_table_is_what_the_code_computes(estimator):
    """One problem of one row, recomputed alone; it was computed in a stack of five."""
    stored = results.load(f"synthetic_{estimator}")
    assert [(r["mixing"], r["dz"]) for r in stored.rows[:2]] == [("linear", 3), ("nonlinear", 3)]
    row = reproduce_row(TABLE_1[0], estimator, seeds=[stored.seeds[2]], progress=False)
    for name, values in stored.notes["by_seed"][0].items():
        assert row[name][0] == pytest.approx(values[2], abs=5e-3), name


def test_report_names_cells_beyond_the_papers_interval():
    row = {"mixing": "linear", "n": 3, "dz": 4, "dx": 6, "r2_mean": 0.98, "mcc_mean": 0.6}
    row |= {"r2_std": 0.0, "mcc_std": 0.1}
    outside = outside_two_std([row], [row | {"mcc_mean": 0.99, "mcc_std": 0.01}]).frame()
    assert outside["cell"].tolist() == ["linear (3, 4, 6) MCC"]
    assert outside.loc[0, "ours"] == "0.60 ± 0.10"
    assert outside.loc[0, "same problems, best"] == "0.99 ± 0.01"
    expected = (0.6 - 0.86) / np.hypot(0.1, 0.08) * 2
    assert float(outside.loc[0, "standard errors"]) == pytest.approx(expected, abs=0.006)
    assert len(below_paper([row])) == 2
    shown = comparison(ours=[row]).frame()
    assert shown.loc[0, "MCC paper"] == "0.86 ± 0.08"
    assert shown.loc[0, "MCC ours"] == "0.60 ± 0.10"


def test_excess_losses_leave_out_rows_that_cannot_reach_the_oracle():
    rows = [{"mixing": "nonlinear", "dz": d_z} for d_z in (15, 20)]
    seeds = {"held_out_loss": [0.5, 0.6], "oracle_loss": [0.4, 0.55], "mcc": [0.8, 0.9]}
    excess, scores = excess_losses(rows, [seeds, seeds], "nonlinear")
    np.testing.assert_allclose(excess, [0.1, 0.05])
    np.testing.assert_allclose(scores, [0.8, 0.9])


def test_supervised_bound_is_least_squares_where_the_encoder_is_linear():
    row = supervised_row(TABLE_1[0], seeds=[3], samples=500, progress=False)
    assert row["r2_fresh_mean"] == pytest.approx(1, abs=1e-4)
    assert row["mcc_fresh_mean"] == pytest.approx(1, abs=1e-4)


def test_supervised_network_does_no_worse_than_least_squares():
    problem = draw_problem(Setting("nonlinear", 2, 3, 4), 3, samples=1000)
    whitening, network = fit_supervised([problem], epochs=10, progress=False)
    Z = problem.fresh(3000)
    x = whitening(torch.as_tensor(problem.mixing(Z)[None], dtype=torch.float32))
    with torch.no_grad():
        learned = network(x)[0].double().numpy()
    seen = problem.X[problem.environment == 0]
    linear_fit = LinearRegression().fit(seen, problem.valuations()[problem.environment == 0])
    straight = r2(problem.valuations(Z), linear_fit.predict(problem.mixing(Z)))
    assert r2(problem.valuations(Z), learned) > straight


@pytest.mark.slow
def test_stacked_training_is_cheaper_than_an_ordinary_loop():
    cost = compare_speed(TABLE_1[0], epochs=1)
    assert cost["ratio"] == pytest.approx(cost["alone"] / cost["stacked"])
    assert cost["ratio"] > 5


def test_sides_change_no_log_odds_and_only_atoms_of_one_environment():
    problem = draw_problem(Setting("nonlinear", 2, 3, 4), 6, samples=300)
    fit = fit_problems([problem], "faithful", progress=False)
    Z, truth = problem.Z, problem.valuations()
    [k] = [k for k in range(2) if (problem.design.M[:, k] > 0).sum() == 1]
    [e] = np.flatnonzero(problem.design.M[:, k])
    beta, gamma = (c[0].detach().numpy() for c in fit.model.head.coefficients())
    # Learned valuations that are the truth in the head's units, but mirrored on one component.
    mirrored = fit.valuations([problem.X])[0]
    plane = gamma[k, e] / (2 * beta[k, e])
    gap = (truth[:, k] - problem.design.B[e, k] * problem.design.variance) / np.sqrt(beta[k, e])
    last = problem.base.component_log_density(Z).argmax(axis=1) == 2
    mirrored[:, k] = plane + np.where(last, -gap, gap)
    assert mcc(truth[:, [k]], mirrored[:, [k]]) < 0.999
    turned = true_sides(problem, fit, 0, Z, mirrored)
    assert mcc(truth[:, [k]], turned[:, [k]]) == pytest.approx(1, abs=1e-9)

    def odds(h):
        return -(h**2) @ beta + h @ gamma

    np.testing.assert_allclose(odds(turned), odds(mirrored), atol=1e-4)
    np.testing.assert_array_equal(turned[:, 1 - k], mirrored[:, 1 - k])
