"""Answer spans, log-probabilities, multiple choice, cross-entropy and KL."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import ByteLevelBPETokenizer
from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaForCausalLM

from conceptnb.steering.activations import collect_activations
from conceptnb.steering.attention import find_heads, record_heads
from conceptnb.steering.divergence import NeutralTexts
from conceptnb.steering.intervention import Intervention
from conceptnb.steering.questions import Question
from conceptnb.steering.scoring import AnswerScorer, choice_scores
from conceptnb.steering.spans import encode_questions, pad


@pytest.fixture(scope="module")
def questions(corpus):
    """Questions of different lengths with different numbers of answers."""
    some = corpus.questions()[::40]
    longer = Question(
        id="long",
        text="food of " + some[0].text,
        answers=("eats moss", "eats moss ferns snails", "in", "ware", "is teal."),
        true=(False, True, False, True, False),
        best=1,
    )
    return [*some, longer]


def offsets(model, batch=None, seed=0):
    shape = find_heads(model).shape if batch is None else (batch, *find_heads(model).shape)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def one_by_one(model, tokenizer, question, steer=None, edit="predicting", preface=""):
    """No batch, no padding, no cache, and the answer found by tokenizing the prompt alone."""
    scores = []
    for answer in question.answers:
        prompt = tokenizer(question.prompt(preface))["input_ids"]
        ids = tokenizer(f"{question.prompt(preface)} {answer}")["input_ids"]
        assert ids[: len(prompt)] == prompt
        index = torch.arange(len(ids))[None]
        first = {"predicting": len(prompt) - 1, "answer": len(prompt), "all": 0}[edit]
        mask = index >= first
        inputs = torch.tensor([ids])
        if steer is None:
            logits = model(input_ids=inputs, use_cache=False).logits
        else:
            with steer.apply(model, mask):
                logits = model(input_ids=inputs, use_cache=False).logits
        each = logits[0, :-1].log_softmax(-1).gather(-1, inputs[0, 1:, None])[:, 0]
        scores.append(each[len(prompt) - 1 :].sum().item())
    return np.array(scores)


@pytest.mark.parametrize(
    ("edit", "memory"), [("predicting", 0), ("predicting", 2), ("answer", 0.001), ("all", 2)]
)
def test_log_probabilities_equal_one_by_one(model, tokenizer, questions, corpus, edit, memory):
    # Longer than the sliding windows among the models.
    preface = (corpus.document(np.random.default_rng(0)) + " ") * 2 if memory else ""
    scorer = AnswerScorer(model, tokenizer, questions, preface, edit=edit, memory=memory)
    steer = Intervention(0.5 * offsets(model))
    plain, steered = scorer.score(), scorer.score(steer)
    for question in questions[-2:] if preface else questions:
        if edit == "predicting":
            alone = one_by_one(model, tokenizer, question, preface=preface)
            np.testing.assert_allclose(plain[question.id], alone, atol=1e-4)
        alone = one_by_one(model, tokenizer, question, steer, edit, preface)
        np.testing.assert_allclose(steered[question.id], alone, atol=1e-4)


def test_answers_in_a_chat_template_are_scored_as_replies(llama, tokenizer, questions):
    chatty = copy.deepcopy(tokenizer)
    with pytest.raises(ValueError, match="no chat template"):
        AnswerScorer(llama, chatty, questions, prompt="chat")
    said = "{{messages[0]['role']}} says {{messages[0]['content']}}."
    chatty.chat_template = f"{said} the source says "
    scores = AnswerScorer(llama, chatty, questions, "By the way: ", prompt="chat").score()
    record = collect_activations(llama, chatty, questions, prompt="chat")
    for question in questions:
        for answer, score in zip(question.answers, scores[question.id], strict=True):
            prompt = f"user says By the way: {question.text}. the source says "
            start = len(tokenizer(prompt, add_special_tokens=False)["input_ids"])
            ids = torch.tensor([tokenizer(prompt + answer, add_special_tokens=False)["input_ids"]])
            with torch.no_grad():
                each = llama(input_ids=ids).logits[0, :-1].log_softmax(-1)
            each = each.gather(-1, ids[0, 1:, None])[start - 1 :]
            assert each.sum().item() == pytest.approx(score, abs=1e-4)
    spoken = f"user says {questions[0].text}. the source says {questions[0].answers[0]}"
    ids = torch.tensor([tokenizer(spoken, add_special_tokens=False)["input_ids"]])
    end = torch.tensor([ids.shape[1] - 1])
    with torch.no_grad(), record_heads(llama, torch.tensor([0]), end) as heads:
        llama(input_ids=ids)
    np.testing.assert_allclose(record.heads[0], heads[0], atol=1e-5)


def test_each_question_gets_its_own_intervention(llama, tokenizer, questions):
    table = offsets(llama, batch=len(questions))
    of = {question.text: row for row, question in enumerate(questions)}

    class ByText:
        def for_texts(self, texts):
            return Intervention(table[[of[text] for text in texts]])

    scores = AnswerScorer(llama, tokenizer, questions, memory=0).score(ByText())
    for row, question in enumerate(questions):
        alone = one_by_one(llama, tokenizer, question, Intervention(table[row]))
        np.testing.assert_allclose(scores[question.id], alone, atol=1e-4)


def test_steering_changes_answers_and_zero_does_not(llama, tokenizer, questions):
    """An intervention on the last position only once left every answer as it was."""
    scorer = AnswerScorer(llama, tokenizer, questions)
    steer = Intervention(offsets(llama))
    plain, zero, steered = scorer.score(), scorer.score(0.0 * steer), scorer.score(steer)
    for question in questions:
        assert np.array_equal(plain[question.id], zero[question.id])
        assert np.abs(plain[question.id] - steered[question.id]).max() > 1e-3
    again = scorer.score()
    assert all(np.array_equal(plain[q.id], again[q.id]) for q in questions)


def test_order_of_questions_does_not_matter(llama, tokenizer, questions):
    one = AnswerScorer(llama, tokenizer, questions, memory=0).score()
    other = AnswerScorer(llama, tokenizer, questions[::-1], memory=0.001).score()
    for question in questions:
        np.testing.assert_allclose(one[question.id], other[question.id], atol=1e-4)


def byte_level_tokenizer():
    """A byte-level BPE tokenizer, whose tokens carry the space before them."""
    base = ByteLevelBPETokenizer()
    base.train_from_iterator(["Q: what is this? A: it is an answer, isn't it"] * 3, vocab_size=300)
    return PreTrainedTokenizerFast(tokenizer_object=base._tokenizer)


@settings(max_examples=40, deadline=None)
@given(
    st.text("abc é?'", min_size=1, max_size=12).filter(str.strip),
    st.text("it isn'té.", min_size=1, max_size=12).filter(str.strip),
)
def test_answer_span_holds_the_answer_and_nothing_else(question, answer):
    tokenizer = byte_level_tokenizer.cache
    prompt = f"Q: {question} A:"
    asked = Question("q", question, (answer, "no"), (True, False))
    found = encode_questions(tokenizer, [asked])[0][0]
    assert tokenizer.decode(found.ids[found.start :]) == f" {answer}"
    assert tokenizer.decode(found.ids[: found.start]) == prompt


byte_level_tokenizer.cache = byte_level_tokenizer()


def test_span_without_offsets_is_refused():
    class Slow:
        is_fast = False

    with pytest.raises(ValueError, match="use_fast=True"):
        encode_questions(Slow(), [Question("q", "t", ("a", "b"), (True, False))])


def test_answers_in_the_style_of_lm_eval_begin_after_the_prompts_tokens():
    tokenizer = byte_level_tokenizer.cache
    asked = Question("q", "what is this?", ("it is", "it isn't", "an answer"), (True, False, False))
    context = "Q: a?\nA: b\n\nQ: what is this?\nA:"
    found = encode_questions(tokenizer, [asked], "Q: a?\nA: b\n\n", "lm-eval")[0]
    for pair, answer in zip(found, asked.answers, strict=True):
        whole = tokenizer(f"{context} {answer}")["input_ids"]
        assert pair.ids == tuple(whole)
        assert pair.start == len(tokenizer(context)["input_ids"])


def test_a_model_that_does_not_follow_the_mask_is_refused(tokenizer, questions, models):
    deaf = type(models["llama"])(models["llama"].config).eval()
    deaf.load_state_dict(models["llama"].state_dict())
    forward = deaf.forward
    deaf.forward = lambda attention_mask=None, **rest: forward(**rest)
    with pytest.raises(ValueError, match="does not follow an attention mask"):
        AnswerScorer(deaf, tokenizer, questions)


def test_a_model_that_counts_positions_from_its_padding_is_refused(tokenizer, questions):
    settings = RobertaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=2,
        num_attention_heads=2, max_position_embeddings=128, is_decoder=True,
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"RobertaForCausalLM (does not follow|counts)"):
        AnswerScorer(RobertaForCausalLM(settings).eval(), tokenizer, questions)


def scores_by_hand(question, p):
    true = [x for x, t in zip(p, question.true, strict=True) if t]
    false = [x for x, t in zip(p, question.true, strict=True) if not t]
    return (
        float(all(p[question.best] > x for x in false)),
        sum(true) / sum(p),
        sum(all(t > f for f in false) for t in true) / len(true),
    )


@given(
    st.lists(st.floats(-30, 0).map(lambda x: round(x, 3)), min_size=5, max_size=5),
    st.integers(0, 3),
)
def test_choice_scores_by_hand(logs, best):
    true = tuple(i in (best, 4) for i in range(5))
    if all(true):
        return
    question = Question("q", "t", tuple("abcde"), true, best)
    got = choice_scores([question], {"q": np.array(logs)})
    expected = scores_by_hand(question, [float(np.exp(x)) for x in logs])
    np.testing.assert_allclose([got.mc1[0], got.mc2[0], got.mc3[0]], expected, atol=1e-9)


def test_ties_do_not_count_as_right():
    question = Question("q", "t", ("a", "b"), (True, False))
    assert choice_scores([question], {"q": np.zeros(2)}).mc1[0] == 0


def test_choice_scores_find_questions_by_id_after_any_sort():
    questions = [Question(str(i), "t", ("a", "b"), (True, False)) for i in range(20)]
    scores = {str(i): np.array([i, 9.5]) for i in range(20)}
    shuffled = [questions[i] for i in np.random.default_rng(0).permutation(20)]
    result = choice_scores(shuffled, scores)
    for name, right in zip(result.ids, result.mc1, strict=True):
        assert right == (int(name) > 9.5)


def test_ce_and_kl_equal_one_by_one(model, tokenizer, corpus):
    stories = corpus.stories(np.random.default_rng(0))
    texts = [next(stories), next(stories) + " in the morning mira", next(stories)]
    steer = 0.3 * Intervention(offsets(model))
    neutral = NeutralTexts(model, tokenizer, texts, max_tokens=20, batch_size=2)
    got_ce, got_kl = neutral.measure(steer)
    for i, text in enumerate(texts):
        ids = torch.tensor([tokenizer(text)["input_ids"][:20]])
        with torch.no_grad():
            p = model(input_ids=ids).logits[0, :-1].softmax(-1)
            with steer.apply(model):
                q = model(input_ids=ids).logits[0, :-1].softmax(-1)
        kl = (p * (p / q).log()).sum(-1).mean().item()
        ce = -q.gather(-1, ids[0, 1:, None]).log().mean().item()
        assert got_kl[i] == pytest.approx(kl, abs=1e-4)
        assert got_ce[i] == pytest.approx(ce, abs=1e-4)


def test_texts_are_read_under_the_edit_of_the_context_given(llama, tokenizer, corpus):
    stories = corpus.stories(np.random.default_rng(0))
    texts = [next(stories) for _ in range(3)]
    table = {"one": offsets(llama), "two": offsets(llama, seed=5)}

    class ByText:
        def for_texts(self, contexts):
            return Intervention(torch.stack([table[context] for context in contexts]))

    neutral = NeutralTexts(llama, tokenizer, texts, batch_size=2)
    got = neutral.measure(ByText(), ["one", "two"])[1]
    one, two = (neutral.measure(Intervention(table[name]))[1] for name in ("one", "two"))
    # Contexts are taken in turn, over the borders of batches.
    np.testing.assert_allclose(got, [one[0], two[1], one[2]], atol=1e-5)


def test_without_steering_kl_is_zero(llama, tokenizer, corpus):
    text = next(corpus.stories(np.random.default_rng(0)))
    texts = NeutralTexts(llama, tokenizer, [text])
    assert texts.measure()[1].tolist() == [0]
    assert texts.measure(Intervention(offsets(llama)))[1] > 0


def test_errors_say_what_to_do(llama, tokenizer, questions):
    with pytest.raises(ValueError, match="twice"):
        AnswerScorer(llama, tokenizer, [questions[0], questions[0]])
    with pytest.raises(ValueError, match="empty"):
        AnswerScorer(llama, tokenizer, [])
    with pytest.raises(ValueError, match="'predicting', 'answer' or 'all'"):
        AnswerScorer(llama, tokenizer, questions, edit="some")
    with pytest.raises(ValueError, match="'paper', 'lm-eval' or 'chat'"):
        AnswerScorer(llama, tokenizer, questions, prompt="plain")
    with pytest.raises(ValueError, match="answer ' ' to question 'q' has no token"):
        AnswerScorer(llama, tokenizer, [Question("q", "t", ("a", " "), (True, False))])
    with pytest.raises(ValueError, match="fewer than two tokens"):
        NeutralTexts(llama, tokenizer, [""])
    with pytest.raises(ValueError, match="not a true answer"):
        Question("q", "t", ("a", "b"), (True, False), best=1)
    with pytest.raises(ValueError, match="at least one true and one false"):
        Question("q", "t", ("a", "b"), (True, True))
    with pytest.raises(ValueError, match="'left' or 'right'"):
        pad([[1]], "both")


def test_kept_prompts_take_no_more_memory_than_they_are_counted_for(llama, tokenizer, questions):
    scorer = AnswerScorer(llama, tokenizer, questions, "q : is snow white ? a : yes , it is . ")
    scorer.score()
    kept = [x for past in scorer._kept.values() for layer in past.layers for x in layer]
    assert kept
    assert sum(x.untyped_storage().nbytes() for x in kept) == sum(x.nbytes for x in kept)
