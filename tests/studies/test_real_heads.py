"""What a real model's heads know and what it says: scores by hand, planted truth, stored tables."""

import math

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

from conceptnb import results
from conceptnb.steering.activations import Activations
from conceptnb.steering.questions import Question
from conceptnb.studies import real_heads

N, WIDTH = 80, 16


def asked(count=N, category=lambda i: str(i % 10)):
    return [
        Question(f"q{i:03}", f"what is {i}?", ("a", "b", "c"), (True, False, False), 0, category(i))
        for i in range(count)
    ]


@pytest.fixture
def planted(rng):
    """Three layers of two heads, of which layer 1, head 0 knows what is true, along one axis."""
    ids = np.repeat([question.id for question in asked()], 3)
    true = np.tile([True, False, False], N)
    wide = np.linspace(0.3, 1.5, WIDTH)
    heads = (wide * rng.normal(size=(3 * N, 3, 2, WIDTH))).astype(np.float32)
    heads[:, 1, 0, 0] += 4.0 * true
    return Activations(ids, true, heads)


def folds_of(questions):
    return real_heads._folds(questions, [question.id for question in questions])


def test_the_score_of_a_question_is_its_balanced_accuracy(planted, rng):
    guess = rng.random((2, 3 * N)) < 0.5
    found = real_heads._per_question(guess == planted.true, planted, asked())
    assert found.shape == (2, N)
    for probe, i in ((0, 0), (1, 17), (0, N - 1)):
        rows = planted.ids == f"q{i:03}"
        peer = balanced_accuracy_score(planted.true[rows], guess[probe, rows])
        assert found[probe, i] == pytest.approx(peer)


def test_a_head_that_knows_is_found_and_the_others_stay_at_chance(planted):
    row = real_heads._probed(planted, folds_of(asked()), geometry=True)
    assert row["chosen"] == [[1, 0], [1, 0]]
    assert row["best"] > 0.9
    assert row["joint"] > 0.7  # with five heads of noise beside it
    heads = np.reshape(row["heads"], (3, 2))
    assert heads[1, 0] == pytest.approx(row["best"], abs=1e-4)
    others = np.delete(heads.ravel(), 2)
    assert abs(others - 0.5).max() < 5 * 0.5 / math.sqrt(N)
    assert np.mean([int(x) for x in row["best_quarters"]]) / 4 == pytest.approx(row["best"])
    assert row["cosine_best"] > 0.9  # isotropic noise: the probe's weights lie along the difference
    assert row["orthogonal"][0] > 0.9
    assert max(row["orthogonal"][1:]) < 0.75  # one direction was planted, and no second


def test_shuffled_labels_leave_nothing_to_find(planted, rng):
    row = real_heads._probed(planted.shuffled(rng), folds_of(asked()))
    assert abs(row["best"] - 0.5) < 5 * 0.5 / math.sqrt(N)


def test_folds_test_every_question_once_and_keep_categories_together():
    questions = asked()
    folds = real_heads._folds(questions, [question.category for question in questions])
    tested = [question.id for _, test in folds for question in test]
    assert sorted(tested) == [question.id for question in questions]
    for train, test in folds:
        assert not {q.category for q in train} & {q.category for q in test}


def test_a_negation_exchanges_true_and_false():
    affirmed, negated = real_heads._made(False), real_heads._made(True)
    assert len(affirmed) == len(negated) == 24
    assert not {q.id for q in affirmed} & {q.id for q in negated}
    for one, other in zip(affirmed, negated, strict=True):
        assert [answer.replace(" not ", " ") for answer in other.answers] == list(one.answers)
        assert other.true == tuple(not true for true in one.true)


def test_repetition_is_the_share_of_word_pairs_seen_before():
    assert real_heads._repeated("the cat saw the dog") == 0
    assert real_heads._repeated("no no no no") == pytest.approx(2 / 3)
    assert real_heads._repeated("word") == 0


def test_of_a_question_the_best_and_two_false_answers_are_read():
    question = Question(
        "a", "?", ("t", "f", "best", "g", "h"), (True, False, True, False, False), 2
    )
    few = real_heads._few_answers(question)
    assert few.answers == ("best", "f", "g")
    assert few.true == (True, False, False)
    assert few.answers[few.best] == "best"


def test_stored_tables_are_those_of_their_runs():
    known, said = results.load("real_heads"), results.load("real_answers")
    assert known.rows == real_heads._heads_rows(known.runs)
    assert said.rows == real_heads._answers_rows(said.runs)
    for run in known.runs:
        assert np.mean([int(x) for x in run["joint_quarters"]]) / 4 == pytest.approx(run["joint"])
    for run in said.runs:
        again = [real_heads._repeated(answer) for answer in run["answers"]]
        assert run["repeated"] == pytest.approx(np.mean(again))
        assert len(run["answers"]) == len(run["questions"]) == run["asked"]
        nats = sum(run["nats_each"]) / sum(run["tokens_each"])
        assert run["perplexity"] == pytest.approx(math.exp(nats), rel=1e-3)
