"""Contrastive losses: one binary problem an environment (88), or one softmax over all."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["binary_loss", "softmax_loss", "softmax_losses"]


def binary_loss(
    log_odds: Tensor, environment: Tensor, partner: Tensor, log_ratio: Tensor
) -> Tensor:
    """Mean cross-entropy of telling an environment from the base, (88) without its L1 term.

    Each row counts in the classifier of its partner environment. With equally many rows
    of the environment and of its share of the base, as in the paper, this is the
    expectation over j ~ Unif({0, e}) in (88), averaged (not summed) over environments.

    Parameters
    ----------
    log_odds : tensor of shape (P, rows, m)
        g_e of (87), or the true ln p^e/p^0.
    environment, partner : int64 tensors of shape (rows,)
        As in :class:`~conceptnb.learning.Stack`.
    log_ratio : tensor of shape (m,)
        Log ratio of the rows of an environment to those of its share of the base, 0 in
        the paper; it keeps unequal numbers out of the log-odds.

    Returns
    -------
    tensor of shape (P,)
        In nats a row.
    """
    # A product with the one-hot partner: its gradient is far cheaper than that of indexing.
    own = functional.one_hot(partner - 1, log_odds.shape[2]).to(log_odds)
    chosen = ((log_odds + log_ratio) * own).sum(dim=2)
    # ln(1 + exp(-g)) for an environment's own rows and ln(1 + exp(g)) for base rows.
    sign = torch.where(environment > 0, -1.0, 1.0).to(chosen)
    return functional.softplus(chosen * sign).mean(dim=1)


def softmax_loss(log_odds: Tensor, environment: Tensor, log_prior: Tensor) -> Tensor:
    """Mean cross-entropy of telling all m + 1 environments apart in one softmax.

    The class logits are ln p^e/p^0 + ln(share of e), with log-odds 0 for the base. The
    same log-odds minimise it as (88), from all rows jointly: environments are compared
    with each other too, and every row of the base serves every environment.

    Parameters
    ----------
    log_odds : tensor of shape (P, rows, m)
    environment : int64 tensor of shape (rows,)
    log_prior : tensor of shape (m + 1,)
        Log share of each environment among the rows of the data.

    Returns
    -------
    tensor of shape (P,)
        In nats a row.
    """
    return softmax_losses(log_odds, environment, log_prior).mean(dim=1)


def softmax_losses(log_odds: Tensor, environment: Tensor, log_prior: Tensor) -> Tensor:
    """Loss of every row, of which :func:`softmax_loss` is the mean, shape (P, rows).

    Differences between models, row by row, say how sure a difference of their means is.

    Parameters
    ----------
    log_odds, environment, log_prior
        As for :func:`softmax_loss`.
    """
    logits = functional.pad(log_odds, (1, 0)) + log_prior
    P, rows, classes = logits.shape
    losses = functional.cross_entropy(
        logits.reshape(P * rows, classes), environment.repeat(P), reduction="none"
    )
    return losses.view(P, rows)
