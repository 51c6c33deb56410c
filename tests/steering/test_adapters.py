"""PEFT's adapters: steered as the merged model is, or refused by their class."""

import copy

import pytest
import torch

from conceptnb.steering.attention import find_heads
from conceptnb.steering.residual import find_layers
from tests.steering.hooked import KINDS, build, draw, hooked, logits

peft = pytest.importorskip("peft")

OUT = {"target_modules": ["o_proj"]}
BOTH = {"target_modules": ["q_proj", "o_proj"]}
ADAPTERS = {
    "LoRA": ("LoraConfig", {**BOTH, "r": 4}),
    "DoRA": ("LoraConfig", {**BOTH, "r": 4, "use_dora": True}),
    "VeRA": ("VeraConfig", {**OUT, "r": 4}),
    "IA3": ("IA3Config", {**OUT, "feedforward_modules": ["o_proj"]}),
    "LoHa": ("LoHaConfig", {**BOTH, "r": 4}),
    "LoKr": ("LoKrConfig", {**BOTH, "r": 4}),
    "OFT": ("OFTConfig", {**BOTH, "oft_block_size": 8}),
    "BOFT": ("BOFTConfig", {**BOTH, "boft_block_size": 4}),
    "HRA": ("HRAConfig", {**BOTH, "r": 4}),
    "FourierFT": ("FourierFTConfig", {**BOTH, "n_frequency": 50}),
    "RandLoRA": ("RandLoraConfig", {**BOTH, "r": 4}),
    "SHiRA": ("ShiraConfig", {**BOTH, "r": 4}),
    "C3A": ("C3AConfig", {**BOTH, "block_size": 8}),
    "MiSS": ("MissConfig", {**BOTH, "r": 4}),
    "RoAd": ("RoadConfig", {**BOTH, "group_size": 8}),
    "AdaLoRA": ("AdaLoraConfig", {**BOTH, "init_r": 4, "total_step": 9}),
    "VB-LoRA": ("VBLoRAConfig", {**BOTH, "r": 4, "num_vectors": 8, "vector_length": 8, "topk": 2}),
    "WaveFT": ("WaveFTConfig", {**BOTH, "n_frequency": 50}),
    "DeLoRA": ("DeloraConfig", {**BOTH, "r": 4}),
    "of the MLP alone": ("LoHaConfig", {"target_modules": ["down_proj"], "r": 4}),
}


def adapted(kind, settings):
    model = peft.get_peft_model(build(), getattr(peft, kind)(**settings)).eval()
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad and parameter.is_floating_point():
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ADAPTERS)
def test_adapters_are_merged_or_refused(name, kind):
    model = adapted(*ADAPTERS[name])
    for one in (model, model.get_base_model()):
        for find in (find_heads, find_layers):
            with pytest.raises(ValueError, match="has PEFT adapters: give model"):
                find(one)
    with model.disable_adapter():
        steer = draw(model, kind)
        with steer.apply(model):
            found = logits(model)
    torch.testing.assert_close(found, logits(hooked(build(), steer)), rtol=0, atol=1e-5)
    merged = copy.deepcopy(model).merge_and_unload().eval()
    wanted = logits(hooked(merged, steer))
    with steer.apply(merged):
        torch.testing.assert_close(logits(merged), wanted, rtol=0, atol=1e-5)
    model.merge_adapter()
    with steer.apply(model):
        torch.testing.assert_close(logits(model), wanted, rtol=0, atol=1e-3)
    unloaded = model.unload().eval()  # what was found in the merged model is looked for again
    with steer.apply(unloaded):
        found = logits(unloaded)
    torch.testing.assert_close(found, logits(hooked(unloaded, steer)), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_adapters_of_norms_leave_the_maps_alone(kind):
    model = adapted("LNTuningConfig", {"target_modules": ["input_layernorm"]})
    merged = copy.deepcopy(model).merge_and_unload().eval()
    steer = draw(merged, kind)
    for one in (model, model.get_base_model(), merged):
        with steer.apply(one):
            found = logits(one)
        torch.testing.assert_close(found, logits(hooked(merged, steer)), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["PrefixTuningConfig", "PromptTuningConfig"])
def test_learned_prompts_are_steered_at_every_position(how, kind):
    config = getattr(peft, how)(task_type="CAUSAL_LM", num_virtual_tokens=3)
    model = peft.get_peft_model(build(), config).eval()
    steer = draw(model.get_base_model(), kind)
    plain = copy.deepcopy(model)
    hook = hooked(plain.get_base_model(), steer)
    plain.base_model = hook
    mask = torch.ones(1, 6, dtype=torch.long)
    with steer.apply(model):
        found = logits(model, attention_mask=mask)
    torch.testing.assert_close(found, logits(plain, attention_mask=mask), rtol=0, atol=1e-5)
