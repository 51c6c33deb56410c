"""Tiny random models of every family, and a toy corpus's tokenizer, for the steering tests."""

import pytest
import torch
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from conceptnb.steering.small_models import make_tokenizer
from conceptnb.steering.toy_corpora import make_toy_corpus

_SIZE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_GROUPED = {**_SIZE, "num_key_value_heads": 2}
_WIDE = {**_GROUPED, "head_dim": 16}

FAMILIES = {
    "llama": (LlamaForCausalLM, LlamaConfig, _GROUPED),
    # A window shorter than the texts, so that it matters.
    "mistral": (MistralForCausalLM, MistralConfig, {**_GROUPED, "sliding_window": 64}),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config, _GROUPED),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, _WIDE),
    "gemma2": (Gemma2ForCausalLM, Gemma2Config, {**_WIDE, "sliding_window": 64}),
    "gemma3": (Gemma3ForCausalLM, Gemma3TextConfig, {**_WIDE, "sliding_window": 64}),
    "gpt2": (
        GPT2LMHeadModel,
        GPT2Config,
        {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 128, "pad_token_id": 0,
         "bos_token_id": 1, "eos_token_id": 2},
    ),
    "gpt_neox": (GPTNeoXForCausalLM, GPTNeoXConfig, _SIZE),
}  # fmt: skip


@pytest.fixture(scope="session")
def corpus():
    return make_toy_corpus("no-source")


@pytest.fixture(scope="session")
def tokenizer(corpus):
    return make_tokenizer(corpus)


def build(family, vocabulary):
    model_class, config_class, settings = FAMILIES[family]
    model = model_class(config_class(vocab_size=vocabulary, **settings))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:  # large, so that a wrong position or mask shows
                parameter.normal_(0.0, 0.15, generator=generator)
    return model.eval()


@pytest.fixture(scope="session")
def models(tokenizer):
    return {family: build(family, len(tokenizer)) for family in FAMILIES}


@pytest.fixture(params=sorted(FAMILIES))
def model(request, models):
    return models[request.param]


@pytest.fixture(scope="session")
def llama(models):
    return models["llama"]
