"""Contrastive losses: one binary problem per environment (88), or one softmax over all."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from conceptnb.learning.data import Stack


def contrastive_loss(log_odds: Tensor, data: Stack, kind: str = "binary") -> Tensor:
    """Mean over rows of :func:`contrastive_losses`, one number per model, in nats, shape (P,)."""
    return contrastive_losses(log_odds, data, kind).mean(dim=1)


def contrastive_losses(log_odds: Tensor, data: Stack, kind: str = "binary") -> Tensor:
    """Contrastive loss of every row, in nats, shape (P, rows).

    Differences between models, row by row, say how sure a difference of their means is.

    Parameters
    ----------
    log_odds : tensor of shape (P, rows, m)
        g_e of (87), or the true ln p^e/p^0: in expectation no model has a lower loss.
    kind : {"binary", "softmax"}
        The cross-entropy of telling an environment from the base, (88) without its L1 term, or
        that of telling all m + 1 environments apart. The same log-odds minimise both.
    """
    if kind == "binary":
        return _binary(log_odds, data)
    if kind == "softmax":
        return _softmax(log_odds, data)
    raise ValueError(f"kind must be 'binary' or 'softmax', got {kind!r}")


def _binary(log_odds: Tensor, data: Stack) -> Tensor:
    """Cross-entropy of each row in its partner's classifier; `log_ratio` undoes unequal sizes."""
    # A product with the one-hot partner: its gradient is far cheaper than that of indexing.
    own = functional.one_hot(data.partner - 1, log_odds.shape[2]).to(log_odds)
    chosen = ((log_odds + data.log_ratio) * own).sum(dim=2)
    # ln(1 + exp(-g)) for an environment's own rows and ln(1 + exp(g)) for base rows.
    sign = torch.where(data.environment > 0, -1.0, 1.0).to(chosen)
    return functional.softplus(chosen * sign)


def _softmax(log_odds: Tensor, data: Stack) -> Tensor:
    """Cross-entropy of each row's environment, with logits ln p^e/p^0 + ln(share of e)."""
    logits = functional.pad(log_odds, (1, 0)) + data.log_prior
    P, rows, classes = logits.shape
    losses = functional.cross_entropy(
        logits.reshape(P * rows, classes), data.environment.repeat(P), reduction="none"
    )
    return losses.view(P, rows)
