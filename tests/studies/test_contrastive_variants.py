"""Heads and losses compared, and the number of concepts chosen by held-out loss."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax

torch = pytest.importorskip("torch")

from conceptnb import cli, results  # noqa: E402
from conceptnb.core.problems import TABLE_1, draw_problem  # noqa: E402
from conceptnb.learning.fitting import oracle_loss  # noqa: E402
from conceptnb.learning.heads import GeneralHead, TargetHead, TiedHead  # noqa: E402
from conceptnb.studies import head_variants as v  # noqa: E402
from conceptnb.studies.commands import reproduce_variants  # noqa: E402

SHORT = replace(v.TRAINING, epochs=3)


@pytest.mark.parametrize("name", v.VARIANTS)
def test_a_variant_has_its_head_and_its_loss(name):
    variant = v.VARIANTS[name]
    problem = draw_problem(TABLE_1[0], 6, samples=100)
    fit = v.fit_variant([problem], variant, config=SHORT)
    kinds = {"general": GeneralHead, "targets": TargetHead, "tied": TiedHead}
    assert isinstance(fit.model.head, kinds[variant.head])
    assert fit.held_out_loss.shape == (1, v.STARTS)
    held = oracle_loss(fit.log_odds([problem.X]), problem.environment, kind=variant.loss)
    assert held[0] == pytest.approx(fit.held_out_loss.min(), abs=1e-5)


def test_a_general_head_takes_any_number_of_concepts():
    problem = draw_problem(TABLE_1[0], 6, samples=100)
    fit = v.fit_variant([problem], v.Variant("general", "softmax"), 4, SHORT)
    assert fit.valuations([problem.X]).shape == (1, len(problem.X), 4)
    with pytest.raises(ValueError, match="n must be"):
        v.fit_variant([problem], v.Variant("general", "softmax"), 0, SHORT)


def test_the_smallest_candidate_within_noise_of_the_best_is_chosen():
    rng = np.random.default_rng(0)
    row = rng.normal(size=4000)
    noise = 0.1 * rng.normal(size=(3, 4000))
    # 0.5 above the best, equal to it but for noise, and the best.
    losses = row + noise + np.array([[0.5], [0.001], [0.0]])
    assert v.smallest_of_the_best(losses) == 1
    assert v.smallest_of_the_best(losses[::-1]) == 0
    assert v.smallest_of_the_best(row + np.array([[0.5], [0.02], [0.0]])) == 2


def test_held_out_losses_are_scipys_and_average_to_the_oracles():
    problem = draw_problem(TABLE_1[0], 6, samples=200)
    odds, environment = problem.log_odds(), problem.environment
    losses = v._held_out_losses(odds[None], environment)
    counts = np.bincount(environment)
    logits = np.column_stack([np.zeros(len(odds)), odds]) + np.log(counts / len(odds))
    every = -log_softmax(logits, axis=1)[np.arange(len(odds)), environment]
    held = [np.flatnonzero(environment == e)[-count // 5 :] for e, count in enumerate(counts)]
    assert losses[0] == pytest.approx(every[np.concatenate(held)], abs=1e-9)
    expected = oracle_loss([odds], environment, kind="softmax")
    assert losses.mean(axis=1) == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
def test_command_compares_and_chooses(tmp_path, capsys):
    out = tmp_path / "v.json"
    words = ["reproduce", "variants", "--seeds", "1", "--samples", "100", "--out", str(out)]
    assert cli.main(words) == 0
    rows = json.loads(out.read_text())["rows"]
    assert len(rows) == 2 * len(v.VARIANTS) + len(reproduce_variants.CANDIDATES)
    assert sum(row.get("chosen", 0) for row in rows) == 1
    assert "chosen" in capsys.readouterr().out
    assert cli.main([*words, "--seeds", "0"]) == 1


@pytest.mark.slow
def test_stored_variant_is_what_the_code_computes():
    stored = results.load("synthetic_variants")
    problem = draw_problem(TABLE_1[2], stored.seeds[1], samples=stored.notes["samples"])
    fit = v.fit_variant([problem], v.VARIANTS["tied β, softmax"])
    index = next(i for i, r in enumerate(stored.rows) if r["variant"] == "tied β, softmax")
    oracle = oracle_loss([problem.log_odds()], problem.environment, kind="softmax")
    excess = fit.held_out_loss.min() - oracle[0]
    assert excess == pytest.approx(stored.notes["by_seed"][index]["excess_loss"][1], abs=5e-3)
