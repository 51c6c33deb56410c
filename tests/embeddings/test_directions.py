import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from conceptnb import results
from conceptnb.embeddings import directions as cd
from conceptnb.embeddings.directions.evaluation import held_out_reading
from conceptnb.embeddings.shapes3d.factors import FACTORS, SHAPE_NAMES, SIZES, sample_factors
from conceptnb.studies import clip as tables


def embedding(n, d, n_values, seed, gap=1.0):
    """Random classes in a space whose axes have very different variance."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_values, n)
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    spread = np.exp(-3 * np.arange(d) / d)
    points = rng.normal(size=(n, d)) + gap * rng.normal(size=(n_values, d))[labels]
    return (points * spread) @ axes + rng.normal(size=d), labels


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


@pytest.mark.parametrize(("n", "d", "gap", "C"), [(600, 12, 0.5, 1.0), (500, 40, 2.0, 0.1)])
def test_every_pair_is_what_scikit_learn_fits(n, d, gap, C):
    Z, labels = embedding(n, d, 4, seed=0, gap=gap)
    ours = cd.pairwise_regressions(Z, labels, C=C)
    assert len(ours.pairs) == 6
    for (i, j), w, b in zip(ours.pairs, ours.coefficients, ours.intercepts, strict=True):
        rows = np.isin(labels, [i, j])
        theirs = LogisticRegression(C=C, tol=1e-8, max_iter=5000).fit(Z[rows], labels[rows] == j)
        assert cosine(w, theirs.coef_[0]) > 0.9999
        np.testing.assert_allclose(np.linalg.norm(w), np.linalg.norm(theirs.coef_), rtol=5e-3)
        np.testing.assert_allclose(b, theirs.intercept_[0], rtol=0.02, atol=0.02)


def test_regressions_are_where_the_gradient_vanishes():
    Z, labels = embedding(400, 6, 2, seed=1)
    fit = cd.pairwise_regressions(Z, labels)
    w, b = fit.coefficients[0], fit.intercepts[0]
    residual = labels - 1 / (1 + np.exp(-(Z @ w + b)))  # of the likelihood, by hand
    np.testing.assert_allclose(Z.T @ residual, w, atol=1e-4)
    assert abs(residual.sum()) < 1e-4


def test_moving_all_points_moves_no_direction():
    Z, labels = embedding(300, 8, 3, seed=2)
    here = cd.pairwise_regressions(Z, labels)
    there = cd.pairwise_regressions(Z + 100, labels)
    np.testing.assert_allclose(here.coefficients, there.coefficients, atol=1e-6)


@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_leading_directions_know_neither_order_nor_signs(seed, n_pairs, dimensions):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n_pairs, dimensions)) * np.arange(1, dimensions + 1)
    k = min(n_pairs, dimensions, 2)
    signs = rng.choice([-1.0, 1.0], n_pairs)
    changed = (W * signs[:, None])[rng.permutation(n_pairs)]
    first, second = cd.leading_directions(W, k), cd.leading_directions(changed, k)
    np.testing.assert_allclose(first.T @ first, second.T @ second, atol=1e-8)
    np.testing.assert_allclose(first @ first.T, np.eye(k), atol=1e-10)
    values = np.linalg.eigvalsh(W.T @ W)  # they are the leading eigenvectors of Σ w wᵀ
    np.testing.assert_allclose(((W @ first[0]) ** 2).sum(), values[-1], rtol=1e-9)


def test_the_paper_average_is_right_on_a_line_and_ambiguous_on_a_circle():
    rng = np.random.default_rng(0)
    values = np.arange(8.0)[:, None] * [[3.0, 4.0]]
    line = np.array([values[j] - values[i] for j in range(8) for i in range(j)])
    line *= rng.choice([-1.0, 1.0], len(line))[:, None]
    assert abs(cosine(cd.averaged_direction(line), np.array([3.0, 4.0]))) > 1 - 1e-12
    assert cd.order_dependence(line, 10, rng).min() > 1 - 1e-12

    angle = 2 * np.pi * np.arange(10) / 10
    wheel = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    circle = np.array([wheel[j] - wheel[i] for j in range(10) for i in range(j)])
    assert cd.order_dependence(circle, 20, rng).min() < 0.7


def test_after_many_passes_no_pair_points_away_from_the_mean():
    W = np.random.default_rng(3).normal(size=(40, 5))
    mean = cd.averaged_direction(W)
    aligned = W * np.sign(W @ mean)[:, None]
    np.testing.assert_allclose(aligned.mean(axis=0), mean, atol=1e-12)


def test_separation_is_the_share_of_variance_between_values():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), 40_000)
    valuations = 2.0 * labels + rng.normal(size=labels.size)
    between = 4 * np.var(np.arange(5))
    assert abs(cd.separation(valuations, labels) - between / (between + 1)) < 3e-3
    assert cd.separation(labels, labels) == 1
    assert cd.separation(rng.permutation(valuations), labels) < 1e-3
    # the same in several dimensions, and after any rotation
    plane = np.stack([valuations, rng.normal(size=labels.size)], axis=1)
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    share = cd.separation(plane, labels)
    assert abs(share - between / (between + 2)) < 3e-3
    np.testing.assert_allclose(cd.separation(plane @ turn, labels), share)


def test_valuation_table_has_population_deviations():
    table = cd.valuation_table([1.0, 3.0, 10.0, 10.0, 16.0], [0, 0, 4, 4, 4])
    assert table.values.tolist() == [0, 4]
    assert table.counts.tolist() == [2, 3]
    np.testing.assert_allclose(table.means[:, 0], [2, 12])
    np.testing.assert_allclose(table.stds[:, 0], [1, np.sqrt(8)])


def test_canonical_correlation_is_correlation_up_to_linear_maps():
    rng = np.random.default_rng(0)
    a = rng.normal(size=5000)
    b = -2 * a + rng.normal(size=5000)
    np.testing.assert_allclose(cd.canonical_correlations(a, b), abs(np.corrcoef(a, b)[0, 1]))
    V = rng.normal(size=(500, 3))
    np.testing.assert_allclose(
        cd.canonical_correlations(V, V @ rng.normal(size=(3, 3)) + 5), np.ones(3), atol=1e-9
    )
    noise = cd.canonical_correlations(V, rng.normal(size=(500, 2)))
    assert noise.shape == (2,)
    assert noise.max() < 0.25


@pytest.mark.parametrize("method", [m for m in cd.METHODS if m != "circular"])
def test_every_method_finds_an_ordered_concept(method):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, 1200)
    Z = rng.normal(size=(1200, 10))
    Z[:, 3] = 3 * labels + 0.3 * rng.normal(size=1200)
    fitted = cd.ConceptDirections(method).fit(Z[:600], labels[:600])
    assert abs(fitted.directions_[0, 3]) > 0.9 * np.linalg.norm(fitted.directions_)
    assert fitted.score(Z[600:], labels[600:]) > 0.95
    concept = fitted.concept(2)
    np.testing.assert_allclose(concept.valuation(Z[:5]), fitted.transform(Z[:5]))
    np.testing.assert_allclose(concept.b, fitted.transform(Z[:600])[labels[:600] == 2].mean(axis=0))


def test_the_discriminant_maximises_separation():
    Z, labels = embedding(2000, 10, 5, seed=4)
    best = cd.separation(cd.ConceptDirections(shrinkage=0).fit_transform(Z, labels), labels)
    rng = np.random.default_rng(0)
    others = [cd.separation(Z @ rng.normal(size=10), labels) for _ in range(50)]
    others += [
        cd.separation(cd.ConceptDirections(m).fit_transform(Z, labels), labels)
        for m in ("pairwise", "ordinal", "paper")
    ]
    assert best >= max(others)


def test_the_wheel_is_found_whatever_else_separates_the_hues():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 4000)
    angle = 2 * np.pi * labels / 10
    wheel = np.column_stack([np.cos(angle), np.sin(angle)])
    other = rng.normal(size=(10, 2))[labels] * 3  # separates hues better, in no order
    Z = np.column_stack([wheel, other]) + 0.02 * rng.normal(size=(4000, 4))
    Z = Z @ rng.normal(size=(4, 6))
    fitted = cd.ConceptDirections("circular", n_components=2).fit(Z[:2000], labels[:2000])
    found = fitted.transform(Z[2000:])
    # the wheel up to one scale and the zero: not even turned
    scale = found.std() / wheel.std()
    np.testing.assert_allclose(
        found - found.mean(axis=0),
        scale * (wheel[2000:] - wheel[2000:].mean(axis=0)),
        atol=0.2 * scale,
    )
    assert fitted.score(Z[2000:], labels[2000:]) > 0.99
    with pytest.raises(ValueError, match="n_components=1 must be 2"):
        cd.ConceptDirections("circular").fit(Z, labels)


def test_a_circle_needs_two_dimensions():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 3000)
    angle = 2 * np.pi * labels / 10
    # a turned decagon: some values share a projection whichever way one looks
    Z = np.stack([np.cos(angle), np.sin(angle)], axis=1) @ np.eye(2, 12)
    Z += 0.1 * rng.normal(size=Z.shape)
    choice = cd.choose_dimension(Z, labels, rng)
    assert choice.chosen == 2
    assert choice.scores[0] < 0.75
    assert choice.scores[1] > 0.95
    assert cd.choose_dimension(Z, labels, rng, k_max=1).chosen == 1


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_the_planes_of_values_span_as_many_dimensions_as_they_do(k):
    rng = np.random.default_rng(k)
    labels = rng.integers(0, 10, 3000)
    corners = np.linalg.qr(rng.normal(size=(10, 10)) - 0.1)[0][:, :k]
    corners -= corners.mean(axis=0)
    Z = rng.normal(size=(3000, 12)) * rng.uniform(0.5, 2, 12)
    Z = (Z + 20 * corners[labels] @ np.eye(k, 12)) @ rng.normal(size=(12, 12))
    span = cd.spanned_dimensions(Z, labels, rng, share=0.97)
    assert span.chosen == k
    assert span.scores[-1] == pytest.approx(1)
    assert (np.diff(span.scores) >= 0).all()
    if k < 5:  # a fifth dimension of five holds hardly more than one twentieth
        assert len(cd.proper_concept(Z, labels, rng).directions_) == k
    noise = cd.spanned_dimensions(rng.normal(size=(3000, 12)), labels, rng)
    assert noise.scores.shape == (9,)


def test_canonical_variates_have_the_canonical_correlations():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(400, 4))
    B = A[:, :3] @ rng.normal(size=(3, 3)) + rng.normal(size=(400, 3))
    U, V = cd.canonical_variates(A, B)
    assert U.shape == V.shape == (400, 3)
    np.testing.assert_allclose(U.T @ U / 400, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(V.T @ V / 400, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(U.T @ V / 400, np.diag(cd.canonical_correlations(A, B)), atol=1e-12)


def hue_embedding(places, labels, rng):
    """Hues at given places, turned into eight dimensions, with a little noise."""
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0][: places.shape[1]]
    return places[labels] @ turn + 0.06 * rng.normal(size=(len(labels), 8))


def test_readings_tell_a_shared_wheel_from_a_shared_name():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 3000)
    angle = 2 * np.pi * np.arange(10) / 10
    wheel = np.column_stack([np.cos(angle), np.sin(angle)])

    def by_name(first, second):
        pair = (hue_embedding(places, labels, rng) for places in (first, second))
        return cd.cyclic_readings(*pair, labels, np.random.default_rng(1))

    # both have the wheel: every reading but the shuffled one agrees and is accurate
    both = by_name(wheel, wheel)
    for name in ("best plane", "wheel", "proper dimension"):
        assert both[name].dimensions == (2, 2)
        assert both[name].canonical.min() > 0.95
        assert min(both[name].accuracies) > 0.95
    assert max(both["wheel, shuffled"].accuracies) < min(both["wheel"].accuracies) - 0.1

    # both know ten names: the wheel is read as well in any order, and says nothing of its own
    names = by_name(np.eye(10)[:, :7], np.eye(10)[:, :7] @ rng.normal(size=(7, 7)))
    gap = names["wheel"].canonical.mean() - names["wheel, shuffled"].canonical.mean()
    assert abs(gap) < 0.1

    # the second has the first's wheel in another order: it knows all hues, and no plane agrees
    other = by_name(wheel, wheel[rng.permutation(10)])
    assert min(other["best plane"].accuracies) > 0.95
    assert other["proper dimension"].canonical[-1] < 0.7
    # the second is a projection of the first: in proper dimensions they agree, planes do not
    room = np.column_stack([wheel, 0.9 * np.cos(3 * angle)])
    part = by_name(room, room[:, 1:])
    assert part["proper dimension"].dimensions == (3, 2)
    assert part["proper dimension"].canonical.min() > 0.95
    assert part["best plane"].canonical.min() < 0.6


def test_a_report_takes_any_labels_and_any_split():
    rng = np.random.default_rng(0)
    labels = np.array(["ripe", "green"])[rng.integers(0, 2, 400)]
    Z = rng.normal(size=(400, 5)) + 5 * (labels == "ripe")[:, None] * np.eye(5)[0]
    split = np.arange(300), np.arange(300, 400)
    report = cd.report_factors(Z, {"colour": labels}, rng, split=split)["colour"]
    assert report.table.values.tolist() == ["green", "ripe"]
    assert report.accuracy > 0.95
    assert report.chance == max(np.mean(labels[300:] == "ripe"), np.mean(labels[300:] == "green"))
    assert (report.labels == labels[300:]).all()
    assert report.concept.predict(Z[:1])[0] in ("ripe", "green")


def test_splits_keep_training_apart():
    factors = sample_factors(20_000, np.random.default_rng(0))
    train, test = cd.half_split(1001, np.random.default_rng(0))
    assert len(train) == 500
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(1001))
    train, test = cd.first_values_split(factors, 4, SIZES)
    assert len(train) + len(test) == len(factors)
    np.testing.assert_array_equal(
        factors[train].max(axis=0), [4, 4, 4, 3, 3, 7]
    )  # all shapes, the first half of everything else
    expected = 0.5**4 * 8 / 15
    assert abs(len(train) / len(factors) - expected) < 0.006  # the paper's "about 3 %"


def test_a_report_finds_what_is_there_and_nothing_else():
    rng = np.random.default_rng(0)
    factors = sample_factors(3000, rng)
    Z = rng.normal(size=(3000, 16))
    Z[:, 0] += 6 * factors[:, 4]  # shape as an atom
    angle = 2 * np.pi * factors[:, 0] / 10
    Z[:, 1:3] = 8 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.5 * Z[:, 1:3]
    labels = dict(zip(FACTORS, factors.T, strict=True))
    whole = cd.report_factors(Z, labels, np.random.default_rng(3))
    shape, hue, scale = (whole[name] for name in ("shape", "floor_hue", "scale"))
    assert shape.eta2 > 0.9
    assert len(shape.train) == len(shape.test) == 1500
    assert not np.intersect1d(shape.train, shape.test).size
    assert len(shape.concept.directions_) == 1
    assert hue.accuracy_atom < hue.accuracy - 0.1  # whichever way the line lies
    assert hue.accuracy > 0.95
    assert hue.concept.directions_.shape == (2, 16)
    assert scale.eta2 < 0.05
    assert hue.accuracy_plane > 0.95
    for one in whole.values():  # shuffled labels are read as well as by chance
        assert abs(one.accuracy_shuffled - 1 / len(one.concept.classes_)) < 0.05
    assert list(whole) == list(FACTORS)
    for one in whole.values():  # one held-out half for all factors
        np.testing.assert_array_equal(one.test, whole["shape"].test)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cd.pairwise_regressions(np.eye(3), [0, 0, 0]), "single value"),
        (lambda: cd.pairwise_regressions(np.eye(3), [0, 1]), r"shape \(3,\)"),
        (lambda: cd.pairwise_regressions(np.eye(3), [0, 1, 0.5]), "whole"),
        (lambda: cd.pairwise_regressions(np.eye(3) * np.nan, [0, 1, 1]), "NaN"),
        (lambda: cd.pairwise_regressions(np.eye(3), [0, 1, 1], C=0), "C=0"),
        (lambda: cd.leading_directions(np.eye(3), 4), "n_components"),
        (lambda: cd.order_dependence(np.eye(3), 1, np.random.default_rng(0)), "n_orders"),
        (lambda: cd.canonical_correlations([1, 2, 3], [1, 2]), "3 images"),
        (
            lambda: cd.cyclic_readings(
                np.eye(3), np.eye(2), [0, 1, 1], np.random.default_rng(0), n_orders=1
            ),
            "3 images",
        ),
        (
            lambda: cd.cyclic_readings(
                np.eye(2), np.eye(2), [0, 1], np.random.default_rng(0), n_orders=0
            ),
            "n_orders must be at least 1, got 0",
        ),
        (
            lambda: cd.spanned_dimensions(np.eye(2), [0, 1], np.random.default_rng(0), share=0),
            "share=0",
        ),
        (lambda: cd.half_split(3, np.random.default_rng(0)), "n=3"),
        (lambda: cd.first_values_split(np.zeros((2, 5)), 0, SIZES), "columns"),
        (lambda: cd.first_values_split(np.zeros((2, 6)), 6, SIZES), "factor=6"),
        (lambda: cd.ConceptDirections("mean").fit(np.eye(4), [0, 0, 1, 1]), "method"),
        (lambda: cd.ConceptDirections(n_components=2).fit(np.eye(4), [0, 0, 1, 1]), "between 1"),
        (lambda: cd.ConceptDirections(shrinkage=2).fit(np.eye(4), [0, 0, 1, 1]), "shrinkage"),
        (
            lambda: cd.ConceptDirections().fit(np.eye(4), [0, 0, 1, 1]).concept(7),
            "value=7",
        ),
        (
            lambda: cd.report_factors(
                np.eye(60),
                {"shape": np.arange(60) // 20},
                np.random.default_rng(0),
                split=(np.arange(40), np.arange(40, 60)),
            ),
            "shape=2 has no training image; embed more",
        ),
    ],
)
def test_bad_input_is_refused_with_a_way_out(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_papers_columns_are_as_printed():
    columns = tables.paper_columns()
    assert tuple(columns) == FACTORS
    for name, size in zip(FACTORS, SIZES, strict=True):
        assert [len(column) for column in columns[name].values()] == [size, size]
    assert columns["shape"]["ViT-B/32"][3] == [-11.8, 3.1]  # Table 4
    assert columns["orientation"]["RN101"][7] == [-8.2, 1.2]  # Table 3


def test_tables_for_a_page_rearrange_and_change_nothing():
    rows = [
        {"table": "separation", "model": m, "factor": f, "eta2": k + len(m)}
        for m in ("a", "a-untrained")
        for k, f in enumerate(FACTORS)
    ]
    rows += [
        {
            "table": "valuations",
            "model": "a",
            "factor": "shape",
            "value": v,
            "mean": 1.5,
            "std": 0.5,
        }
        for v in SHAPE_NAMES
    ]
    record = results.Result("clip", rows, "", [0], 1.0, {})
    assert tables.separation_columns(record).rows[4] == {
        "factor": "shape",
        "a": 5,
        "a-untrained": 15,
    }
    shown = tables.valuation_columns(record, ["shape"]).rows
    assert shown[2] == {"factor": "shape", "value": "ball", "a": [1.5, 0.5]}
    assert len(shown) == 4
    with pytest.raises(ValueError, match="reproduce clip"):
        tables.agreement_rows(record)


def test_agreement_over_splits_forgives_linear_maps_and_sees_strangers():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 10, 3000)
    angle = 2 * np.pi * np.arange(10) / 10
    A = hue_embedding(np.column_stack([np.cos(angle), np.sin(angle)]), labels, rng)

    def smallest(B):
        return cd.agreement_over_splits(A, B, labels, np.random.default_rng(1), n_splits=3)

    # not exactly one: the shrinkage of the within-class covariance depends on the basis
    np.testing.assert_allclose(smallest(A @ rng.normal(size=(8, 8))), 1, atol=1e-3)
    strangers = smallest(rng.normal(size=A.shape))
    assert strangers.shape == (3,)
    assert strangers.max() < 0.2


def test_directions_do_not_depend_on_the_scale():
    Z, labels = embedding(300, 6, 3, seed=0)
    expected = cd.ConceptDirections().fit(Z, labels)
    for scale in (1e-12, 1e-6, 1e6):
        found = cd.ConceptDirections().fit(Z * scale, labels)
        assert abs(cosine(found.directions_[0], expected.directions_[0])) > 1 - 1e-9
        np.testing.assert_array_equal(found.predict(Z * scale), expected.predict(Z))


def test_probabilities_are_those_of_linear_discriminant_analysis():
    Z, labels = embedding(400, 5, 4, seed=1)
    rows = np.concatenate([np.flatnonzero(labels == k)[:60] for k in range(4)])
    ours = cd.ConceptDirections(n_components=3, shrinkage=0).fit(Z[rows], labels[rows])
    theirs = LinearDiscriminantAnalysis(solver="eigen", shrinkage=0).fit(Z[rows], labels[rows])
    np.testing.assert_allclose(ours.variance_, 1)
    np.testing.assert_allclose(ours.predict_proba(Z), theirs.predict_proba(Z), atol=1e-6)


@pytest.mark.parametrize("method", cd.METHODS)
def test_what_is_predicted_is_most_probable(method):
    Z, labels = embedding(300, 6, 4, seed=2)
    names = np.array(["c", "a", "d", "b"])[labels]
    fitted = cd.ConceptDirections(method, n_components=1 + (method == "circular")).fit(Z, names)
    probable = fitted.predict_proba(Z)
    np.testing.assert_allclose(probable.sum(axis=1), 1)
    np.testing.assert_array_equal(fitted.classes_[probable.argmax(axis=1)], fitted.predict(Z))
    halfway = (fitted.planes_[0] + fitted.planes_[1]) / 2 @ np.linalg.pinv(fitted.directions_).T
    first, second = fitted.predict_proba(halfway[None])[0, :2]
    np.testing.assert_allclose(first, second, rtol=1e-6)


def test_probabilities_say_how_often_a_value_is_right():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, 20_000)
    Z = rng.normal(size=(20_000, 4)) + 1.5 * np.eye(4)[labels]
    for method in ("discriminant", "pairwise", "ordinal"):
        fitted = cd.ConceptDirections(method).fit(Z[:10_000], labels[:10_000])
        probable = fitted.predict_proba(Z[10_000:])
        assert probable.std(axis=0).min() > 0.1, "it says something"
        right = np.eye(3)[labels[10_000:]]
        errors = (probable - right).mean(axis=0) / (probable - right).std(axis=0)
        assert np.abs(errors).max() < 5 / np.sqrt(10_000)
        for low in (0.2, 0.4, 0.6):
            own = (probable >= low) & (probable < low + 0.2)
            assert own.sum() > 200
            assert abs(probable[own].mean() - right[own].mean()) < 0.05


def test_values_without_noise_are_certain():
    Z = np.repeat([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]], 5, axis=0)
    fitted = cd.ConceptDirections("ordinal").fit(Z, np.repeat([0, 1, 2], 5))
    np.testing.assert_array_equal(fitted.predict_proba(Z[::5]), np.eye(3))
    same = cd.ConceptDirections().fit(np.ones((6, 2)), [0, 1] * 3)
    np.testing.assert_allclose(same.predict_proba(np.ones((2, 2))), 0.5)


def test_probabilities_do_not_depend_on_the_zero_or_the_scale():
    Z, labels = embedding(300, 4, 3, seed=4)
    expected = cd.ConceptDirections(n_components=2).fit(Z, labels).predict_proba(Z)
    for scale, shift in ((1, 1e6), (1e-9, 0), (1e9, 0)):
        moved = Z * scale + shift
        found = cd.ConceptDirections(n_components=2).fit(moved, labels).predict_proba(moved)
        np.testing.assert_allclose(found, expected, atol=1e-4)


EXPECTED_FAILURES = {
    "check_classifiers_one_label": "a direction needs two values, and one value is refused",
    "check_fit2d_1sample": "one sample has one value, which is refused as such",
    "check_classifiers_train": "one dimension does not tell three groups in a plane apart",
}


@pytest.mark.slow
@pytest.mark.parametrize("method", [m for m in cd.METHODS if m != "circular"])
def test_scikit_learns_estimator_checks(method):
    outcomes = check_estimator(
        cd.ConceptDirections(method),
        expected_failed_checks=EXPECTED_FAILURES,
        on_skip=None,
        on_fail=None,
    )
    failed = {o["check_name"]: o["exception"] for o in outcomes if o["status"] == "failed"}
    assert failed == {}
    stated = {o["check_name"] for o in outcomes if o["status"] == "xfail"}
    assert stated == set(EXPECTED_FAILURES)  # no exception that is not needed


def test_continuous_labels_are_refused_and_valuations_get_names():
    Z, labels = embedding(60, 4, 2, seed=0)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        cd.ConceptDirections().fit(Z, labels + 0.01 * np.arange(60))
    with pytest.raises(NotFittedError):
        cd.ConceptDirections().predict(Z)
    named = cd.ConceptDirections().set_output(transform="pandas").fit(Z, labels)
    assert list(named.transform(Z)) == ["conceptdirections0"]


POWERS = st.lists(st.integers(-9, 9), min_size=5, max_size=5)


@pytest.mark.parametrize("method", [m for m in cd.METHODS if m != "paper"])
@given(POWERS, st.lists(st.integers(-9, 8), min_size=5, max_size=5))
@settings(max_examples=15, deadline=None)
def test_directions_depend_on_no_column_s_unit_or_origin(method, powers, origins):
    """The paper's method alone has a penalty on raw coordinates, as its docstring says."""
    Z, labels = embedding(200, 5, 3, seed=5)
    estimator = cd.ConceptDirections(method, 1 + (method == "circular"), shrinkage=0.05)
    expected = estimator.fit(Z, labels).predict_proba(Z)
    weights = estimator.directions_
    unit = 10.0 ** np.array(powers)
    moved = (Z + 10.0 ** np.array(origins)) * unit
    np.testing.assert_allclose(
        estimator.fit(moved, labels).predict_proba(moved), expected, atol=1e-4
    )
    np.testing.assert_allclose(estimator.coef_ * unit, weights, atol=1e-4 * np.abs(weights).max())
    np.testing.assert_array_equal(
        estimator.predict(moved), estimator.classes_[estimator.predict_proba(moved).argmax(axis=1)]
    )


def test_regressions_are_those_of_the_given_columns_and_of_the_last_fit():
    Z, labels = embedding(200, 4, 3, seed=6)
    estimator = cd.ConceptDirections("pairwise").fit(Z, labels)
    moved = cd.ConceptDirections("pairwise").fit(Z * 1e3 + 5, labels)
    one, other = estimator.regressions_, moved.regressions_
    np.testing.assert_allclose(other.coefficients * 1e3, one.coefficients, rtol=1e-4)
    np.testing.assert_allclose(
        (Z * 1e3 + 5) @ other.coefficients.T + other.intercepts,
        Z @ one.coefficients.T + one.intercepts, atol=1e-4,
    )  # fmt: skip
    assert not hasattr(estimator.set_params(method="ordinal").fit(Z, labels), "regressions_")


def test_the_share_of_orders_that_are_read_as_well_is_that_of_all_orders():
    """Against every order of six labels; and it is uniform where there is nothing to read."""
    labels, read = np.array(list("aabbbb")), np.array(list("aabbab"))
    orders = {tuple(order) for order in itertools.permutations(labels)}

    def balanced(own):
        return np.mean([np.mean(read[np.array(own) == v] == v) for v in "ab"])

    exact = np.mean([balanced(order) >= balanced(labels) - 1e-12 for order in orders])
    found = held_out_reading(read, labels, np.random.default_rng(0), draws=20_000)
    assert found.p_value == pytest.approx(exact, abs=0.01)
    assert (found.accuracy, found.chance) == (balanced(labels), 0.5)
    rng = np.random.default_rng(1)
    p = [
        held_out_reading(rng.integers(0, 3, 90), rng.integers(0, 3, 90), rng, 400).p_value
        for _ in range(300)
    ]
    assert abs(np.mean(np.array(p) < 0.05) - 0.05) < 0.035
    assert abs(np.mean(p) - 0.5) < 0.06
