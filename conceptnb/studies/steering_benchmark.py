"""What steering costs: time a generated token, and the saving of a shared prompt.

Appendix E.3 says that η(x) = M λ(x) is efficient at run time. Here that is measured,
in CPU-seconds, on models of random weights: time does not depend on what they hold.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import numpy as np
import torch
from tqdm import trange
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from conceptnb.steering.attention import find_heads
from conceptnb.steering.matrices import MatrixSteering
from conceptnb.steering.question_embeddings import TfidfEmbedding
from conceptnb.steering.questions import Question
from conceptnb.steering.scoring import AnswerScorer, Steering
from conceptnb.steering.spans import encode_questions, pad
from conceptnb.steering.worlds.weights import draw_matrices


def half_billion(vocabulary: int = 151_936) -> Qwen2ForCausalLM:
    """Random model of the size of Qwen2-0.5B: 24 layers of width 896, 14 heads of width 64."""
    config = Qwen2Config(
        vocab_size=vocabulary,
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
    return Qwen2ForCausalLM(config).eval()


def random_llama(vocabulary: int, generator: torch.Generator) -> LlamaForCausalLM:
    """Random Llama of 6 layers of width 192: large enough that arithmetic takes the time."""
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=192,
        intermediate_size=576,
        num_hidden_layers=6,
        num_attention_heads=6,
    )
    model = LlamaForCausalLM(config).eval()
    draw_matrices(model, 0.05, generator)
    return model


def random_matrix(
    model: PreTrainedModel,
    texts: Sequence[str],
    n_heads: int,
    alpha: float,
    rng: np.random.Generator,
) -> MatrixSteering:
    """Steering matrix of random entries on ``n_heads`` random heads, λ the TF-IDF of ``texts``."""
    layout = find_heads(model)
    embedding = TfidfEmbedding(texts)
    heads = np.zeros(layout.n_layers * layout.n_heads, dtype=bool)
    heads[rng.choice(heads.size, n_heads, replace=False)] = True
    width = layout.shape[2]
    size = embedding(texts[:1]).shape[1]
    matrices = rng.normal(size=(n_heads, width, size))
    return MatrixSteering(
        torch.as_tensor(matrices, dtype=torch.float32),
        torch.eye(width).expand(n_heads, -1, -1).contiguous(),
        torch.as_tensor(heads.reshape(layout.n_layers, layout.n_heads)),
        alpha,
        embedding,
    )


def generation_seconds(
    model: PreTrainedModel,
    ids: torch.Tensor,
    text: str,
    steering: Steering,
    new_tokens: int,
    repeats: int,
    progress: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """CPU-seconds a token under ``generate``, plain and steered, measured in turns.

    Parameters
    ----------
    model, ids
        The model and a prompt of shape (1, tokens).
    text
        The question that λ embeds; embedding it and forming η(x) is part of the time.
    steering
        What to steer with.
    new_tokens
        Tokens generated, at one run.
    repeats
        Runs of each kind. Plain and steered runs alternate, and so does which comes
        first, so that a slower minute of the machine slows both.

    Returns
    -------
    plain, steered
        Shape (repeats,); pairs belong together.
    """

    def seconds(steer: Steering | None) -> float:
        started = time.process_time()
        with torch.no_grad():
            steered = nullcontext() if steer is None else steer.for_texts([text]).apply(model)
            with steered:
                model.generate(  # type: ignore[operator]
                    ids,
                    attention_mask=torch.ones_like(ids),
                    max_new_tokens=new_tokens,
                    min_new_tokens=new_tokens,
                    do_sample=False,
                    pad_token_id=0,
                )
        return (time.process_time() - started) / new_tokens

    for steer in (None, steering):  # warm up
        seconds(steer)
    times = np.empty((repeats, 2))
    for i in trange(repeats, disable=not progress, desc="generate"):
        for kind in (0, 1) if i % 2 == 0 else (1, 0):
            times[i, kind] = seconds(steering if kind else None)
    return times[:, 0], times[:, 1]


def score_whole(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    steering: Steering | None = None,
    preface: str = "",
    batch_size: int = 64,
) -> dict[str, np.ndarray]:
    """Log-probabilities of answers without a shared prompt: every pair runs whole.

    What :meth:`conceptnb.steering.scoring.AnswerScorer.score` is compared with; the
    numbers are the same.
    """
    encoded = encode_questions(tokenizer, questions, preface)
    flat = [
        (question, pair)
        for question, pairs in zip(questions, encoded, strict=True)
        for pair in pairs
    ]
    scores: dict[str, list[float]] = {question.id: [] for question in questions}
    for start in range(0, len(flat), batch_size):
        part = flat[start : start + batch_size]
        ids, mask = pad([pair.ids for _, pair in part], "right")
        index = torch.arange(ids.shape[1])
        first = torch.tensor([pair.start for _, pair in part])[:, None]
        predicts = (index >= first - 1) & (index < mask.sum(1, keepdim=True) - 1)
        texts = [question.text for question, _ in part]
        steered = (
            nullcontext() if steering is None else steering.for_texts(texts).apply(model, predicts)
        )
        with torch.no_grad(), steered:
            logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1]
        each = logits.float().log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
        total = (each * predicts[:, :-1]).sum(1)
        for (question, _), value in zip(part, total.tolist(), strict=True):
            scores[question.id].append(value)
    return {name: np.array(values) for name, values in scores.items()}


def choice_seconds(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    steerings: Sequence[Steering | None],
    preface: str,
    repeats: int,
) -> tuple[np.ndarray, np.ndarray, float]:
    """CPU-seconds to score all answers under every steering, whole and with shared prompts.

    Returns
    -------
    whole, shared, difference
        Two arrays of shape (repeats,), measured in turns, and the largest difference
        between the log-probabilities of the two ways, in nats.
    """

    def whole() -> list[dict[str, np.ndarray]]:
        return [score_whole(model, tokenizer, questions, s, preface) for s in steerings]

    def shared() -> list[dict[str, np.ndarray]]:
        scorer = AnswerScorer(model, tokenizer, questions, preface)
        return [scorer.score(s) for s in steerings]

    difference = max(
        float(np.abs(one[q.id] - other[q.id]).max())
        for one, other in zip(whole(), shared(), strict=True)
        for q in questions
    )
    times = np.array([[_cpu(whole), _cpu(shared)] for _ in range(repeats)])
    return times[:, 0], times[:, 1], difference


def _cpu(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
