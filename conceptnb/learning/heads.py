r"""Heads: learned valuations -> log-odds of every environment, the last layer of (87).

All have the form :math:`g_e(h) = \alpha_e - \sum_k \beta^e_k h_k^2 + \sum_k \gamma^e_k h_k`
and differ in which β and γ may be non-zero and in how β is written.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Head(nn.Module):
    """P heads of one kind; maps (P, rows, n) to log-odds of shape (P, rows, m)."""

    alpha: Tensor

    def coefficients(self) -> tuple[Tensor, Tensor]:
        """Return β and γ of (87), each of shape (P, n, m)."""
        raise NotImplementedError

    def penalty(self) -> Tensor:
        """Return what the L1 term of (88) sums, one number per model, shape (P,)."""
        raise NotImplementedError

    def forward(self, h: Tensor) -> Tensor:
        """Return the log-odds g_e of (87), shape (P, rows, m)."""
        beta, gamma = self.coefficients()
        return torch.baddbmm(torch.baddbmm(self.alpha, h, gamma), h.square(), beta, alpha=-1)


class GeneralHead(Head):
    """The head as printed in (87): β and γ dense and learned, for unknown targets."""

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


class _KnownTargets(Head):
    """A head that is told the atoms of each environment, the pattern of M in (7)."""

    mask: Tensor

    def __init__(self, n_models: int, targets: Tensor, gamma: float) -> None:
        super().__init__()
        self.register_buffer("mask", targets.T.to(torch.get_default_dtype()))
        self.alpha = nn.Parameter(torch.zeros(n_models, 1, len(targets)))
        self.gamma = nn.Parameter(torch.full((n_models, *self.mask.shape), gamma))


class TargetHead(_KnownTargets):
    """The head of the authors' code: the atoms of each environment are known.

    Log-odds of an environment with target atom k are shift + intercept·h_k − (λ·h_k)²; with several
    targets the terms add up. `targets` (m, n) is the pattern of M in (7).
    """

    def __init__(self, n_models: int, targets: Tensor) -> None:
        super().__init__(n_models, targets, gamma=1.0)
        self.scale = nn.Parameter(torch.ones_like(self.gamma))

    def coefficients(self) -> tuple[Tensor, Tensor]:
        """Return β = λ² and γ of (87) on the targets, each of shape (P, n, m)."""
        return self.scale.square() * self.mask, self.gamma * self.mask

    def penalty(self) -> Tensor:
        """Return |λ|_1 over the targets, shape (P,)."""
        return (self.scale.abs() * self.mask).sum(dim=(1, 2))


class TiedHead(_KnownTargets):
    """Known targets and β in {0, 1/2}: all environments of an atom share its curvature.

    In (86) an atom's curvature M/2 = 1/(2σ²) is the same throughout: 1/2 for h in units of σ.
    """

    def __init__(self, n_models: int, targets: Tensor) -> None:
        super().__init__(n_models, targets, gamma=0.0)

    @torch.no_grad()
    def start(self, alpha: Tensor, gamma: Tensor) -> None:
        """Set α, of shape (P, 1, m), and γ, of shape (P, n, m)."""
        self.alpha.copy_(alpha)
        self.gamma.copy_(gamma)

    def coefficients(self) -> tuple[Tensor, Tensor]:
        """Return β = 1/2 and γ of (87) on the targets, each of shape (P, n, m)."""
        return (0.5 * self.mask).expand_as(self.gamma), self.gamma * self.mask

    def penalty(self) -> Tensor:
        """Return zeros of shape (P,): β is fixed."""
        return self.gamma.new_zeros(len(self.gamma))


class InterventionalHead(TargetHead):
    r"""Log-odds of single-node interventions: the target's parabola and a shared square.

    The contrastive interventional method (Buchholz et al. 2023), from which the paper's algorithm
    grew (Appendix F), intervenes on one node of a linear Gaussian causal model at a time. With
    precision matrix :math:`\sum_j s_j s_j^\top` of the observed distribution, an intervention
    on node t replaces the term of t: its mechanism's row :math:`s_t` goes and the new noise
    comes, so that

    .. math:: \ln p^e(z) - \ln p^0(z) = \alpha_e - \beta_e z_t^2 + \gamma_e z_t
              + \tfrac12 \langle s_t, z \rangle^2.

    The last term belongs to the node and not to the environment: every environment that
    intervenes on t shares it. Conditioning (86) is the case s = 0. `targets` (m, n) tells which
    nodes each environment intervenes on.
    """

    def __init__(self, n_models: int, targets: Tensor) -> None:
        super().__init__(n_models, targets)
        n = targets.shape[1]
        # Small and not zero: the gradient of a square vanishes at zero.
        self.shared = nn.Parameter(0.05 * torch.eye(n).repeat(n_models, 1, 1))

    def forward(self, h: Tensor) -> Tensor:
        """Return log-odds, shape (P, rows, m)."""
        squares = torch.bmm(h, self.shared).square()
        return super().forward(h) + 0.5 * squares @ self.mask
