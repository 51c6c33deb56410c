"""Comparisons of Table 6 on a real model: intervals by hand, controls, what a design refuses."""

import numpy as np
import pytest
from scipy import stats

from conceptnb.steering.comparison import Fold, Settings
from conceptnb.steering.techniques import CONTROLS, MASS_MEAN, MATRIX, TECHNIQUES
from conceptnb.studies import steering_real
from conceptnb.tables import steering_order
from conceptnb.tables.steering_analysis import BASELINE

N = 200


def runs(right):
    """One fold of N questions: method -> α -> (KL, which questions are right)."""
    found = []
    for method, points in right.items():
        curve = [
            {"alpha": a, "kl": kl, "kl_asked": kl, "ce": 3.0, "mc2": 0.4}
            | {"right": "".join(str(int(x)) for x in hits)}
            for a, (kl, hits) in points.items()
        ]
        found.append(
            {"world": "m", "model_seed": 0, "seed": 0, "fold": 0, "method": method}
            | {"chosen": True, "heads": 48, "alpha": curve[0]["alpha"], "tested": "1" * N}
            | {"mc1": float(np.mean(next(iter(points.values()))[1])), "mc2": 0.4, "ce": 3.0}
            | {"kl": curve[0]["kl"], "kl_asked": curve[0]["kl"], "curve": curve}
        )
    return found


@pytest.fixture
def rows(rng):
    def hits(share):
        return rng.random(N) < share

    right = {BASELINE: {0.0: (0.0, hits(0.25))}}
    for method, share in zip(steering_order.ORDER[1:], (0.25, 0.25, 0.3, 0.3, 0.6), strict=True):
        right[method] = {2.0: (0.1, hits(share)), 4.0: (0.4, hits(share))}
    for control in CONTROLS:
        right[control] = {2.0: (0.1, hits(0.25))}
    return runs(right)


def outcomes(rows, method, alpha):
    [row] = [row for row in rows if row["method"] == method]
    [point] = [point for point in row["curve"] if point["alpha"] == alpha]
    return np.array([float(x) for x in point["right"]])


def test_the_order_at_equal_strength_agrees_with_a_paired_t_test(rows):
    table = steering_order.compared(rows, steering_order.NEIGHBOURS, alpha=2.0)
    difference = outcomes(rows, MATRIX, 2.0) - outcomes(rows, MASS_MEAN, 2.0)
    peer = stats.ttest_1samp(difference, 0).confidence_interval(1 - 0.05 / 5)
    low, high = (float(x) for x in table.loc[MATRIX, "interval"].strip("[]").split(","))
    assert low == pytest.approx(peer.low, abs=3e-3)  # normal against t with 199 degrees
    assert high == pytest.approx(peer.high, abs=3e-3)
    assert table.loc[MATRIX, "excludes 0"] == "yes"
    assert list(table.index) == list(steering_order.ORDER[1:])


def test_equal_kl_interpolates_between_strengths(rows):
    at_point = steering_order.compared(rows, steering_order.HEADLINE, kl=0.1).loc[MATRIX, "MC1"]
    difference = outcomes(rows, MATRIX, 2.0) - outcomes(rows, MASS_MEAN, 2.0)
    assert at_point == f"{difference.mean():+.3f}"
    by_order = steering_order.compared(rows, steering_order.NEIGHBOURS, kl=0.1).loc[MATRIX]
    assert by_order["MC1"] == at_point
    with pytest.raises(ValueError, match="not both"):
        steering_order.compared(rows, steering_order.NEIGHBOURS, alpha=2.0, kl=0.1)


def test_the_table_shows_the_numbers_of_the_differences(rows):
    numbers = steering_order.mc1_differences(rows, steering_order.WITH_CONTROLS, kl=0.1)
    table = steering_order.compared(rows, steering_order.WITH_CONTROLS, kl=0.1)
    assert list(table["MC1"]) == [f"{mean:+.3f}" for mean in numbers["mean"]]
    assert ((numbers["high"] - numbers["mean"]) > 0).all()
    np.testing.assert_allclose(numbers["high"] + numbers["low"], 2 * numbers["mean"], atol=1e-12)


def test_splits_are_averaged_by_question_and_shown_one_by_one(rows, rng):
    second = [{**row, "seed": 1} for row in rows]
    flipped = next(row for row in second if row["method"] == MATRIX)
    hits = rng.random(N) < 0.2
    curve = [{**point, "right": "".join(str(int(x)) for x in hits)} for point in flipped["curve"]]
    second[second.index(flipped)] = {**flipped, "curve": curve, "mc1": float(hits.mean())}
    table = steering_order.compared([*rows, *second], steering_order.HEADLINE, alpha=2.0)
    mass_mean = outcomes(rows, MASS_MEAN, 2.0)
    each = [outcomes(rows, MATRIX, 2.0) - mass_mean, hits - mass_mean]
    assert table.loc[MATRIX, "each split"] == ", ".join(f"{d.mean():+.3f}" for d in each)
    assert table.loc[MATRIX, "MC1"] == f"{np.mean(each):+.3f}"
    peer = stats.ttest_1samp(np.mean(each, axis=0), 0).confidence_interval(0.95)
    low, high = (float(x) for x in table.loc[MATRIX, "interval"].strip("[]").split(","))
    assert (low, high) == pytest.approx((peer.low, peer.high), abs=3e-3)
    shown = steering_order.table6_of_model([*rows, *second]).loc[MATRIX]
    split = [outcomes(rows, MATRIX, 2.0).mean(), hits.mean()]
    assert float(shown["MC1"]) == pytest.approx(np.mean(split), abs=6e-4)
    assert float(shown["±"]) == pytest.approx(np.std(split), abs=6e-4)


def test_other_runs_take_the_place_of_the_same_technique_in_their_split(rows):
    second = [{**row, "seed": 1} for row in rows]
    stronger = [{**row, "alpha": 4.0} for row in rows if row["method"] in CONTROLS]
    merged = steering_order.beside([*rows, *second], stronger)
    assert {row["seed"] for row in merged} == {0}
    assert sorted(row["method"] for row in merged) == sorted(row["method"] for row in rows)
    assert all(row["alpha"] == 4.0 for row in merged if row["method"] in CONTROLS)


def test_gain_per_nat_stays_within_the_budget(rows):
    table = steering_order.gain_per_nat(rows, budget=0.3)
    gain = outcomes(rows, MATRIX, 2.0).mean() - outcomes(rows, BASELINE, 0.0).mean()
    assert table.loc[MATRIX, "gain per nat"] == f"{gain / 0.1:+.2f}"
    assert table.loc[MATRIX, "α"] == "2"
    assert set(steering_order.PEERS) <= set(table.index)


def test_controls_and_the_table_show_what_each_gains(rows):
    table = steering_order.compared(rows, steering_order.WITH_CONTROLS, alpha=2.0)
    assert list(table["minus"]) == list(CONTROLS)
    shown = steering_order.table6_of_model(rows)
    assert shown.loc[BASELINE, "MC1 gained"] == ""
    gain = outcomes(rows, MATRIX, 2.0).mean() - outcomes(rows, BASELINE, 0.0).mean()
    assert shown.loc[MATRIX, "MC1 gained"].startswith(f"{gain:+.3f} [")


def test_the_design_names_only_techniques_that_there_are():
    known = TECHNIQUES | CONTROLS
    assert set(steering_real._ALPHAS) <= set(known)
    assert set(steering_order.ORDER[1:]) <= set(steering_real._ALPHAS)
    assert all(2.0 in alphas for alphas in steering_real._ALPHAS.values())
    assert len(steering_real._texts()) == 32


def test_a_budget_that_nothing_meets_is_named(llama, tokenizer, corpus):
    from conceptnb.steering.activations import collect_activations  # noqa: PLC0415

    questions = corpus.questions()[::12]
    activations = collect_activations(llama, tokenizer, questions)
    settings = Settings((4,), (1.0, 3.0), budget=0.5)
    fold = Fold(llama, tokenizer, questions, activations, settings, 0, 0)
    strengths = iter([0.2, 0.9])
    heads, alpha, _ = fold.fit(TECHNIQUES[MASS_MEAN], 0, spent=lambda _: next(strengths))
    assert (heads, alpha) == (4, 1.0)  # the one within the budget
    with pytest.raises(ValueError, match=r"budget=0\.5: the least KL of any K and α is 0\.7"):
        fold.fit(TECHNIQUES[MASS_MEAN], 0, spent=lambda _: 0.7)
    with pytest.raises(ValueError, match=r"spent is None, and budget=0\.5"):
        fold.fit(TECHNIQUES[MASS_MEAN], 0)


def test_along_kl_shows_both_definitions_and_invents_nothing_beyond_the_runs(rows):
    for row in rows:  # a matrix disturbs prose half as much by its own edit of it
        for point in row["curve"]:
            point["kl"] = point["kl_asked"] / (2 if row["method"] == MATRIX else 1)
    curves = steering_order.along_kl(rows, (MATRIX, MASS_MEAN))
    assert curves["kl"].max() == pytest.approx(0.2)  # the matrix's own edits reach no further
    curves = steering_order.along_kl(rows, (MATRIX, MASS_MEAN), [0.1, 0.2]).set_index("measured")
    asked, own = (curves.loc[name] for name in steering_order.KL_MEASURED)
    at = {m: [outcomes(rows, m, a) for a in (2.0, 4.0)] for m in (MATRIX, MASS_MEAN)}
    # At .1 by its own edit the matrix has gone from .05 (α = 2) a third of the way to .2 (α = 4).
    further = at[MATRIX][0] * 2 / 3 + at[MATRIX][1] / 3
    by_hand = [at[MATRIX][0] - at[MASS_MEAN][0], further - at[MASS_MEAN][0]]
    for found, expected in zip((asked, own), by_hand, strict=True):
        first = found[found["kl"] == 0.1].iloc[0]
        peer = stats.norm.interval(0.95, expected.mean(), stats.sem(expected))
        np.testing.assert_allclose(first[["mean", "low", "high"]].to_numpy(dtype=float),
                                   [expected.mean(), *peer], atol=1e-12)  # fmt: skip
    with pytest.raises(ValueError, match="no runs"):
        steering_order.along_kl(rows, (MATRIX, "matrix, TF-IDF"))
