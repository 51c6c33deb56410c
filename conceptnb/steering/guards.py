"""Models in which an edit would not happen, or in the wrong place: refused, or made to run plainly.

Hooks are Python. Code that `torch.compile` made before they came knows nothing of them, so inside a
``with`` block of steering what was compiled runs as it was written (`UNCOMPILED`).
"""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack

import torch
from torch import nn
from transformers import PreTrainedModel


def refuse_what_is_steered_wrongly(model: PreTrainedModel) -> None:
    """Raise ValueError for models in which hooks do not run, or run in the wrong place."""
    kind, config = model.config.model_type, model.config
    parts = list(model.modules())
    sliced = vars(config).get("slow_but_exact")
    rotation = str((getattr(config, "rope_scaling", None) or {}).get("rope_type"))
    local = "chunked_attention" in (getattr(config, "layer_types", None) or ())
    reasons = {
        "is compiled, and hooks do not run: give the model as it was before": any(
            map(_is_compiled, parts)
        ),
        "has PEFT adapters: give model.merge_and_unload()": any(map(_is_adapter, parts)),
        "is an encoder with a decoder: give a decoder-only one": config.is_encoder_decoder
        or kind in ("bart", "mbart", "pegasus", "marian", "blenderbot"),
        "is in training mode, with dropout: call model.eval()": any(x.training for x in parts),
        "counts positions from its padding: give another family": "roberta" in kind,
        "multiplies in slices: load it with slow_but_exact=False": sliced,
        "has local attention that no mask shows: give another family": local or kind == "gpt_neo",
        "rotates by the length of a text: give another rope_scaling": rotation
        in ("dynamic", "longrope"),
    }
    for reason, holds in reasons.items():
        if holds:
            raise ValueError(f"model: this {type(model).__name__} {reason}")


def _is_compiled(part: nn.Module) -> bool:
    """Whether a module, or its forward alone, is what `torch.compile` made of it."""
    wrapped = "_orig_mod" in part._modules or getattr(part, "_compiled_call_impl", None)
    return bool(wrapped) or hasattr(vars(part).get("forward"), "_torchdynamo_orig_callable")


def _is_adapter(part: nn.Module) -> bool:
    """Whether a module computes something else than the linear map that it stands for.

    PEFT's are known by their base class; merged or switched off, they compute that map. So they do
    where they stand for no map at all, but for a norm. Others' are known by what they keep.
    """
    base = getattr(part, "base_layer", None)
    tuners = sys.modules.get("peft.tuners.tuners_utils")
    if tuners is None or not isinstance(part, tuners.BaseTunerLayer):
        return hasattr(part, "lora_A") or (base is not None and len(list(part.children())) > 1)
    while isinstance(base, tuners.BaseTunerLayer):
        base = base.base_layer
    of_a_norm = base is not None and all(x.dim() < 2 for x in base.parameters())
    return not (part.merged or part.disable_adapters or of_a_norm)


class _Stance:
    """The compiler's stance while blocks are open, and what it was before."""

    def __init__(self) -> None:
        self.lock, self.blocks, self.before = threading.Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self.lock:
            if not self.blocks:
                self.before.enter_context(torch.compiler.set_stance("force_eager"))
            self.blocks += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.blocks -= 1
            if not self.blocks:
                self.before.close()


UNCOMPILED = _Stance()
"""``with UNCOMPILED:`` whatever is compiled runs as it was written, until the last block has ended.

Also what `generate` compiles by itself for a static cache on a GPU. The stance is the process's:
other models run uncompiled meanwhile, and right.
"""
