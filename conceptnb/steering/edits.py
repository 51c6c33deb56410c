"""Edits while a model runs: where they act, that they happen, and that nothing of them stays.

Every layer edited has to be edited in every forward pass. Where one is not, as code was compiled or
a part was put in another's place, the pass raises.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from conceptnb.steering.attention import HeadLayout
from conceptnb.steering.guards import UNCOMPILED, refuse_what_is_steered_wrongly

Positions = Literal["all", "last"]


@contextmanager
def edited(
    model: PreTrainedModel,
    layout: HeadLayout,
    offsets: Tensor,
    positions: Positions | Tensor,
    *,
    before: bool,
) -> Iterator[None]:
    """Add offsets to what enters the modules of a layout, or to what leaves them.

    Parameters
    ----------
    offsets : Tensor
        Shape (layers, width), or (batch, layers, width).
    before : bool
        Whether they are added to what enters.

    Raises
    ------
    ValueError
        If positions are not what `Intervention.apply` takes, or do not fit.
    RuntimeError
        If a forward pass did not edit a layer that it should have.
    """
    named = isinstance(positions, str) and positions in ("all", "last")
    if not named and not (isinstance(positions, Tensor) and positions.dtype == torch.bool):
        raise ValueError(f"positions is {positions!r}; give 'all', 'last' or a boolean tensor")
    edits = _Edits(type(model).__name__, offsets, positions)
    modules = {layer: model.get_submodule(layout.projections[layer]) for layer in edits.layers}
    handles = []
    try:
        for outer in _around(model, layout.projections[0]):
            handles.append(outer.register_forward_pre_hook(edits.begin, with_kwargs=True))
            handles.append(outer.register_forward_hook(edits.end, always_call=True))
        for layer, module in modules.items():
            if before:
                handles.append(module.register_forward_pre_hook(edits.of_input(layer)))
            else:
                handles.append(module.register_forward_hook(edits.of_output(layer)))
        with UNCOMPILED:
            yield
        refuse_what_is_steered_wrongly(model)
    finally:
        for handle in handles:
            handle.remove()


def _around(model: PreTrainedModel, name: str) -> list[nn.Module]:
    """Return the models around a layer: each may be run, and is given an attention mask."""
    steps = name.split(".")
    outer = [model.get_submodule(".".join(steps[:k])) for k in range(len(steps))]
    return [x for x in dict.fromkeys(outer) if x is model or isinstance(x, PreTrainedModel)]


class _Pass(threading.local):
    """The forward pass that a thread is in: how deep, its mask, and the layers edited so far."""

    depth = 0
    mask: Any = None
    places: Tensor | None = None
    done: frozenset[int] = frozenset()


class _Edits:
    """State of one ``with`` block: offsets of each layer, on its device, and where to add them."""

    def __init__(self, name: str, offsets: Tensor, positions: Positions | Tensor) -> None:
        self.name = name  # of the model's class
        self.offsets = offsets  # (layers, heads · width), or with a batch before that
        self.positions = positions
        self.now = _Pass()
        used = (offsets != 0).any(-1)
        self.layers = (used.any(0) if used.dim() == 2 else used).nonzero().flatten().tolist()
        self._placed: dict[int, Tensor] = {}

    def begin(self, module: nn.Module, args: tuple, kwargs: dict) -> None:
        """Begin a forward pass, and keep its attention mask, which says where texts end."""
        if not self.now.depth:
            self.now.mask, self.now.places, self.now.done = None, None, frozenset()
        self.now.depth += 1
        bound = inspect.signature(module.forward).bind_partial(*args, **kwargs)
        given = {**bound.arguments, **kwargs}
        if given.get("attention_mask") is not None:
            self.now.mask = given["attention_mask"]
        if given.get("position_ids") is not None:
            self.now.places = given["position_ids"]

    def end(self, module: nn.Module, args: tuple, output: Any) -> None:
        """End a forward pass; raise if it left a layer as it was. Without output it broke off."""
        self.now.depth -= 1
        if self.now.depth or output is None:
            return
        if missing := [layer for layer in self.layers if layer not in self.now.done]:
            raise RuntimeError(
                f"{self.name} ran and was not steered: the hooks of layers {missing} did not run. "
                "Give the model as it was before it was compiled or wrapped"
            )

    def of_input(self, layer: int) -> Callable[[nn.Module, tuple], tuple]:
        """Return a hook that edits the first argument of a module."""
        return lambda _, inputs: (self._edit(layer, inputs[0]), *inputs[1:])

    def of_output(self, layer: int) -> Callable[[nn.Module, tuple, Any], Any]:
        """Return a hook that edits what a module returns, or the first part of it."""

        def edit(_: nn.Module, __: tuple, output: Any) -> Any:
            if isinstance(output, Tensor):
                return self._edit(layer, output)
            return (self._edit(layer, output[0]), *output[1:])

        return edit

    def _edit(self, layer: int, state: Tensor) -> Tensor:
        self.now.done |= {layer}
        offset = self._offset(layer, state)
        where = self._where(state)
        return state + (offset if where is None else offset * where)

    def _offset(self, layer: int, heads: Tensor) -> Tensor:
        """Offsets as (1 or batch, 1, heads · width), in the activations' type, on their device."""
        if layer not in self._placed:
            offset = self.offsets[..., layer, :].to(heads.device, heads.dtype)
            self._placed[layer] = offset.reshape(-1, 1, heads.shape[-1])
        offset = self._placed[layer]
        if self.offsets.dim() == 3 and offset.shape[0] != heads.shape[0]:
            raise ValueError(
                f"the intervention holds offsets for {offset.shape[0]} texts, the batch has "
                f"{heads.shape[0]}; use select(rows) to give every row its offsets"
            )
        return offset

    def _where(self, heads: Tensor) -> Tensor | None:
        """Factors one and zero of shape (batch, positions, 1), or None for everywhere."""
        if isinstance(self.positions, Tensor):
            if self.positions.shape != heads.shape[:2]:
                raise ValueError(
                    f"positions has shape {tuple(self.positions.shape)}, the model runs on "
                    f"{tuple(heads.shape[:2])}"
                )
            return self.positions.to(heads.device, heads.dtype)[..., None]
        length = heads.shape[1]
        if self.positions == "all" or length == 1:
            return None
        index = torch.arange(length, device=heads.device)
        return (index == self._last(length, heads.device)).to(heads.dtype)[..., None]

    def _last(self, length: int, device: torch.device) -> Tensor:
        """Return the index of the last token of each text, (batch, 1) or (1, 1)."""
        index = torch.arange(length, device=device)
        mask = self.now.mask
        if isinstance(mask, dict):  # one of each kind of layers; the past is seen best by the whole
            mask = mask.get("full_attention", next(iter(mask.values()), None))
        if isinstance(mask, Tensor) and mask.dim() == 2:
            # With a cache the mask covers the past too; its end is what runs now.
            here = mask[:, -length:].to(device)
            return (here * (index + 1)).argmax(1, keepdim=True)
        if isinstance(mask, Tensor) and mask.dim() == 4 and mask.shape[2] == length:
            # The first token that sees the latest; those of padding after it see no later one.
            sees = mask[:, 0].to(device)
            sees = sees if sees.dtype == torch.bool else sees > torch.finfo(sees.dtype).min / 2
            latest = (sees * torch.arange(1, sees.shape[-1] + 1, device=device)).amax(-1)
            return latest.argmax(1, keepdim=True)
        places = self.now.places
        packed = places is not None and (places.diff() <= 0).any()
        if mask is not None or packed or not self.now.depth:
            raise ValueError(
                "positions is 'last', and nothing here says where a text ends: run the model with "
                "an attention mask of shape (batch, positions), or give a boolean tensor"
            )
        return torch.full((1, 1), length - 1, device=device)
