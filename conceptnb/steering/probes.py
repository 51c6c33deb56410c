"""Linear probes for truth on single heads, and the ranking that picks heads (Appendix E.1, E.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from conceptnb.steering.activations import Activations
from conceptnb.steering.questions import Question


@dataclass(frozen=True)
class Probes:
    """One logistic regression per head: sigmoid(⟨θ, x_h⟩ + c).

    Parameters
    ----------
    accuracy : ndarray
        Balanced accuracy on held-out questions, shape (layers, heads).
    weights : ndarray
        θ of each head, shape (layers, heads, width), not normalised.
    """

    accuracy: np.ndarray
    weights: np.ndarray

    def top(self, n_heads: int) -> np.ndarray:
        """Boolean mask (layers, heads) of the ``n_heads`` most accurate heads (K in the paper).

        Raises ValueError if ``n_heads`` is not between 1 and the number of heads.
        """
        if not 1 <= n_heads <= self.accuracy.size:
            raise ValueError(
                f"n_heads is {n_heads}; the model has {self.accuracy.size} heads to choose from"
            )
        best = np.argsort(-self.accuracy, axis=None, kind="stable")[:n_heads]
        mask = np.zeros(self.accuracy.size, dtype=bool)
        mask[best] = True
        return mask.reshape(self.accuracy.shape)


def split_questions(
    questions: Sequence[Question], share: float, rng: np.random.Generator
) -> tuple[list[Question], list[Question]]:
    """Split questions, with their answers, at random into (rest, held out), ``share`` held out."""
    if not 0 < share < 1:
        raise ValueError(f"share is {share}; give a number between 0 and 1")
    order = rng.permutation(len(questions))
    held_out = max(1, round(share * len(questions)))
    if held_out >= len(questions):
        raise ValueError(f"{len(questions)} questions cannot be split; give more")
    return (
        [questions[i] for i in order[held_out:]],
        [questions[i] for i in order[:held_out]],
    )


def fit_probe(x: np.ndarray, true: np.ndarray) -> LogisticRegression:
    """Logistic regression of truth on activations ``x`` (rows, width); both classes count alike."""
    return LogisticRegression(max_iter=1000, class_weight="balanced").fit(x, true)


def fit_probes(
    activations: Activations,
    questions: Sequence[Question],
    rng: np.random.Generator,
    share: float = 0.2,
) -> Probes:
    """Train one probe per head, and rank heads on held-out questions.

    Parameters
    ----------
    questions : sequence of Question
        The training questions; ``share`` of them (0.2 in the original method) rank the heads.
    rng : numpy.random.Generator
        Chooses the held-out questions.

    Notes
    -----
    The original method ranks by plain accuracy. With one true answer in four,
    calling everything false would score .75, so the accuracy here is balanced:
    chance is .5 whatever the number of answers.
    """
    rest, held_out = split_questions(questions, share, rng)
    fit, check = activations.select(rest), activations.select(held_out)
    layers, heads, width = activations.shape
    accuracy = np.empty((layers, heads))
    weights = np.empty((layers, heads, width), dtype=np.float32)
    for layer, head in np.ndindex(layers, heads):
        probe = fit_probe(fit.heads[:, layer, head], fit.true)
        guess = probe.predict(check.heads[:, layer, head])
        accuracy[layer, head] = balanced_accuracy_score(check.true, guess)
        weights[layer, head] = probe.coef_[0]
    return Probes(accuracy, weights)


def split_accuracies(
    activations: Activations, questions: Sequence[Question], seeds: Sequence[int] = range(4)
) -> np.ndarray:
    """Balanced accuracy of every head's probe over random splits, shape (seeds, layers, heads).

    Each seed holds out 30 % of the questions, on which the probes of E.1 are scored.
    """
    splits = (fit_probes(activations, questions, np.random.default_rng(s), 0.3) for s in seeds)
    return np.array([probes.accuracy for probes in splits])


def orthogonal_probes(
    x: np.ndarray,
    true: np.ndarray,
    x_held_out: np.ndarray,
    true_held_out: np.ndarray,
    count: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Probe, remove the direction found, probe again: is truth one direction? (E.2, item 2).

    Fits `count` probes on activations (rows, width), each orthogonal to all before.

    Returns
    -------
    directions, accuracy
        Orthonormal rows (count, width); balanced accuracy on held-out rows, (count,).
    """
    if not 1 <= count <= x.shape[1]:
        raise ValueError(f"count is {count}; activations of width {x.shape[1]} allow 1 to that")
    basis = np.zeros((0, x.shape[1]))
    accuracy = []
    for _ in range(count):
        keep = np.eye(x.shape[1]) - basis.T @ basis
        probe = fit_probe(x @ keep, true)
        accuracy.append(balanced_accuracy_score(true_held_out, probe.predict(x_held_out @ keep)))
        direction = keep @ probe.coef_[0]
        basis = np.vstack([basis, direction / np.linalg.norm(direction)])
    return basis, np.array(accuracy)
