"""Fit concept models to data of many problems, with starts chosen by held-out loss."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike

from conceptnb.core.validation import Array, as_count, as_points
from conceptnb.learning.data import Stack, stack
from conceptnb.learning.encoders import Encoder, LinearEncoder, MLPEncoder
from conceptnb.learning.heads import GeneralHead, Head, TargetHead
from conceptnb.learning.model import ConceptModel, Whitening, contrastive_loss
from conceptnb.learning.training import Trainer, TrainingConfig

__all__ = ["ConceptFit", "fit_concepts", "oracle_loss"]


@dataclass(frozen=True, eq=False)
class ConceptFit:
    """Fitted concept models of D problems, and how the fit went.

    Parameters
    ----------
    model : ConceptModel
        One model a problem: the start with the lowest held-out loss, unless the estimator
        says otherwise.
    whitening : Whitening or None
        What is applied to observations before the encoder.
    train_curve, held_out_curve : arrays of shape (D, epochs)
        Contrastive loss of the chosen models, in nats a row.
    held_out_loss : array of shape (D, starts)
        Best held-out loss of every start.
    kind : {"binary", "softmax"}
        Which loss these are.
    """

    model: ConceptModel
    whitening: Whitening | None
    train_curve: Array
    held_out_curve: Array
    held_out_loss: Array
    kind: str

    @property
    def n_problems(self) -> int:
        """Number D of problems."""
        return self.model.n_models

    def valuations(self, observations: Sequence[ArrayLike]) -> Array:
        """Return learned valuations h(x), shape (D, samples, n).

        Parameters
        ----------
        observations : sequence of D arrays of shape (samples, d_x)
            New or old observations, one array a problem.
        """
        return self._apply(self.model.encoder, observations)

    def log_odds(self, observations: Sequence[ArrayLike]) -> Array:
        """Return learned log-odds g_e(x) of (87), shape (D, samples, m).

        Parameters
        ----------
        observations : sequence of D arrays of shape (samples, d_x)
        """
        return self._apply(self.model, observations)

    @torch.no_grad()
    def _apply(self, module: torch.nn.Module, observations: Sequence[ArrayLike]) -> Array:
        if len(observations) != self.n_problems:
            raise ValueError(
                f"observations holds {len(observations)} arrays; give one a problem, "
                f"{self.n_problems} in all"
            )
        arrays = [as_points(X, f"observations[{i}]") for i, X in enumerate(observations)]
        alpha = self.model.head.alpha
        x = torch.as_tensor(np.stack(arrays), dtype=alpha.dtype, device=alpha.device)
        if self.whitening is not None:
            x = self.whitening(x)
        return module(x).cpu().double().numpy()


def fit_concepts(
    observations: Sequence[ArrayLike],
    environment: ArrayLike,
    *,
    n_concepts: int | None = None,
    targets: ArrayLike | None = None,
    encoder: Literal["linear", "mlp"] = "mlp",
    skip: bool = True,
    whiten: bool = True,
    starts: int = 4,
    seeds: Sequence[int] | None = None,
    held_out: float = 0.2,
    config: TrainingConfig | None = None,
    checkpoint: Path | None = None,
    device: str = "cpu",
    progress: bool = True,
) -> ConceptFit:
    """Learn concepts from environments by the contrastive algorithm of Appendix F.

    All starts of all problems train together. Of each problem's starts the one with the
    lowest held-out contrastive loss is kept: nothing here sees the truth.

    Parameters
    ----------
    observations : sequence of D arrays of shape (N, d_x)
        One array a problem; one problem is a list of one array.
    environment : int array of shape (N,)
        0 for the base distribution, 1 to m for the concept conditional environments.
        Within an environment, rows must come in no particular order.
    n_concepts : int, optional
        Number n of concepts, for the head as printed in (87), with dense β and γ.
    targets : bool array of shape (m, n), optional
        Which concepts each environment conditions on, the pattern of M in (7), if that
        is known; the head of the authors' code. Give either this or `n_concepts`.
    encoder : {"linear", "mlp"}
    skip : bool
        Give the network a linear map of x beside it (not in the paper).
    whiten : bool
        Whiten observations by the base sample first (not in the paper).
    starts : int
        Random starts a problem; the authors use 1.
    seeds : sequence of D int, optional
        Fix the starts of each problem; by default 0, 1, ...
    held_out : float
        Share of every environment that is held out.
    config : TrainingConfig, optional
    checkpoint : Path, optional
        Where to keep the state of a long training, see :meth:`Trainer.run`.
    device : str
        A torch device, such as "cpu" or "cuda".
    progress : bool

    Returns
    -------
    ConceptFit

    Raises
    ------
    TypeError, ValueError
        If arguments do not fit together; see also :func:`~conceptnb.learning.stack`.
    """
    data = stack(observations, environment).to(device)
    whitening = Whitening.fit(data) if whiten else None
    if whitening is not None:
        data = replace(data, x=whitening(data.x))
    count = as_count(starts, "starts")
    start_seeds = seeds_of_starts(check_seeds(seeds, data.n_problems), count)
    head = _build_head(len(start_seeds), data.n_environments, n_concepts, targets)
    n = head.coefficients()[0].shape[1]
    model = ConceptModel(_build_encoder(encoder, data, n, start_seeds, skip), head).to(device)
    trainer = Trainer(model, *data.split(held_out), config)
    trainer.run(checkpoint=checkpoint, progress=progress)
    return best_starts(trainer, whitening)


def best_starts(trainer: Trainer, whitening: Whitening | None) -> ConceptFit:
    """Keep, of every problem's starts, the model with the lowest held-out loss.

    Parameters
    ----------
    trainer : Trainer
        That has run.
    whitening : Whitening or None
        What its data have been through.
    """
    losses = trainer.best.view(trainer.train.n_problems, -1)
    first = torch.arange(trainer.model.n_models, device=losses.device).view(losses.shape)[:, 0]
    return keep_starts(trainer, whitening, first + losses.argmin(dim=1))


def keep_starts(trainer: Trainer, whitening: Whitening | None, chosen: torch.Tensor) -> ConceptFit:
    """Keep one start of every problem.

    Parameters
    ----------
    trainer : Trainer
        That has run.
    whitening : Whitening or None
        What its data have been through.
    chosen : int64 tensor of shape (D,)
        Which of its models to keep.
    """

    def curve(epochs: list[torch.Tensor]) -> Array:
        return torch.stack(epochs, dim=1)[chosen].cpu().double().numpy()

    return ConceptFit(
        model=select_models(trainer.model, chosen),
        whitening=whitening,
        train_curve=curve(trainer.train_curve),
        held_out_curve=curve(trainer.held_out_curve),
        held_out_loss=trainer.best.view(len(chosen), -1).cpu().double().numpy(),
        kind=trainer.config.loss,
    )


def oracle_loss(
    log_odds: Sequence[ArrayLike],
    environment: ArrayLike,
    *,
    held_out: float = 0.2,
    kind: str = "binary",
) -> Array:
    """Loss of given log-odds on the rows that :func:`fit_concepts` holds out, shape (D,).

    With the true log-odds of (86) this is the loss that no model beats in expectation.

    Parameters
    ----------
    log_odds : sequence of D arrays of shape (N, m)
        ln p^e/p^0 at the observations, such as ``problem.log_odds()``.
    environment : int array of shape (N,)
    held_out : float
        As given to :func:`fit_concepts`.
    kind : {"binary", "softmax"}
    """
    _, rows = stack(log_odds, environment, dtype=torch.float64).split(held_out)
    return contrastive_loss(rows.x, rows, kind).numpy()


def select_models(model: ConceptModel, index: torch.Tensor) -> ConceptModel:
    """Return a model that holds some of the P models of another."""
    chosen = copy.deepcopy(model)
    for parameter in chosen.parameters():
        parameter.data = parameter.data[index]
    return chosen


def _build_encoder(kind: str, data: Stack, n: int, seeds: Sequence[int], skip: bool) -> Encoder:
    if kind == "linear":
        return LinearEncoder(data.d_x, n, seeds)
    if kind == "mlp":
        return MLPEncoder(data.d_x, n, seeds, skip=skip)
    raise ValueError(f"encoder must be 'linear' or 'mlp', got {kind!r}")


def _build_head(n_models: int, m: int, n_concepts: int | None, targets: ArrayLike | None) -> Head:
    if (n_concepts is None) == (targets is None):
        raise ValueError("give either n_concepts (unknown targets) or targets (known targets)")
    if targets is None:
        return GeneralHead(n_models, as_count(n_concepts or 0, "n_concepts"), m)
    return TargetHead(n_models, torch.as_tensor(check_targets(targets, m)))


def check_seeds(seeds: Sequence[int] | None, n_problems: int) -> list[int]:
    """Return one seed a problem, by default 0, 1, ...

    Raises
    ------
    ValueError
        If there are more or fewer.
    """
    numbers = list(range(n_problems)) if seeds is None else list(seeds)
    if len(numbers) != n_problems:
        raise ValueError(f"seeds has {len(numbers)} entries for {n_problems} problems")
    return numbers


def seeds_of_starts(seeds: Sequence[int], starts: int) -> list[int]:
    """Return a seed for every start of every problem, problem by problem.

    They are far enough apart that no two starts of different problems coincide.
    """
    return [1000 * seed + start for seed in seeds for start in range(starts)]


def check_targets(targets: ArrayLike, m: int) -> np.ndarray:
    """Return targets as a bool array of shape (m, n) in which every concept occurs.

    Raises
    ------
    ValueError
        If the shape does not fit, or a column has no True (Assumption 2).
    """
    mask = np.asarray(targets).astype(bool)
    if mask.ndim != 2 or len(mask) != m:
        raise ValueError(
            f"targets must have shape ({m}, n), one row an environment; got {mask.shape}"
        )
    if not mask.any(axis=0).all():
        raise ValueError(
            "targets has a column without True: that concept is conditioned on nowhere"
        )
    return mask


def smallest_of_the_best(losses: Array) -> int:
    """Return the first candidate that is not worse than the best by two standard errors.

    Parameters
    ----------
    losses : array of shape (candidates, rows)
        Loss of every held-out row, candidates from small to large.
    """
    gaps = losses - losses[losses.mean(axis=1).argmin()]
    errors = gaps.std(axis=1) / np.sqrt(gaps.shape[1])
    return int(np.flatnonzero(gaps.mean(axis=1) <= 2 * errors)[0])
