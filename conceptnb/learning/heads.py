r"""Heads: learned valuations -> log-odds of every environment, the last layer of (87).

All have the form :math:`g_e(h) = \alpha_e - \sum_k \beta^e_k h_k^2 + \sum_k \gamma^e_k h_k`
and differ in which β and γ may be non-zero and in how β is written.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["GeneralHead", "Head", "TargetHead", "TiedHead"]


class Head(nn.Module):
    """P heads of one kind; maps (P, rows, n) to log-odds of shape (P, rows, m)."""

    alpha: Tensor

    def coefficients(self) -> tuple[Tensor, Tensor]:
        """Return β and γ of (87), each of shape (P, n, m)."""
        raise NotImplementedError

    def penalty(self) -> Tensor:
        """Return what the L1 term of (88) sums, one number a model, shape (P,)."""
        raise NotImplementedError

    def forward(self, h: Tensor) -> Tensor:
        """Return the log-odds g_e of (87), shape (P, rows, m)."""
        beta, gamma = self.coefficients()
        return torch.baddbmm(torch.baddbmm(self.alpha, h, gamma), h.square(), beta, alpha=-1)


class GeneralHead(Head):
    """The head as printed in (87): β and γ dense and learned, for unknown targets.

    Parameters
    ----------
    n_models, n, m : int
        Numbers of models, concepts and environments.
    """

    def __init__(self, n_models: int, n: int, m: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.zeros(n_models, 1, m))
        # β = 1/2 for all, so that every concept is seen from the first step on.
        self.beta = nn.Parameter(torch.full((n_models, n, m), 0.5))
        self.gamma = nn.Parameter(torch.zeros(n_models, n, m))

    def coefficients(self) -> tuple[Tensor, Tensor]:
        """Return β and γ of (87), each of shape (P, n, m)."""
        return self.beta, self.gamma

    def penalty(self) -> Tensor:
        """Return |β|_1, the L1 term of (88), shape (P,)."""
        return self.beta.abs().sum(dim=(1, 2))


class TargetHead(Head):
    """The head of the authors' code: the atoms of each environment are known.

    Log-odds of an environment with target atom k are shift + intercept·h_k − (λ·h_k)²;
    with several targets the terms add up.

    Parameters
    ----------
    n_models : int
    targets : bool tensor of shape (m, n)
        Which atoms each environment conditions on, the pattern of M in (7).
    """

    mask: Tensor

    def __init__(self, n_models: int, targets: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", targets.T.to(torch.get_default_dtype()))
        n, m = self.mask.shape
        self.alpha = nn.Parameter(torch.zeros(n_models, 1, m))
        self.scale = nn.Parameter(torch.ones(n_models, n, m))
        self.gamma = nn.Parameter(torch.ones(n_models, n, m))

    def coefficients(self) -> tuple[Tensor, Tensor]:
        """Return β = λ² and γ of (87) on the targets, each of shape (P, n, m)."""
        return self.scale.square() * self.mask, self.gamma * self.mask

    def penalty(self) -> Tensor:
        """Return |λ|_1 over the targets, shape (P,)."""
        return (self.scale.abs() * self.mask).sum(dim=(1, 2))


class TiedHead(Head):
    """Known targets and β in {0, 1/2}: all environments of an atom share its curvature.

    In (86) an atom's curvature M/2 = 1/(2σ²) is the same in each of its environments.
    Measuring h in units of σ, which Definition 4 leaves free, makes it 1/2.

    Parameters
    ----------
    n_models : int
    targets : bool tensor of shape (m, n)
        Which atoms each environment conditions on, the pattern of M in (7).
    """

    mask: Tensor

    def __init__(self, n_models: int, targets: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", targets.T.to(torch.get_default_dtype()))
        n, m = self.mask.shape
        self.alpha = nn.Parameter(torch.zeros(n_models, 1, m))
        self.gamma = nn.Parameter(torch.zeros(n_models, n, m))

    def coefficients(self) -> tuple[Tensor, Tensor]:
        """Return β = 1/2 and γ of (87) on the targets, each of shape (P, n, m)."""
        return (0.5 * self.mask).expand_as(self.gamma), self.gamma * self.mask

    def penalty(self) -> Tensor:
        """Return zeros of shape (P,): β is fixed."""
        return self.gamma.new_zeros(len(self.gamma))
