"""Standard errors of learned valuations: against the spread of fits, and where there are none."""

import numpy as np
import pandas as pd
import pytest

from conceptnb.learning import standard_errors
from conceptnb.learning.environment_tables import from_arrays, learn_concepts
from conceptnb.learning.standard_errors import valuation_errors

LOOKED_FOR = {"e1": ["u"], "e2": ["u", "v"], "e3": ["v"], "e4": ["u"]}
M = np.array([[1, 0], [1, 1], [0, 1], [1, 0]])
ATOMS = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
B = np.array([[0.7, 0], [-0.6, 0.5], [0, -0.8], [-0.7, 0]])
NAMES = ["base", *LOOKED_FOR]


def table(seed, rows=600):
    """A Gaussian base and what conditioning makes of it, in units of one noise width."""
    rng, parts = np.random.default_rng(seed), []
    for m, b in zip(np.vstack([[0, 0], M]), np.vstack([[0, 0], B]), strict=True):
        precision = np.eye(3) + (ATOMS.T * m) @ ATOMS
        mean = np.linalg.solve(precision, ATOMS.T @ b)
        parts.append(rng.multivariate_normal(mean, np.linalg.inv(precision), size=rows))
    return from_arrays(np.vstack(parts), np.repeat(NAMES, rows), "base")


@pytest.mark.long
def test_errors_are_as_large_as_the_error_of_a_fit():
    new, scores = np.random.default_rng(0).normal(size=(30, 3)), []
    for seed in range(24):
        report = learn_concepts(table(seed), LOOKED_FOR, seed=seed)
        base = report.table.X[report.table.environment == 0].mean(axis=0)
        found, truth = report.learner.transform(new), (new - base) @ ATOMS.T
        sign = np.sign((found * truth).sum(axis=0))
        scores.append((found * sign - truth) / valuation_errors(report, new))
    squares = np.mean(np.square(scores), axis=(1, 2))
    # one number per fit, as the errors of its rows go together
    assert abs(squares.mean() - 1) < 3 * squares.std() / np.sqrt(len(squares))
    assert 0.6 < squares.mean() < 1.5


def test_errors_fall_with_the_rows_and_grow_away_from_the_base():
    small, large = (learn_concepts(table(0, rows), LOOKED_FOR) for rows in (400, 1600))
    new = np.array([[0.0, 0, 0], [1, 1, 1], [2, 2, 2]])
    errors = [valuation_errors(report, new) for report in (small, large)]
    np.testing.assert_allclose(errors[0][1:] / errors[1][1:], 2, rtol=0.35)
    assert (np.diff(errors[1], axis=0) > 0).all()
    assert valuation_errors(small).shape == small.valuations.shape


def test_columns_that_say_nothing_new_change_no_error():
    """Six mixtures of three columns, in other units: the information of six would be singular."""
    plain = table(1)
    mixed = plain.X @ np.random.default_rng(0).normal(size=(3, 6)) * 50 + 7
    names = [plain.names[e] for e in plain.environment]
    errors = [
        valuation_errors(learn_concepts(one, LOOKED_FOR))
        for one in (plain, from_arrays(mixed, names, "base"))
    ]
    np.testing.assert_allclose(errors[0], errors[1], rtol=0.02)


def test_where_the_theory_gives_none_they_are_refused():
    several = table(2, rows=200)
    with pytest.raises(ValueError, match="without shrinkage"):
        valuation_errors(learn_concepts(several, LOOKED_FOR, shrinkage=[0.1]))
    with pytest.raises(ValueError, match="linear encoder"):
        valuation_errors(learn_concepts(several, LOOKED_FOR, encoder="mlp", starts=1))
    together = {name: ["u", "v"] for name in LOOKED_FOR}
    with pytest.raises(ValueError, match="looked for in the same environments"):
        valuation_errors(learn_concepts(several, together))


def noisy(seed, rows, noise):
    """The table with columns of noise beside the three."""
    plain, rng = table(seed, rows), np.random.default_rng([seed, 1])
    X = np.hstack([plain.X, rng.normal(size=(len(plain.X), noise))])
    return from_arrays(X, [plain.names[e] for e in plain.environment], "base")


def test_fewer_than_twenty_rows_per_parameter_are_refused():
    report = learn_concepts(noisy(3, 150, 10), LOOKED_FOR)  # 13 columns: 26 + 5 + 4 parameters
    assert (valuation_errors(report) > 0).all()
    report = learn_concepts(noisy(3, 139, 10), LOOKED_FOR)
    with pytest.raises(ValueError, match=r"695 rows .* 35 parameters, .* fewer components"):
        valuation_errors(report)


@pytest.mark.long
def test_with_many_columns_errors_are_about_as_large_as_the_error_of_a_fit():
    scores = []
    for seed in range(8):
        report = learn_concepts(noisy(seed, 160, 10), LOOKED_FOR)
        new = np.random.default_rng(seed).normal(size=(100, 13))
        base = report.table.X[report.table.environment == 0].mean(axis=0)
        found, truth = report.learner.transform(new), ((new - base) @ np.eye(13, 3)) @ ATOMS.T
        sign = np.sign((found * truth).sum(axis=0))
        scores.append((((found * sign - truth) / valuation_errors(report, new)) ** 2).mean())
    assert 0.7 < np.mean(scores) < 1.8


def test_columns_are_taken_by_name_and_no_overlap_is_refused():
    plain = table(4)
    names = [plain.names[e] for e in plain.environment]
    frame = pd.DataFrame(plain.X, columns=["a", "b", "c"])
    report = learn_concepts(from_arrays(frame, names, "base"), LOOKED_FOR)
    expected = valuation_errors(report, plain.X[:5])
    np.testing.assert_array_equal(valuation_errors(report, frame[["c", "a", "b"]][:5]), expected)
    frame.loc[plain.environment == 1, "a"] += 40
    apart = learn_concepts(from_arrays(frame, names, "base"), LOOKED_FOR)
    with pytest.raises(ValueError, match=r"\['e1'\] do not overlap with the base"):
        valuation_errors(apart)


def test_of_many_rows_a_part_is_enough(monkeypatch):
    report = learn_concepts(table(5, 1000), LOOKED_FOR)
    every = valuation_errors(report)
    monkeypatch.setattr(standard_errors, "_MOST", 2500)
    np.testing.assert_allclose(valuation_errors(report), every, rtol=0.1)
