"""What a study of a real model will need, before its weights are loaded."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerBase

from conceptnb.steering.questions import Question
from conceptnb.steering.spans import encode_questions
from conceptnb.studies.steering_study import Plan


@dataclass(frozen=True)
class Estimate:
    """Memory in bytes, tokens to run, and hours at the speed measured."""

    parameters: int
    weights: int
    activations: int
    predictions: int
    tokens: int
    hours: float

    def __str__(self) -> str:
        gigabytes = [x / 2**30 for x in (self.weights, self.activations, self.predictions)]
        return (
            f"{self.parameters / 1e9:.2g} billion parameters: {gigabytes[0]:.2g} GiB of weights, "
            f"{gigabytes[1]:.2g} GiB of head activations, {gigabytes[2]:.2g} GiB of predictions on "
            f"neutral text; {self.tokens / 1e6:.2g} million tokens to run, about "
            f"{self.hours:.2g} hours at the matrix speed measured here"
        )


def estimate(
    model: str,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    texts: Sequence[str],
    plan: Plan,
    n_methods: int,
    dtype: torch.dtype,
    device: str = "cpu",
) -> Estimate:
    """Estimate a study from the model's configuration alone.

    Parameters
    ----------
    model
        Name or directory; only its configuration is read.
    tokenizer, questions, texts, plan, n_methods
        What the study will run on.
    dtype, device
        Of the weights.

    Returns
    -------
    Estimate
        The time counts two operations a parameter and token, at the speed of
        one large matrix product on ``device``: a lower bound.
    """
    config = AutoConfig.from_pretrained(model)
    with torch.device("meta"):
        empty = AutoModelForCausalLM.from_config(config)
    parameters = sum(p.numel() for p in empty.parameters())
    sizes = config.get_text_config()
    width = getattr(sizes, "head_dim", None) or sizes.hidden_size // sizes.num_attention_heads
    encoded = encode_questions(tokenizer, questions, plan.preface)
    pairs = sum(len(answers) for answers in encoded)
    answer_tokens = sum(len(pair.ids) - pair.start + 1 for answers in encoded for pair in answers)
    prompt_tokens = sum(answers[0].start for answers in encoded)
    text_tokens = sum(len(tokenizer(text)["input_ids"][:128]) for text in texts)
    one_seed = n_methods * len(plan.alphas) * (answer_tokens + plan.folds * text_tokens)
    if len(plan.heads) * len(plan.alphas) > 1:
        share = 0.3 * (plan.folds - 1)
        one_seed += int(n_methods * len(plan.alphas) * len(plan.heads) * share * answer_tokens)
    tokens = sum(len(pair.ids) for answers in encoded for pair in answers)
    tokens += len(plan.seeds) * (one_seed + 2 * prompt_tokens)
    return Estimate(
        parameters=parameters,
        weights=parameters * dtype.itemsize,
        activations=4 * pairs * sizes.num_hidden_layers * sizes.num_attention_heads * width,
        predictions=4 * text_tokens * sizes.vocab_size,
        tokens=tokens,
        hours=2 * parameters * tokens / _matrix_speed(dtype, device) / 3600,
    )


def _matrix_speed(dtype: torch.dtype, device: str, size: int = 1024) -> float:
    """Operations a second in a square matrix product."""
    x = torch.ones((size, size), dtype=dtype, device=device)
    (x @ x).sum().item()  # the first product sets things up
    started = time.perf_counter()
    for _ in range(3):
        y = x @ x
    y.sum().item()
    return 3 * 2 * size**3 / (time.perf_counter() - started)
