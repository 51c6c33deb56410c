"""Fit concept models to data of many problems, with starts chosen by held-out loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from tqdm.auto import tqdm

from conceptnb.common.validation import Array, as_count, as_points
from conceptnb.core.problems import Problem
from conceptnb.learning.cluster_whitening import ClusterWhitening, slope_disagreement
from conceptnb.learning.data import Stack, stack
from conceptnb.learning.heads import TiedHead
from conceptnb.learning.linear import LinearFit, fit_linear
from conceptnb.learning.losses import contrastive_loss, contrastive_losses
from conceptnb.learning.model import ConceptModel, Whitening
from conceptnb.learning.recipes import BEST, Recipe
from conceptnb.learning.training import StackTrainer


@dataclass(frozen=True, eq=False)
class ConceptFit:
    """Fitted concept models of D problems, and how the fit went.

    Parameters
    ----------
    recipe : Recipe
        What was done.
    model : ConceptModel
        One model per problem: the start that was kept.
    whitening : Whitening or None
        What is applied to observations before the encoder.
    train_curve, held_out_curve : arrays of shape (D, epochs)
        Contrastive loss of the chosen models, in nats per row; of one epoch if nothing was trained.
    held_out_loss : array of shape (D, starts)
        Best held-out loss of every start; if the recipe selects by slopes, of the kept one.
    held_out : int array
        Which rows were held out, in the order of the :class:`~conceptnb.learning.Stack`: sorted
        by environment, as the rows of a problem are.
    """

    recipe: Recipe
    model: ConceptModel
    whitening: Whitening | None
    train_curve: Array
    held_out_curve: Array
    held_out_loss: Array
    held_out: np.ndarray

    @property
    def n_problems(self) -> int:
        """Number D of problems."""
        return self.model.n_models

    def transform(self, X: Sequence[ArrayLike] | Array) -> Array:
        """Return learned valuations h(x) (D, samples, n) of X (D, samples, d_x), new or old."""
        return self._apply(self.model.encode, X)

    def log_odds(self, X: Sequence[ArrayLike] | Array) -> Array:
        """Return learned log-odds g_e(x) of (87), shape (D, samples, m), as :meth:`transform`."""
        return self._apply(self.model, X)

    @torch.no_grad()
    def _apply(self, function: Callable[[Tensor], Tensor], X: Sequence[ArrayLike] | Array) -> Array:
        if len(X) != self.n_problems:
            raise ValueError(
                f"X holds {len(X)} arrays; give one per problem, {self.n_problems} in all"
            )
        arrays = [as_points(rows, f"X[{i}]") for i, rows in enumerate(X)]
        alpha = self.model.head.alpha
        x = torch.as_tensor(np.stack(arrays), dtype=alpha.dtype, device=alpha.device)
        if self.whitening is not None:
            x = self.whitening(x)
        return function(x).cpu().double().numpy()


def fit(
    data: Stack | Sequence[Problem],
    recipe: Recipe = BEST,
    *,
    n_concepts: int | None = None,
    seeds: Sequence[int] | None = None,
    whitening: Whitening | None = None,
    device: str = "cpu",
    progress: bool = False,
) -> ConceptFit:
    """Learn concepts from environments by the contrastive algorithm of Appendix F.

    All starts of all problems train together. Nothing here sees the truth: of synthetic problems
    observations and environments are used, which atoms an environment conditions on and, if the
    recipe names no encoder, whether the mixing is linear, as in the paper's protocol.

    Parameters
    ----------
    data : Stack or sequence of D Problem
        Of one setting; of your own arrays, :func:`~conceptnb.learning.stack` makes a stack.
    recipe : Recipe
        Such as :data:`AUTHORS`, :data:`BEST`, or ``replace(BEST, starts=4)``.
    n_concepts : int, optional
        Number n of concepts, for the general head; by default that of the targets, if known.
    seeds : sequence of D int, optional
        Fix the starts of each problem; by default a problem's own seed, and 0, 1, ... for arrays.
    whitening : Whitening, optional
        Fitted already, one per problem; by default what the recipe names is fitted.
    device : str
        A torch device, such as "cpu" or "cuda".
    progress : bool
        Show bars.

    Returns
    -------
    ConceptFit
        The start that was kept of every problem, and how its loss went.

    Raises
    ------
    ValueError
        If the problems differ in their setting, or the head needs targets and has none.
    """
    raw, recipe, numbers = prepare(data, recipe, seeds)
    raw = raw.to(device)
    n = _number_of_concepts(raw, recipe, n_concepts)
    rngs = [_generator(seed, recipe) for seed in numbers]
    kept, held = _split(raw, recipe, rngs)
    if whitening is None:
        whitening = _whiten(raw, recipe, numbers)
    data = raw if whitening is None else replace(raw, x=whitening(raw.x))
    train, judged = data.rows(kept), data.rows(held)
    starts = 1 if recipe.search and recipe.encoder == "linear" else recipe.starts
    fits: list[LinearFit] = []
    if recipe.search:
        fits = _linear_starts(train, whitening, recipe, rngs, starts, progress)
        starts = len(fits) // data.n_problems
    own_seeds = [1000 * seed + start for seed in numbers for start in range(starts)]
    model = recipe.build(data.d_x, n, data.n_environments, data.targets, own_seeds).to(device)
    if fits:
        _start_linear(model, fits)
    if fits and recipe.encoder == "linear":
        kind = recipe.training.loss
        before, after = (
            model.loss(rows, kind).cpu().double().numpy()[:, None] for rows in (train, judged)
        )
        return ConceptFit(recipe, model, whitening, before, after, after, held.cpu().numpy())
    trainer = StackTrainer(model, train, judged, recipe.training)
    trainer.run(progress)
    losses = trainer.best.view(data.n_problems, -1)
    if isinstance(whitening, ClusterWhitening) and recipe.selection == "slopes":
        chosen = _by_slopes(trainer, whitening, raw.rows(kept))
        # The lowest loss of the starts need not be that of the one which is kept.
        losses = trainer.best[chosen, None]
    else:
        chosen = torch.arange(data.n_problems, device=losses.device) * starts + losses.argmin(dim=1)
    train_curve, held_out_curve = (
        torch.stack(curve, dim=1)[chosen].cpu().double().numpy()
        for curve in (trainer.train_curve, trainer.held_out_curve)
    )
    return ConceptFit(
        recipe,
        model.choose(chosen),
        whitening,
        train_curve,
        held_out_curve,
        losses.cpu().double().numpy(),
        held.cpu().numpy(),
    )


def oracle_loss(
    log_odds: Sequence[ArrayLike],
    environment: ArrayLike,
    kind: str = "binary",
) -> Array:
    """Loss of given log-odds on the rows that :func:`fit` holds out, shape (D,).

    With the true log-odds of (86) this is the loss that no model beats in expectation. They are D
    arrays (N, m) of ln p^e/p^0 at the observations, such as ``problem.log_odds()``.
    """
    _, rows = stack(log_odds, environment, dtype=torch.float64).split()
    return contrastive_loss(rows.x, rows, kind).numpy()


def smallest_of_the_best(losses: Array) -> int:
    """Return the first candidate that is not worse than the best by two standard errors.

    Losses (candidates, rows) are of every held-out row, candidates from small to large.
    """
    gaps = losses - losses[losses.mean(axis=1).argmin()]
    errors = gaps.std(axis=1) / np.sqrt(gaps.shape[1])
    return int(np.flatnonzero(gaps.mean(axis=1) <= 2 * errors)[0])


def prepare(
    data: Stack | Sequence[Problem], recipe: Recipe, seeds: Sequence[int] | None
) -> tuple[Stack, Recipe, list[int]]:
    """Return what a fit is told: data as a stack, the recipe with its encoder, and seeds.

    Parameters
    ----------
    data : Stack or sequence of D Problem
        As in :func:`fit`.
    recipe : Recipe
        Its encoder is named, if it was not, as the problems' mixing asks.
    seeds : sequence of D int or None
        As in :func:`fit`.

    Returns
    -------
    data : Stack
    recipe : Recipe
    seeds : list of D int

    Raises
    ------
    ValueError
        If there are no problems, they differ in their setting, or there is not one seed for each.
    """
    if isinstance(data, Stack):
        own, linear = list(range(data.n_problems)), False
    else:
        if len(data) == 0:
            raise ValueError("data is empty: give at least one problem")
        first = data[0]
        targets, linear = first.design.M > 0, first.setting.mixing == "linear"
        if any(p.setting != first.setting or ((p.design.M > 0) != targets).any() for p in data):
            raise ValueError("data must hold problems of one setting with the same targets")
        own = [problem.seed for problem in data]
        data = stack([problem.X for problem in data], first.environment, targets)
    numbers = list(own if seeds is None else seeds)
    if len(numbers) != data.n_problems:
        raise ValueError(f"seeds has {len(numbers)} entries for {data.n_problems} problems")
    if recipe.training.rows is not None and data.n_problems > 1:
        raise ValueError(
            f"a recipe with training.rows fits one problem at a time, got {data.n_problems}"
        )
    return data, replace(recipe, encoder=recipe.encoder or ("linear" if linear else "mlp")), numbers


def _number_of_concepts(data: Stack, recipe: Recipe, n_concepts: int | None) -> int:
    if data.targets is None and (recipe.head != "general" or n_concepts is None):
        raise ValueError(
            f"head={recipe.head!r} needs targets: give them to stack(), or use the recipe "
            "UNKNOWN_TARGETS and say n_concepts"
        )
    if n_concepts is None:
        assert data.targets is not None
        return data.targets.shape[1]
    n = as_count(n_concepts, "n_concepts")
    if recipe.head != "general" and data.targets is not None and data.targets.shape[1] != n:
        raise ValueError(f"targets must have n_concepts = {n} columns, got {data.targets.shape[1]}")
    return n


def _generator(seed: int, recipe: Recipe) -> np.random.Generator:
    return np.random.default_rng(seed if recipe.training.rows is None else (seed, 6))


def _split(
    data: Stack, recipe: Recipe, rngs: Sequence[np.random.Generator]
) -> tuple[Tensor, Tensor]:
    """Return rows to train on and rows to hold out, at most half as many as an epoch sees."""
    if recipe.training.rows is None:
        return data.split_rows(recipe.held_out)
    rows = len(data.environment)
    order = torch.as_tensor(rngs[0].permutation(rows))
    count = min(int(rows * recipe.held_out), recipe.training.rows // 2)
    return order[count:], order[:count]


def _whiten(data: Stack, recipe: Recipe, seeds: Sequence[int]) -> Whitening | None:
    if recipe.whitening == "none":
        return None
    if recipe.whitening == "plain":
        return Whitening.fit(data)
    return ClusterWhitening.fit_clusters(data, recipe.n_clusters, seeds)


def _linear_starts(
    train: Stack,
    whitening: Whitening | None,
    recipe: Recipe,
    rngs: Sequence[np.random.Generator],
    count: int,
    progress: bool,
) -> list[LinearFit]:
    """Return `count` linear encoders per problem, between which its data do not decide."""
    assert train.targets is not None  # the tied head has them
    own = whitening.rank if isinstance(whitening, ClusterWhitening) else train.d_x
    most = recipe.training.rows
    few = train if most is None else train.rows(slice(4 * most))
    environment, targets = few.environment.cpu().numpy(), train.targets.cpu().numpy()
    fits: list[LinearFit] = []
    each = zip(few.x, rngs, strict=True)
    for x, rng in tqdm(each, desc="linear encoders", total=len(rngs), disable=not progress):
        rows = x[:, :own].double().cpu().numpy()
        rivals = fit_linear(rows, environment, targets, rng, keep=count)
        fits += rivals if most is not None else [rivals[i % len(rivals)] for i in range(count)]
    # Of the columns beside the coordinates of clusters, a linear encoder ignores all.
    others = ((0, train.d_x - own), (0, 0))
    return [replace(fit, W=np.pad(fit.W, others)) for fit in fits]


def _start_linear(model: ConceptModel, fits: Sequence[LinearFit]) -> None:
    assert isinstance(model.head, TiedHead)  # Recipe has seen to it
    model.encoder.start_linear(torch.as_tensor(np.stack([fit.W for fit in fits])))
    model.head.start(
        torch.as_tensor(np.stack([fit.alpha[None] for fit in fits])),
        torch.as_tensor(np.stack([fit.gamma.T for fit in fits])),
    )


@torch.no_grad()
def _by_slopes(trainer: StackTrainer, whitening: ClusterWhitening, raw: Stack) -> Tensor:
    """Choose one network per problem: of those of equal held-out loss, the one of one slope."""
    model, train, held = trainer.model, trainer.train, trainer.held_out
    starts = model.n_models // train.n_problems
    base = train.environment == 0
    clusters = whitening.responsibilities(raw.x[:, base]).argmax(dim=2).cpu().numpy()
    valuations = model.encode(train.x[:, base]).cpu().double().numpy()
    losses = contrastive_losses(model(held.x), held, "softmax").cpu().double().numpy()
    chosen = []
    for problem in range(train.n_problems):
        own = np.arange(problem * starts, (problem + 1) * starts)
        coordinates = train.x[problem, base, : whitening.rank].cpu().double().numpy()
        disagreement = [
            slope_disagreement(coordinates, clusters[problem], valuations[i]) for i in own
        ]
        order = own[np.argsort(disagreement)]
        chosen.append(int(order[smallest_of_the_best(losses[order])]))
    return torch.as_tensor(chosen, device=train.x.device)
