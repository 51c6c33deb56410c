"""What comparing techniques on a real model will need, before its weights are loaded."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerBase

from conceptnb.steering.comparison import VALIDATION, Settings
from conceptnb.steering.questions import Question
from conceptnb.steering.spans import encode_questions


def needs(
    model: str,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    texts: Sequence[str],
    settings: Settings,
    n_techniques: int,
    n_splits: int,
    dtype: torch.dtype,
) -> str:
    """Estimate memory and time from a model's configuration and the speed of a matrix product."""
    config = AutoConfig.from_pretrained(model)
    with torch.device("meta"):
        empty = AutoModelForCausalLM.from_config(config)
    parameters = sum(p.numel() for p in empty.parameters())
    sizes = config.get_text_config()
    width = getattr(sizes, "head_dim", None) or sizes.hidden_size // sizes.num_attention_heads
    pairs = [
        pair
        for answers in encode_questions(tokenizer, questions, settings.preface)
        for pair in answers
    ]
    everything = sum(len(pair.ids) for pair in pairs)
    answers = sum(len(pair.ids) - pair.start + 1 for pair in pairs)
    neutral = sum(len(tokenizer(text)["input_ids"][:128]) for text in texts)
    # Each fold collects activations, then scores its answers and all neutral texts for each α.
    one_alpha: float = answers + 2 * settings.folds * neutral
    if len(settings.heads) * len(settings.alphas) > 1:
        one_alpha += len(settings.heads) * VALIDATION * (settings.folds - 1) * answers
    scored = n_techniques * len(settings.alphas) * one_alpha
    tokens = n_splits * (settings.folds * everything + scored)
    activations = 4 * len(pairs) * sizes.num_hidden_layers * sizes.num_attention_heads * width
    gigabytes = [
        size / 2**30
        for size in (parameters * dtype.itemsize, activations, 4 * neutral * sizes.vocab_size)
    ]
    hours = 2 * parameters * tokens / _matrix_speed(dtype) / 3600
    return (
        f"{parameters / 1e9:.2g} billion parameters: for each of --jobs, {gigabytes[0]:.2g} GiB of "
        f"weights, {gigabytes[1]:.2g} GiB of head activations, {gigabytes[2]:.2g} GiB of "
        f"predictions on neutral text; {tokens / 1e6:.2g} million tokens to run, about "
        f"{hours:.2g} hours at the matrix speed measured here"
    )


def _matrix_speed(dtype: torch.dtype, size: int = 1024) -> float:
    """Operations per second in a square matrix product."""
    x = torch.ones((size, size), dtype=dtype)
    (x @ x).sum().item()  # the first product sets things up
    started = time.perf_counter()
    for _ in range(3):
        y = x @ x
    y.sum().item()
    return 3 * 2 * size**3 / (time.perf_counter() - started)
