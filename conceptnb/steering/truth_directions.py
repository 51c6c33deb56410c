"""Directions of truth, each (layers, heads, width), for a steering vector (App. E.3, Table 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from conceptnb.steering.activations import Activations
from conceptnb.steering.questions import Question


def mass_mean(activations: Activations, questions: Sequence[Question]) -> np.ndarray:
    """Mean of h(c_T) − h(c_F) over pairs, equation (81), shape (layers, heads, width)."""
    return activations.differences(questions).mean(0)


def principal_direction(activations: Activations, questions: Sequence[Question]) -> np.ndarray:
    """Top principal component of the differences, signed like their mean (E.3, after (85))."""
    differences = activations.differences(questions)
    # The differences are not centred: their mean is part of what they share.
    second = np.einsum("qlhi,qlhj->lhij", differences, differences)
    top = np.linalg.eigh(second)[1][..., -1]
    agrees = np.einsum("lhd,lhd->lh", top, differences.mean(0)) >= 0
    return np.where(agrees[..., None], top, -top)


def random_direction(shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
    """Uniformly random unit direction for every head, shape (layers, heads, width)."""
    direction = rng.normal(size=shape).astype(np.float32)
    return direction / np.linalg.norm(direction, axis=-1, keepdims=True)


def ccs_direction(
    activations: Activations,
    questions: Sequence[Question],
    rng: np.random.Generator,
    restarts: int = 3,
    steps: int = 300,
) -> np.ndarray:
    """Contrast-consistent search (Burns et al., [17] in the paper) on every head at once.

    Looks for p(x) = sigmoid(⟨θ, x⟩ + c) with p(a) = 1 − p(b) for the two answers (a, b) of a pair,
    in an order that hides which is true, and away from p = 1/2: mean of (p(a) + p(b) − 1)² +
    min(p(a), p(b))². The pair is a question's best answer and one false one, each centred over
    questions. Labels serve only to sign the direction found, shape (layers, heads, width).

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws the pairs' order, the false answers and the starting points.
    restarts : int
        Starts per head; the one of least loss is kept.
    steps : int
        Adam steps at learning rate .01.
    """
    asked = [activations.select([question]) for question in questions]
    true = np.stack([rows.heads[q.best] for rows, q in zip(asked, questions, strict=True)])
    false = np.stack([rng.choice(rows.heads[~rows.true]) for rows in asked])
    swap = rng.random(len(true)) < 0.5
    a = np.where(swap[:, None, None, None], false, true)
    b = np.where(swap[:, None, None, None], true, false)
    layers, heads, width = activations.shape

    def per_head(x: np.ndarray) -> torch.Tensor:
        x = (x - x.mean(0)).reshape(len(x), layers * heads, width)
        return torch.as_tensor(x, dtype=torch.float32).transpose(0, 1).contiguous()

    pair = per_head(a), per_head(b)  # (heads, pairs, width)
    start = rng.normal(size=(layers * heads, restarts, width)) / np.sqrt(width)
    theta = torch.tensor(start.transpose(0, 2, 1), dtype=torch.float32, requires_grad=True)
    shift = torch.zeros((layers * heads, 1, restarts), requires_grad=True)
    optimizer = torch.optim.Adam([theta, shift], lr=0.01)
    for _ in range(steps):
        p, q = (torch.sigmoid(torch.baddbmm(shift, one, theta)) for one in pair)
        losses = ((p + q - 1) ** 2 + torch.minimum(p, q) ** 2).mean(1)  # (heads, restarts)
        optimizer.zero_grad()
        losses.sum().backward()
        optimizer.step()
    best = losses.detach().argmin(1)
    found = theta.detach()[torch.arange(layers * heads), :, best].numpy()
    found = found.reshape(layers, heads, width)
    towards = np.einsum("lhd,lhd->lh", found, (true - false).mean(0)) >= 0
    return np.where(towards[..., None], found, -found)
