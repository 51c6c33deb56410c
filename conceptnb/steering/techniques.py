"""The techniques of Table 6, and the extensions the paper proposes, by name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.common.sentence_bert import SentenceBert
from conceptnb.steering.activations import Activations
from conceptnb.steering.probes import Probes, fit_probes
from conceptnb.steering.question_embeddings import (
    CategoryEmbedding,
    CentredEmbedding,
    Embedding,
    StateEmbedding,
    TfidfEmbedding,
)
from conceptnb.steering.questions import Question
from conceptnb.steering.steer import SteeringMatrix, SteeringVector
from conceptnb.steering.truth_directions import (
    ccs_direction,
    mass_mean,
    principal_direction,
    random_direction,
)


@dataclass(frozen=True)
class Training:
    """What a technique may learn from: training questions and nothing else.

    Parameters
    ----------
    activations : Activations
        Head activations of exactly the training questions.
    probes : Probes
        Fitted on them.
    model, tokenizer
        The language model, for embeddings by its own states.
    """

    activations: Activations
    questions: Sequence[Question]
    probes: Probes
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase

    @classmethod
    def on(
        cls,
        questions: Sequence[Question],
        activations: Activations,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        rng: np.random.Generator,
    ) -> Training:
        """Return what these questions alone teach, of the activations of all.

        `rng` chooses the training questions that rank the heads.
        """
        mine = activations.select(questions)
        return cls(mine, questions, fit_probes(mine, questions, rng), model, tokenizer)

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


Fitted = SteeringVector | SteeringMatrix
Technique = Callable[[Training, np.random.Generator], Fitted]


def _vector(direction: Callable[[Training, np.random.Generator], np.ndarray]) -> Technique:
    return lambda t, rng: SteeringVector.along(direction(t, rng), t.activations)


def _matrix(embed: Callable[[Training], Embedding]) -> Technique:
    return lambda t, rng: SteeringMatrix.fit(t.activations, t.questions, embed(t))


def _ridge(embed: Callable[[Training], Embedding]) -> Technique:
    return lambda t, rng: SteeringMatrix.fit_ridge(t.activations, t.questions, embed(t))


MASS_MEAN = "ITI: mass mean shift"
MATRIX = "steering matrix"
ORACLE = "category oracle"

TECHNIQUES: dict[str, Technique] = {
    "random direction": _vector(lambda t, rng: random_direction(t.activations.shape, rng)),
    "CCS direction": _vector(lambda t, rng: ccs_direction(t.activations, t.questions, rng)),
    "ITI: probe weight direction": _vector(lambda t, rng: t.probes.weights),
    MASS_MEAN: _vector(lambda t, rng: mass_mean(t.activations, t.questions)),
    MATRIX: _matrix(Training.tfidf),
    "top principal component": _vector(
        lambda t, rng: principal_direction(t.activations, t.questions)
    ),
    "matrix, own states": _matrix(Training.states),
    "matrix, centred": _matrix(lambda t: CentredEmbedding(t.tfidf(), t.texts)),
    "matrix, optimised weights": _ridge(Training.tfidf),
    "matrix, optimised weights, own states": _ridge(Training.states),
}
"""Every technique by name, in the order of Table 6; the paper's extensions follow."""

_sentence_bert = functools.cache(SentenceBert)
SENTENCE_BERT = {"matrix, Sentence-BERT": _matrix(lambda t: _sentence_bert())}
"""The paper's embedding. Needs the optional Sentence-BERT model."""


def _labels_shuffled(t: Training, rng: np.random.Generator) -> SteeringVector:
    mixed = t.activations.shuffled(rng)
    return SteeringVector.along(mass_mean(mixed, t.questions), t.activations)


def _questions_exchanged(t: Training, rng: np.random.Generator) -> SteeringMatrix:
    texts = [str(text) for text in rng.permutation(t.texts)]
    exchanged = [replace(q, text=text) for q, text in zip(t.questions, texts, strict=True)]
    return SteeringMatrix.fit(t.activations, exchanged, _sentence_bert())


CONTROLS: dict[str, Technique] = {
    "mass mean, labels shuffled": _labels_shuffled,
    "steering matrix, questions exchanged": _questions_exchanged,
}
"""Mass mean of labels that say nothing, and a matrix whose λ_i are those of other questions; the
heads are the right ones. The second needs the optional Sentence-BERT model."""


def category_oracle(questions: Sequence[Question]) -> dict[str, Technique]:
    """Return the matrix that is told the categories, those of test questions included.

    No upper bound: weights that borrow from other categories' questions may do better.
    """
    embedding = CategoryEmbedding({q.text: q.category for q in questions})
    return {ORACLE: _matrix(lambda t: embedding)}
