"""Language models as the transformers library builds them: right, or refused by name.

Each configuration is a row of a table: a tiny random model, where its attention's output
projection is (written down, not searched for), and what has to happen. "Right" means that the
scorer's log-probabilities, plain and steered, equal those of the plain model on one answer at a
time, steered by a hook of this file's own.
"""

import copy
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

from conceptnb.steering.attention import find_heads
from conceptnb.steering.intervention import Intervention
from conceptnb.steering.questions import Question
from conceptnb.steering.residual import ResidualIntervention, find_layers
from conceptnb.steering.scoring import AnswerScorer

pytestmark = pytest.mark.slow

WITHIN = {torch.float32: 1e-5, torch.float16: 5e-2, torch.bfloat16: 4e-1}
"""Nats per answer. Half precision rounds each activation to 11 or 8 bits: the bound is what is
left of a sum of up to 8 log-probabilities when batching only reorders the sums."""

SIZE = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
    "max_position_embeddings": 128, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
GROUPED = {**SIZE, "num_key_value_heads": 2}
WIDE = {**GROUPED, "head_dim": 16}
EXPERTS = {"num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4,
           "num_experts_per_tok": 2, "moe_intermediate_size": 16}  # fmt: skip
SHARED = {**EXPERTS, "n_shared_experts": 1, "n_group": 1, "topk_group": 1,
          "first_k_dense_replace": 1, "shared_expert_intermediate_size": 16}  # fmt: skip
LATENT = {**SIZE, "num_key_value_heads": 4, "q_lora_rank": 16, "kv_lora_rank": 16,
          "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 12}  # fmt: skip
GPT2 = {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 128, "n_inner": 48,
        "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}  # fmt: skip
BART = {"d_model": 32, "decoder_layers": 3, "encoder_layers": 3, "decoder_attention_heads": 4,
        "encoder_attention_heads": 4, "decoder_ffn_dim": 48, "encoder_ffn_dim": 48,
        "max_position_embeddings": 128, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
        "decoder_start_token_id": 2}  # fmt: skip
MAMBA = {**WIDE, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_ssm": 64, "mamba_d_state": 8,
         "mamba_n_groups": 1, "mamba_num_heads": 4, "mamba_head_dim": 16}  # fmt: skip
DECODER = {**SIZE, "is_decoder": True}
NEAR = {"sliding_window": 8}  # much shorter than the texts

O_PROJ = "model.layers.{}.self_attn.o_proj"
DENSE = "model.layers.{}.self_attn.dense"
GPT = "transformer.h.{}.attn.c_proj"
BERT = "{}.encoder.layer.{{}}.attention.output.dense"
OUT_PROJ = "model.decoder.layers.{}.self_attn.out_proj"

MASK = "model: this|does not (follow|take) an attention mask"
BLOCKS = "encoder with a decoder|has no list of 3 layers with one attention block each"


@dataclass
class Row:
    """A configuration, and what refusals of scores and edits say; where nothing, both are right."""

    kind: str  # config.model_type
    settings: dict = field(default_factory=dict)
    output: str = O_PROJ  # the projections whose input is edited
    scores: str = ""
    edits: str = ""
    dtype: torch.dtype = torch.float32
    change: str = ""  # what is done to the model before it is scored
    attention: str | None = None
    whole: bool = False  # encoder and decoder
    layers: str = ""  # where the stream is steered although heads cannot be


def lm(kind, settings=None, output=O_PROJ, **rest):
    return Row(kind, settings or GROUPED, output, **rest)


CONFIGURATIONS = {
    # Llama, and what is done to it
    "llama": lm("llama"),
    "llama, multi-head": lm("llama", SIZE),
    "llama, multi-query": lm("llama", {**SIZE, "num_key_value_heads": 1}),
    "llama, wide heads": lm("llama", WIDE),
    "llama, tied embeddings": lm("llama", {**GROUPED, "tie_word_embeddings": True}),
    "llama, biases": lm("llama", {**GROUPED, "attention_bias": True, "mlp_bias": True}),
    "llama, eager": lm("llama", attention="eager"),
    "llama, bfloat16": lm("llama", dtype=torch.bfloat16),
    "llama, float16": lm("llama", dtype=torch.float16),
    "llama, linear rotary scaling": lm(
        "llama",
        {**GROUPED, "rope_scaling": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}},
    ),
    "llama, yarn": lm(
        "llama",
        {
            **GROUPED,
            "rope_scaling": {
                "rope_type": "yarn",
                "factor": 4.0,
                "rope_theta": 1e4,
                "original_max_position_embeddings": 32,
            },
        },
    ),
    "llama, llama3 rotary": lm(
        "llama",
        {
            **GROUPED,
            "rope_scaling": {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 32,
                "rope_theta": 1e4,
            },
        },
    ),
    "llama, dynamic rotary scaling": lm(
        "llama",
        {
            **GROUPED,
            "max_position_embeddings": 16,
            "rope_scaling": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 1e4},
        },
    ),
    "llama, training": lm(
        "llama",
        {**GROUPED, "attention_dropout": 0.5},
        change="train",
        scores="training mode",
        edits="training mode",
    ),
    "llama, torch.compile(model)": lm(
        "llama", change="compile", scores="compiled", edits="compiled"
    ),
    "llama, model.compile()": lm(
        "llama", change="compile in place", scores="compiled", edits="compiled"
    ),
    "llama, adapter at o_proj": lm("llama", change="adapt o_proj", edits="adapters"),
    "llama, adapter at q_proj": lm("llama", change="adapt q_proj"),
    "llama, static cache by default": lm("llama", change="static cache"),
    "llama, another's hook": lm("llama", change="hook"),
    # Other rotary decoders
    "mistral, window": lm("mistral", {**GROUPED, **NEAR}),
    "mistral, no window": lm("mistral", {**GROUPED, "sliding_window": None}),
    "mixtral": lm("mixtral", {**GROUPED, **EXPERTS}),
    "qwen2": lm("qwen2"),
    "qwen2, windows from layer 1": lm(
        "qwen2", {**GROUPED, **NEAR, "use_sliding_window": True, "max_window_layers": 1}
    ),
    "qwen2, window set and not used": lm("qwen2", {**GROUPED, **NEAR}),
    "qwen2_moe": lm("qwen2_moe", {**GROUPED, **SHARED}),
    "qwen3": lm("qwen3", WIDE),
    "qwen3_moe": lm("qwen3_moe", {**WIDE, **EXPERTS}),
    "gemma": lm("gemma", WIDE),
    "gemma2": lm("gemma2", {**WIDE, **NEAR}),
    "gemma2, no caps": lm(
        "gemma2", {**WIDE, **NEAR, "attn_logit_softcapping": None, "final_logit_softcapping": None}
    ),
    "gemma3": lm("gemma3_text", {**WIDE, **NEAR}),
    "gemma3n": lm(
        "gemma3n_text",
        {
            **WIDE,
            **NEAR,
            "vocab_size_per_layer_input": 300,
            "hidden_size_per_layer_input": 8,
            "num_kv_shared_layers": 0,
            "laurel_rank": 4,
            "activation_sparsity_pattern": [0.0] * 3,
            "layer_types": ["sliding_attention", "full_attention", "full_attention"],
        },
    ),
    "gemma4": lm(
        "gemma4_text",
        {
            **WIDE,
            **NEAR,
            "vocab_size_per_layer_input": 300,
            "hidden_size_per_layer_input": 8,
            "global_head_dim": 16,
            "layer_types": ["sliding_attention", "full_attention", "full_attention"],
        },
    ),
    "phi": lm("phi", GROUPED, DENSE),
    "phi3": lm("phi3", GROUPED),
    "phi3, longrope": lm(
        "phi3",
        {
            **GROUPED,
            "original_max_position_embeddings": 20,
            "rope_scaling": {
                "rope_type": "longrope",
                "rope_theta": 1e4,
                "factor": 8.0,
                "original_max_position_embeddings": 20,
                "short_factor": [1.0] * 4,
                "long_factor": [4.0] * 4,
            },
        },
    ),
    "phi3, window": lm("phi3", {**GROUPED, **NEAR}),
    "phimoe": lm("phimoe", {**GROUPED, **EXPERTS}),
    "olmo": lm("olmo"),
    "olmo2": lm("olmo2"),
    "olmo3": lm("olmo3", {**GROUPED, **NEAR}),
    "olmoe": lm("olmoe", {**GROUPED, **EXPERTS}),
    "stablelm": lm("stablelm"),
    "stablelm, parallel": lm("stablelm", {**GROUPED, "use_parallel_residual": True}),
    "starcoder2": lm("starcoder2", {**GROUPED, **NEAR}),
    "cohere": lm("cohere", {**GROUPED, "logit_scale": 1.0}),
    "cohere2": lm("cohere2", {**GROUPED, **NEAR, "logit_scale": 1.0}),
    "granite": lm("granite"),
    "granite, multipliers": lm(
        "granite",
        {
            **GROUPED,
            "attention_multiplier": 0.3,
            "residual_multiplier": 0.7,
            "logits_scaling": 2.0,
            "embedding_multiplier": 3.0,
        },
    ),
    "granitemoe": lm("granitemoe", {**GROUPED, **EXPERTS}),
    "deepseek_v2": lm("deepseek_v2", {**LATENT, **SHARED}),
    "deepseek_v3": lm("deepseek_v3", {**LATENT, **SHARED}),
    "minicpm3": lm("minicpm3", LATENT),
    "glm": lm("glm", WIDE),
    "glm4": lm("glm4", WIDE),
    "exaone4": lm("exaone4", {**GROUPED, **NEAR}),
    "smollm3": lm("smollm3"),
    "smollm3, no rotation in layer 1": lm("smollm3", {**GROUPED, "no_rope_layers": [1, 0, 1]}),
    "nemotron": lm("nemotron"),
    "persimmon": lm("persimmon", SIZE, DENSE),
    "llama4": lm(
        "llama4_text", {**WIDE, **EXPERTS, "intermediate_size_mlp": 48, "attention_chunk_size": 8}
    ),
    "gpt_oss": lm("gpt_oss", {**WIDE, **EXPERTS, **NEAR}),
    "seed_oss": lm("seed_oss", WIDE),
    "diffllama": lm("diffllama"),
    "doge": lm("doge"),
    # GPT: learned positions, ALiBi, rotation of parts
    "gpt2": lm("gpt2", GPT2, GPT),
    "gpt2, scaled by layer": lm(
        "gpt2",
        {**GPT2, "scale_attn_by_inverse_layer_idx": True, "reorder_and_upcast_attn": True},
        GPT,
    ),
    "gpt_bigcode": lm("gpt_bigcode", GPT2, GPT),
    "gpt_neo": lm(
        "gpt_neo",
        {
            **SIZE,
            "num_layers": 3,
            "num_heads": 4,
            "window_size": 8,
            "attention_types": [[["global", "local"], 1], [["global"], 1]],
        },
        "transformer.h.{}.attn.attention.out_proj",
    ),
    "gpt_neox": lm("gpt_neox", SIZE, "gpt_neox.layers.{}.attention.dense"),
    "gpt_neox, not parallel": lm(
        "gpt_neox",
        {**SIZE, "use_parallel_residual": False, "rotary_pct": 1.0},
        "gpt_neox.layers.{}.attention.dense",
    ),
    "gptj": lm("gptj", {**GPT2, "rotary_dim": 4}, "transformer.h.{}.attn.out_proj"),
    "codegen": lm("codegen", {**GPT2, "rotary_dim": 4}, "transformer.h.{}.attn.out_proj"),
    "openai-gpt": lm("openai-gpt", GPT2, GPT, scores=MASK),
    "ctrl": lm("ctrl", {**GPT2, "dff": 48}, "transformer.h.{}.multi_head_attention.dense"),
    "falcon": lm("falcon", SIZE, "transformer.h.{}.self_attention.dense"),
    "falcon, new architecture": lm(
        "falcon",
        {**SIZE, "new_decoder_architecture": True, "num_kv_heads": 2},
        "transformer.h.{}.self_attention.dense",
    ),
    "falcon, ALiBi": lm(
        "falcon", {**SIZE, "alibi": True}, "transformer.h.{}.self_attention.dense", scores=MASK
    ),
    "bloom": lm(
        "bloom",
        {**SIZE, "n_layer": 3, "n_head": 4},
        "transformer.h.{}.self_attention.dense",
        scores=MASK,
    ),
    "bloom, in slices": lm(
        "bloom",
        {**SIZE, "n_layer": 3, "n_head": 4, "slow_but_exact": True, "pretraining_tp": 2},
        "transformer.h.{}.self_attention.dense",
        scores=MASK,
        edits="slow_but_exact",
    ),
    "mpt": lm(
        "mpt",
        {"d_model": 32, "n_heads": 4, "n_layers": 3, "expansion_ratio": 2, "max_seq_len": 128},
        "transformer.blocks.{}.attn.out_proj",
        scores=MASK,
    ),
    "opt": lm("opt", {**SIZE, "ffn_dim": 48, "word_embed_proj_dim": 32}, OUT_PROJ),
    "opt, narrow embeddings": lm(
        "opt",
        {**SIZE, "ffn_dim": 48, "word_embed_proj_dim": 16, "do_layer_norm_before": False},
        OUT_PROJ,
    ),
    "xglm": lm(
        "xglm",
        {**BART, "num_layers": 3, "ffn_dim": 48, "attention_heads": 4},
        "model.layers.{}.self_attn.out_proj",
    ),
    "biogpt": lm("biogpt", SIZE, "biogpt.layers.{}.self_attn.out_proj"),
    # Decoders that were encoders
    "bert": lm("bert", DECODER, BERT.format("bert")),
    "roberta": lm("roberta", DECODER, BERT.format("roberta"), scores=MASK),
    "xlm-roberta": lm("xlm-roberta", DECODER, BERT.format("roberta"), scores=MASK),
    "electra": lm("electra", {**DECODER, "embedding_size": 32}, BERT.format("electra")),
    "roberta, no decoder": lm("roberta", SIZE, BERT.format("roberta"), scores=MASK),
    "bert, no decoder": lm("bert", SIZE, BERT.format("bert"), scores=MASK),
    # Decoders of encoder-decoders, and both
    "bart, decoder": lm("bart", BART, scores=MASK, edits=BLOCKS),
    "mbart, decoder": lm("mbart", BART, scores=MASK, edits=BLOCKS),
    "bart": lm("bart", BART, whole=True, scores=MASK, edits="encoder"),
    "t5": lm(
        "t5",
        {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 3, "num_heads": 4},
        whole=True,
        scores=".",
        edits="decoder-only",
    ),
    # Layers without attention, or other memories than keys and values
    "mamba": lm("mamba", SIZE, scores=MASK, edits=BLOCKS),
    "rwkv": lm(
        "rwkv",
        {
            "hidden_size": 32,
            "num_hidden_layers": 3,
            "attention_hidden_size": 32,
            "intermediate_size": 48,
        },
        scores=MASK,
        edits=".",
    ),
    "jamba": lm(
        "jamba",
        {
            **MAMBA,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "use_mamba_kernels": False,
            **EXPERTS,
        },
        scores=".",
        edits=BLOCKS,
    ),
    "falcon_h1": lm("falcon_h1", MAMBA, scores="."),
    "recurrent_gemma": lm("recurrent_gemma", {**WIDE, "lru_width": 32}, scores=".", edits="."),
    "lfm2": lm("lfm2", {**GROUPED, "full_attn_idxs": [1]}, scores=".", edits=BLOCKS),
    "qwen3_next": lm(
        "qwen3_next",
        {
            **WIDE,
            **SHARED,
            "linear_num_value_heads": 4,
            "linear_num_key_heads": 2,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
        },
        scores=".",
        edits=BLOCKS,
    ),
    "zamba2": lm(
        "zamba2",
        {
            **MAMBA,
            "layer_types": ["mamba", "hybrid", "mamba"],
            "hybrid_layer_ids": [1],
            "mamba_ngroups": 1,
            "n_mamba_heads": 4,
            "mamba_headdim": 16,
        },
        scores=".",
        edits=".",
    ),
    "granitemoehybrid": lm(
        "granitemoehybrid",
        {
            **MAMBA,
            **EXPERTS,
            "mamba_expand": 2,
            "shared_intermediate_size": 16,
            "layer_types": ["mamba", "attention", "mamba"],
        },
        scores=".",
        edits=".",
    ),
}

for _names, _said in (
    (["llama, dynamic rotary scaling", "phi3, longrope"], "rotates by the length"),
    (["llama, adapter at o_proj", "llama, adapter at q_proj"], "adapters"),
    (["llama4", "gpt_neo"], "local attention"),
    (["roberta", "xlm-roberta", "roberta, no decoder"], "counts positions"),
):
    for _name in _names:
        CONFIGURATIONS[_name].scores = CONFIGURATIONS[_name].edits = _said

for _name, _layers in {
    "mamba": "backbone.layers.{}",
    "rwkv": "rwkv.blocks.{}",
    **dict.fromkeys(
        ["jamba", "recurrent_gemma", "lfm2", "qwen3_next", "zamba2", "granitemoehybrid"],
        "model.layers.{}",
    ),
}.items():
    CONFIGURATIONS[_name].layers = _layers

WRONG: dict[tuple[str, str], str] = {}
"""Configurations that come out wrong, or are refused by no name: each is expected to fail."""


class Adapted(nn.Module):
    """A linear map beside which a low-rank one runs, as adapters do it."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base_layer = base
        self.lora_A = nn.ModuleDict({"default": nn.Linear(base.in_features, 4, bias=False)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(4, base.out_features, bias=False)})

    def forward(self, x):
        return self.base_layer(x) + self.lora_B["default"](self.lora_A["default"](x))


def build(row, vocabulary):
    torch.manual_seed(0)
    config = AutoConfig.for_model(row.kind, vocab_size=vocabulary, **row.settings)
    auto = AutoModelForSeq2SeqLM if row.whole else AutoModelForCausalLM
    given = {} if row.attention is None else {"attn_implementation": row.attention}
    model = auto.from_config(config, **given)
    assert model.num_parameters() < 1e6
    if "adapt" in row.change:
        name = row.change.split()[1]
        for layer in model.model.layers:
            setattr(layer.self_attn, name, Adapted(getattr(layer.self_attn, name)))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:  # large, so that a wrong position or mask shows
                parameter.normal_(0.0, 0.1, generator=generator)
    model = model.to(row.dtype).eval()
    if row.change == "train":
        model.train()
    if row.change == "compile":
        model = torch.compile(model, backend="eager")
    if row.change == "compile in place":
        model.compile(backend="eager")
    if row.change == "static cache":
        model.generation_config.cache_implementation = "static"
    if row.change == "hook":
        model.model.layers[1].self_attn.o_proj.register_forward_pre_hook(
            lambda _, inputs: (inputs[0] + 0.3, *inputs[1:])
        )
    return model


def plain_model(model):
    """Return what `model` is under what was done to it: the reference is not compiled."""
    plain = getattr(model, "_orig_mod", model)
    plain = copy.copy(plain)
    plain._compiled_call_impl = None
    return plain


class by_hand:  # noqa: N801 - reads as a statement
    """Add offsets to what enters the projections, from one position on."""

    def __init__(self, model, output, offsets, first):
        self.modules = [model.get_submodule(output.format(k)) for k in range(len(offsets))]
        self.offsets, self.first = offsets, first

    def __enter__(self):
        self.handles = []
        for module, offset in zip(self.modules, self.offsets, strict=True):

            def edit(_, inputs, offset=offset):
                edited = inputs[0].clone()
                flat = edited.view(1, -1, edited.shape[-1])  # some keep no axis for the batch
                flat[:, self.first :] += offset.flatten().to(edited.dtype)
                return (edited, *inputs[1:])

            self.handles.append(module.register_forward_pre_hook(edit))

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()


def width(model, output):
    """Return (layers, heads, width) of what enters the projections, from their weights."""
    config, layers = model.config.get_text_config(), 0
    names = {name for name, _ in model.named_modules()}
    while output.format(layers) in names:
        layers += 1
    module = model.get_submodule(output.format(0))
    module = getattr(module, "base_layer", module)
    across = module.in_features if isinstance(module, nn.Linear) else module.weight.shape[0]
    return layers, config.num_attention_heads, across // config.num_attention_heads


@torch.no_grad()
def one_by_one(model, tokenizer, question, preface, output="", offsets=None):
    """No batch, no padding, no cache, and the answer found by tokenizing the prompt alone."""
    scores = []
    for answer in question.answers:
        prompt = tokenizer(question.prompt(preface))["input_ids"]
        ids = torch.tensor([tokenizer(f"{question.prompt(preface)} {answer}")["input_ids"]])
        assert ids[0, : len(prompt)].tolist() == prompt
        if offsets is None:
            logits = model(input_ids=ids, use_cache=False).logits
        else:
            with by_hand(model, output, offsets, len(prompt) - 1):
                logits = model(input_ids=ids, use_cache=False).logits
        each = logits[0, :-1].float().log_softmax(-1).gather(-1, ids[0, 1:, None])[:, 0]
        scores.append(each[len(prompt) - 1 :].double().sum().item())
    return np.array(scores)


@pytest.fixture(scope="module")
def asked(corpus):
    some = corpus.questions()[::90][:2]
    longer = Question(
        id="long",
        text="food of " + some[0].text,
        answers=("eats moss", "eats moss ferns snails", "in", "ware", "is teal."),
        true=(False, True, False, True, False),
        best=1,
    )
    preface = " ".join(corpus.document(np.random.default_rng(0)).split()[:12]) + " "
    return [*some, longer], preface


def configurations(what):
    found = []
    for name, row in CONFIGURATIONS.items():
        reason = WRONG.get((name, what))
        marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
        found.append(pytest.param(row, id=name, marks=marks))
    return found


def offsets_of(model, output):
    shape = width(model, output)
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("row", configurations("scores"))
def test_scores_are_right_or_refused(row, tokenizer, asked):
    questions, preface = asked
    model = build(row, len(tokenizer))
    if row.scores:
        with pytest.raises((ValueError, TypeError), match=row.scores):
            AnswerScorer(model, tokenizer, questions, preface).score()
        return
    plain = plain_model(model)
    scorer = AnswerScorer(model, tokenizer, questions, preface)
    found = scorer.score()
    steer = Intervention(offsets_of(plain, row.output))
    steered, again = scorer.score(steer), scorer.score()
    within = WITHIN[row.dtype]
    for question in questions:
        name = question.id
        alone = one_by_one(plain, tokenizer, question, preface)
        np.testing.assert_allclose(found[name], alone, rtol=0, atol=within)
        np.testing.assert_array_equal(again[name], found[name])
        alone = one_by_one(plain, tokenizer, question, preface, row.output, steer.offsets)
        np.testing.assert_allclose(steered[name], alone, rtol=0, atol=within)
    moved = max(np.abs(steered[q.id] - found[q.id]).max() for q in questions)
    assert moved > 5 * within


@pytest.mark.parametrize("row", configurations("edits"))
@torch.no_grad()
def test_edits_are_right_or_refused(row, tokenizer):
    model = build(row, len(tokenizer))
    ids = torch.tensor([[5, 9, 4, 7, 3, 8, 6, 11, 4, 10, 12, 3]])
    plain = plain_model(model)
    if row.edits:
        with (
            pytest.raises((ValueError, TypeError), match=row.edits),
            Intervention(torch.zeros(find_heads(model).shape)).apply(model),
        ):
            model(input_ids=ids)
        return
    layout = find_heads(model)
    assert layout.projections == tuple(row.output.format(k) for k in range(layout.n_layers))
    offsets = offsets_of(plain, row.output)
    before = model(input_ids=ids, use_cache=False).logits
    with Intervention(offsets).apply(model):
        ours = model(input_ids=ids, use_cache=False).logits
    with by_hand(plain, row.output, offsets, 0):
        theirs = plain(input_ids=ids, use_cache=False).logits
    within = {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}[row.dtype]
    torch.testing.assert_close(ours, theirs, rtol=0, atol=within)
    assert (ours - before).abs().max() > 5 * within
    assert torch.equal(model(input_ids=ids, use_cache=False).logits, before)


@pytest.mark.parametrize("row", configurations("edits"))
@torch.no_grad()
def test_the_residual_stream_is_right_or_refused(row, tokenizer):
    model = build(row, len(tokenizer))
    refused = "" if row.layers else row.edits
    refused = {"gemma3n_text": "do not hand on one state"}.get(row.kind, refused)
    if refused:
        with pytest.raises((ValueError, TypeError), match=refused):
            find_layers(model)
        return
    ids = torch.tensor([[5, 9, 4, 7, 3, 8, 6, 11, 4, 10, 12, 3]])
    layout, within = find_layers(model), WITHIN[row.dtype]
    start = (row.layers or row.output).split("{}")[0]
    assert layout.projections == tuple(f"{start}{k}" for k in range(layout.n_layers))
    steer = ResidualIntervention(
        torch.randn(layout.shape, generator=torch.Generator().manual_seed(1))
    )
    before = model(input_ids=ids, use_cache=False).logits
    with steer.apply(model):
        ours = model(input_ids=ids, use_cache=False).logits
    handles = []
    for name, offset in zip(layout.projections, steer.offsets[:, 0], strict=True):

        def edit(_, __, out, offset=offset):
            state, *rest = (out,) if isinstance(out, torch.Tensor) else out
            state = state + offset.to(state.dtype)
            return state if isinstance(out, torch.Tensor) else (state, *rest)

        handles.append(model.get_submodule(name).register_forward_hook(edit))
    theirs = model(input_ids=ids, use_cache=False).logits
    for handle in handles:
        handle.remove()
    torch.testing.assert_close(ours, theirs, rtol=0, atol=within)
    assert (ours - before).abs().max() > 1e-2
    assert torch.equal(model(input_ids=ids, use_cache=False).logits, before)
