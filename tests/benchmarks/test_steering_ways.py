"""What the benchmark of multiple choice compares are two ways to the same numbers."""

import numpy as np
import pytest

from benchmarks.steering import random_matrix, score_whole
from conceptnb.steering.scoring import AnswerScorer
from conceptnb.steering.small_models import load_small_model


@pytest.mark.parametrize("preface", ["", "Q: food of x? A: eats moss. "])
def test_whole_pairs_and_shared_prompts_give_the_same_numbers(preface):
    corpus, model, tokenizer = load_small_model("no-source")
    questions = corpus.questions()[::12]
    texts = [question.text for question in questions]
    matrix = random_matrix(model, texts, 5, 2.0, np.random.default_rng(0))
    scorer = AnswerScorer(model, tokenizer, questions, preface)
    plain = score_whole(model, tokenizer, questions, None, preface)
    steered = score_whole(model, tokenizer, questions, matrix, preface, batch_size=3)
    for question in questions:
        np.testing.assert_allclose(scorer.score()[question.id], plain[question.id], atol=1e-4)
        shared = scorer.score(matrix)[question.id]
        np.testing.assert_allclose(shared, steered[question.id], atol=1e-4)
        assert np.abs(plain[question.id] - steered[question.id]).max() > 1e-3
