"""Where a language model may be edited besides its heads: layers, their mixing, their MLPs.

A layer mixes tokens (attention, a convolution, a recurrence) and maps each by an MLP; both write to
the residual stream. Which child of a layer does which is seen by what it computes: the output at a
token changes with the token before it, or does not.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from conceptnb.steering.attention import HeadLayout, is_same, is_still_there, two_tokens
from conceptnb.steering.calls import Call, record_calls
from conceptnb.steering.guards import refuse_what_is_steered_wrongly

Finder = Callable[[PreTrainedModel], HeadLayout]

_KNOWN: dict[Finder, weakref.WeakKeyDictionary[nn.Module, HeadLayout]] = {}


def _remembered(find: Finder) -> Finder:
    """Look once for each model, as long as what was found is there; refuse what goes wrong."""
    known = _KNOWN.setdefault(find, weakref.WeakKeyDictionary())

    def found(model: PreTrainedModel) -> HeadLayout:
        refuse_what_is_steered_wrongly(model)
        if model not in known or not is_still_there(model, known[model]):
            known[model] = find(model)
        return known[model]

    found.__name__, found.__doc__ = find.__name__, find.__doc__
    return found


@_remembered
def find_layers(model: PreTrainedModel) -> HeadLayout:
    """Find the layers of a causal language model: their names, with one head of the hidden size.

    Layers of any kind will do, with attention or without. Runs the model once on two tokens, and
    remembers the answer for as long as the model lives.

    Raises
    ------
    ValueError
        If the model would be steered wrongly; has no list of as many layers as it says; or a layer
        does not read the very state, of shape (batch, positions, hidden size), that the layer
        before it returns.
    """
    n_layers = getattr(model.config.get_text_config(), "num_hidden_layers", None)
    lists = {
        name: part
        for name, part in model.named_modules()
        if isinstance(part, nn.ModuleList) and len(part) == n_layers
    }
    if not lists:
        raise ValueError(f"model: this {type(model).__name__} has no list of {n_layers} layers")
    calls = record_calls(model, [x for layers in lists.values() for x in layers], two_tokens(model))
    for name, layers in lists.items():
        own = [call for call in calls if any(call.part is layer for layer in layers)]
        if _hand_on_one_state(own, layers):
            names = tuple(f"{name}.{i}" for i in range(len(layers)))
            return HeadLayout(names, 1, own[0].gave.shape[-1])
    raise ValueError(
        f"model: the layers of this {type(model).__name__} do not hand on one state of shape "
        "(batch, positions, hidden size), each to the next, once in a pass; if it has heads, steer "
        "these with Intervention"
    )


def _hand_on_one_state(calls: list[Call], layers: nn.ModuleList) -> bool:
    ran = list(dict.fromkeys(call.part for call in calls))
    if not len(calls) == len(ran) == len(layers) or any(
        x is not y for x, y in zip(ran, layers, strict=True)
    ):
        return False
    states = [call.gave for call in calls]
    if any(x.dim() != 3 or x.shape[0] != 1 or x.shape[1] < 2 for x in states):
        return False
    return all(
        any(torch.equal(state.cpu(), x.cpu()) for x in call.given)
        for state, call in zip(states, calls[1:], strict=False)
    )


@_remembered
def find_mixer_outputs(model: PreTrainedModel) -> HeadLayout:
    """Find where each layer's attention, or what mixes tokens in its place, hands on its output.

    Raises
    ------
    ValueError
        As `find_layers`; or if a layer has no such part or several, or one that adds to its output
        the state that the layer was given.
    """
    return _parts(model, "mix tokens", mixes=True)


@_remembered
def find_mlp_outputs(model: PreTrainedModel) -> HeadLayout:
    """Find where each layer's MLP, experts included, hands on its output.

    Raises
    ------
    ValueError
        As `find_mixer_outputs`.
    """
    return _parts(model, "map each token by itself", mixes=False)


def _parts(model: PreTrainedModel, what: str, *, mixes: bool) -> HeadLayout:
    layout = find_layers(model)
    layers = [model.get_submodule(name) for name in layout.projections]
    children = [x for layer in layers for x in layer.children() if _has_a_matrix(x)]
    maps = [x for child in children for x in child.modules() if _is_linear(x)]
    calls = record_calls(model, [*children, *maps], two_tokens(model))
    names = []
    for layer, name in zip(layers, layout.projections, strict=True):
        inside = dict(layer.named_children())
        own = [call for call in calls if any(call.part is x for x in inside.values())]
        fitting = [call for call in own if _fits(call, layout.head_dim)]
        found = [call for call in fitting if not _is_linear(call.part) and _mixes(call) is mixes]
        if not found and not mixes:  # no part of its own: the layer's last linear map ends it
            found = [call for call in own[-1:] if _is_linear(call.part) and call in fitting]
        if len(found) != 1:
            raise ValueError(
                f"{name} of this {type(model).__name__} has {len(found)} parts that {what}, "
                "and not one: steer its residual stream"
            )
        child = next(n for n, part in inside.items() if part is found[0].part)
        _refuse_sums(model, f"{name}.{child}", found[0], calls)
        names.append(f"{name}.{child}")
    return HeadLayout(tuple(names), 1, layout.head_dim)


def _is_linear(part: nn.Module) -> bool:
    return isinstance(part, nn.Linear | Conv1D)


def _has_a_matrix(part: nn.Module) -> bool:
    return any(x.dim() > 1 for x in (*part.parameters(), *part.buffers()))


def _fits(call: Call, width: int) -> bool:
    """Whether a part returns a state of the stream's shape."""
    output = call.output[0] if isinstance(call.output, tuple | list) else call.output
    return isinstance(output, Tensor) and output.dim() == 3 and output.shape[-1] == width


def _mixes(call: Call) -> bool:
    """Whether what a part returns at the last token changes with the token before it.

    To either side and by several lengths: attention may be at the end of its range.
    """
    before = call.gave[:, -1].float()
    least = (1e-5 if call.gave.dtype == torch.float32 else 2e-2) * before.norm()
    moved = (_changed(call, by)[:, -1].float() for by in (0.1, -0.1, 1.0, -1.0, 10.0, -10.0))
    return any(bool((after - before).norm() > least) for after in moved)


@torch.no_grad()
def _changed(call: Call, by: float) -> Tensor:
    """Return what a part gives when the state at the token before the last is another."""
    changed: list[Tensor] = []

    def change(x: object) -> object:
        if not isinstance(x, Tensor) or changed or not _is_state(x, call.gave):
            return x
        ramp = torch.linspace(-by, by, x.shape[-1], device=x.device, dtype=x.dtype)
        changed.append(x.clone())
        changed[0][..., -2, :] += ramp * x.abs().max()
        return changed[0]

    args = [change(x) for x in call.args]
    again = call.part(*args, **{name: change(x) for name, x in call.options.items()})
    return again if isinstance(again, Tensor) else again[0]


def _is_state(x: Tensor, like: Tensor) -> bool:
    return x.is_floating_point() and x.dim() > 1 and x.shape[-2] == like.shape[-2] and x.dim() < 4


def _refuse_sums(model: PreTrainedModel, name: str, call: Call, calls: list[Call]) -> None:
    """Raise ValueError for a part whose output holds the state that it was given."""
    inside = set(call.part.modules())
    last = [x.gave for x in calls if x.part in inside and _is_linear(x.part)][-1:]
    if last and is_same(last[0], call.gave):
        return
    states = [x for x in call.given if x.shape == call.gave.shape]
    if len(states) > 1 or any(
        is_same(given + state, call.gave)
        for given in last
        for state in states
        if given.numel() == state.numel()
        for given in [given.view(state.shape)]
    ):
        raise ValueError(
            f"{name} of this {type(model).__name__} adds the state that it was given to its output:"
            " steer its residual stream"
        )
