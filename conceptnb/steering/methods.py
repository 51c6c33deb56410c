"""The techniques of Table 6, and the extensions the paper proposes, by name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.core.sentence_bert import SentenceBert
from conceptnb.steering.activations import Activations
from conceptnb.steering.matrices import (
    MatrixSteering,
    SteeringMatrix,
    ridge_steering_matrix,
    steering_matrix,
)
from conceptnb.steering.probes import Probes
from conceptnb.steering.question_embeddings import (
    CategoryEmbedding,
    Centred,
    Embedding,
    StateEmbedding,
    TfidfEmbedding,
)
from conceptnb.steering.questions import Question
from conceptnb.steering.vectors import (
    SteeringVector,
    ccs_direction,
    mass_mean,
    principal_direction,
    random_direction,
)

Fitted = SteeringVector | SteeringMatrix


@dataclass(frozen=True)
class Training:
    """What a method may learn from: training questions and nothing else.

    Attributes
    ----------
    activations
        Head activations of exactly the training questions.
    questions
        The training questions.
    probes
        Probes fitted on them.
    model, tokenizer
        The language model, for embeddings by its own states.
    """

    activations: Activations
    questions: Sequence[Question]
    probes: Probes
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase

    @property
    def texts(self) -> list[str]:
        """Texts of the training questions."""
        return [question.text for question in self.questions]

    def tfidf(self) -> Embedding:
        """TF-IDF fitted on the training questions."""
        return TfidfEmbedding(self.texts)

    def states(self) -> Embedding:
        """Return the model's own middle states."""
        return StateEmbedding(self.model, self.tokenizer)


def _vector(direction: np.ndarray, training: Training) -> SteeringVector:
    return SteeringVector.along(direction, training.activations)


def _random(t: Training, rng: np.random.Generator) -> Fitted:
    return _vector(random_direction(t.activations.shape, rng), t)


def _ccs(t: Training, rng: np.random.Generator) -> Fitted:
    return _vector(ccs_direction(t.activations, t.questions, rng), t)


def _probe(t: Training, rng: np.random.Generator) -> Fitted:
    return _vector(t.probes.weights, t)


def _mass_mean(t: Training, rng: np.random.Generator) -> Fitted:
    return _vector(mass_mean(t.activations, t.questions), t)


def _principal(t: Training, rng: np.random.Generator) -> Fitted:
    return _vector(principal_direction(t.activations, t.questions), t)


def _matrix(embed: Callable[[Training], Embedding]) -> Callable[..., Fitted]:
    return lambda t, rng: steering_matrix(t.activations, t.questions, embed(t))


def _ridge(embed: Callable[[Training], Embedding]) -> Callable[..., Fitted]:
    return lambda t, rng: ridge_steering_matrix(t.activations, t.questions, embed(t))


MASS_MEAN = "ITI: mass mean shift"
MATRIX = "steering matrix"
ORACLE = "category oracle"

#: Every technique by name, in the order of Table 6; the paper's extensions follow.
METHODS: dict[str, Callable[[Training, np.random.Generator], Fitted]] = {
    "random direction": _random,
    "CCS direction": _ccs,
    "ITI: probe weight direction": _probe,
    MASS_MEAN: _mass_mean,
    MATRIX: _matrix(Training.tfidf),
    "top principal component": _principal,
    "matrix, own states": _matrix(Training.states),
    "matrix, centred": _matrix(lambda t: Centred(t.tfidf(), t.texts)),
    "matrix, optimised weights": _ridge(Training.tfidf),
    "matrix, optimised weights, own states": _ridge(Training.states),
}


@functools.cache
def _sentence_bert() -> SentenceBert:
    return SentenceBert()


#: Needs the optional Sentence-BERT model.
SENTENCE_BERT = {"matrix, Sentence-BERT": _matrix(lambda t: _sentence_bert())}


def category_oracle(questions: Sequence[Question]) -> dict[str, Callable[..., Fitted]]:
    """Return the matrix that is told the categories, those of test questions included.

    What no real method knows, but no upper bound: it averages a category's few training
    questions, and weights that also borrow from others may do better.
    """
    embedding = CategoryEmbedding({q.text: q.category for q in questions})
    return {ORACLE: _matrix(lambda t: embedding)}


def category_cosines(
    steering: MatrixSteering, questions: Sequence[Question]
) -> tuple[np.ndarray, list[str]]:
    """Cosines between the mean offsets that a matrix gives to each two categories.

    Returns
    -------
    cosines, names
        Shape (categories, categories), and the categories' names.
    """
    names = list(dict.fromkeys(q.category for q in questions))
    offsets = steering.for_texts([q.text for q in questions]).offsets.flatten(1).numpy()
    category = np.array([q.category for q in questions])
    means = np.stack([offsets[category == name].mean(0) for name in names])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return means @ means.T, names
