r"""From pairs of texts to a vector of the residual stream, and its use while a model generates.

Contrastive activation addition (Rimsky et al., 2024) and representation reading (Zou et al.,
2023): a direction θ is read from the stream x_l at the last tokens of wanted and unwanted texts,
and x_l + α σ θ takes the place of x_l, with σ the standard deviation of these states along θ. So a
strength α means the same in every layer and model. The paper edits heads by questions instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.common.validation import Array
from conceptnb.steering import vector_files
from conceptnb.steering.intervention import Positions
from conceptnb.steering.pairs import Pair, encode_pairs
from conceptnb.steering.residual import ResidualIntervention, find_layers, residual_at_end

_FOLDS, _FEWEST = 5, 4


class Estimator(Protocol):
    """What finds a direction in pairs of states."""

    def direction(self, wanted: Array, unwanted: Array) -> Array:
        """Return a direction (d,) of any length, from unwanted to wanted states, both (n, d)."""


@dataclass(frozen=True)
class MeanDifference:
    """The mean of wanted minus unwanted states; centring them changes nothing."""

    def direction(self, wanted: Array, unwanted: Array) -> Array:
        """Return the mean difference."""
        return (wanted - unwanted).mean(axis=0)


@dataclass(frozen=True)
class PrincipalComponent:
    """The first principal component of the differences of pairs, towards what is wanted.

    Parameters
    ----------
    centred : bool
        Subtract the mean difference first, so that only what varies from pair to pair is left
        (``pca_diff`` of repeng). By default it is not: the mean difference counts, as in
        steering-vectors and in repeng's ``pca_center``, which centres each pair.
    """

    centred: bool = False

    def direction(self, wanted: Array, unwanted: Array) -> Array:
        """Return the component, of length 1."""
        difference = wanted - unwanted
        used = difference - difference.mean(axis=0) if self.centred else difference
        found = np.linalg.svd(used, full_matrices=False)[2][0]
        return found if (difference @ found).mean() >= 0 else -found


@dataclass(frozen=True)
class Probe:
    """The weights of a logistic regression that tells wanted from unwanted states.

    Parameters
    ----------
    penalty : float
        Weight of the squared length of the weights, for states in units of their spread.
    centred : bool
        Take each pair around its own mean, so that what it is about cannot be used (the default),
        or all states around their common mean.
    """

    penalty: float = 1.0
    centred: bool = True

    def direction(self, wanted: Array, unwanted: Array) -> Array:
        """Return the weights."""
        middle = (wanted + unwanted) / 2
        if not self.centred:
            middle = middle.mean(axis=0, keepdims=True)
        states = np.concatenate([wanted - middle, unwanted - middle])
        states /= np.sqrt((states**2).sum(axis=1).mean()) or 1.0
        labels = np.repeat([1, 0], len(wanted))
        probe = LogisticRegression(C=1 / self.penalty, fit_intercept=False, max_iter=2000)
        return probe.fit(states, labels).coef_[0]


@dataclass(frozen=True, eq=False)
class ResidualVector:
    """Steps of the residual stream, one for each steered layer.

    Parameters
    ----------
    steps : mapping of int to ndarray
        What strength 1 adds to the state that a layer, counted from 0, hands on: float32 of shape
        (hidden size,). Of a fitted vector that is one standard deviation along the direction; of
        one that was made elsewhere, the vector as it is.
    agreement : ndarray of shape (layers,)
        How well the direction of each layer holds for pairs that it was not fitted to: see
        `held_out_agreement`. Empty where that is not known.
    """

    steps: Mapping[int, np.ndarray]
    agreement: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        if not self.steps or any(np.ndim(step) != 1 for step in self.steps.values()):
            raise ValueError("steps has no layer, or one whose step is not (hidden size,)")
        if bad := [k for k, step in self.steps.items() if not np.isfinite(step).all()]:
            raise ValueError(f"steps holds entries that are NaN or infinite in the layers {bad}")

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers that are steered, in order, counted from 0."""
        return tuple(sorted(self.steps))

    def at(self, *layers: int) -> Self:
        """Return the vector of some of its layers; ValueError for one that it does not hold."""
        if not layers or (missing := sorted(set(layers) - set(self.steps))):
            raise ValueError(f"layers={layers}: {missing or 'none'} of {self.layers}; give these")
        return type(self)({k: self.steps[k] for k in layers}, self.agreement)

    def intervention(self, model: PreTrainedModel, strength: float = 1.0) -> ResidualIntervention:
        """Return the edit of a model, ``strength`` times the steps.

        Raises
        ------
        ValueError
            As `find_layers`; or if the model has other layers or another hidden size, or the
            strength is not finite.
        """
        layout = find_layers(model)
        widths = {len(step) for step in self.steps.values()}
        if widths != {layout.head_dim} or not 0 <= self.layers[0] <= self.layers[-1] < (
            layout.n_layers
        ):
            raise ValueError(
                f"the vector is for the layers {self.layers} of width {sorted(widths)}, and this "
                f"{type(model).__name__} has {layout.n_layers} layers of width {layout.head_dim}: "
                "fit a vector to this model"
            )
        if not np.isfinite(strength):
            raise ValueError(f"strength is {strength}: give a finite number")
        offsets = torch.zeros(layout.shape)
        for layer, step in self.steps.items():
            offsets[layer, 0] = strength * torch.as_tensor(step, dtype=torch.float32)
        return ResidualIntervention(offsets)

    def apply(
        self,
        model: PreTrainedModel,
        strength: float = 1.0,
        positions: Positions | Tensor = "all",
    ) -> AbstractContextManager[None]:
        """Steer a model inside a ``with`` block.

        Parameters
        ----------
        strength : float
            In standard deviations of the stream along the vector; negative for the reverse.
        positions
            As in `ResidualIntervention.apply`.

        Raises
        ------
        ValueError
            As :meth:`intervention`.
        """
        return self.intervention(model, strength).apply(model, positions)

    def bake(self, model: PreTrainedModel, strength: float = 1.0) -> PreTrainedModel:
        """Return a plain model that computes what the steered one does, where there is one.

        Raises ValueError as `ResidualIntervention.bake`, where a bias cannot do the same.
        """
        return self.intervention(model, strength).bake(model)

    def save(self, path: str | Path, **metadata: str) -> None:
        """Write the vector as safetensors, with metadata: of which model, learned how."""
        vector_files.write_safetensors(path, self.steps, self.agreement, metadata)

    def save_gguf(self, path: str | Path, model_hint: str, strength: float = 1.0) -> None:
        """Write a control vector for llama.cpp, as it adds it at scale 1.

        Parameters
        ----------
        model_hint : str
            Name of the model's architecture, such as ``model.config.model_type``.
        strength : float
            Multiplies the steps.

        Raises
        ------
        ImportError
            If the package gguf is not installed.
        ValueError
            If the first layer is steered, which llama.cpp cannot do.
        """
        scaled = {layer: strength * self.steps[layer] for layer in self.layers}
        vector_files.write_gguf(path, scaled, model_hint)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a vector of :meth:`save`; a GGUF control vector of this package, repeng or
        llama.cpp; ``torch.save(vector.layer_activations, path)`` of steering-vectors; or a tensor
        (layers, hidden size), as hidden-directions saves it.

        No code is run: what needs pickle is refused.

        Raises
        ------
        FileNotFoundError, ValueError, ImportError
            If there is no such file; it holds no vector; or it is GGUF and gguf is not installed.
        """  # noqa: D205 - three origins
        return cls(*vector_files.read_vector(path))


def held_out_agreement(wanted: Array, unwanted: Array, estimator: Estimator) -> Array:
    """Return how alike pairs move along a direction that was fitted to other pairs, (layers,).

    In each of five folds the direction is fitted to the other four. Over all pairs, the agreement
    is the mean of ⟨θ, wanted - unwanted⟩ over its root mean square: 1 if each held-out pair moves
    by the same amount, 0 if they move to and fro.

    Parameters
    ----------
    wanted, unwanted : ndarray of shape (pairs, layers, d)
        States; four pairs or more.
    """
    n, n_layers, _ = wanted.shape
    moved = np.empty((n, n_layers))
    folds = np.arange(n) % min(_FOLDS, n)
    for fold in np.unique(folds):
        out = folds == fold
        for layer in range(n_layers):
            direction = estimator.direction(wanted[~out, layer], unwanted[~out, layer])
            length = np.linalg.norm(direction) or 1.0
            moved[out, layer] = (wanted - unwanted)[out, layer] @ (direction / length)
    spread = np.sqrt((moved**2).mean(axis=0))
    return np.divide(moved.mean(axis=0), spread, out=np.zeros(n_layers), where=spread > 0)


def fit_steering_vector(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    pairs: Sequence[Pair],
    *,
    estimator: Estimator | None = None,
    layers: int | Sequence[int] | slice | None = None,
    batch_size: int = 16,
) -> ResidualVector:
    """Fit a vector of the residual stream to pairs of texts or chats.

    ``with fit_steering_vector(model, tokenizer, pairs).apply(model, strength=1.5):`` steers all
    that the block computes.

    Parameters
    ----------
    pairs : sequence of (text, text)
        What is wanted, and what is not; texts, or chats of messages with ``role`` and ``content``.
        The stream is read at the last token of each.
    estimator : Estimator, optional
        `MeanDifference` by default; `PrincipalComponent`, `Probe`, or an object of your own.
    layers : int, sequence of int or slice, optional
        Which layers are steered, counted from 0, or from the end if negative; ``slice(None)`` for
        all. By default the one in the middle half of the model with the largest agreement on
        held-out pairs; with fewer than four pairs, the middle one.
    batch_size : int
        Texts per forward pass.

    Returns
    -------
    ResidualVector
        Its steps are one standard deviation of the states of `pairs` along the direction.

    Raises
    ------
    ValueError
        As `encode_pairs` and `find_layers`; or if there is no such layer, or the states of the
        pairs do not differ in one.
    """
    estimator = MeanDifference() if estimator is None else estimator
    texts = encode_pairs(model, tokenizer, pairs)
    n_layers = find_layers(model).n_layers
    known = None if layers is None else _numbers(layers, n_layers)
    states = residual_at_end(model, [*texts[0], *texts[1]], batch_size)[:, :, 0].astype(float)
    wanted, unwanted = states[: len(pairs)], states[len(pairs) :]
    agreement = np.empty(0)
    if len(pairs) >= _FEWEST:
        agreement = held_out_agreement(wanted, unwanted, estimator)
    if known is None:
        known = [usual_layer(agreement, n_layers)]
    steps = {k: _step(estimator, wanted[:, k], unwanted[:, k], k) for k in known}
    return ResidualVector(steps, agreement)


def _numbers(layers: int | Sequence[int] | slice, n_layers: int) -> list[int]:
    if isinstance(layers, slice):
        found = list(range(n_layers))[layers]
    else:
        given = np.atleast_1d(np.asarray(layers))
        if given.dtype.kind != "i" or given.ndim != 1 or not (abs(given + 0.5) < n_layers).all():
            raise ValueError(f"layers={layers}: give numbers from 0 to {n_layers - 1}")
        found = sorted({int(k) % n_layers for k in given})
    if not found:
        raise ValueError(f"layers={layers} holds none of the model's {n_layers} layers")
    return found


def usual_layer(agreement: np.ndarray, n_layers: int) -> int:
    """Return the layer of the middle half with the largest agreement, or the middle one.

    Near the ends the stream is about the last words of a text, read or to be written.
    """
    low, high = n_layers // 4, max(n_layers - n_layers // 4, n_layers // 4 + 1)
    if not agreement.size:
        return (low + high - 1) // 2
    return low + int(np.argmax(agreement[low:high]))


def _step(estimator: Estimator, wanted: Array, unwanted: Array, layer: int) -> np.ndarray:
    """Return σ θ of one layer, as float32."""
    direction = np.asarray(estimator.direction(wanted, unwanted), dtype=float)
    length = np.linalg.norm(direction)
    if not length > 0:
        raise ValueError(
            f"pairs do not differ in layer {layer} at their last tokens: let the texts differ, "
            "or give another layer"
        )
    unit = direction / length
    sigma = (np.concatenate([wanted, unwanted]) @ unit).std()
    return (sigma * unit).astype(np.float32)
