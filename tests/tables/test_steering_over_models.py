"""Intervals over models and questions: closed forms, coverage, and the table of comparisons."""

import numpy as np
import pytest
from scipy import stats

from conceptnb.common.intervals import interval_over_models
from conceptnb.tables.steering_over_models import (
    model_gains,
    over_models,
)


def test_of_one_model_it_is_the_t_interval_over_questions(rng):
    gains = rng.normal(0.1, 1, (1, 30))
    peer = stats.ttest_1samp(gains[0], 0).confidence_interval(0.95)
    assert interval_over_models(gains) == pytest.approx((gains.mean(), peer.low, peer.high))


def test_where_questions_do_not_vary_it_is_the_t_interval_over_models(rng):
    each = rng.normal(0.1, 1, 5)
    peer = stats.ttest_1samp(each, 0).confidence_interval(0.95)
    found = interval_over_models(np.repeat(each[:, None], 40, axis=1))
    assert found == pytest.approx((each.mean(), peer.low, peer.high))


@pytest.mark.parametrize(("models", "questions"), [(0.0, 0.4), (0.3, 0.0), (0.2, 0.2)])
def test_it_covers_the_truth_when_models_and_questions_are_both_drawn(rng, models, questions):
    draws = 2000
    of_model = models * rng.normal(size=(draws, 5, 1))
    of_question = questions * rng.normal(size=(draws, 1, 48))
    gains = 0.07 + of_model + of_question + 0.5 * rng.normal(size=(draws, 5, 48))
    ends = np.array([interval_over_models(g)[1:] for g in gains])
    covered = ((ends[:, 0] < 0.07) & (ends[:, 1] > 0.07)).mean()
    assert covered > 0.93  # the degrees of freedom are approximate
    over_questions_alone = [
        interval_over_models(g.mean(axis=0, keepdims=True))[1:] for g in gains[:500]
    ]
    low, high = np.transpose(over_questions_alone)
    if models:
        assert ((low < 0.07) & (high > 0.07)).mean() < 0.8  # what ignoring models would cost


def test_intervals_that_hold_together_are_wider(rng):
    gains = rng.normal(size=(4, 20))
    one, five = interval_over_models(gains), interval_over_models(gains, together=5)
    assert five[1] < one[1] < one[0] < one[2] < five[2]
    assert one[0] == five[0] == pytest.approx(gains.mean())


def test_no_difference_has_an_interval_of_no_width():
    assert interval_over_models(np.zeros((3, 8))) == (0.0, 0.0, 0.0)


def runs(hits):
    """One fold per model: method -> which questions are right, by model, at a KL of .1."""
    found = []
    for method, by_model in hits.items():
        for seed, right in enumerate(by_model):
            point = {"alpha": 1.0, "kl_asked": 0.0 if method == "baseline" else 0.1}
            point["right"] = "".join(str(int(x)) for x in right)
            found.append(
                {"world": "w", "model_seed": seed, "seed": 0, "fold": 0, "method": method}
                | {"tested": "1" * len(right), "curve": [point]}
            )
    return found


def test_a_table_of_comparisons_pairs_models_and_questions(rng):
    hits = {name: rng.random((3, 50)) < 0.5 for name in ("baseline", "one", "two", "other")}
    rows = runs(hits)
    gains = model_gains(rows, "one", "other", 0.1)
    assert np.array_equal(gains, hits["one"].astype(float) - hits["other"])
    table = over_models({"w": rows}, ["one", "two"], "other", 0.1)
    table = table.set_index("technique", append=True)
    assert list(table.index) == [("w", "one"), ("w", "two")]
    shown = table.loc[("w", "one")]
    mean, low, high = interval_over_models(gains, 2)
    assert shown["MC1"] == f"{mean:+.3f}"
    assert shown["interval"] == f"[{low:+.3f}, {high:+.3f}]"
    assert shown["ahead in"] == f"{(gains.mean(axis=1) > 0).sum()} of 3"
    assert shown["excludes 0"] == ("yes" if low > 0 or high < 0 else "no")
