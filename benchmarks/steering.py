"""What steering costs (Appendix E.3), and what shared prompts save, on models of random weights."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np
import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from benchmarks.measure import Benchmark, cpu_seconds
from conceptnb.steering.attention import find_heads
from conceptnb.steering.intervention import Steering
from conceptnb.steering.question_embeddings import TfidfEmbedding
from conceptnb.steering.questions import Question
from conceptnb.steering.scoring import AnswerScorer
from conceptnb.steering.small_models import make_tokenizer
from conceptnb.steering.spans import encode_questions, pad
from conceptnb.steering.steer import MatrixIntervention
from conceptnb.steering.toy_corpora import make_toy_corpus

_ALPHAS = (1.0, 2.0, 3.0, 4.0, 6.0)
_NEW_TOKENS = 8


def benchmarks() -> list[Benchmark]:
    """Return the benchmarks of the steering room."""
    return [_generation(), *_multiple_choice()]


def _generation() -> Benchmark:
    """Return that of a token of a model like Qwen2-0.5B, under a matrix on 48 of 336 heads."""
    config = Qwen2Config(
        vocab_size=151_936,
        hidden_size=896,
        intermediate_size=4864,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    model = Qwen2ForCausalLM(config).eval()
    texts = [question.text for question in make_toy_corpus("no-source").questions()]
    matrix = random_matrix(model, texts, 48, 1.0, np.random.default_rng(0))
    ids = torch.arange(3, 11)[None]

    def generate(steering: Steering | None) -> None:
        steered: AbstractContextManager[None] = nullcontext()
        if steering is not None:  # embedding the question and forming η(x) is part of the time
            steered = steering.for_texts(texts[:1]).apply(model)
        with torch.no_grad(), steered:
            model.generate(  # type: ignore[operator]
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=_NEW_TOKENS,
                min_new_tokens=_NEW_TOKENS,
                do_sample=False,
                pad_token_id=0,
            )

    return Benchmark(
        "a token generated under a steering matrix",
        "not steered",
        cpu_seconds(lambda: generate(matrix), _NEW_TOKENS),
        cpu_seconds(lambda: generate(None), _NEW_TOKENS),
        repeats=7,
        at_least=0.95,
    )


def _multiple_choice() -> list[Benchmark]:
    """Return those of 24 questions, on a Llama so large that arithmetic takes the time."""
    corpus = make_toy_corpus("no-source")
    tokenizer, questions = make_tokenizer(corpus), corpus.questions()[::4]
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=192,
        intermediate_size=576,
        num_hidden_layers=6,
        num_attention_heads=6,
    )
    model = LlamaForCausalLM(config).eval()
    rng = np.random.default_rng(0)
    matrix = random_matrix(model, [q.text for q in questions], 16, 1.0, rng)
    grid: list[Steering | None] = [None, *(replace(matrix, alpha=alpha) for alpha in _ALPHAS)]
    examples = corpus.document(rng) + " "

    def benchmark(
        what: str, preface: str, steerings: list[Steering | None], bar: float
    ) -> Benchmark:
        def shared() -> None:
            scorer = AnswerScorer(model, tokenizer, questions, preface)
            for steering in steerings:
                scorer.score(steering)

        def whole() -> None:
            for steering in steerings:
                score_whole(model, tokenizer, questions, steering, preface)

        return Benchmark(
            f"answers scored with shared prompts: {what}",
            "every pair whole",
            cpu_seconds(shared),
            cpu_seconds(whole),
            repeats=3,
            at_least=bar,
        )

    return [
        benchmark("question alone, not steered", "", [None], 1.0),
        benchmark("question alone, six strengths", "", grid, 2.0),
        benchmark("after four worked examples, not steered", examples, [None], 2.0),
    ]


def random_matrix(
    model: PreTrainedModel,
    texts: Sequence[str],
    n_heads: int,
    alpha: float,
    rng: np.random.Generator,
) -> MatrixIntervention:
    """Return a random matrix on `n_heads` random heads, λ the TF-IDF of `texts`."""
    layers, heads, width = find_heads(model).shape
    embedding = TfidfEmbedding(texts)
    mask = np.zeros(layers * heads, dtype=bool)
    mask[rng.choice(mask.size, n_heads, replace=False)] = True
    return MatrixIntervention(
        torch.as_tensor(
            rng.normal(size=(n_heads, width, embedding(texts[:1]).shape[1])).astype("f")
        ),
        torch.eye(width).expand(n_heads, -1, -1).contiguous(),
        torch.as_tensor(mask.reshape(layers, heads)),
        alpha,
        embedding,
    )


def score_whole(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    steering: Steering | None = None,
    preface: str = "",
    batch_size: int = 64,
) -> dict[str, np.ndarray]:
    """Return what `AnswerScorer.score` returns without a shared prompt: every pair runs whole."""
    encoded = encode_questions(tokenizer, questions, preface)
    flat = [(q, pair) for q, pairs in zip(questions, encoded, strict=True) for pair in pairs]
    scores: dict[str, list[float]] = {question.id: [] for question in questions}
    for start in range(0, len(flat), batch_size):
        part = flat[start : start + batch_size]
        ids, mask = pad([pair.ids for _, pair in part], "right")
        index = torch.arange(ids.shape[1])
        first = torch.tensor([pair.start for _, pair in part])[:, None]
        predicts = (index >= first - 1) & (index < mask.sum(1, keepdim=True) - 1)
        steered: AbstractContextManager[None] = nullcontext()
        if steering is not None:
            steered = steering.for_texts([q.text for q, _ in part]).apply(model, predicts)
        with torch.no_grad(), steered:
            logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1]
        each = logits.float().log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
        total = (each * predicts[:, :-1]).sum(1)
        for (question, _), value in zip(part, total.tolist(), strict=True):
            scores[question.id].append(value)
    return {name: np.array(values) for name, values in scores.items()}
