"""Probes, steering vectors and steering matrices on activations whose structure is known."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.linear_model import Ridge

from conceptnb.steering.activations import (
    Activations,
    category_differences,
    collect_activations,
)
from conceptnb.steering.probes import (
    Probes,
    fit_probes,
    orthogonal_probes,
    split_accuracies,
    split_questions,
)
from conceptnb.steering.question_embeddings import (
    CategoryEmbedding,
    CentredEmbedding,
    StateEmbedding,
    TfidfEmbedding,
)
from conceptnb.steering.questions import Question
from conceptnb.steering.steer import MatrixIntervention, SteeringMatrix, SteeringVector
from conceptnb.steering.truth_directions import (
    ccs_direction,
    mass_mean,
    principal_direction,
    random_direction,
)

SHAPE = (2, 3, 5)


def make(n=60, signal=3.0, flips=False, seed=0):
    """Questions of two categories; truth moves head (0, 1) along axis 2, or along ± of it."""
    rng = np.random.default_rng(seed)
    questions, ids, true, heads = [], [], [], []
    for i in range(n):
        category = "one" if i % 2 else "two"
        sign = -1.0 if flips and category == "one" else 1.0
        question = Question(
            f"q{i}", f"{category} kind {category} {i}", ("a", "b", "c"), (True, False, False),
            category=category,
        )  # fmt: skip
        questions.append(question)
        base = rng.normal(size=SHAPE)
        for truth in question.true:
            x = base + 0.3 * rng.normal(size=SHAPE)
            x[0, 1, 2] += sign * signal * truth
            ids.append(question.id)
            true.append(truth)
            heads.append(x)
    found = Activations(np.array(ids), np.array(true), np.array(heads, dtype=np.float32))
    return questions, found


def test_activations_stay_with_their_question_after_any_sort_filter_or_fold():
    """A sort without a new index once left 2 of 817 questions with their own activations."""
    questions = [
        Question(str(i), "t", ("a",) * (2 + i % 3), (True,) + (False,) * (1 + i % 3))
        for i in range(50)
    ]
    ids = np.array([q.id for q in questions for _ in q.answers])
    true = np.array([t for q in questions for t in q.true])
    # The activation of a row is its question's number, plus one half where true.
    value = ids.astype(float) + 0.5 * true
    found = Activations(ids, true, np.broadcast_to(value[:, None, None, None], (len(ids), *SHAPE)))
    rng = np.random.default_rng(0)
    shuffled = [questions[i] for i in rng.permutation(50) if i % 7]
    part = found.select(shuffled)
    np.testing.assert_array_equal(part.heads[:, 0, 0, 0], part.ids.astype(float) + 0.5 * part.true)
    assert list(dict.fromkeys(part.ids)) == [q.id for q in shuffled]
    np.testing.assert_allclose(found.differences(shuffled), 0.5)
    # Rows of one question need not be neighbours either.
    mixed = rng.permutation(len(ids))
    scattered = Activations(ids[mixed], true[mixed], found.heads[mixed])
    np.testing.assert_allclose(scattered.differences(shuffled), 0.5)
    with pytest.raises(ValueError, match="no activations of 1 questions"):
        part.select([questions[0]])


def test_collected_activations_do_not_depend_on_order_or_batches(llama, tokenizer, corpus):
    questions = corpus.questions()[::31]
    one = collect_activations(llama, tokenizer, questions, batch_size=3)
    other = collect_activations(llama, tokenizer, questions[::-1], batch_size=64)
    np.testing.assert_allclose(one.heads, other.select(questions).heads, atol=1e-5)


def test_probes_find_the_head_that_carries_truth(rng):
    questions, found = make(signal=6.0)
    probes = fit_probes(found, questions, rng)
    assert probes.top(1)[0, 1] and probes.top(1).sum() == 1
    assert probes.accuracy[0, 1] > 0.95
    assert np.abs(probes.accuracy[1] - 0.5).max() < 0.35
    weight = probes.weights[0, 1] / np.linalg.norm(probes.weights[0, 1])
    assert weight[2] > 0.9


def test_accuracies_over_splits_find_the_head_and_are_at_chance_without_labels(rng):
    questions, activations = make(n=90)
    found = split_accuracies(activations, questions)
    assert found.shape == (4, *SHAPE[:2])
    best = norm.cdf(1.5 / np.hypot(1, 0.3))  # of a threshold half way between two normals
    assert abs(found[:, 0, 1].mean() - best) < 0.07
    others = np.delete(found.reshape(4, -1), 1, axis=1)
    assert abs(others.mean() - 0.5) < 0.1
    control = split_accuracies(activations.shuffled(rng), questions, seeds=range(2))
    assert control.shape[0] == 2
    assert abs(control.mean() - 0.5) < 0.1


def test_differences_by_category_are_those_that_the_data_were_made_with():
    questions, activations = make(n=400, flips=True)
    found = category_differences(activations, questions).reshape(2, *SHAPE)
    expected = np.zeros((2, *SHAPE))
    expected[:, 0, 1, 2] = [3.0, -3.0]  # "two" comes first
    np.testing.assert_allclose(found, expected, atol=0.15)
    order = np.random.default_rng(0).permutation(400)
    order = np.r_[0, order[order != 0]]
    again = category_differences(activations, [questions[i] for i in order])
    np.testing.assert_allclose(again.reshape(2, *SHAPE), found, atol=1e-5)


def test_orthogonal_probes_are_orthonormal_and_lose_a_single_direction(rng):
    _, found = make(n=300, signal=6.0)
    x = found.heads[:, 0, 1]
    half = len(x) // 2
    basis, accuracy = orthogonal_probes(x[:half], found.true[:half], x[half:], found.true[half:], 3)
    np.testing.assert_allclose(basis @ basis.T, np.eye(3), atol=1e-6)
    assert accuracy[0] > 0.9
    # Truth lies along one axis here: the second finds only what the first one missed.
    assert accuracy[1] < 0.75


@given(st.integers(1, 6))
def test_top_heads_are_the_most_accurate(count):
    accuracy = np.random.default_rng(count).permutation(6).reshape(2, 3) / 6
    mask = Probes(accuracy, np.zeros((2, 3, 1))).top(count)
    assert mask.sum() == count
    assert accuracy[mask].min() > accuracy[~mask].max(initial=-1)


def test_mass_mean_is_the_mean_difference():
    questions, found = make()
    expected = np.mean(
        [
            found.heads[(found.ids == q.id) & found.true].mean(0)
            - found.heads[(found.ids == q.id) & ~found.true].mean(0)
            for q in questions
        ],
        axis=0,
    )
    np.testing.assert_allclose(mass_mean(found, questions), expected, atol=1e-5)
    np.testing.assert_allclose(expected[0, 1, 2], 3, atol=0.2)


@pytest.mark.parametrize("fit", [principal_direction, ccs_direction])
def test_directions_find_a_single_axis(fit):
    questions, found = make()
    arguments = (np.random.default_rng(0),) if fit is ccs_direction else ()
    direction = fit(found, questions, *arguments)[0, 1]
    assert direction[2] / np.linalg.norm(direction) > 0.9


def test_sigma_is_the_deviation_along_the_direction_of_training_rows_only():
    questions, found = make()
    training = found.select(questions[:30])
    direction = random_direction(SHAPE, np.random.default_rng(0))
    vector = SteeringVector.along(7 * direction, training)
    along = np.einsum("rlhd,lhd->rlh", training.heads, direction)
    np.testing.assert_allclose(vector.sigma, along.std(0), rtol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(vector.unit, axis=-1), 1, rtol=1e-5)
    heads = np.zeros((2, 3), dtype=bool)
    heads[1, 2] = True
    offsets = vector.steer(2.0, heads).offsets.numpy()
    assert np.count_nonzero(np.abs(offsets).sum(-1)) == 1
    np.testing.assert_allclose(offsets[1, 2], 2 * along.std(0)[1, 2] * direction[1, 2], rtol=1e-4)


def test_matrix_is_the_weighted_sum_of_differences():
    questions, found = make()
    embedding = TfidfEmbedding([q.text for q in questions])
    matrix = SteeringMatrix.fit(found, questions, embedding)
    new = ["one kind", "two kind 3"]
    weights = embedding(new) @ embedding([q.text for q in questions]).T
    eta = np.einsum("nq,qlhd->nlhd", weights, found.differences(questions))
    eta /= np.linalg.norm(eta, axis=-1, keepdims=True)
    heads = np.ones((2, 3), dtype=bool)
    offsets = matrix.steer(1.5, heads).for_texts(new).offsets.numpy()
    # σ(x) by projecting every training activation on η(x), as the paper's code does.
    sigma = np.einsum("rlhd,nlhd->nrlh", found.heads, eta).std(1)
    np.testing.assert_allclose(offsets, 1.5 * sigma[..., None] * eta, atol=1e-4)


def test_constant_embedding_gives_the_mass_mean():
    questions, found = make()
    matrix = SteeringMatrix.fit(found, questions, lambda texts: np.ones((len(texts), 1)))
    heads = np.ones((2, 3), dtype=bool)
    vector = SteeringVector.along(mass_mean(found, questions), found)
    got = matrix.steer(2.0, heads).for_texts(["anything"]).offsets[0]
    torch.testing.assert_close(got, vector.steer(2.0, heads).offsets, atol=1e-4, rtol=1e-4)


def test_ridge_matrix_runs_from_the_mass_mean_to_the_categories():
    questions, found = make(flips=True)
    oracle = CategoryEmbedding({q.text: q.category for q in questions})
    heads = np.ones((2, 3), dtype=bool)

    def eta(penalty):
        matrix = SteeringMatrix.fit_ridge(found, questions, oracle, [penalty])
        return np.einsum("lhdp,np->nlhd", matrix.matrices, matrix.embedding([questions[0].text]))[0]

    mean = mass_mean(found, questions)
    np.testing.assert_allclose(eta(1e9), mean, atol=1e-4)
    own = found.differences([q for q in questions if q.category == questions[0].category]).mean(0)
    np.testing.assert_allclose(eta(1e-6), own, atol=1e-3)
    matrix = SteeringMatrix.fit_ridge(found, questions, oracle)
    assert np.linalg.norm(eta(1e9)[0, 1]) < 0.3 < np.linalg.norm(own[0, 1])
    chosen = matrix.steer(1.0, heads).for_texts([q.text for q in questions[:2]]).offsets[:, 0, 1, 2]
    assert chosen[0] * chosen[1] < 0  # the categories pull opposite ways


def test_ridge_penalty_is_the_one_whose_left_out_directions_agree_best():
    questions, found = make(n=12, flips=True)
    embedding = TfidfEmbedding([q.text for q in questions])
    penalties = [0.01, 1.0, 100.0]
    agreement = []
    for penalty in penalties:
        cosines = []
        for i, question in enumerate(questions):
            rest = questions[:i] + questions[i + 1 :]
            fixed = SteeringMatrix.fit_ridge(found, questions, embedding, [penalty])
            features = fixed.embedding([q.text for q in questions])[:, :-1]
            ridge = Ridge(alpha=penalty).fit(
                np.delete(features, i, 0), found.differences(rest).reshape(len(rest), -1)
            )
            one = ridge.predict(features[i : i + 1]).reshape(*SHAPE)
            own = found.differences([question])[0]
            lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(own, axis=-1)
            cosines.append(((one * own).sum(-1) / lengths).mean())
        agreement.append(np.mean(cosines))
    best = SteeringMatrix.fit_ridge(found, questions, embedding, [penalties[np.argmax(agreement)]])
    chosen = SteeringMatrix.fit_ridge(found, questions, embedding, penalties)
    assert np.argmax(agreement) != 2  # the categories differ, so the mean is not best
    np.testing.assert_array_equal(chosen.matrices, best.matrices)


def test_covariance_gives_the_variance_along_any_direction(rng):
    _, found = make()
    direction = rng.normal(size=5)
    quadratic = direction @ found.covariance()[1, 0] @ direction
    assert quadratic == pytest.approx((found.heads[:, 1, 0] @ direction).var(), rel=1e-4)


def test_matrix_saved_and_loaded(tmp_path):
    questions, found = make()
    embedding = TfidfEmbedding([q.text for q in questions])
    heads = np.zeros((2, 3), dtype=bool)
    heads[0, 1] = heads[1, 1] = True
    steering = SteeringMatrix.fit(found, questions, embedding).steer(2.5, heads)
    steering.save(tmp_path / "matrix.safetensors")
    again = MatrixIntervention.load(tmp_path / "matrix.safetensors", embedding)
    assert torch.equal(
        again.for_texts(["one kind"]).offsets, steering.for_texts(["one kind"]).offsets
    )
    with pytest.raises(ValueError, match="use the embedding it was fitted with"):
        MatrixIntervention.load(
            tmp_path / "matrix.safetensors", CentredEmbedding(lambda t: np.ones((len(t), 1)), ["a"])
        ).for_texts(["x"])


def test_a_text_without_weights_is_left_alone():
    questions, found = make()
    embedding = TfidfEmbedding([q.text for q in questions])
    heads = np.ones((2, 3), dtype=bool)
    offsets = SteeringMatrix.fit(found, questions, embedding).steer(1.0, heads).for_texts(["xyz"])
    assert torch.equal(offsets.offsets, torch.zeros_like(offsets.offsets))


def test_embeddings(llama, tokenizer):
    texts = ["food of brask?", "soil of mulin?", "food of kral?"]
    centred = CentredEmbedding(TfidfEmbedding(texts), texts)
    np.testing.assert_allclose(centred(texts).mean(0), 0, atol=1e-7)
    extended = CentredEmbedding(TfidfEmbedding(texts), texts, constant=True)(texts)
    assert extended.shape[1] == centred(texts).shape[1] + 1 and (extended[:, -1] == 1).all()
    similar = TfidfEmbedding(texts)(texts)
    assert similar[0] @ similar[2] > similar[0] @ similar[1]
    states = StateEmbedding(llama, tokenizer)
    np.testing.assert_allclose(np.linalg.norm(states(texts), axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(states(texts)[1], states(texts[1:2])[0], atol=1e-6)
    oracle = CategoryEmbedding({"a": "x", "b": "y"})
    np.testing.assert_allclose(oracle(["a", "other"]), [[1, 0], [0.5**0.5] * 2], rtol=1e-6)


def test_split_keeps_questions_whole(rng):
    questions, _ = make(20)
    rest, held_out = split_questions(questions, 0.2, rng)
    assert len(held_out) == 4
    assert {q.id for q in rest} | {q.id for q in held_out} == {q.id for q in questions}
    with pytest.raises(ValueError, match="between 0 and 1"):
        split_questions(questions, 1.5, rng)


def test_states_are_the_residual_stream_at_the_last_token(llama, tokenizer, corpus):
    questions = corpus.questions()[::12]
    states = collect_activations(llama, tokenizer, questions, batch_size=5, of="states")
    assert states.shape == (llama.config.num_hidden_layers + 1, 1, llama.config.hidden_size)
    question = questions[2]
    ids = tokenizer(f"{question.prompt()} {question.answers[1]}", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        alone = llama(input_ids=ids, output_hidden_states=True).hidden_states
    row = states.select([question]).heads[1, :, 0]
    np.testing.assert_allclose(row, torch.stack([s[0, -1] for s in alone]), atol=1e-5)
    with pytest.raises(ValueError, match="'heads' or 'states'"):
        collect_activations(llama, tokenizer, questions, of="layers")
