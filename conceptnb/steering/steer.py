"""Steering vectors and steering matrices: from a direction to an intervention (Appendix E.3).

A vector adds α σ θ to a head, the same for every text. A matrix lets the direction depend on
the text: η(x) = Σ_i ⟨λ(x), λ_i⟩ (h(c_T,i) − h(c_F,i)) = M λ(x), normalised, with the scale σ(x)
of the activations along η(x).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from sklearn.linear_model import RidgeCV
from torch import Tensor

from conceptnb.steering.activations import Activations
from conceptnb.steering.intervention import Intervention
from conceptnb.steering.question_embeddings import CentredEmbedding, Embedding
from conceptnb.steering.questions import Question


@dataclass(frozen=True)
class SteeringVector:
    """A unit direction θ and a scale σ for every head.

    Parameters
    ----------
    unit : ndarray
        θ, unit length, shape (layers, heads, width).
    sigma : ndarray
        Standard deviation of the training activations along θ, shape (layers, heads).
    """

    unit: np.ndarray
    sigma: np.ndarray

    @classmethod
    def along(cls, direction: np.ndarray, training: Activations) -> SteeringVector:
        """Normalise ``direction`` and measure σ along it, on training questions only.

        It has shape (layers, heads, width) and any length. No training activation may be tested.
        """
        if direction.shape != training.shape:
            raise ValueError(f"direction has shape {direction.shape}, activations {training.shape}")
        length = np.linalg.norm(direction, axis=-1, keepdims=True)
        unit = np.divide(direction, length, out=np.zeros_like(direction), where=length > 0)
        sigma = np.einsum("rlhd,lhd->rlh", training.heads, unit).std(axis=0)
        return cls(unit, sigma)

    def steer(self, alpha: float, heads: np.ndarray) -> Intervention:
        """Return the intervention of strength α, in standard deviations; ``heads`` is a mask."""
        offsets = alpha * self.sigma[..., None] * self.unit * heads[..., None]
        return Intervention(torch.as_tensor(offsets, dtype=torch.float32))


@dataclass(frozen=True)
class SteeringMatrix:
    """A matrix M and the covariance of the activations, for every head.

    Parameters
    ----------
    matrices : ndarray
        M, shape (layers, heads, width, dimension of λ).
    covariance : ndarray
        Covariance of the training activations, shape (layers, heads, width,
        width). It turns σ(x), which the paper's code computes from all
        activations at run time, into the quadratic form ηᵀ Σ η.
    embedding : callable
        λ: texts to vectors, see `conceptnb.steering.question_embeddings`.
    """

    matrices: np.ndarray
    covariance: np.ndarray
    embedding: Embedding

    def steer(self, alpha: float, heads: np.ndarray) -> MatrixIntervention:
        """Return the intervention of strength α, in standard deviations; ``heads`` is a mask."""
        return MatrixIntervention(
            torch.as_tensor(self.matrices[heads], dtype=torch.float32),
            torch.as_tensor(self.covariance[heads], dtype=torch.float32),
            torch.as_tensor(heads),
            alpha,
            self.embedding,
        )

    @classmethod
    def fit(
        cls, activations: Activations, questions: Sequence[Question], embedding: Embedding
    ) -> SteeringMatrix:
        """Return the paper's steering matrix M = Σ_i (h(c_T,i) − h(c_F,i)) λ_iᵀ (Appendix E.3).

        λ_i embeds the text of a training question without its answers, as in the paper's
        implementation; ``embedding`` must be fitted on nothing but training questions.
        """
        weights = embedding([question.text for question in questions])
        matrices = np.einsum("qlhd,qp->lhdp", activations.differences(questions), weights)
        return cls(matrices, activations.select(questions).covariance(), embedding)

    @classmethod
    def fit_ridge(
        cls,
        activations: Activations,
        questions: Sequence[Question],
        embedding: Embedding,
        penalties: Sequence[float] = tuple(np.logspace(-3, 3, 13)),
    ) -> SteeringMatrix:
        """Return a matrix whose weights are optimised on held-out questions (E.3, second idea).

        M λ(x) is a ridge regression of a question's own difference h(c_T) − h(c_F) on centred
        λ, with an unpenalised constant. Like the paper's it is a weighted sum of the training
        differences; only the weights w_i(x) differ. A large penalty gives the mass mean, none
        lets λ decide all. Of the `penalties` that one is taken under which the direction for a
        training question, fitted to all others, agrees best with that question's own difference:
        mean cosine over questions and heads. The cosine, because a direction is normalised before
        use; squared error would shrink it towards zero for being uncertain.
        """
        texts = [question.text for question in questions]
        extended = CentredEmbedding(embedding, texts, constant=True)
        width = activations.shape[-1]
        own = activations.differences(questions).reshape(len(questions), -1).astype(np.float64)

        def agreement(_: object, left_out: np.ndarray, y: np.ndarray) -> float:
            one, other = (x.reshape(len(x), -1, width) for x in (left_out, y))
            lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
            cosines = np.einsum("qhd,qhd->qh", one, other) / np.maximum(lengths, 1e-30)
            return float(cosines.mean())

        # Called with each question's prediction from a fit to all the others.
        ridge = RidgeCV(alphas=penalties, scoring=agreement).fit(extended(texts)[:, :-1], own)
        solution = np.column_stack([ridge.coef_, ridge.intercept_])
        covariance = activations.select(questions).covariance()
        return cls(solution.reshape(*activations.shape, -1), covariance, extended)


@dataclass(frozen=True)
class MatrixIntervention:
    """A steering matrix at work with strength α: the edit of the chosen heads, for any text.

    Parameters
    ----------
    matrices, covariance : Tensor
        Of the K chosen heads, shapes (K, width, dimension of λ) and (K, width, width).
    heads : Tensor of bool
        Mask (layers, heads) with K true entries.
    embedding : callable
        λ, as in `SteeringMatrix`.
    """

    matrices: Tensor
    covariance: Tensor
    heads: Tensor
    alpha: float
    embedding: Embedding

    def for_texts(self, texts: Sequence[str]) -> Intervention:
        """Return offsets (texts, layers, heads, width): α σ(x) η(x), zero where λ(x) has no weight.

        Computed once per text: under generation a token costs one addition per layer.
        """
        weights = torch.as_tensor(self.embedding(texts), dtype=torch.float32)
        if weights.shape[1] != self.matrices.shape[-1]:
            raise ValueError(
                f"embedding has dimension {weights.shape[1]}, the matrix needs "
                f"{self.matrices.shape[-1]}; use the embedding it was fitted with"
            )
        eta = torch.einsum("kdp,bp->bkd", self.matrices, weights)
        eta = torch.nn.functional.normalize(eta, dim=-1)
        variance = torch.einsum("bki,kij,bkj->bk", eta, self.covariance, eta)
        offsets = torch.zeros((len(texts), *self.heads.shape, eta.shape[-1]))
        offsets[:, self.heads] = self.alpha * variance.clamp(min=0).sqrt()[..., None] * eta
        return Intervention(offsets)

    def category_cosines(self, questions: Sequence[Question]) -> tuple[np.ndarray, list[str]]:
        """Return cosines of the mean offsets of each two categories, and the categories' names."""
        names = list(dict.fromkeys(q.category for q in questions))
        offsets = self.for_texts([q.text for q in questions]).offsets.flatten(1).numpy()
        category = np.array([q.category for q in questions])
        means = np.stack([offsets[category == name].mean(0) for name in names])
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        return means @ means.T, names

    def save(self, path: str | Path) -> None:
        """Write everything but the embedding as safetensors."""
        tensors = {
            "matrices": self.matrices.contiguous(),
            "covariance": self.covariance.contiguous(),
            "heads": self.heads.contiguous(),
            "alpha": torch.tensor(self.alpha, dtype=torch.float64),
        }
        save_file(tensors, str(path))

    @classmethod
    def load(cls, path: str | Path, embedding: Embedding) -> MatrixIntervention:
        """Read what :meth:`save` wrote; ``embedding`` must be the one it was fitted with."""
        found = load_file(str(path))
        alpha = found.pop("alpha").item()
        return cls(**found, alpha=alpha, embedding=embedding)
