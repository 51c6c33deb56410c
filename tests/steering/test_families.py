"""Families × how tokens are found × where the model is edited: right, or refused by name.

Each family is a tiny random model. An edit by hooks written here, on a copy, one text at a time and
with no cache, says what is right; a batch padded on the left, decoded with the library's edit by
each kind of decoding, has to say the same.
"""

import copy

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, CompileConfig

from conceptnb.steering.attention import find_heads
from conceptnb.steering.intervention import Intervention
from conceptnb.steering.residual import (
    MixerIntervention,
    MLPIntervention,
    ResidualIntervention,
    residual_at_end,
)
from conceptnb.steering.sites import find_layers, find_mixer_outputs, find_mlp_outputs
from conceptnb.steering.spans import pad

pytestmark = pytest.mark.slow

SIZE = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "bos_token_id": 1,
    "max_position_embeddings": 128, "pad_token_id": 0, "eos_token_id": None,
}  # fmt: skip
NEAR = {"sliding_window": 4}
GPT2 = {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128,
        "bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}  # fmt: skip
MOE = {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2}
LINEAR = {"linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 8,
          "linear_value_head_dim": 8,
          "layer_types": ["linear_attention", "full_attention"]}  # fmt: skip
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_ssm": 64, "mamba_d_state": 8,
         "mamba_n_groups": 1}  # fmt: skip

ALL = ("heads", "stream", "mixer", "MLP")
FAMILIES = {  # settings, and which places can be edited
    "llama": ({}, ALL),
    "qwen3": ({}, ALL),
    "gemma2": (NEAR, ALL),
    "gemma3_text": (NEAR, ALL),
    "gpt_neox": ({"num_key_value_heads": 4}, ALL),
    "gpt2": (GPT2, ALL),
    "phi3": ({}, ALL),
    "mistral": (NEAR, ALL),
    "olmo2": ({}, ALL),
    "mixtral": (MOE, ALL),
    "bloom": ({"n_layer": 2, "n_head": 4}, ("heads", "stream")),
    "jetmoe": ({"kv_channels": 8, "num_key_value_heads": 4, **MOE}, ALL[1:]),
    "qwen3_5_text": (LINEAR, ALL[1:]),
    "lfm2": ({"layer_types": ["conv", "full_attention"]}, ALL[1:]),
    "granitemoehybrid": (
        {**MAMBA, "layer_types": ["mamba", "attention"], "num_local_experts": 0,
         "shared_intermediate_size": 48},
        ALL[1:],
    ),
    "falcon_h1": (MAMBA, ("heads", "stream", "MLP")),
    "mamba": ({"state_size": 8}, ("stream", "mixer")),
}  # fmt: skip
PLACES = {
    "heads": (Intervention, find_heads),
    "stream": (ResidualIntervention, find_layers),
    "mixer": (MixerIntervention, find_mixer_outputs),
    "MLP": (MLPIntervention, find_mlp_outputs),
}
PROMPTS = [[7, 8, 9, 10, 11, 12, 13], [20, 21], [30, 31, 32, 33]]
NEW = 5


def build(kind):
    settings = FAMILIES[kind][0]
    config = AutoConfig.for_model(kind, **({} if kind == "gpt2" else SIZE) | settings)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.25)
    model.generation_config.eos_token_id = None
    return model


class by_hand:  # noqa: N801 - reads as a statement
    """Offsets added on the way into modules, or out of them, at every position."""

    def __init__(self, model, place, names, offsets):
        def enter(_, args, offset):
            return (args[0] + offset, *args[1:])

        def leave(_, __, out, offset):
            return out + offset if isinstance(out, torch.Tensor) else (out[0] + offset, *out[1:])

        self.handles = []
        for name, offset in zip(names, offsets.flatten(1), strict=True):
            module = model.get_submodule(name)
            if place == "heads":
                hook = lambda m, a, offset=offset: enter(m, a, offset)  # noqa: E731
                self.handles.append(module.register_forward_pre_hook(hook))
            else:
                hook = lambda m, a, o, offset=offset: leave(m, a, o, offset)  # noqa: E731
                self.handles.append(module.register_forward_hook(hook))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()


COMPILED = CompileConfig(backend="eager", fullgraph=False)
COMPILED._compile_all_devices = True
DECODING = {
    "cache": {"do_sample": False},
    "no cache": {"do_sample": False, "use_cache": False},
    "static": {"do_sample": False, "cache_implementation": "static"},
    "static, compiled": {"do_sample": False, "cache_implementation": "static",
                         "compile_config": COMPILED},
    "beams": {"do_sample": False, "num_beams": 3},
    "sampling": {"do_sample": True, "top_k": 5},
}  # fmt: skip
RECURRENT = ("qwen3_5_text", "lfm2", "granitemoehybrid", "falcon_h1", "mamba")


def generate(model, texts, **options):
    ids, mask = pad(texts, "left")
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(5)
        found = model.generate(
            ids, attention_mask=mask, max_new_tokens=NEW, pad_token_id=0, **options
        )
    return found[:, ids.shape[1] :].tolist()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", FAMILIES)
def test_decoding_is_steered_as_by_hand(kind, place):
    """Six kinds of decoding at once: models are built and compiled once for each."""
    model = build(kind)
    edit, find = PLACES[place]
    if place not in FAMILIES[kind][1]:
        with pytest.raises(ValueError, match=rf"{type(model).__name__}.*(stream|heads)"):
            find(model)
        return
    layout = find(model)
    plain = copy.deepcopy(model)
    steer = edit(0.7 * torch.randn(layout.shape, generator=torch.Generator().manual_seed(2)))
    unsteered = generate(model, PROMPTS, do_sample=False)
    wrong = []
    for name, options in DECODING.items():
        static = name.startswith("static")
        if "compiled" in name and place in ("mixer", "MLP"):
            continue  # what is switched off for the stream is switched off for these
        try:
            generate(model, PROMPTS, **options)  # compiled, if it is, before it is steered
        except (ValueError, AttributeError, TypeError, NotImplementedError, RuntimeError):
            assert static or kind in RECURRENT, name  # the family itself cannot
            continue
        together = {k: v for k, v in options.items() if k in ("do_sample", "num_beams", "top_k")}
        with by_hand(plain, place, layout.projections, steer.offsets):
            if name == "sampling":  # what is drawn for a row depends on the rows before it
                wanted = generate(plain, PROMPTS, use_cache=False, **together)
            else:
                alone = [generate(plain, [x], use_cache=False, **together) for x in PROMPTS]
                wanted = [row for rows in alone for row in rows]
        with steer.apply(model):
            found = generate(model, PROMPTS, **options)
        if found != wanted:
            wrong.append((name, found, wanted))
        if name == "cache":
            assert found != unsteered
    assert not wrong
    torch.compiler.reset()
    assert generate(model, PROMPTS, do_sample=False) == unsteered


@pytest.mark.parametrize("kind", FAMILIES)
@torch.no_grad()
def test_what_is_read_at_the_end_is_what_modules_return(kind):
    model = build(kind)
    for place in set(FAMILIES[kind][1]) - {"heads"}:
        find = PLACES[place][1]
        found = residual_at_end(model, PROMPTS, find=find)
        for name, at in zip(find(model).projections, found.swapaxes(0, 1), strict=True):
            for text, state in zip(PROMPTS, at[:, 0], strict=True):
                seen = []
                handle = model.get_submodule(name).register_forward_hook(
                    lambda _, __, out, seen=seen: seen.append(
                        out if isinstance(out, torch.Tensor) else out[0]
                    )
                )
                model(input_ids=torch.tensor([text]), use_cache=False)
                handle.remove()
                torch.testing.assert_close(
                    torch.from_numpy(state), seen[0][0, -1], rtol=1e-4, atol=1e-4
                )


@pytest.mark.parametrize("place", ["mixer", "MLP"])
@torch.no_grad()
def test_other_places_are_saved_baked_and_kept_apart(place, tmp_path):
    model = build("gpt2")
    edit, find = PLACES[place]
    steer = edit(torch.randn(find(model).shape, generator=torch.Generator().manual_seed(2)))
    steer.save(tmp_path / "s.safetensors")
    assert torch.equal(edit.load(tmp_path / "s.safetensors").offsets, steer.offsets)
    with pytest.raises(ValueError, match="holds no offsets of a residual stream"):
        ResidualIntervention.load(tmp_path / "s.safetensors")
    with pytest.raises(TypeError, match="nest `with` blocks"):
        steer + ResidualIntervention(steer.offsets)
    ids = torch.arange(3, 11)[None]
    with steer.apply(model):
        wanted = model(input_ids=ids).logits
    torch.testing.assert_close(steer.bake(model)(input_ids=ids).logits, wanted, rtol=0, atol=1e-4)


def test_two_layers_that_are_one_are_refused():
    model = build("llama")
    model.model.layers = nn.ModuleList([model.model.layers[0]] * 2)
    with pytest.raises(ValueError, match="do not hand on one state"):
        find_layers(model.eval())
