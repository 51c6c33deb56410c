"""Training batches for the small CLIP models: a palette that grows, and hard negatives.

Among 1,000 colourings a contrastive loss learns colours and little else. So training starts with a
single colouring, and the palette grows by a hue whenever the model tells every factor apart; most
of a batch is groups of four images that agree in all factors but one, more often a hard one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from conceptnb.embeddings.shapes3d.factors import SIZES, held_out_combinations

GROUP = 4
_HUE_ORDER = np.array([0, 3, 6, 8, 1, 5, 2, 7, 4, 9])  # spread out, whatever the palette
_HUE_OFFSET = (3, 6, 0)  # floor, wall and object differ in the first colouring
_HARD_FROM, _HARD_TO = 26, 78  # steps between which hard negatives are ramped in
_HARD_SHARE = 0.75  # of a batch in groups, when all are ramped in
_MASTERED = 0.7  # loss in groups of four under which a factor counts as learned; chance is 1.39


@dataclass
class Progress:
    """What a model has learned so far, and so what it is shown next."""

    patience: int = 30
    """Fewest steps between two hues added to the palette."""
    memory: float = 0.97
    """Share of the running mean of a loss that a new batch leaves in place."""
    losses: NDArray[np.float64] = field(default_factory=lambda: np.full(len(SIZES), np.log(GROUP)))
    """Running mean (6,) of the loss in groups that vary each factor."""
    n_hues: int = 1
    """Hues that each part of the scene takes."""
    grown: int = 0
    """Step at which the palette last grew."""

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Values (6,) that each factor takes at present."""
        return np.array([self.n_hues] * 3 + list(SIZES[3:]))

    def update(self, step: int, varied: NDArray[np.intp], losses: NDArray[np.floating]) -> None:
        """Take in the losses (n_groups,) of groups that vary the given factors."""
        for factor in np.unique(varied):
            new = losses[varied == factor].mean()
            self.losses[factor] += (1 - self.memory) * (new - self.losses[factor])
        learned = self.losses[self.sizes >= GROUP].max() < _MASTERED
        if learned and self.n_hues < SIZES[0] and step - self.grown >= self.patience:
            self.n_hues, self.grown = self.n_hues + 1, step

    def weights(self) -> NDArray[np.float64]:
        """Chance of each factor to be varied; 0 while it has fewer values than a group."""
        weights = np.where(self.sizes >= GROUP, self.losses + 0.1, 0)
        return weights / weights.sum()


def draw_batch(
    progress: Progress,
    step: int,
    batch_size: int,
    rng: np.random.Generator,
    *,
    near_rate: float = 0.0,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Draw the factors of one training batch, none of them held out.

    With the chance `near_rate`, a group that differs in a hue shows four neighbours on the wheel.

    Returns
    -------
    factors : ndarray of shape (batch_size, 6)
        First groups of four that differ in one factor, then the rest.
    varied : ndarray of shape (n_groups,)
        The factor in which each group differs.
    """
    sizes = progress.sizes
    ramp = float(np.clip((step - _HARD_FROM) / (_HARD_TO - _HARD_FROM), 0, 1))
    n_groups = round(_HARD_SHARE * ramp * batch_size / GROUP)
    varied = rng.choice(len(sizes), n_groups, p=progress.weights())
    is_hue = varied < len(_HUE_OFFSET)
    near = is_hue & (rng.random(n_groups) < near_rate) if near_rate else np.zeros_like(is_hue)
    parts = [
        _draw(partial(_near_hues if close else _group, sizes, factor, rng))
        for factor, close in zip(varied, near, strict=True)
    ]
    n_single = batch_size - GROUP * n_groups
    parts += [_draw(lambda: _recolour(rng.integers(0, sizes)[None])) for _ in range(n_single)]
    return np.concatenate(parts), varied


def open_attributes(
    varied: NDArray[np.intp], batch_size: int, rate: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Draw which attributes (batch_size, 6) captions leave open, alike within a group.

    The four captions of a group leave the same attributes open, never the one in which they
    differ: `varied` (n_groups,), as from `draw_batch`. How many are open is drawn, too: the
    chance is uniform up to twice `rate`.
    """
    n_groups, n_factors = len(varied), len(SIZES)
    n_captions = n_groups + batch_size - GROUP * n_groups
    chances = rng.uniform(0, 2 * rate, (n_captions, 1))
    is_open = rng.random((n_captions, n_factors)) < chances
    is_open[np.arange(n_groups), varied] = False
    return np.concatenate([is_open[:n_groups].repeat(GROUP, axis=0), is_open[n_groups:]])


def _draw(sample: Callable[[], NDArray[np.intp]]) -> NDArray[np.intp]:
    while held_out_combinations(factors := sample()).any():
        pass
    return factors


def _group(sizes: NDArray[np.intp], factor: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Four combinations that differ in one factor, in which no value comes twice."""
    factors = rng.integers(0, sizes)[None].repeat(GROUP, axis=0)
    factors[:, factor] = rng.permutation(sizes[factor])[:GROUP]
    return _recolour(factors)


def _near_hues(sizes: NDArray[np.intp], factor: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Four combinations that differ in one hue, neighbours on the full wheel."""
    factors = _recolour(rng.integers(0, sizes)[None].repeat(GROUP, axis=0))
    factors[:, factor] = (factors[:, factor] + rng.permutation(GROUP)) % SIZES[factor]
    return factors


def _recolour(factors: NDArray[np.intp]) -> NDArray[np.intp]:
    """Map positions in the palette to hues; the first hues of the parts differ."""
    for part, offset in enumerate(_HUE_OFFSET):
        factors[:, part] = (_HUE_ORDER[factors[:, part]] + offset) % 10
    return factors
