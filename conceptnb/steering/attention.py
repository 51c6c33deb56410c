"""Attention heads of any causal language model, found by structure (Appendix E.1).

In x_{l+1} = x_l + Σ_h Q_h x_h with x_h = Att_h(P_h x_l) the activations x_h, side by side, enter an
output projection: in every family the last linear map that an attention block applies.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D


@dataclass(frozen=True)
class HeadLayout:
    """Where the head activations of a model are.

    Parameters
    ----------
    projections : tuple of str
        Qualified name of each layer's output projection; its input holds the
        layer's head activations, ``n_heads`` blocks of width ``head_dim``.
    """

    projections: tuple[str, ...]
    n_heads: int
    head_dim: int

    @property
    def n_layers(self) -> int:
        """Number of layers."""
        return len(self.projections)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape (layers, heads, width) of one token's head activations."""
        return self.n_layers, self.n_heads, self.head_dim


_KNOWN: weakref.WeakKeyDictionary[nn.Module, HeadLayout] = weakref.WeakKeyDictionary()


def find_heads(model: PreTrainedModel) -> HeadLayout:
    """Find the head activations of a causal language model of transformers.

    Runs the model once on one token, and remembers the answer for as long as the model lives.

    Raises
    ------
    ValueError
        If the model would be steered wrongly, has no list of layers with one attention block each,
        or its output projections do not all hold the same heads.
    """
    refuse_what_is_steered_wrongly(model)
    if model not in _KNOWN:
        _KNOWN[model] = _find_heads(model)
    return _KNOWN[model]


def refuse_what_is_steered_wrongly(model: PreTrainedModel) -> None:
    """Raise ValueError for models in which hooks do not run, or run in the wrong place."""
    kind, config = model.config.model_type, model.config
    compiled = hasattr(model, "_orig_mod") or getattr(model, "_compiled_call_impl", None)
    sliced = vars(config).get("slow_but_exact")
    adapted = any(hasattr(part, "lora_A") for part in model.modules())
    rotation = str((getattr(config, "rope_scaling", None) or {}).get("rope_type"))
    local = "chunked_attention" in (getattr(config, "layer_types", None) or ())
    reasons = {
        "is compiled, and hooks do not run: give the model as it was before": compiled,
        "has PEFT adapters: give model.merge_and_unload()": adapted,
        "is an encoder with a decoder: give a decoder-only one": config.is_encoder_decoder
        or kind in ("bart", "mbart", "pegasus", "marian", "blenderbot"),
        "is in training mode, with dropout: call model.eval()": model.training,
        "counts positions from its padding: give another family": "roberta" in kind,
        "multiplies in slices: load it with slow_but_exact=False": sliced,
        "has local attention that no mask shows: give another family": local or kind == "gpt_neo",
        "rotates by the length of a text: give another rope_scaling": rotation
        in ("dynamic", "longrope"),
    }
    for reason, holds in reasons.items():
        if holds:
            raise ValueError(f"model: this {type(model).__name__} {reason}")


def input_device(model: PreTrainedModel) -> torch.device:
    """Return where a model takes its tokens: with its first weights, unless they lie on disk."""
    return torch.device("cpu") if model.device.type == "meta" else model.device


def _find_heads(model: PreTrainedModel) -> HeadLayout:
    config = model.config.get_text_config()
    if not hasattr(config, "num_attention_heads"):
        raise ValueError(f"{type(model).__name__} has no attention heads; give a transformer")
    blocks = _attention_blocks(model, config.num_hidden_layers)
    last = _last_linear_maps(model, blocks)
    names = {module: name for name, module in model.named_modules()}
    n_heads = config.num_attention_heads
    widths = {_input_width(module) for module in last}
    if len(widths) != 1 or next(iter(widths)) % n_heads:
        raise ValueError(
            f"the output projections of {type(model).__name__} have input widths {sorted(widths)}, "
            f"which {n_heads} heads per layer do not fill evenly; layers may not differ"
        )
    return HeadLayout(tuple(names[m] for m in last), n_heads, widths.pop() // n_heads)


def _attention_blocks(model: nn.Module, n_layers: int) -> list[nn.Module]:
    """Return the attention block of each layer: the child whose class says so."""
    for module in model.modules():
        if not isinstance(module, nn.ModuleList) or len(module) != n_layers:
            continue
        found = [
            [c for c in layer.children() if "Attention" in type(c).__name__] for layer in module
        ]
        if all(len(children) == 1 for children in found):
            return [children[0] for children in found]
    raise ValueError(
        f"{type(model).__name__} has no list of {n_layers} layers with one attention block each; "
        "steering needs a decoder-only transformer"
    )


def _last_linear_maps(model: PreTrainedModel, blocks: list[nn.Module]) -> list[nn.Linear | Conv1D]:
    """Return the linear map that runs last inside each block, seen on one token."""
    last: dict[int, nn.Linear | Conv1D] = {}
    handles = []
    for i, block in enumerate(blocks):
        for module in block.modules():
            if isinstance(module, nn.Linear | Conv1D):
                handles.append(
                    module.register_forward_pre_hook(
                        lambda module, _, i=i: last.__setitem__(i, module)
                    )
                )
    try:
        with torch.no_grad():
            model(input_ids=torch.zeros((1, 1), dtype=torch.long, device=input_device(model)))
    finally:
        for handle in handles:
            handle.remove()
    if len(last) != len(blocks):
        raise ValueError(f"{type(model).__name__} has attention blocks without a linear map")
    return [last[i] for i in range(len(blocks))]


def _input_width(module: nn.Linear | Conv1D) -> int:
    # GPT-2's Conv1D holds its weight as (inputs, outputs).
    return module.weight.shape[0] if isinstance(module, Conv1D) else module.in_features


@contextmanager
def record_heads(model: PreTrainedModel, rows: Tensor, positions: Tensor) -> Iterator[Tensor]:
    """Record head activations at one position of each row during one forward pass.

    `rows` and `positions`, shape (n,), are indices into batch and sequence. Yields a tensor of
    float32 on the CPU, shape (n, layers, heads, width), which the pass inside the block fills.
    """
    layout = find_heads(model)
    record = torch.zeros((len(rows), *layout.shape))

    def save(layer: int, inputs: tuple[Tensor, ...]) -> None:
        heads = inputs[0][rows.to(inputs[0].device), positions.to(inputs[0].device)]
        record[:, layer] = heads.detach().float().cpu().unflatten(-1, layout.shape[1:])

    handles = [
        model.get_submodule(name).register_forward_pre_hook(
            lambda _, inputs, layer=layer: save(layer, inputs)
        )
        for layer, name in enumerate(layout.projections)
    ]
    try:
        yield record
    finally:
        for handle in handles:
            handle.remove()
