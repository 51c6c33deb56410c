"""Data sets with all environments (Problem 1), and the settings of Tables 1 and 7 (Appendix G).

A setting names the mixing and the sizes; a problem is one random draw of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from conceptnb.common.validation import Array, as_count
from conceptnb.core.concepts import random_atoms
from conceptnb.core.design import EnvironmentDesign, paper_design
from conceptnb.core.distributions import (
    GaussianMixture,
    acceptance_rate,
    log_acceptance,
    random_mixture,
)
from conceptnb.core.mixing import LinearMixing, Mixing, MLPMixing

MixingKind = Literal["linear", "nonlinear"]
PAPER_SEEDS = (3, 4, 5, 6, 7)
"""Seeds of the authors' runs. They fix our draws too, but not the same numbers as theirs."""
PAPER_SAMPLES = 5000
"""Samples of each concept conditional environment (Appendix G)."""


def log_odds(
    base: GaussianMixture, design: EnvironmentDesign, atoms: ArrayLike, Z: ArrayLike
) -> Array:
    r"""Exact log-odds :math:`\ln p^e(z) - \ln p^0(z)`, constants included (Lemma 3).

    Maps `Z` of shape (samples, d_z) to shape (samples, m), with `atoms` of shape (n, d_z).
    """
    concepts = design.concepts(atoms)
    variance = design.variance
    columns = [
        log_acceptance(concept, variance, Z) - acceptance_rate(base, concept, variance, log=True)
        for concept in concepts
    ]
    return np.stack(columns, axis=1)


def sample_environments(
    base: GaussianMixture,
    design: EnvironmentDesign,
    atoms: ArrayLike,
    n: int,
    rng: np.random.Generator,
    n_base: int | None = None,
) -> tuple[Array, np.ndarray]:
    """Draw a data set with all environments (Problem 1), by the exact sampler.

    Parameters
    ----------
    atoms : array-like of shape (n, d_z)
    n : int
        Samples of each concept conditional environment; the paper has 5000.
    n_base : int, optional
        Samples of the base; by default as many as of all others together, as in the authors' code.

    Returns
    -------
    Z : ndarray of shape (samples, d_z)
    environment : ndarray of int, shape (samples,)
        0 for the base distribution, e for concept conditional environment e.
    """
    per_environment = as_count(n, "n")
    concepts = design.concepts(atoms)
    first = len(concepts) * per_environment if n_base is None else as_count(n_base, "n_base")
    conditionals = [base.condition(concept, design.variance) for concept in concepts]
    counts = [first] + [per_environment] * len(concepts)
    Z = [p.sample(k, rng) for p, k in zip([base, *conditionals], counts, strict=True)]
    return np.concatenate(Z), np.repeat(np.arange(len(counts)), counts)


@dataclass(frozen=True)
class Setting:
    """One row of Table 1 or 7: kind of mixing, number of atoms, latent and observed dimension."""

    mixing: MixingKind
    n: int
    d_z: int
    d_x: int

    def __post_init__(self) -> None:
        if self.mixing not in ("linear", "nonlinear"):
            raise ValueError(f"mixing must be 'linear' or 'nonlinear', got {self.mixing!r}")
        for name in ("n", "d_z", "d_x"):
            as_count(getattr(self, name), name)

    def __str__(self) -> str:
        return f"{self.mixing} ({self.n}, {self.d_z}, {self.d_x})"


def _both(*sizes: tuple[int, int, int]) -> tuple[Setting, ...]:
    kinds: tuple[MixingKind, ...] = ("linear", "nonlinear")
    return tuple(Setting(kind, *size) for size in sizes for kind in kinds)


TABLE_1 = _both((2, 3, 4), (3, 4, 6), (4, 8, 10))
"""The six rows of Table 1; the book calls the three sizes S1, S2 and S3."""
TABLE_7 = _both((4, 15, 18), (4, 20, 22), (4, 25, 28))
"""The six rows of Table 7."""


@dataclass(frozen=True, eq=False)
class Problem:
    """One draw of a synthetic setting, with its truth: base p, atoms (n, d_z), mixing f.

    Z (samples, d_z) are latents of all environments; `environment` (samples,), sorted, is 0 for the
    base distribution, e for concept conditional environment e.
    """

    setting: Setting
    seed: int
    base: GaussianMixture
    design: EnvironmentDesign
    atoms: Array
    mixing: Mixing
    Z: Array
    environment: np.ndarray

    @property
    def X(self) -> Array:
        """Observations f(Z), shape (samples, d_x): all that a learner may see."""
        return self.mixing(self.Z)

    def valuations(self, Z: Array | None = None) -> Array:
        """Return the true valuations ⟨a_i, z⟩, shape (samples, n); of `Z` if given."""
        return (self.Z if Z is None else Z) @ self.atoms.T

    def log_odds(self, Z: Array | None = None) -> Array:
        """Return the true ln p^e(z)/p(z) of (86), shape (samples, m); of `Z` if given."""
        return log_odds(self.base, self.design, self.atoms, self.Z if Z is None else Z)

    def fresh(self, n: int) -> Array:
        """Draw `n` latents of the base that no learner has seen, shape (n, d_z)."""
        # A stream of its own: the draw must not depend on how the problem was drawn.
        return self.base.sample(n, np.random.default_rng((self.seed, 1)))


def draw_problem(
    setting: Setting,
    seed: int,
    *,
    samples: int = PAPER_SAMPLES,
    design: EnvironmentDesign | None = None,
    spread: float = 1.0,
) -> Problem:
    """Draw a problem as in Appendix G, by the exact sampler.

    Parameters
    ----------
    seed : int
        Fixes base, atoms, mixing and samples. Problems that differ only in `samples` or
        `design` have the same base, atoms and mixing.
    samples : int
        Samples of each concept conditional environment; the base has as many as they have together.
    design : EnvironmentDesign, optional
        By default the authors' environments, which exist for n of 2, 3 and 4.
    spread : float
        Half width of the box of the component means; the paper's is 1.
    """
    chosen = paper_design(setting.n) if design is None else design
    if chosen.n_atoms != setting.n:
        raise ValueError(f"design has {chosen.n_atoms} atoms but the setting has {setting.n}")
    rng = np.random.default_rng(as_count(seed, "seed", minimum=0))
    base = random_mixture(setting.d_z, rng, spread=spread)
    atoms = random_atoms(setting.n, setting.d_z, rng)
    kind = LinearMixing if setting.mixing == "linear" else MLPMixing
    mixing = kind.random(setting.d_z, setting.d_x, rng)
    Z, environment = sample_environments(base, chosen, atoms, samples, rng)
    return Problem(setting, seed, base, chosen, atoms, mixing, Z, environment)
