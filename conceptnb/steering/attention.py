"""Attention heads of any causal language model, found by structure (Appendix E.1).

In x_{l+1} = x_l + Σ_h Q_h x_h with x_h = Att_h(P_h x_l) the activations x_h, side by side, enter an
output projection: in every family the linear map that an attention block ends in.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.pytorch_utils import Conv1D

from conceptnb.steering.calls import Call, record_calls
from conceptnb.steering.guards import refuse_what_is_steered_wrongly


def input_device(model: PreTrainedModel) -> torch.device:
    """Return where a model takes its tokens: with its first weights, unless they lie on disk."""
    return torch.device("cpu") if model.device.type == "meta" else model.device


def two_tokens(model: PreTrainedModel) -> Tensor:
    """Return a text on which a model shows its structure, of shape (1, 2).

    One token attends to nothing but itself: what its heads hand on is what the map of values gave.
    """
    return torch.tensor([[0, 1]], device=input_device(model))


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

    Runs the model once on two tokens, and remembers the answer for as long as the model lives.

    Raises
    ------
    ValueError
        If the model would be steered wrongly, has no list of layers with one attention block each,
        or a block does not end in one linear map of its heads' values, side by side.
    """
    refuse_what_is_steered_wrongly(model)
    if model not in _KNOWN or not is_still_there(model, _KNOWN[model]):
        _KNOWN[model] = _find_heads(model)
    return _KNOWN[model]


def is_still_there(model: PreTrainedModel, layout: HeadLayout) -> bool:
    """Whether the modules that a layout names are in the model."""
    names = {name for name, _ in model.named_modules()}
    return names.issuperset(layout.projections)


def _find_heads(model: PreTrainedModel) -> HeadLayout:
    config = model.config.get_text_config()
    if not hasattr(config, "num_attention_heads"):
        raise ValueError(f"{type(model).__name__} has no attention heads; give a transformer")
    maps = _head_maps(model, _attention_blocks(model, config.num_hidden_layers))
    names = {module: name for name, module in model.named_modules()}
    n_heads = config.num_attention_heads
    widths = {_input_width(module) for module in maps}
    if len(widths) != 1 or next(iter(widths)) % n_heads:
        raise ValueError(
            f"the output projections of {type(model).__name__} have input widths {sorted(widths)}, "
            f"which {n_heads} heads per layer do not fill evenly; layers may not differ"
        )
    head_dim = widths.pop() // n_heads
    if head_dim not in (known := _value_widths(config)):
        raise ValueError(
            f"the output projections of {type(model).__name__} read {n_heads} blocks of width "
            f"{head_dim}, but its heads have values of width {sorted(known)}: {_STREAM}"
        )
    return HeadLayout(tuple(names[m] for m in maps), n_heads, head_dim)


_STREAM = "its heads cannot be edited, but perhaps its residual stream (ResidualIntervention)"


def _value_widths(config: PreTrainedConfig) -> set[int]:
    """Return how wide a head's values may be: as the configuration says, or by even shares."""
    if wide := getattr(config, "v_head_dim", None):  # of latent attention: not that of its keys
        return {wide}
    named = ("head_dim", "global_head_dim", "dim_head")
    return {x for name in named if (x := getattr(config, name, None))} or {
        config.hidden_size // config.num_attention_heads
    }


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
        f"{type(model).__name__} has no list of {n_layers} layers with one attention block each: "
        f"{_STREAM}"
    )


def _head_maps(model: PreTrainedModel, blocks: list[nn.Module]) -> list[nn.Linear | Conv1D]:
    """Return the linear map that ends each block, of what is no linear map's output itself."""
    calls = record_calls(
        model, [x for b in blocks for x in (b, *_linear_maps(b))], two_tokens(model)
    )
    found = []
    for block in blocks:
        inside = _linear_maps(block)
        maps = [call for call in calls if call.part in inside]
        own = [call for call in calls if call.part is block]
        if not maps or len(own) != 1:
            raise ValueError(
                f"{type(model).__name__} has attention blocks without a linear map, or runs one "
                f"{len(own)} times in a pass: {_STREAM}"
            )
        last = maps[-1]
        if not _ends(own[0], last) or any(is_same(x.gave, last.given[0]) for x in maps[:-1]):
            name = next(name for name, part in model.named_modules() if part is last.part)
            raise ValueError(
                f"the attention blocks of {type(model).__name__} do not end in one linear map of "
                f"what their heads give ({name} runs last): {_STREAM}"
            )
        found.append(next(x for x in inside if x is last.part))
    return found


def _linear_maps(part: nn.Module) -> list[nn.Linear | Conv1D]:
    return [x for x in part.modules() if isinstance(x, nn.Linear | Conv1D)]


def _ends(block: Call, last: Call) -> bool:
    """Whether a block returns what the map gives, with a state added or not, normed or not."""
    out, given = block.gave.flatten(), last.gave.flatten()
    if given.numel() != out.numel():
        return False
    states = [x.flatten() for x in block.given if x.shape == block.gave.shape]
    sums = [given, *(given + state for state in states)]
    shape = block.gave.shape
    norms = [x for x in block.part.modules() if isinstance(x, nn.LayerNorm)]
    norms = [norm for norm in norms if norm.normalized_shape == shape[-1:]]
    normed = [norm(x.view(shape)) for norm in norms for x in sums]
    return any(is_same(out, x) for x in (*sums, *normed))


def is_same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same numbers, but for rounding, whatever their shapes."""
    if one.numel() != other.numel():
        return False
    one, other = one.flatten().float(), other.flatten().float().to(one.device)
    return torch.allclose(one, other, rtol=1e-3, atol=1e-5 * float(one.abs().max()))


def _input_width(module: nn.Linear | Conv1D) -> int:
    # GPT-2's Conv1D holds its weight as (inputs, outputs).
    return module.weight.shape[0] if isinstance(module, Conv1D) else module.in_features


def last_linear_maps(model: PreTrainedModel, parts: list[nn.Module]) -> list[nn.Linear | Conv1D]:
    """Return the linear map that runs last inside each part, seen on two tokens."""
    calls = record_calls(
        model, [x for part in parts for x in _linear_maps(part)], two_tokens(model)
    )
    last = [[c.part for c in calls if c.part in _linear_maps(part)] for part in parts]
    if not all(last):
        raise ValueError(f"{type(model).__name__} has layers without a linear map")
    return [maps[-1] for maps in last]


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
