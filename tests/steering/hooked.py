"""Tiny random models, and edits as a few lines of torch, to compare the library's with."""

import copy

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from conceptnb.steering.attention import find_heads
from conceptnb.steering.intervention import Intervention
from conceptnb.steering.residual import ResidualIntervention, find_layers

LLAMA = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "bos_token_id": 1,
    "eos_token_id": None, "pad_token_id": 0, "vocab_size": 64,
}  # fmt: skip
KINDS = {"heads": (Intervention, find_heads), "residual": (ResidualIntervention, find_layers)}
IDS = torch.tensor([[5, 9, 4, 7, 3, 8]])


def build(kind="llama", **settings):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **{**LLAMA, **settings}))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.25)
    return model.eval()


def draw(model, kind="heads", scale=1.0):
    edit, find = KINDS[kind]
    generator = torch.Generator().manual_seed(1)
    return edit(scale * torch.randn(find(model).shape, generator=generator))


@torch.no_grad()
def logits(model, ids=IDS, **given):
    return model(input_ids=ids, **given).logits


def hooked(model, steer):
    """The edit by a few lines of torch, on a copy that nothing else was done to."""
    plain = copy.deepcopy(model)
    for layer, offset in zip(plain.model.layers, steer.offsets.flatten(1), strict=True):
        if isinstance(steer, ResidualIntervention):
            layer.register_forward_hook(lambda _, __, out, offset=offset: out + offset)
        else:
            layer.self_attn.o_proj.register_forward_pre_hook(
                lambda _, args, offset=offset: (args[0] + offset, *args[1:])
            )
    return plain
