"""The book's best estimator: linear solutions first, then networks that correct them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from tqdm.auto import tqdm

from conceptnb.core.validation import as_count
from conceptnb.learning.data import Stack, stack
from conceptnb.learning.encoders import LinearEncoder, MLPEncoder
from conceptnb.learning.fitting import (
    ConceptFit,
    best_starts,
    check_seeds,
    check_targets,
    seeds_of_starts,
)
from conceptnb.learning.heads import TiedHead
from conceptnb.learning.linear import LinearFit, fit_linear_rivals
from conceptnb.learning.model import ConceptModel, Whitening
from conceptnb.learning.training import Trainer, TrainingConfig, evaluate

__all__ = ["fit_best"]

CORRECTION = TrainingConfig(
    loss="softmax",
    epochs=30,
    batch_size=1024,
    encoder_rate=0.01,
    head_rate=0.02,
    l1=0.0,
    decay=3e-5,
)
"""How the network beside the linear solution is trained."""
WIDTH = 64
"""Hidden units of that network, in one layer."""


def fit_best(
    observations: Sequence[ArrayLike],
    environment: ArrayLike,
    targets: ArrayLike,
    *,
    linear: bool,
    starts: int = 2,
    seeds: Sequence[int] | None = None,
    held_out: float = 0.2,
    progress: bool = True,
) -> ConceptFit:
    """Learn concepts with known targets, without ever looking at the truth.

    Observations are whitened, β is tied to {0, 1/2}, and all environments are told apart
    in one softmax. :func:`~conceptnb.learning.linear.fit_linear` finds the linear
    encoder from many cheap starts. For nonlinear mixing a network is added to it, which
    starts near zero and so inherits the signs and the order that the linear encoder
    found. Several networks start at the linear encoders between which the data do not
    decide (:func:`~conceptnb.learning.linear.fit_linear_rivals`), all of them at the
    best one if it has no rival. The network and the epoch with the best held-out loss are
    kept.

    Parameters
    ----------
    observations : sequence of D arrays of shape (N, d_x)
    environment : int array of shape (N,)
        0 for the base distribution, 1 to m for the concept conditional environments.
        Within an environment, rows must come in no particular order.
    targets : bool array of shape (m, n)
        Which concepts each environment conditions on.
    linear : bool
        Whether the linear encoder is all.
    starts : int
        Networks a problem; time grows with it. Of no effect if `linear`.
    seeds : sequence of D int, optional
        Fix the starts of each problem; by default 0, 1, ...
    held_out : float
        Share of every environment that is held out.
    progress : bool

    Returns
    -------
    ConceptFit
        With curves of one epoch if `linear`. Losses are those of the softmax.
    """
    data = stack(observations, environment)
    mask = check_targets(targets, data.n_environments)
    numbers = check_seeds(seeds, data.n_problems)
    whitening = Whitening.fit(data)
    train, held = replace(data, x=whitening(data.x)).split(held_out)
    count = 1 if linear else as_count(starts, "starts")
    fits = linear_starts(train, mask, numbers, count, progress)
    if linear:
        encoder = LinearEncoder(train.d_x, mask.shape[1], numbers)
        encoder.layer.weight.data = _directions(fits)
        model = ConceptModel(encoder, _head(fits, mask))
        before = evaluate(model, train, "softmax").double().numpy()[:, None]
        after = evaluate(model, held, "softmax").double().numpy()[:, None]
        return ConceptFit(model, whitening, before, after, after, "softmax")
    networks = start_networks(fits, mask, seeds_of_starts(numbers, count))
    trainer = Trainer(networks, train, held, CORRECTION)
    trainer.run(progress=progress)
    return best_starts(trainer, whitening)


def linear_starts(
    data: Stack, targets: np.ndarray, seeds: Sequence[int], count: int, progress: bool
) -> list[LinearFit]:
    """Return `count` linear encoders for every problem, between which its data do not decide.

    A problem with fewer rivals gives them in turn, for all problems of a stack must have
    the same number of starts.

    Parameters
    ----------
    data : Stack
        Of D problems.
    targets : bool array of shape (m, n)
        Which concepts each environment conditions on.
    seeds : sequence of D int
        Fix the search in each problem.
    count : int
    progress : bool
    """
    fits: list[LinearFit] = []
    for x, seed in zip(
        tqdm(data.x, desc="linear encoders", disable=not progress), seeds, strict=True
    ):
        rivals = fit_linear_rivals(
            x.double().numpy(),
            data.environment.numpy(),
            targets,
            np.random.default_rng(seed),
            keep=count,
        )
        fits += [rivals[i % len(rivals)] for i in range(count)]
    return fits


def start_networks(
    fits: Sequence[LinearFit], targets: np.ndarray, seeds: Sequence[int]
) -> ConceptModel:
    """Return P networks that begin as linear encoders, with their heads.

    Parameters
    ----------
    fits : sequence of P LinearFit
    targets : bool array of shape (m, n)
        Which concepts each environment conditions on.
    seeds : sequence of P int
        Fix what each network adds to its linear encoder.
    """
    encoder = MLPEncoder(len(fits[0].W), targets.shape[1], seeds, width=WIDTH, depth=0, skip=True)
    encoder.start_linear(_directions(fits))
    return ConceptModel(encoder, _head(fits, targets))


def _directions(fits: Sequence[LinearFit]) -> Tensor:
    return torch.as_tensor(np.stack([fit.W for fit in fits]), dtype=torch.float32)


def _head(fits: Sequence[LinearFit], mask: np.ndarray) -> TiedHead:
    head = TiedHead(len(fits), torch.as_tensor(mask))
    head.alpha.data = torch.as_tensor(np.stack([f.alpha[None] for f in fits])).float()
    head.gamma.data = torch.as_tensor(np.stack([f.gamma.T for f in fits])).float()
    return head
