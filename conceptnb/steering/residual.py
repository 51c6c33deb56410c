r"""Steering of the residual stream by concepts (ours; the paper edits heads, Appendix E.1).

x_{l+1} + v_l takes the place of x_{l+1}, the state that layer l hands on, for as long as a ``with``
block lasts. The stream counts as one head: its activations have shape (rows, layers, 1, hidden
size). `offset_of` turns a change of valuations into the v_l that disturbs least.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.common.validation import Array, as_array
from conceptnb.core.concepts import Concept, check_independent
from conceptnb.steering.activations import Activations, forward
from conceptnb.steering.attention import HeadLayout, input_device, last_linear_maps
from conceptnb.steering.edits import Positions, edited
from conceptnb.steering.intervention import Intervention, with_biases
from conceptnb.steering.questions import PromptStyle, Question, check_questions
from conceptnb.steering.sites import Finder, find_layers, find_mixer_outputs, find_mlp_outputs
from conceptnb.steering.spans import encode_questions, pad


def offset_of(delta: ArrayLike, concept: Concept | ArrayLike, covariance: ArrayLike) -> Array:
    r"""Return the offset that changes valuations by δ and disturbs activations least.

    It is v = Σ Aᵀ (A Σ Aᵀ)⁻¹ δ, the minimiser of ½ vᵀ Σ⁻¹ v subject to A v = δ: the gradient of
    the Lagrangian, Σ⁻¹ v - Aᵀ μ, is zero at v = Σ Aᵀ μ, and the constraint gives μ; the problem is
    convex. A singular Σ leaves only v in its range, of which this is the best.

    Parameters
    ----------
    delta : array-like of shape (k,) or (texts, k)
        Change of each valuation, such as the difference of two planes b.
    concept : Concept or array-like of shape (k, d)
        Its linear map A on activations.
    covariance : array-like of shape (d, d)
        Σ of the activations, such as that within the values of the concept.

    Returns
    -------
    Array of shape (d,) or (texts, d)

    Raises
    ------
    ValueError
        If shapes do not fit, rows of A are dependent, Σ is no covariance, or activations do not
        vary along a row of A.
    """
    A = concept.A if isinstance(concept, Concept) else check_independent(concept, "concept")
    change, sigma = as_array(delta, "delta", np.ndim(delta)), as_array(covariance, "covariance", 2)
    if sigma.shape != (A.shape[1],) * 2 or change.ndim not in (1, 2) or change.shape[-1] != len(A):
        raise ValueError(
            f"delta has shape {change.shape} and covariance {sigma.shape}; a concept of shape "
            f"{A.shape} needs ({len(A)},) or (texts, {len(A)}), and {(A.shape[1],) * 2}"
        )
    tolerance = 1e-8 * (np.abs(sigma).max() or 1.0)
    if np.abs(sigma - sigma.T).max() > tolerance or np.linalg.eigvalsh(sigma)[0] < -tolerance:
        raise ValueError("covariance is not symmetric with eigenvalues of zero or more: give Σ")
    across = A @ sigma @ A.T
    if np.linalg.matrix_rank(across, hermitian=True) < len(A):
        raise ValueError("covariance is zero along a row of the concept: drop it, or add a ridge")
    return change @ np.linalg.solve(across, A @ sigma)


@torch.no_grad()
def _states(
    model: PreTrainedModel, names: Sequence[str], texts: Sequence[Sequence[int]], at: Any
) -> Tensor:
    """Return what leaves each of some modules at an index, stacked, in one pass over texts."""
    seen: dict[str, Tensor] = {}

    def see(name: str) -> Any:
        def keep(_: nn.Module, __: tuple, out: Any) -> None:
            seen[name] = (out if isinstance(out, Tensor) else out[0])[at].float().cpu()

        return keep

    handles = [model.get_submodule(name).register_forward_hook(see(name)) for name in names]
    try:
        forward(model, *pad(texts, "right"))
    finally:
        for handle in handles:
            handle.remove()
    return torch.stack([seen[name] for name in names], 1)


def residual_at_end(
    model: PreTrainedModel,
    texts: Sequence[Sequence[int]],
    batch_size: int = 64,
    find: Finder = find_layers,
) -> np.ndarray:
    """Return what each layer hands on at the last token of each text, which is given as tokens.

    Shape (texts, layers, 1, hidden size). The last layer's state is that before the final norm,
    which transformers' hidden states do not hold. With another `find` of
    `conceptnb.steering.sites`, what each layer's mixer or MLP hands on. Raises ValueError as `find`
    does, or if there is no text or one without a token.
    """
    if not texts or not all(map(len, texts)):
        raise ValueError("texts holds no text, or one without a token: give tokens for each")
    layout, found = find(model), []
    for start in range(0, len(texts), batch_size):
        some = texts[start : start + batch_size]
        at = torch.arange(len(some)), torch.tensor([len(text) - 1 for text in some])
        found.append(_states(model, layout.projections, some, at)[:, :, None])
    return torch.cat(found).numpy()


def collect_residual(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    batch_size: int = 64,
    prompt: PromptStyle = "paper",
) -> Activations:
    """Return the residual stream at the last token of ``Q: {question} A: {answer}``, each answer.

    As `conceptnb.steering.activations.collect_activations`, with states of shape (rows, layers, 1,
    hidden size) in place of heads.
    """
    check_questions(list(questions))
    encoded = encode_questions(tokenizer, questions, style=prompt)
    states = residual_at_end(model, [x.ids for pairs in encoded for x in pairs], batch_size)
    ids = np.array([q.id for q in questions for _ in q.answers])
    return Activations(ids, np.array([true for q in questions for true in q.true]), states)


@dataclass(frozen=True)
class ResidualIntervention(Intervention):
    """Vectors to add to the residual stream where it leaves the layers.

    Parameters
    ----------
    offsets : Tensor
        Shape (layers, 1, hidden size) for the same offsets everywhere, or (batch, layers, 1,
        hidden size) for offsets of each text of a batch. Zero where a layer is left alone.
    """

    key: ClassVar[str] = "residual"

    @staticmethod
    def find(model: PreTrainedModel) -> HeadLayout:
        """Return the modules whose outputs are edited: `find_layers`."""
        return find_layers(model)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.offsets.shape[-2] != 1:
            raise ValueError(
                f"offsets has shape {tuple(self.offsets.shape)}; the residual stream is one head: "
                "give (layers, 1, hidden size) or (batch, layers, 1, hidden size)"
            )

    @classmethod
    def after(cls, model: PreTrainedModel, layer: int, offset: ArrayLike) -> Self:
        """Return the intervention that adds `offset` to what one layer hands on, counted from 0.

        `offset` has shape (hidden size,), or (batch, hidden size) for each text its own. Raises
        ValueError if it has another, or the model has no such layer.
        """
        layout, moved = cls.find(model), torch.as_tensor(offset, dtype=torch.float32)
        width, n_layers = layout.head_dim, layout.n_layers
        if moved.dim() not in (1, 2) or moved.shape[-1] != width or not 0 <= layer < n_layers:
            raise ValueError(
                f"layer is {layer} and offset has shape {tuple(moved.shape)}; give a layer from 0 "
                f"to {n_layers - 1}, and a shape of ({width},) or (batch, {width})"
            )
        offsets = torch.zeros((*moved.shape[:-1], *layout.shape))
        offsets[..., layer, 0, :] = moved
        return cls(offsets)

    def __add__(self, other: Intervention) -> Self:
        """Both at once; TypeError if the other edits heads, which nested ``with`` blocks can."""
        if not isinstance(other, ResidualIntervention) or other.key != self.key:
            raise TypeError(
                "one edits another place than the other, heads or the residual stream or what is "
                "added to it: nest `with` blocks"
            )
        return replace(self, offsets=self.offsets + other.offsets)

    __radd__ = __add__

    def __mul__(self, factor: float) -> Self:
        """Return the same direction, ``factor`` times as strong."""
        return replace(self, offsets=self.offsets * factor)

    __rmul__ = __mul__

    def select(self, rows: Tensor) -> Self:
        """Offsets of the given rows of the batch, for instance one per beam or answer."""
        return self if self.batch_size is None else replace(self, offsets=self.offsets[rows])

    @contextmanager
    def apply(
        self, model: PreTrainedModel, positions: Positions | Tensor = "all"
    ) -> Iterator[None]:
        """Steer ``model`` inside a ``with`` block; parameters and errors as `Intervention.apply`.

        The layers after compute their keys and values from steered states. On leaving, every hook
        is gone, and no weight was touched.
        """
        layout = self.find(model)
        self._check_fit(layout)
        with edited(model, layout, self.offsets.flatten(-2), positions, before=False):
            yield

    def save(self, path: str | Path, **metadata: str) -> None:
        """Write the offsets as safetensors, with metadata: of which model, learned how."""
        kept = {
            "format": f"offsets of the residual stream, added to what leaves {_LEAVES[self.key]}"
        }
        save_file({self.key: self.offsets.contiguous()}, str(path), kept | metadata)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote; raises ValueError for anything else, edits of heads too."""
        try:
            return cls(load_file(str(path))[cls.key])
        except (SafetensorError, KeyError) as error:
            raise ValueError(
                f"{path} holds no offsets of a residual stream, at {_LEAVES[cls.key]}: {error}"
            ) from None

    def bake(self, model: PreTrainedModel) -> PreTrainedModel:
        """Return a plain model that computes everywhere what `model` does when steered.

        The bias of the linear map that runs last in each layer takes up the layer's offset. Raises
        ValueError as `Intervention.bake`, or if the result does not compute the same: a layer
        changes what that map returns.
        """
        if self.batch_size is not None:
            raise ValueError("only offsets that all texts share can become biases; select one row")
        layout = self.find(model)
        self._check_fit(layout)
        last = last_linear_maps(model, [model.get_submodule(x) for x in layout.projections])
        known = {part: name for name, part in model.named_modules()}
        names = [known[part] for part in last]
        allowing = copy.copy(model)  # the same weights, under a configuration with biases
        allowing.config = copy.deepcopy(model.config)
        allowing.config.mlp_bias = True
        baked = with_biases(allowing, names)
        with torch.no_grad():
            for name, offset in zip(names, self.offsets[:, 0], strict=True):
                bias = baked.get_parameter(f"{name}.bias")
                bias.add_(offset.to(bias.device, bias.dtype))
            ids = torch.arange(16, device=input_device(model))[None]
            with self.apply(model):
                steered = model(input_ids=ids).logits
            off = (baked(input_ids=ids).logits - steered).norm() / steered.norm()
        if off > (1e-4 if model.dtype == torch.float32 else 0.05):
            raise ValueError(
                f"{type(model).__name__} changes what the last linear map of a layer returns: "
                "steer it with apply(model)"
            )
        return baked


@dataclass(frozen=True)
class MixerIntervention(ResidualIntervention):
    """Vectors to add to what each layer's attention, or other mixer of tokens, hands on.

    Parameters as those of `ResidualIntervention`.
    """

    key: ClassVar[str] = "attention_output"

    @staticmethod
    def find(model: PreTrainedModel) -> HeadLayout:
        """Return the modules whose outputs are edited: `find_mixer_outputs`."""
        return find_mixer_outputs(model)


@dataclass(frozen=True)
class MLPIntervention(ResidualIntervention):
    """Vectors to add to what each layer's MLP hands on; parameters as `ResidualIntervention`."""

    key: ClassVar[str] = "mlp_output"

    @staticmethod
    def find(model: PreTrainedModel) -> HeadLayout:
        """Return the modules whose outputs are edited: `find_mlp_outputs`."""
        return find_mlp_outputs(model)


_LEAVES = {
    ResidualIntervention.key: "each layer",
    MixerIntervention.key: "the attention of each layer",
    MLPIntervention.key: "the MLP of each layer",
}
