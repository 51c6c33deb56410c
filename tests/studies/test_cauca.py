"""The problems of Causal Component Analysis are drawn as their publication describes them."""

import json

import numpy as np
import pytest
from scipy.optimize import brentq

from conceptnb.commands.cli import main
from conceptnb.studies.cauca import _bend, _Model, _run

KINDS = ("linear", "location-scale")


@pytest.mark.parametrize("scm", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_an_intervention_cuts_a_node_from_its_parents_and_moves_its_noise(scm, seed):
    model = _Model(scm, 4, 3, seed)
    Z, _, environment = model.sample(20_000)
    for node in range(4):
        own = Z[environment == node + 1]
        assert own[:, node].mean() == pytest.approx(2, abs=0.05)
        assert own[:, node].std() == pytest.approx(1, abs=0.05)
        causes = np.flatnonzero(model.graph[:, node])
        if causes.size:
            with_causes = np.corrcoef(own[:, [node, *causes]].T)[0, 1:]
            assert np.abs(with_causes).max() < 0.04


@pytest.mark.parametrize("seed", range(3))
def test_mechanisms_are_the_same_wherever_they_are_left_alone(seed):
    model = _Model("linear", 4, 3, seed)
    Z, _, environment = model.sample(50_000)
    for node in range(4):
        left = environment != node + 1
        noise = Z[left, node] - Z[left] @ (model.graph * model.effects)[:, node]
        means = [noise[environment[left] == e].mean() for e in np.unique(environment[left])]
        assert np.abs(means).max() < 0.03
        assert noise.std() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("scm", KINDS)
def test_the_mixing_can_be_inverted(scm):
    model = _Model(scm, 4, 3, 5)
    Z, X, _ = model.sample(5)
    for matrix in reversed(model.mixing):
        straight = [brentq(lambda x, y=y: _bend(x) - y, -1e3, 1e3, xtol=1e-13) for y in X.ravel()]
        X = np.linalg.solve(matrix.T, np.reshape(straight, X.shape).T).T
    np.testing.assert_allclose(X, Z, atol=1e-6)


def test_graphs_are_random_acyclic_and_never_empty():
    graphs = [_Model("linear", 4, 2, seed).graph for seed in range(60)]
    assert all(graph.any() and not np.tril(graph).any() for graph in graphs)
    assert len({graph.tobytes() for graph in graphs}) > 30


@pytest.mark.parametrize("method", ["interventions, short", "concepts"])
def test_methods_learn_more_than_from_shuffled_labels(method):
    common = {"setting": ["linear", 4, 2], "seed": 1, "method": method, "samples": 4000}
    (right,), (wrong,) = _run(**common), _run(**common, wrong="labels")
    assert right["mcc"] > wrong["mcc"] + 0.05


def test_the_command_draws_the_models_that_it_is_asked_for(tmp_path):
    out = tmp_path / "cauca.json"
    words = ["reproduce", "cauca", "--seeds", "2", "--first-seed", "7", "--samples", "250"]
    assert main([*words, "--jobs", "1", "--out", str(out)]) == 0
    table = json.loads(out.read_text(encoding="utf-8"))
    assert table["seeds"] == [7, 8]
    ours = [row for row in table["rows"] if row["method"] == "interventions"]
    assert [row["runs"] for row in ours] == [6, 2, 2]  # three starts in the first setting
    for row in table["rows"]:
        assert 0 <= row["mcc_mean"] <= 1
    assert main([*words[:-1], "99", "--out", str(tmp_path / "few.json")]) == 2
