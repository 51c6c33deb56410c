"""The intervention: add α σ θ to chosen head activations while a model runs (Appendix E.1).

x_{l+1} = x_l + Σ_h Q_h (x_h + α σ_h θ_h), for as long as a ``with`` block lasts.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel
from transformers.pytorch_utils import Conv1D

from conceptnb.steering.attention import HeadLayout, find_heads
from conceptnb.steering.edits import Positions, edited


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
    """

    offsets: Tensor

    def __post_init__(self) -> None:
        if not self.offsets.isfinite().all():
            raise ValueError("offsets holds entries that are NaN or infinite")
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

        On leaving, by the end or by an error, every hook is gone and the model computes what it
        computed before, bit for bit: no weight is touched. Hooks are the model's: every thread that
        runs it meanwhile is steered. Give each thread a model of its own. Inside the block, what
        `torch.compile` made, or `generate` makes for a static cache, runs as it was written.

        Parameters
        ----------
        positions : str or Tensor of bool
            ``"all"`` edits every position. ``"last"`` edits the last token of each text, wherever
            the padding is; under ``generate`` with a cache that is the end of the prompt and then
            every new token, but where a pass runs several new tokens (no cache, prompts in chunks,
            assistants, prompt lookup) the last of these. Or a boolean tensor (batch, positions).

        Raises
        ------
        ValueError
            If the offsets do not fit the model's heads or the batch.
        RuntimeError
            If a forward pass left a layer as it was: its hooks did not run.
        """
        layout = find_heads(model)
        self._check_fit(layout)
        with edited(model, layout, self.offsets.flatten(-2), positions, before=True):
            yield

    def save(self, path: str | Path, **metadata: str) -> None:
        """Write the offsets as safetensors, with metadata: of which model, learned how."""
        kept = {"format": _FORMAT, "axes": " ".join(_AXES[-self.offsets.dim() :])} | metadata
        save_file({"offsets": self.offsets.contiguous()}, str(path), kept)

    @classmethod
    def load(cls, path: str | Path) -> Intervention:
        """Read what :meth:`save` wrote; raises ValueError if the file holds no offsets."""
        try:
            return cls(load_file(str(path))["offsets"])
        except (SafetensorError, KeyError) as error:
            raise ValueError(f"{path} holds no intervention: {error}") from None

    def bake(self, model: PreTrainedModel) -> PreTrainedModel:
        """Return a plain model that computes everywhere what `model` does when steered.

        Adding δ to what enters an output projection W adds W δ to what leaves it: the biases of
        the projections take up the vectors, and any engine runs the saved model. `model` stays as
        it is; where its family has no such biases the result is a Llama, which has.

        Raises
        ------
        ValueError
            If texts have offsets of their own, as a steering matrix gives them; the offsets do
            not fit; or there is no plain model with the same layers and biases.
        """
        if self.batch_size is not None:
            raise ValueError("only offsets that all texts share can become biases; select one row")
        layout = find_heads(model)
        self._check_fit(layout)
        baked = with_biases(model, layout.projections)
        with torch.no_grad():
            for layer, name in enumerate(layout.projections):
                weight = baked.get_parameter(f"{name}.weight").double()
                if isinstance(baked.get_submodule(name), Conv1D):  # GPT-2's: (inputs, outputs)
                    weight = weight.T
                delta = self.offsets[layer].flatten().to(weight.device, weight.dtype)
                baked.get_parameter(f"{name}.bias").add_(weight @ delta)
        return baked

    def _check_fit(self, layout: HeadLayout) -> None:
        if tuple(self.offsets.shape[-3:]) != layout.shape:
            raise ValueError(
                f"offsets are for (layers, heads, width) = {tuple(self.offsets.shape[-3:])}, but "
                f"the model has {layout.shape}; fit the intervention on this model"
            )


_FORMAT = "head offsets, added to what enters the output projections of attention"
_AXES = ("batch", "layers", "heads", "width")


def with_biases(model: PreTrainedModel, projections: Sequence[str]) -> PreTrainedModel:
    """Return a copy whose output projections have biases; those that it adds are zero."""
    for name, part in model.named_modules():
        weight = getattr(part, "weight", None)
        if isinstance(part, nn.Linear | Conv1D) and not _is_plain(weight):
            raise ValueError(
                f"the weights of {name} are quantised, and a plain model has others: steer it with "
                "apply(model)"
            )
    config = copy.deepcopy(model.config)
    kind: type[PreTrainedModel] = type(model)
    if hasattr(config, "attention_bias"):
        config.attention_bias = True
    if config.model_type in ("mistral", "qwen2") and not getattr(config, "sliding_window", None):
        # Llamas but for their biases, which these keep from the projection alone.
        settings = {k: v for k, v in config.to_dict().items() if k in LlamaConfig().to_dict()}
        settings |= {"attention_bias": True, "architectures": ["LlamaForCausalLM"]}
        settings.pop("model_type", None)
        config, kind = LlamaConfig(**settings), LlamaForCausalLM
    copied = kind(config).to(model.device, model.dtype).eval()  # type: ignore[arg-type]
    missing, unexpected = copied.load_state_dict(model.state_dict(), strict=False)
    added = [name for name in missing if name.endswith(".bias")]
    lacking = [n for n in projections if getattr(copied.get_submodule(n), "bias", None) is None]
    if lacking or unexpected or len(added) != len(missing):
        raise ValueError(
            f"{type(model).__name__} has no biases at {(lacking or projections)[0]} that a "
            "checkpoint could keep; steer it with apply(model)"
        )
    for name in added:
        nn.init.zeros_(copied.get_parameter(name))
    return copied


def _is_plain(weight: Tensor | None) -> bool:
    """Whether weights are numbers with a point, and no class of their own keeps them packed."""
    plain = isinstance(weight, Tensor) and type(weight.data) is Tensor
    return plain and weight is not None and weight.is_floating_point()
