"""What parts of a model are given and what they give, in one pass."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Cache, PreTrainedModel


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a module: its arguments as they were then, and what it returned."""

    part: nn.Module
    args: tuple[Any, ...]
    options: dict[str, Any]
    output: Any

    @property
    def given(self) -> list[Tensor]:
        """The tensors among the arguments."""
        return [x for x in (*self.args, *self.options.values()) if isinstance(x, Tensor)]

    @property
    def gave(self) -> Tensor:
        """The tensor returned, or the first of several."""
        return self.output if isinstance(self.output, Tensor) else self.output[0]


def taken(model: PreTrainedModel, **options: Any) -> dict[str, Any]:
    """Return those of some options that a model's forward pass takes."""
    known = inspect.signature(model.forward).parameters
    anything = any(x.kind is inspect.Parameter.VAR_KEYWORD for x in known.values())
    return {name: x for name, x in options.items() if anything or name in known}


@torch.no_grad()
def record_calls(model: PreTrainedModel, parts: Iterable[nn.Module], ids: Tensor) -> list[Call]:
    """Run a model once, without a cache, and return the calls of some parts as they ended."""
    begun: list[tuple[tuple, dict]] = []
    ended: list[Call] = []

    def begin(_: nn.Module, args: tuple, options: dict) -> None:
        begun.append((_copied(args), _copied(options)))

    def end(part: nn.Module, _: tuple, __: dict, output: Any) -> None:
        ended.append(Call(part, *begun.pop(), _copied(output)))

    handles = []
    for part in dict.fromkeys(parts):
        handles.append(part.register_forward_pre_hook(begin, with_kwargs=True))
        handles.append(part.register_forward_hook(end, with_kwargs=True))
    try:
        model(input_ids=ids, **taken(model, use_cache=False))
    finally:
        for handle in handles:
            handle.remove()
    return ended


def _copied(value: Any) -> Any:
    """Return a copy of the tensors in what a module takes or gives: some change them in place.

    Without caches, which a further call would fill again.
    """
    if isinstance(value, Cache):
        return None
    if isinstance(value, Tensor):
        return value.detach().clone()
    if type(value) in (tuple, list):
        return type(value)(map(_copied, value))
    if isinstance(value, dict):
        return {name: _copied(x) for name, x in value.items()}
    return value
