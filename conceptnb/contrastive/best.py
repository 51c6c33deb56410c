"""The book's best estimator: linear solution first, then a network that corrects it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from tqdm.auto import tqdm

from conceptnb.contrastive.data import stack
from conceptnb.contrastive.encoders import LinearEncoder, MLPEncoder
from conceptnb.contrastive.fitting import ConceptFit, check_targets
from conceptnb.contrastive.heads import TiedHead
from conceptnb.contrastive.linear import LinearFit, fit_linear
from conceptnb.contrastive.model import ConceptModel, Whitening
from conceptnb.contrastive.training import Trainer, TrainingConfig, evaluate

__all__ = ["fit_best"]

CORRECTION = TrainingConfig(
    loss="softmax",
    epochs=30,
    batch_size=1024,
    encoder_rate=0.003,
    head_rate=0.02,
    l1=0.0,
    decay=1e-4,
)
"""How the network beside the linear solution is trained."""


def fit_best(
    observations: Sequence[ArrayLike],
    environment: ArrayLike,
    targets: ArrayLike,
    *,
    linear: bool,
    seeds: Sequence[int] | None = None,
    held_out: float = 0.2,
    progress: bool = True,
) -> ConceptFit:
    """Learn concepts with known targets, without ever looking at the truth.

    Observations are whitened, β is tied to {0, 1/2}, and all environments are told apart
    in one softmax. :func:`~conceptnb.contrastive.linear.fit_linear` finds the linear
    encoder from many cheap starts. For nonlinear mixing a network is added to it, which
    starts near zero and so inherits the signs and the order that the linear encoder
    found. The epoch with the best held-out loss is kept.

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
    numbers = list(range(data.n_problems)) if seeds is None else list(seeds)
    if len(numbers) != data.n_problems:
        raise ValueError(f"seeds has {len(numbers)} entries for {data.n_problems} problems")
    whitening = Whitening.fit(data)
    train, held = replace(data, x=whitening(data.x)).split(held_out)
    fits = [
        fit_linear(x.double().numpy(), train.environment.numpy(), mask, np.random.default_rng(seed))
        for x, seed in zip(
            tqdm(train.x, desc="linear encoders", disable=not progress), numbers, strict=True
        )
    ]
    n = mask.shape[1]
    if linear:
        encoder = LinearEncoder(train.d_x, n, numbers)
        encoder.layer.weight.data = _directions(fits)
        model = ConceptModel(encoder, _head(fits, mask))
        before = evaluate(model, train, "softmax").double().numpy()[:, None]
        after = evaluate(model, held, "softmax").double().numpy()[:, None]
        return ConceptFit(model, whitening, before, after, after, "softmax")
    corrected = MLPEncoder(train.d_x, n, numbers, skip=True)
    corrected.start_linear(_directions(fits))
    trainer = Trainer(ConceptModel(corrected, _head(fits, mask)), train, held, CORRECTION)
    trainer.run(progress=progress)
    return ConceptFit(
        trainer.model,
        whitening,
        torch.stack(trainer.train_curve, dim=1).double().numpy(),
        torch.stack(trainer.held_out_curve, dim=1).double().numpy(),
        trainer.best[:, None].double().numpy(),
        "softmax",
    )


def _directions(fits: list[LinearFit]) -> Tensor:
    return torch.as_tensor(np.stack([fit.W for fit in fits]), dtype=torch.float32)


def _head(fits: list[LinearFit], mask: np.ndarray) -> TiedHead:
    head = TiedHead(len(fits), torch.as_tensor(mask))
    head.alpha.data = torch.as_tensor(np.stack([f.alpha[None] for f in fits])).float()
    head.gamma.data = torch.as_tensor(np.stack([f.gamma.T for f in fits])).float()
    return head
