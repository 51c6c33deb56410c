r"""Linear encoders: many cheap starts on a subsample, the best polished on all rows.

With known targets and :math:`\beta` tied to {0, 1/2}, the model (87) with a linear encoder
has few parameters, so L-BFGS on a few thousand rows takes milliseconds. Its local minima
differ clearly in loss, so the loss tells them apart. Half of the starts are random; half
come from a relaxation in which each atom has several directions and each environment a
free linear term, of which the leading direction of each atom is kept. Everything is
measured by one softmax over all environments. Atoms that no chain of environments
connects do not share a parameter, so each such group is searched by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components

from conceptnb._validation import Array

__all__ = ["LinearFit", "fit_linear"]

Objective = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A linear encoder h = x W and its head, fitted to one problem.

    Parameters
    ----------
    W : array of shape (d, n)
        Directions of the n concepts, for centred observations.
    alpha : array of shape (m,)
    gamma : array of shape (m, n)
        Of (87), with β = 1/2 on the targets.
    loss : float
        Softmax loss on the rows it was fitted to, penalty not included, in nats a row.
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
    starts: int = 10,
    rows: int = 2500,
    ridge: float = 1e-6,
) -> LinearFit:
    """Fit (87) with β tied to {0, 1/2} and a linear encoder.

    Parameters
    ----------
    X : array of shape (N, d)
        Observations, whitened by the base sample.
    environment : int array of shape (N,)
        0 for the base, e for concept conditional environment e.
    targets : bool array of shape (m, n)
        Which concepts each environment conditions on.
    rng : numpy.random.Generator
        Draws the subsample and the starts.
    starts : int
        Starts of each group of atoms, half random, half relaxed; the one with the lowest
        loss on the subsample is kept.
    rows : int
        Size of the subsample of a group.
    ridge : float
        Penalty on the squares of W (and of the relaxation's linear terms).

    Returns
    -------
    LinearFit
        Polished on all rows.
    """
    mask = np.asarray(targets, dtype=np.float64)
    W = np.zeros((X.shape[1], mask.shape[1]))
    for environments, atoms in _groups(np.asarray(targets)):
        W[:, atoms] = _search(
            X, environment, mask, environments, atoms, rng, starts=starts, rows=rows, ridge=ridge
        )
    return _polish(_Task(X, _Softmax(environment), mask, ridge), W, 200)


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
    environments: np.ndarray,
    atoms: np.ndarray,
    rng: np.random.Generator,
    *,
    starts: int,
    rows: int,
    ridge: float,
) -> Array:
    """Return the best directions of one group of atoms on a subsample, shape (d, atoms)."""
    relabel = np.full(len(mask) + 1, -1)
    relabel[np.concatenate([[0], environments + 1])] = np.arange(len(environments) + 1)
    label = relabel[environment]
    few = rng.permutation(np.flatnonzero(label >= 0))[:rows]
    task = _Task(X[few], _Softmax(label[few]), mask[np.ix_(environments, atoms)], ridge)
    shape = (X.shape[1], len(atoms))
    begun = [
        # Directions at random, at lengths that span what σ may be in whitened units.
        np.exp(rng.uniform(0, 2)) * rng.normal(size=shape) / np.sqrt(shape[0])
        for _ in range((starts + 1) // 2)
    ]
    begun += [_relaxed_start(task, rng) for _ in range(starts // 2)]
    return min((_polish(task, W, 80) for W in begun), key=lambda fit: fit.loss).W


@dataclass(frozen=True, eq=False)
class _Task:
    X: Array
    softmax: _Softmax
    mask: Array
    ridge: float


class _Softmax:
    """Mean softmax cross-entropy of log-odds against environment labels, with gradient."""

    def __init__(self, environment: np.ndarray) -> None:
        counts = np.bincount(environment)
        self.log_prior = np.log(counts[1:] / counts[0])
        self.environment = environment
        self.rows = np.arange(len(environment))

    def __call__(self, log_odds: Array) -> tuple[float, Array]:
        """Return the loss and its gradient in the log-odds, (N, m)."""
        logits = log_odds + self.log_prior
        top = np.maximum(logits.max(axis=1), 0)
        weights = np.exp(logits - top[:, None])
        total = weights.sum(axis=1) + np.exp(-top)
        own = np.where(
            self.environment > 0, logits[self.rows, np.maximum(self.environment - 1, 0)], 0.0
        )
        loss = float(np.mean(top + np.log(total) - own))
        weights /= total[:, None]
        conditional = self.environment > 0
        weights[self.rows[conditional], self.environment[conditional] - 1] -= 1
        return loss, weights / len(weights)


def _relaxed_start(task: _Task, rng: np.random.Generator, directions: int = 3) -> Array:
    """Fit g_e = α + l_e·x − ½ Σ_k |x W_k|² and return each atom's leading direction, (d, n)."""
    X, mask, ridge = task.X, task.mask, task.ridge
    (m, n), d = mask.shape, X.shape[1]
    shapes = [(d, n * directions), (d, m), (m,)]

    def objective(flat: Array) -> tuple[float, Array]:
        W, linear, alpha = _unflatten(flat, shapes)
        h = X @ W
        squares = (h**2).reshape(-1, n, directions).sum(axis=2)
        loss, residual = task.softmax(alpha + X @ linear - 0.5 * squares @ mask.T)
        weights = np.repeat(-residual @ mask, directions, axis=1)
        gradients = [
            X.T @ (weights * h) + 2 * ridge * W,
            X.T @ residual + 2 * ridge * linear,
            residual.sum(axis=0),
        ]
        penalty = ridge * ((W**2).sum() + (linear**2).sum())
        return loss + penalty, _flatten(gradients)

    start = [rng.normal(size=shapes[0]) / np.sqrt(d), np.zeros(shapes[1]), np.zeros(m)]
    W, _, _ = _unflatten(_descend(objective, _flatten(start), 60), shapes)
    leading = [np.linalg.svd(block, full_matrices=False) for block in np.split(W, n, axis=1)]
    return np.column_stack([U[:, 0] * s[0] for U, s, _ in leading])


def _polish(task: _Task, W: Array, iterations: int) -> LinearFit:
    """Fit (87) with β = ½ on the targets from given directions, by L-BFGS."""
    X, mask, ridge = task.X, task.mask, task.ridge
    m, n = mask.shape
    shapes = [W.shape, (m, n), (m,)]

    def objective(flat: Array) -> tuple[float, Array]:
        W, gamma, alpha = _unflatten(flat, shapes)
        h = X @ W
        loss, residual = task.softmax(alpha - 0.5 * h**2 @ mask.T + h @ (gamma * mask).T)
        dh = residual @ (gamma * mask) - (residual @ mask) * h
        gradients = [X.T @ dh + 2 * ridge * W, (residual.T @ h) * mask, residual.sum(axis=0)]
        return loss + ridge * float((W**2).sum()), _flatten(gradients)

    # Centre each environment's valuation where its own samples lie.
    gamma = mask * np.array(
        [X[task.softmax.environment == e + 1].mean(axis=0) @ W for e in range(m)]
    )
    end = _descend(objective, _flatten([W, gamma, np.zeros(m)]), iterations)
    W, gamma, alpha = _unflatten(end, shapes)
    return LinearFit(W, alpha, gamma, objective(end)[0] - ridge * float((W**2).sum()))


def _descend(objective: Objective, start: Array, iterations: int) -> Array:
    options = {"maxiter": iterations, "maxcor": 20, "ftol": 1e-11, "gtol": 1e-7}
    return minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x


def _flatten(arrays: list[Array]) -> Array:
    return np.concatenate([a.ravel() for a in arrays])


def _unflatten(flat: Array, shapes: list[tuple[int, ...]]) -> list[Array]:
    ends = np.cumsum([int(np.prod(s)) for s in shapes])[:-1]
    return [part.reshape(s) for part, s in zip(np.split(flat, ends), shapes, strict=True)]
