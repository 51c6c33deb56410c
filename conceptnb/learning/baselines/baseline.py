"""What a reader would try instead, by the protocol of scikit-learn: fit, then transform."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from conceptnb.common.validation import Array, as_array, as_count
from conceptnb.learning.data import check_environment


class Baseline(TransformerMixin, BaseEstimator):
    """A method that represents observations, to be compared with learned valuations.

    It takes one problem, (samples, d_x), or D with the same environments, (D, samples, d_x).
    """

    def fit(
        self, X: ArrayLike, environment: ArrayLike, valuations: ArrayLike | None = None
    ) -> Self:
        """Learn from observations and the environments that they come from.

        Parameters
        ----------
        X : array of shape (samples, d_x) or (D, samples, d_x)
        environment : int array of shape (samples,)
            0 for the base distribution, 1 to m for the concept conditional environments.
        valuations : array of shape (samples, n) or (D, samples, n), optional
            True valuations, for :class:`Supervised`; no other method looks.
        """
        problems = _as_problems(X, "X")
        labels = check_environment(environment)
        if problems.shape[1] != len(labels):
            raise ValueError(
                f"environment has {len(labels)} entries for {problems.shape[1]} rows of X: "
                "give one label per row"
            )
        truth = None if valuations is None else _as_problems(valuations, "valuations")
        if truth is not None and truth.shape[:2] != problems.shape[:2]:
            raise ValueError(
                f"valuations must have leading shape {problems.shape[:2]} as X, "
                f"got {truth.shape[:2]}"
            )
        self._fit(problems, labels, truth)
        self.shape_ = problems.shape
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return representations (samples, k) or (D, samples, k): problems are those of `fit`."""
        check_is_fitted(self, "shape_")
        problems = _as_problems(X, "X")
        fitted = (self.shape_[0], self.shape_[2])
        if (problems.shape[0], problems.shape[2]) != fitted:
            raise ValueError(
                f"X holds {problems.shape[0]} problems of {problems.shape[2]} columns, "
                f"{type(self).__name__} was fitted to {fitted[0]} of {fitted[1]}"
            )
        codes = self._transform(problems)
        return codes if np.ndim(X) == 3 else codes[0]

    @abstractmethod
    def _fit(self, X: Array, environment: np.ndarray, valuations: Array | None) -> None:
        """Fit D problems, X of shape (D, samples, d_x)."""

    @abstractmethod
    def _transform(self, X: Array) -> Array:
        """Return representations of shape (D, samples, k)."""


class EachProblem(Baseline):
    """A transformer of scikit-learn, fitted to all rows of each problem; it sees no environments.

    Principal components keep the whole of a linear mixing's latents. Independent components find
    them if they are independent and at most one is Gaussian; those of the book's mixtures are
    neither, for a component of the mixture moves all latents together. The `transformer`, such as
    ``PCA(3, whiten=True)`` or ``FastICA(3)``, is cloned for each problem.
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def _fit(self, X: Array, environment: np.ndarray, valuations: Array | None) -> None:
        with warnings.catch_warnings():
            # Where components are nearly Gaussian, FastICA circles; its last point will do.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.models_ = [clone(self.transformer).fit(rows) for rows in X]

    def _transform(self, X: Array) -> Array:
        return np.stack([m.transform(rows) for m, rows in zip(self.models_, X, strict=True)])


class RandomProjection(Baseline):
    """Random directions of the centred observations: a floor that has learned nothing."""

    def __init__(self, n_components: int, seed: int = 0) -> None:
        self.n_components = n_components
        self.seed = seed

    def _fit(self, X: Array, environment: np.ndarray, valuations: Array | None) -> None:
        count = as_count(self.n_components, "n_components")
        rng = np.random.default_rng(as_count(self.seed, "seed", minimum=0))
        self.directions_ = rng.normal(size=(len(X), X.shape[2], count))
        self.mean_ = X.mean(axis=1, keepdims=True)

    def _transform(self, X: Array) -> Array:
        return (X - self.mean_) @ self.directions_


def _as_problems(value: ArrayLike, name: str) -> Array:
    """Return `value` with a leading axis of problems: (D, samples, columns)."""
    axes = np.ndim(value)
    if axes not in (2, 3):
        raise ValueError(
            f"{name} must have shape (samples, columns) or (problems, samples, columns), "
            f"got {np.shape(value)}"
        )
    array = as_array(value, name, ndim=axes)
    return array if axes == 3 else array[None]
