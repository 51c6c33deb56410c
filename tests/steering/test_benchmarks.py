"""The benchmark compares two ways to the same numbers; what it measured is kept."""

import numpy as np
import pytest
import torch

from conceptnb import results
from conceptnb.steering.activations import collect_states
from conceptnb.studies import steering_benchmark as benchmarks


@pytest.fixture(scope="module")
def questions(world):
    return world.questions()[::12]


@pytest.mark.parametrize("preface", ["", "Q: food of x? A: eats moss. "])
def test_whole_pairs_and_shared_prompts_give_the_same_numbers(llama, tokenizer, questions, preface):
    texts = [question.text for question in questions]
    matrix = benchmarks.random_matrix(llama, texts, 5, 2.0, np.random.default_rng(0))
    whole, shared, difference = benchmarks.choice_seconds(
        llama, tokenizer, questions, [None, matrix], preface, repeats=1
    )
    assert whole.shape == shared.shape == (1,) and min(whole[0], shared[0]) > 0
    assert difference < 1e-4
    plain = benchmarks.score_whole(llama, tokenizer, questions, None, preface)
    steered = benchmarks.score_whole(llama, tokenizer, questions, matrix, preface, batch_size=3)
    assert all(np.abs(plain[q.id] - steered[q.id]).max() > 1e-3 for q in questions)


def test_plain_and_steered_generation_are_both_timed(llama, questions):
    texts = [question.text for question in questions]
    matrix = benchmarks.random_matrix(llama, texts, 5, 2.0, np.random.default_rng(0))
    times = benchmarks.generation_seconds(llama, torch.tensor([[3, 4, 5]]), texts[0], matrix, 3, 2)
    assert all(part.shape == (2,) and (part > 0).all() for part in times)


def test_what_was_measured_meets_its_bars():
    rows = {row["what"]: row for row in results.load("steering_benchmark").rows}
    (generate,) = (row for what, row in rows.items() if what.startswith("generate"))
    assert generate["parameters"] > 4.5e8
    assert generate["ratio"] <= 1.05
    choices = {what: row for what, row in rows.items() if what.startswith("multiple choice")}
    assert len(choices) == 3
    assert all(row["largest difference"] < 1e-4 for row in choices.values())
    # One short prompt scored once shares too little to halve the work; a grid or examples do.
    for what, row in choices.items():
        assert row["ratio"] <= (1.0 if what.endswith("question alone, not steered") else 0.5), what


def test_states_are_the_residual_stream_at_the_last_token(llama, tokenizer, questions):
    states = collect_states(llama, tokenizer, questions, batch_size=5)
    assert states.shape == (llama.config.num_hidden_layers + 1, 1, llama.config.hidden_size)
    question = questions[2]
    ids = tokenizer(f"{question.prompt()} {question.answers[1]}", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        alone = llama(input_ids=ids, output_hidden_states=True).hidden_states
    row = states.select([question]).heads[1, :, 0]
    np.testing.assert_allclose(row, torch.stack([s[0, -1] for s in alone]), atol=1e-5)
