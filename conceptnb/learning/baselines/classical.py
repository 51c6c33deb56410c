"""Baselines without a network: principal and independent components, a random projection."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, FastICA
from sklearn.exceptions import ConvergenceWarning

from conceptnb.core.validation import Array, as_count
from conceptnb.learning.baselines.baseline import Baseline

__all__ = ["IndependentComponents", "PrincipalComponents", "RandomProjection"]


class _Components(Baseline):
    """A scikit-learn decomposition of all rows, one a problem; it ignores environments."""

    def __init__(self, n_components: int, seed: int = 0) -> None:
        self.n_components = as_count(n_components, "n_components")
        self.seed = as_count(seed, "seed", minimum=0)

    def _model(self) -> Any:
        raise NotImplementedError

    def _fit(self, X: Array, environment: np.ndarray, valuations: Array | None) -> None:
        if self.n_components > min(X.shape[1:]):
            raise ValueError(
                f"n_components must be at most {min(X.shape[1:])}, the smaller of rows and "
                f"columns of X; got {self.n_components}"
            )
        self.models = [self._model().fit(rows) for rows in X]

    def _transform(self, X: Array) -> Array:
        codes = [model.transform(rows) for model, rows in zip(self.models, X, strict=True)]
        return np.stack(codes)


class PrincipalComponents(_Components):
    """The leading principal components of all rows, at unit variance (scikit-learn's PCA).

    Parameters
    ----------
    n_components : int
        Number k of codes.
    seed : int
        Unused where the decomposition is exact, as it is here.
    """

    def _model(self) -> Any:
        return PCA(self.n_components, whiten=True, svd_solver="full")


class IndependentComponents(_Components):
    """Independent components of all rows (scikit-learn's FastICA).

    It finds the latents of a linear mixing if they are independent and at most one is
    Gaussian. The components of the book's mixtures are neither: a component of the
    mixture moves all latents together.

    Parameters
    ----------
    n_components : int
        Number k of codes.
    seed : int
        Fixes the start of the iteration.
    """

    def _model(self) -> Any:
        return FastICA(
            self.n_components, whiten="unit-variance", random_state=self.seed, max_iter=500
        )

    def _fit(self, X: Array, environment: np.ndarray, valuations: Array | None) -> None:
        with warnings.catch_warnings():
            # Where components are nearly Gaussian the iteration circles; its last point
            # is as good an answer as there is.
            warnings.simplefilter("ignore", ConvergenceWarning)
            super()._fit(X, environment, valuations)


class RandomProjection(Baseline):
    """Random directions of the centred observations: a floor that has learned nothing.

    Parameters
    ----------
    n_components : int
        Number k of codes.
    seed : int
        Fixes the directions.
    """

    def __init__(self, n_components: int, seed: int = 0) -> None:
        self.n_components = as_count(n_components, "n_components")
        self.seed = as_count(seed, "seed", minimum=0)

    def _fit(self, X: Array, environment: np.ndarray, valuations: Array | None) -> None:
        rng = np.random.default_rng(self.seed)
        self.directions = rng.normal(size=(len(X), X.shape[2], self.n_components))
        self.mean = X.mean(axis=1, keepdims=True)

    def _transform(self, X: Array) -> Array:
        return (X - self.mean) @ self.directions
