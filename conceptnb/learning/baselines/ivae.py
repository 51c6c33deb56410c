r"""iVAE with the environment as auxiliary variable (Khemakhem et al. 2020, Section 5 here)."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from conceptnb.common.validation import Array, as_count, as_positive
from conceptnb.learning.baselines.networks import Budget, NetworkBaseline
from conceptnb.learning.encoders import MLPEncoder


class _Network(nn.Module):
    """D variational autoencoders side by side, with a prior N(μ_u, diag σ_u²) per environment u."""

    def __init__(
        self, d_x: int, k: int, n_labels: int, seeds: list[int], width: int, noise: float
    ) -> None:
        super().__init__()
        self.noise, self.n_labels = noise, n_labels
        self.posterior = MLPEncoder(d_x + n_labels, 2 * k, seeds, width=width)
        self.decoder = MLPEncoder(k, d_x, [seed + 1 for seed in seeds], width=width)
        generators = [torch.Generator().manual_seed(seed + 2) for seed in seeds]
        # Apart from the start, so that environments differ from the first step on.
        self.prior_mean = nn.Parameter(
            torch.stack([0.1 * torch.randn(n_labels, k, generator=g) for g in generators])
        )
        self.prior_log_variance = nn.Parameter(torch.zeros_like(self.prior_mean))

    def encode(self, x: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log variance of the posterior, each of shape (D, rows, k)."""
        label = functional.one_hot(u, self.n_labels).to(x).expand(len(x), -1, -1)
        mean, log_variance = self.posterior(torch.cat([x, label], dim=2)).chunk(2, dim=2)
        return mean, log_variance

    def elbo(self, x: Tensor, u: Tensor, noise: Tensor) -> Tensor:
        """Return each row's evidence lower bound (D, rows), for a standard normal draw `noise`."""
        mean, log_variance = self.encode(x, u)
        z = mean + (0.5 * log_variance).exp() * noise
        error = (x - self.decoder(z)).square().sum(dim=2)
        likelihood = -0.5 * (error / self.noise + x.shape[2] * math.log(2 * math.pi * self.noise))
        prior_mean, prior_log = self.prior_mean[:, u], self.prior_log_variance[:, u]
        shift = (mean - prior_mean).square()
        kl = 0.5 * (
            prior_log - log_variance + (log_variance.exp() + shift) / prior_log.exp() - 1
        ).sum(dim=2)
        return likelihood - kl


class IVAE(NetworkBaseline):
    """Identifiable VAE with the environment as auxiliary variable.

    Identifiability needs latents that are independent given the environment, 2k + 1
    environments and a decoder with little noise (Khemakhem et al. 2020). In our problems a
    Gaussian mixture is the base, so latents are not independent given the environment. There are
    `n_components` latents; `width` is that of both networks, and `noise` the variance of the
    decoder, for standardised observations.
    """

    def __init__(
        self,
        n_components: int,
        *,
        width: int = 32,
        noise: float = 0.01,
        seed: int = 0,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(seed=seed, budget=budget)
        self.n_components = n_components
        self.width = width
        self.noise = noise

    def _fit(self, X: Array, environment: np.ndarray, valuations: Array | None) -> None:
        k, width = as_count(self.n_components, "n_components"), as_count(self.width, "width")
        noise = as_positive(self.noise, "noise")
        x, u = self._start(X), torch.as_tensor(environment)
        seeds = self._seeds(len(X), step=3)
        network = _Network(X.shape[2], k, int(u.max()) + 1, seeds, width, noise)
        draws = torch.Generator().manual_seed(self.seed)

        def loss(index: Tensor) -> Tensor:
            draw = torch.randn((len(x), len(index), k), generator=draws)
            return -network.elbo(x[:, index], u[index], draw).mean(dim=1)

        self._train(network, loss, X.shape[1])
        self.network_ = network

    @torch.no_grad()
    def _transform(self, X: Array) -> Array:
        """Return the posterior's means, at the base environment's label."""
        x = self._scaled(X)
        base = torch.zeros(x.shape[1], dtype=torch.int64)
        return self.network_.encode(x, base)[0].double().numpy()
