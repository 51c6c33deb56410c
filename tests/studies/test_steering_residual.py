"""Offsets of the residual stream are compared at one norm, with intervals over models."""

import numpy as np
import pytest

pytest.importorskip("torch")

from conceptnb.common.intervals import interval_over_models
from conceptnb.embeddings.directions import ConceptDirections
from conceptnb.studies import steering_residual as study


def test_offsets_have_one_norm_and_only_ours_and_its_reverse_make_the_step(rng):
    true = np.arange(200) % 2 == 0
    states = rng.normal(size=(200, 5)) @ np.diag([1, 2, 3, 0.1, 5]) + true[:, None]
    found = study._offsets(states, true, rng)
    precision = np.linalg.inv(np.cov(states.T))
    norms = {name: v @ precision @ v for name, v in found.items()}
    assert list(norms.values()) == pytest.approx([norms["offset v"]] * 4)
    fitted = ConceptDirections(shrinkage=0.1, standardise=False).fit(states, true)
    step = fitted.concept(True).b - fitted.concept(False).b
    steps = {name: float((fitted.directions_ @ v)[0]) for name, v in found.items()}
    assert steps["offset v"] == pytest.approx(step[0]) == -steps["reversed"]
    # Of all offsets of one norm, ours makes the longest step.
    assert max(steps, key=steps.get) == "offset v"
    assert steps["along A"] > 0


def run(name, model, right):
    whole = {"corpus": "alike", "model_seed": model, "seed": model, "offset": name, "mc1": 0.0}
    return whole | {"mc2": 0.0, "right": right}


def test_rows_are_paired_by_question_and_model():
    runs = [run("not steered", m, "0011") for m in (0, 1)]
    runs += [run("offset v", 0, "0111"), run("offset v", 1, "1111")]
    runs += [run("reversed", 0, "0111"), run("reversed", 1, "0011")]
    rows = {row["offset"]: row for row in study._rows(runs)}
    assert rows["not steered"]["mc1"] == 0.5
    assert rows["not steered"]["gain"] is None
    gains = np.array([[0, 1, 0, 0], [1, 1, 0, 0]], dtype=float)
    expected = [round(x, 4) for x in interval_over_models(gains, together=2)]
    assert rows["offset v"]["gain"] == expected
    assert rows["offset v"]["minus_reversed"][0] == pytest.approx(0.25)
    assert rows["reversed"]["minus_reversed"] is None
    shown = study.residual_table(list(rows.values())).frame()
    assert shown["MC1 gained"].tolist()[0] == ""
    assert shown["MC1 gained"].tolist()[1].startswith("+0.375 [")
