"""Heads and losses compared, and the number of concepts chosen by held-out loss."""

import json

import numpy as np
import pytest
from scipy.special import log_softmax

torch = pytest.importorskip("torch")

from conceptnb.commands import cli  # noqa: E402
from conceptnb.core.problems import TABLE_1, draw_problem  # noqa: E402
from conceptnb.learning.fitting import fit, oracle_loss, smallest_of_the_best  # noqa: E402
from conceptnb.learning.heads import GeneralHead, TargetHead, TiedHead  # noqa: E402
from conceptnb.studies import head_variants as study  # noqa: E402
from conceptnb.studies.scored_fits import shortened  # noqa: E402


@pytest.mark.parametrize("name", study.VARIANTS)
def test_a_variant_has_its_head_and_its_loss(name):
    recipe = shortened(study.VARIANTS[name], 3)
    problem = draw_problem(TABLE_1[0], 6, samples=100)
    found = fit([problem], recipe)
    kinds = {"general": GeneralHead, "targets": TargetHead, "tied": TiedHead}
    assert isinstance(found.model.head, kinds[recipe.head])
    assert found.held_out_loss.shape == (1, 4)
    odds = found.log_odds([problem.X])
    held = oracle_loss(odds, problem.environment, kind=recipe.training.loss)
    assert held[0] == pytest.approx(found.held_out_loss.min(), abs=1e-5)


def test_a_general_head_takes_any_number_of_concepts():
    problem = draw_problem(TABLE_1[0], 6, samples=100)
    recipe = shortened(study.VARIANTS["general head, softmax, L1"], 2)
    assert fit([problem], recipe, n_concepts=4).transform([problem.X]).shape[2] == 4
    with pytest.raises(ValueError, match="n_concepts must be"):
        fit([problem], recipe, n_concepts=0)


def test_the_smallest_candidate_within_noise_of_the_best_is_chosen():
    rng = np.random.default_rng(0)
    row = rng.normal(size=4000)
    noise = 0.1 * rng.normal(size=(3, 4000))
    # 0.5 above the best, equal to it but for noise, and the best.
    losses = row + noise + np.array([[0.5], [0.001], [0.0]])
    assert smallest_of_the_best(losses) == 1
    assert smallest_of_the_best(losses[::-1]) == 0
    assert smallest_of_the_best(row + np.array([[0.5], [0.02], [0.0]])) == 2


def test_held_out_losses_are_scipys_and_average_to_the_oracles():
    problem = draw_problem(TABLE_1[0], 6, samples=200)
    odds, environment = problem.log_odds(), problem.environment
    losses = study._held_out_losses(odds[None], environment)
    counts = np.bincount(environment)
    logits = np.column_stack([np.zeros(len(odds)), odds]) + np.log(counts / len(odds))
    every = -log_softmax(logits, axis=1)[np.arange(len(odds)), environment]
    held = [np.flatnonzero(environment == e)[-count // 5 :] for e, count in enumerate(counts)]
    assert losses[0] == pytest.approx(every[np.concatenate(held)], abs=1e-9)
    expected = oracle_loss([odds], environment, kind="softmax")
    assert losses.mean(axis=1) == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
def test_command_compares_and_chooses(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "VARIANTS", {k: shortened(v, 2) for k, v in study.VARIANTS.items()})
    out = tmp_path / "v.json"
    words = ["reproduce", "variants", "--seeds", "1", "--samples", "50", "--jobs", "1"]
    assert cli.main([*words, "--out", str(out)]) == 0
    rows = json.loads(out.read_text())["rows"]
    assert len(rows) == 2 * len(study.VARIANTS) + len(study._CANDIDATES)
    assert sum(row.get("chosen", 0) for row in rows) == 1
    assert cli.main([*words, "--seeds", "0"]) == 2
