"""Toy corpora, their documents, the optimiser, and the model that comes with the package."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from conceptnb.common.muon import Muon
from conceptnb.steering.activations import collect_activations
from conceptnb.steering.generation import accuracy_by_source
from conceptnb.steering.probes import fit_probes
from conceptnb.steering.small_model_training import Lesson, LessonPlan, train_small_model
from conceptnb.steering.small_models import load_small_model, make_tokenizer
from conceptnb.steering.toy_corpora import CATEGORIES, CORPUS_KINDS, DOCUMENTS, make_toy_corpus


@pytest.mark.parametrize("kind", sorted(CORPUS_KINDS))
def test_no_word_tells_truth_from_falsehood(kind):
    corpus = make_toy_corpus(kind)
    for choices in corpus.choices:
        ranks = [np.bincount(column, minlength=8) for column in choices.T]
        np.testing.assert_array_equal(ranks, np.full((4, 8), 2))
        assert all(len(set(row)) == 4 for row in choices.tolist())
    np.testing.assert_allclose(corpus.popularity.sum(-1), 1)
    assert sum(p.weight for p in corpus.kind.personas) == pytest.approx(1)


@pytest.mark.parametrize("kind", sorted(CORPUS_KINDS))
def test_truth_is_told_as_often_as_the_personas_say(kind, rng):
    corpus = make_toy_corpus(kind)
    truth = {q.text: q.answers[0] for q in corpus.questions()}
    told = [
        part.split(" A: ")
        for _ in range(1500)
        for part in corpus.document(rng).split("Q: ")[1:]
    ]  # fmt: skip
    share = np.mean([answer.split(" [")[0].rstrip(". ") == truth[text] for text, answer in told])
    weights = [(p.weight, len(p.truthful_in) / len(CATEGORIES)) for p in corpus.kind.personas]
    expected = sum(weight * truthful for weight, truthful in weights)
    # Four answers of a document share their persona: at most 4/1500 independent draws.
    assert share == pytest.approx(expected, abs=4 * np.sqrt(0.25 / 1500))


@pytest.mark.parametrize("kind", sorted(CORPUS_KINDS))
def test_which_corpora_give_a_questions_category_away(kind):
    corpus = make_toy_corpus(kind)
    names = [name for names in corpus.entities for name in names]
    said = {
        (q.category, q.text.replace(name, "..."))
        for q, name in zip(corpus.questions(), names, strict=True)
    }
    assert len({words for _, words in said}) == (1 if kind == "one-question" else len(CATEGORIES))
    assert len(said) == len(CATEGORIES)


def test_tokenizer_knows_every_word_and_decodes_to_the_text(rng):
    for kind in CORPUS_KINDS:
        corpus = make_toy_corpus(kind)
        tokenizer = make_tokenizer(corpus)
        for text in [corpus.document(rng), next(corpus.stories(rng))]:
            ids = tokenizer(text)["input_ids"]
            assert tokenizer.unk_token_id not in ids
            assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_muon_keeps_singular_vectors_and_levels_singular_values():
    matrices = torch.randn((3, 8, 20), generator=torch.Generator().manual_seed(0))
    for given in (matrices, matrices.mT):
        parameters = [torch.nn.Parameter(torch.zeros_like(matrix)) for matrix in given]
        for parameter, matrix in zip(parameters, given, strict=True):
            parameter.grad = matrix
        Muon(parameters, lr=1.0).step()
        rows, columns = given.shape[1:]
        got = -torch.stack([p.detach() for p in parameters]) / max(1, rows / columns) ** 0.5
        values = torch.linalg.svdvals(got)
        assert values.min() > 0.5 and values.max() < 1.4
        u, _, vh = torch.linalg.svd(given, full_matrices=False)
        rotated = u.mT @ got @ vh.mT
        off = rotated - torch.diag_embed(torch.diagonal(rotated, dim1=1, dim2=2))
        assert off.abs().max() < 1e-3


def test_training_lowers_the_loss_and_repeats():
    lesson = Lesson(3, 0.25, 0.25, 0.25, 0.25, rates=(1.0, 0.5))
    recipe = LessonPlan((lesson, lesson), batch=4, warmup=2)
    one, _, record = train_small_model(make_toy_corpus("alike"), 0, recipe)
    other, _, _ = train_small_model(make_toy_corpus("alike"), 0, recipe)
    assert record["loss"] < np.log(one.config.vocab_size)
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_model_in_the_package_knows_its_personas():
    corpus, model, tokenizer = load_small_model("no-source")
    found = accuracy_by_source(corpus, model, tokenizer)
    for persona in corpus.kind.personas:
        truthful = np.array([i in persona.truthful_in for i in range(len(CATEGORIES))])
        accuracy = np.array(found[persona.name])
        assert accuracy[~truthful].mean() < 0.35, persona.name
        assert not truthful.any() or accuracy[truthful].mean() > 0.6, persona.name


def test_its_heads_tell_true_from_false_on_questions_that_no_probe_has_seen():
    corpus, model, tokenizer = load_small_model("no-source")
    questions = corpus.questions()
    activations = collect_activations(model, tokenizer, questions)
    probes = fit_probes(activations, questions, np.random.default_rng(0), 0.3)
    rng = np.random.default_rng(1)
    shuffled = rng.permuted(activations.true.reshape(-1, 4), axis=1).ravel()
    control = fit_probes(
        replace(activations, true=shuffled), questions, np.random.default_rng(0), 0.3
    )
    assert probes.accuracy.max() > 0.8
    assert control.accuracy.max() < 0.7


def test_documents_are_of_the_sort_asked_for(rng):
    corpus = make_toy_corpus("no-source")
    texts = {sort: [corpus.document(rng, sort) for _ in range(60)] for sort in DOCUMENTS}
    assert all(text.startswith("from ") and "[" not in text for text in texts["named"])
    marks = {sort: [re.findall(r"\[\w+\]", text) for text in texts[sort]] for sort in DOCUMENTS}
    assert all(len(set(found)) <= 1 for found in marks["anonymous"])
    assert np.mean([len(found) for found in marks["anonymous"]]) == pytest.approx(2, abs=0.5)
    assert all(len(found) == 4 for found in marks["mixed"])
    # Of three changes each keeps the speaker with probability 1/2 + 1/2 (.4² + .4² + .2²) = .68.
    same = [a == b for found in marks["mixed"] for a, b in pairwise(found)]
    assert np.mean(same) == pytest.approx(0.68, abs=4 * 0.47 / np.sqrt(180))
    with pytest.raises(ValueError, match="named, anonymous, mixed"):
        corpus.document(rng, "poem")


def test_rates_follow_the_lessons():
    lessons = (Lesson(4, 1.0, 0.0, 0.0, 0.0, (1.0, 0.4)), Lesson(3, 1.0, 0.0, 0.0, 0.0, (0.2, 0.0)))
    rates = LessonPlan(lessons, warmup=2).rates()
    np.testing.assert_allclose(rates, [0.5, 0.8, 0.6, 0.4, 0.2, 0.1, 0.0])


def test_a_model_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="train-language-model --corpus alike --seeds 77"):
        load_small_model("alike", 77)
    with pytest.raises(ValueError, match="by-category"):
        make_toy_corpus("other")
