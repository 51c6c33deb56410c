"""Random weights from a generator of their own, for models that are trained or timed here."""

from __future__ import annotations

import torch
from torch import nn


def draw_matrices(model: nn.Module, std: float, generator: torch.Generator) -> None:
    """Draw every matrix of ``model`` from N(0, std²); vectors (the norms' scales) stay as they are.

    transformers draws them from the global generator, which would tie a model to all
    that has been drawn before it.
    """
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(0.0, std, generator=generator)
