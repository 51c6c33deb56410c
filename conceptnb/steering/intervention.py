"""The intervention: add α σ θ to chosen head activations while a model runs (Appendix E.1).

x_{l+1} = x_l + Σ_h Q_h (x_h + α σ_h θ_h): vectors are added to what enters each
layer's output projection, for as long as a ``with`` block lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from conceptnb.steering.attention import find_heads

Positions = Literal["all", "last"]


class Steering(Protocol):
    """A steering vector or a steering matrix: gives each text its intervention."""

    def for_texts(self, texts: Sequence[str]) -> Intervention:
        """Return the intervention for a batch of texts."""


@dataclass(frozen=True)
class Intervention:
    """Vectors to add to head activations.

    Parameters
    ----------
    offsets : Tensor
        Shape (layers, heads, width) for the same offsets everywhere, or
        (batch, layers, heads, width) for offsets of each text of a batch, as a
        steering matrix gives them. Zero where a head is left alone.

    Examples
    --------
    >>> with steer.apply(model):  # doctest: +SKIP
    ...     model.generate(**prompt)
    """

    offsets: Tensor

    def __post_init__(self) -> None:
        if self.offsets.dim() not in (3, 4):
            raise ValueError(
                f"offsets has shape {tuple(self.offsets.shape)}; "
                "give (layers, heads, width) or (batch, layers, heads, width)"
            )

    @property
    def batch_size(self) -> int | None:
        """Texts with offsets of their own, or None where all share them."""
        return self.offsets.shape[0] if self.offsets.dim() == 4 else None

    def __add__(self, other: Intervention) -> Intervention:
        """Both at once. Nested ``with`` blocks do the same."""
        return Intervention(self.offsets + other.offsets)

    def __mul__(self, factor: float) -> Intervention:
        """Return the same direction, ``factor`` times as strong."""
        return Intervention(self.offsets * factor)

    __rmul__ = __mul__

    def for_texts(self, texts: Sequence[str]) -> Intervention:
        """Return this intervention: a steering vector is the same for every text."""
        return self

    def select(self, rows: Tensor) -> Intervention:
        """Offsets of the given rows of the batch, for instance one per beam or answer."""
        return self if self.batch_size is None else Intervention(self.offsets[rows])

    @contextmanager
    def apply(
        self, model: PreTrainedModel, positions: Positions | Tensor = "all"
    ) -> Iterator[None]:
        """Steer ``model`` inside a ``with`` block.

        On leaving, by the end or by an error, every hook is gone and the model
        computes what it computed before, bit for bit: no weight is touched.

        Parameters
        ----------
        model : PreTrainedModel
            Any model that :func:`conceptnb.steering.attention.find_heads` understands.
        positions : str or Tensor of bool
            ``"all"`` edits every position. ``"last"`` edits the last token of
            each text, wherever the padding is; under ``generate`` that is the
            end of the prompt and then every new token. A boolean tensor
            (batch, positions) edits where it is true.

        Raises
        ------
        ValueError
            If the offsets do not fit the model's heads or the batch.
        """
        layout = find_heads(model)
        if tuple(self.offsets.shape[-3:]) != layout.shape:
            raise ValueError(
                f"offsets are for (layers, heads, width) = {tuple(self.offsets.shape[-3:])}, but "
                f"the model has {layout.shape}; fit the intervention on this model"
            )
        if isinstance(positions, str) and positions not in ("all", "last"):
            raise ValueError(f"positions is {positions!r}; give 'all', 'last' or a boolean tensor")
        edits = _Edits(self.offsets.flatten(-2), positions)
        handles = [model.register_forward_pre_hook(edits.look_at_mask, with_kwargs=True)]
        try:
            for layer in edits.layers:
                module = model.get_submodule(layout.projections[layer])
                handles.append(module.register_forward_pre_hook(edits.hook(layer)))
            yield
        finally:
            for handle in handles:
                handle.remove()

    def save(self, path: str | Path) -> None:
        """Write the offsets as safetensors."""
        save_file({"offsets": self.offsets.contiguous()}, str(path))

    @classmethod
    def load(cls, path: str | Path) -> Intervention:
        """Read what :meth:`save` wrote."""
        return cls(load_file(str(path))["offsets"])


class _Edits:
    """State of one ``with`` block: offsets of each layer, on its device, and where to add them."""

    def __init__(self, offsets: Tensor, positions: Positions | Tensor) -> None:
        self.offsets = offsets  # (layers, heads · width), or with a batch before that
        self.positions = positions
        self.mask: Tensor | None = None
        used = (offsets != 0).any(-1)
        self.layers = (used.any(0) if used.dim() == 2 else used).nonzero().flatten().tolist()
        self._placed: dict[int, Tensor] = {}

    def look_at_mask(self, module: torch.nn.Module, args: tuple, kwargs: dict) -> None:
        """Keep the attention mask of this forward pass, which says where texts end."""
        self.mask = kwargs.get("attention_mask")

    def hook(self, layer: int) -> Callable[[torch.nn.Module, tuple], tuple]:
        """Pre-hook that adds the offsets of one layer."""

        def edit(module: torch.nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            heads = inputs[0]
            offset = self._offset(layer, heads)
            where = self._where(heads)
            return (heads + (offset if where is None else offset * where), *inputs[1:])

        return edit

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
        if self.mask is None or self.mask.dim() != 2:
            return (index == length - 1).to(heads.dtype)[None, :, None]
        # With a cache the mask covers the past too; its end is what runs now.
        here = self.mask[:, -length:].to(heads.device)
        last = (here * (index + 1)).argmax(1, keepdim=True)
        return (index == last).to(heads.dtype)[..., None]
