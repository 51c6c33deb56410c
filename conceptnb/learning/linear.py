r"""Linear encoders: many cheap starts on a subsample, the best polished on all rows.

With known targets and :math:`\beta` tied to {0, 1/2}, the model (87) has few parameters. Most
starts are random; a third come from a relaxation in which each atom has several directions, of
which the leading one is kept, and each environment a free linear term. Atoms that no chain of
environments connects do not share a parameter, so each such group is searched by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components

from conceptnb.common.validation import Array

_ROWS = 2500
"""Size of the subsample of a group that the starts are compared on, then eight times as many."""
_RIDGE = 1e-6  # penalty on the squares of W, and of the relaxation's linear terms
_FINALISTS = 4

_Objective = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A linear encoder h = x W and its head, fitted to one problem.

    W (d, n) holds the directions of the concepts, for centred observations; `alpha` (m,) and
    `gamma` (m, n) are those of (87), with β = 1/2 on the targets. The softmax `loss` is that of the
    rows it was fitted to, penalty not included, in nats per row.
    """

    W: Array
    alpha: Array
    gamma: Array
    loss: float

    def log_odds(self, X: Array, targets: np.ndarray) -> Array:
        """Return g_e(x) of (87), shape (samples, m)."""
        h = X @ self.W
        return self.alpha - 0.5 * h**2 @ targets.T + h @ (self.gamma * targets).T


def fit_linear(
    X: Array,
    environment: np.ndarray,
    targets: np.ndarray,
    rng: np.random.Generator,
    *,
    keep: int = 1,
    starts: int = 18,
) -> list[LinearFit]:
    """Fit (87) with β tied to {0, 1/2} and a linear encoder, and keep rivals of the best fit.

    Two minima of a group are rivals if their losses differ by less than two standard errors
    of the difference, row by row: the data do not say which is the better one.

    Parameters
    ----------
    X : array of shape (N, d)
        Observations, whitened by the base sample.
    environment : int array of shape (N,)
        0 for the base, e for concept conditional environment e.
    targets : bool array of shape (m, n)
        Which concepts each environment conditions on.
    keep : int
        How many fits to return at most.
    starts : int
        Starts of each group of atoms, a third of them relaxed, the others random.

    Returns
    -------
    list of LinearFit
        Combinations of the groups' rivals, lowest sum of losses first, polished on all
        rows. At least one, and the first one is the best.
    """
    mask = np.asarray(targets, dtype=np.float64)
    groups = _groups(np.asarray(targets))
    searched = []
    for environments, atoms in groups:
        relabel = np.full(len(mask) + 1, -1)
        relabel[np.concatenate([[0], environments + 1])] = np.arange(len(environments) + 1)
        label = relabel[environment]
        own = rng.permutation(np.flatnonzero(label >= 0))[: 8 * _ROWS]
        block = mask[np.ix_(environments, atoms)]
        searched.append(_search(X[own], label[own], block, rng, starts))
    everything = _Task(X, _Softmax(environment), mask)
    fits = []
    for choice in _cheapest([[fit.loss for fit in found] for found in searched], keep):
        W, gamma, alpha = np.zeros((X.shape[1], mask.shape[1])), 0 * mask, np.zeros(len(mask))
        for (environments, atoms), found, i in zip(groups, searched, choice, strict=True):
            W[:, atoms], alpha[environments] = found[i].W, found[i].alpha
            gamma[np.ix_(environments, atoms)] = found[i].gamma
        fits.append(_polish(everything, W, 200, (gamma, alpha)))
    return fits


def _cheapest(losses: list[list[float]], keep: int) -> list[tuple[int, ...]]:
    """Pick one entry of every list, in the `keep` ways of lowest sum; lists are sorted."""
    ways: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for group in losses:
        longer = [(s + x, (*way, i)) for s, way in ways for i, x in enumerate(group)]
        ways = sorted(longer)[:keep]
    return [way for _, way in ways]


def _groups(targets: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Split environments and atoms into groups that share no environment."""
    m, n = targets.shape
    graph = np.zeros((m + n, m + n))
    graph[:m, m:] = targets
    count, labels = connected_components(graph, directed=False)
    return [
        (np.flatnonzero(labels[:m] == g), np.flatnonzero(labels[m:] == g)) for g in range(count)
    ]


def _search(
    X: Array,
    environment: np.ndarray,
    mask: Array,
    rng: np.random.Generator,
    starts: int,
) -> list[LinearFit]:
    """Return the best fit of one group of atoms and its rivals, best first."""
    few = _Task(X[:_ROWS], _Softmax(environment[:_ROWS]), mask)
    shape = (X.shape[1], mask.shape[1])
    begun = [
        # Directions at random, at lengths that span what σ may be in whitened units.
        np.exp(rng.uniform(0, 2)) * rng.normal(size=shape) / np.sqrt(shape[0])
        for _ in range(starts - starts // 3)
    ]
    begun += [_relaxed_start(few, rng) for _ in range(starts // 3)]
    minima = _different([_polish(few, W, 80) for W in begun])[:_FINALISTS]
    # The losses of the best few often differ by less than a small subsample can tell.
    task = _Task(X, _Softmax(environment), mask)
    best, *others = _different([_polish(task, f.W, 40, (f.gamma, f.alpha)) for f in minima])
    losses = [task.softmax.losses(fit.log_odds(X, mask)) for fit in (best, *others)]
    gaps = [row_losses - losses[0] for row_losses in losses[1:]]
    return [best] + [
        fit
        for fit, gap in zip(others, gaps, strict=True)
        if gap.mean() < 2 * gap.std() / np.sqrt(len(gap))
    ]


def _different(fits: list[LinearFit]) -> list[LinearFit]:
    """Sort fits by loss and drop those whose directions one before them has, up to sign."""

    def alike(a: LinearFit, b: LinearFit) -> bool:
        lengths = np.linalg.norm(a.W, axis=0) * np.linalg.norm(b.W, axis=0)
        return bool((np.abs((a.W * b.W).sum(axis=0)) > 0.98 * lengths).all())

    kept: list[LinearFit] = []
    for fit in sorted(fits, key=lambda fit: fit.loss):
        if not any(alike(fit, other) for other in kept):
            kept.append(fit)
    return kept


@dataclass(frozen=True, eq=False)
class _Task:
    X: Array
    softmax: _Softmax
    mask: Array


class _Softmax:
    """Mean softmax cross-entropy of log-odds against labels, by hand: autograd is slower."""

    def __init__(self, environment: np.ndarray) -> None:
        counts = np.bincount(environment)
        self.log_prior = np.log(counts[1:] / counts[0])
        self.environment = environment
        self.rows = np.arange(len(environment))

    def losses(self, log_odds: Array) -> Array:
        """Return the loss of every row, (N,)."""
        logits = log_odds + self.log_prior
        total = np.logaddexp.reduce(np.column_stack([np.zeros(len(logits)), logits]), axis=1)
        return total - self._own(logits)

    def __call__(self, log_odds: Array) -> tuple[float, Array]:
        """Return the mean loss and its gradient in the log-odds, (N, m)."""
        logits = log_odds + self.log_prior
        top = np.maximum(logits.max(axis=1), 0)
        weights = np.exp(logits - top[:, None])
        total = weights.sum(axis=1) + np.exp(-top)
        loss = float(np.mean(top + np.log(total) - self._own(logits)))
        weights /= total[:, None]
        conditional = self.environment > 0
        weights[self.rows[conditional], self.environment[conditional] - 1] -= 1
        return loss, weights / len(weights)

    def _own(self, logits: Array) -> Array:
        chosen = logits[self.rows, np.maximum(self.environment - 1, 0)]
        return np.where(self.environment > 0, chosen, 0.0)


def _relaxed_start(task: _Task, rng: np.random.Generator, directions: int = 3) -> Array:
    """Fit g_e = α + l_e·x − ½ Σ_k |x W_k|² and return each atom's leading direction, (d, n)."""
    X, mask = task.X, task.mask
    (m, n), d = mask.shape, X.shape[1]
    shapes = [(d, n * directions), (d, m), (m,)]

    def objective(flat: Array) -> tuple[float, Array]:
        W, linear, alpha = _unflatten(flat, shapes)
        h = X @ W
        squares = (h**2).reshape(-1, n, directions).sum(axis=2)
        loss, residual = task.softmax(alpha + X @ linear - 0.5 * squares @ mask.T)
        weights = np.repeat(-residual @ mask, directions, axis=1)
        gradients = [
            X.T @ (weights * h) + 2 * _RIDGE * W,
            X.T @ residual + 2 * _RIDGE * linear,
            residual.sum(axis=0),
        ]
        penalty = _RIDGE * ((W**2).sum() + (linear**2).sum())
        return loss + penalty, _flatten(gradients)

    start = [rng.normal(size=shapes[0]) / np.sqrt(d), np.zeros(shapes[1]), np.zeros(m)]
    W, _, _ = _unflatten(_descend(objective, _flatten(start), 60), shapes)
    leading = [np.linalg.svd(block, full_matrices=False) for block in np.split(W, n, axis=1)]
    return np.column_stack([U[:, 0] * s[0] for U, s, _ in leading])


def _polish(
    task: _Task, W: Array, iterations: int, head: tuple[Array, Array] | None = None
) -> LinearFit:
    """Fit (87) with β = ½ by L-BFGS; a fit that is to stay in its basin brings its head, γ, α."""
    X, mask = task.X, task.mask
    m, n = mask.shape
    shapes = [W.shape, (m, n), (m,)]

    def objective(flat: Array) -> tuple[float, Array]:
        W, gamma, alpha = _unflatten(flat, shapes)
        h = X @ W
        loss, residual = task.softmax(alpha - 0.5 * h**2 @ mask.T + h @ (gamma * mask).T)
        dh = residual @ (gamma * mask) - (residual @ mask) * h
        gradients = [X.T @ dh + 2 * _RIDGE * W, (residual.T @ h) * mask, residual.sum(axis=0)]
        return loss + _RIDGE * float((W**2).sum()), _flatten(gradients)

    if head is None:
        # Centre each environment's valuation where its own samples lie.
        means = [X[task.softmax.environment == e + 1].mean(axis=0) @ W for e in range(m)]
        head = mask * np.array(means), np.zeros(m)
    end = _descend(objective, _flatten([W, *head]), iterations)
    W, gamma, alpha = _unflatten(end, shapes)
    return LinearFit(W, alpha, gamma, objective(end)[0] - _RIDGE * float((W**2).sum()))


def _descend(objective: _Objective, start: Array, iterations: int) -> Array:
    options = {"maxiter": iterations, "maxcor": 20, "ftol": 1e-11, "gtol": 1e-7}
    return minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x


def _flatten(arrays: list[Array]) -> Array:
    return np.concatenate([a.ravel() for a in arrays])


def _unflatten(flat: Array, shapes: list[tuple[int, ...]]) -> list[Array]:
    ends = np.cumsum([int(np.prod(s)) for s in shapes])[:-1]
    return [part.reshape(s) for part, s in zip(np.split(flat, ends), shapes, strict=True)]
