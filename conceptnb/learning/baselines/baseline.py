"""What every baseline offers: fit on observations and environments, transform to codes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from conceptnb.core.validation import Array, as_array
from conceptnb.learning.data import check_environment

__all__ = ["Baseline"]


class Baseline(ABC):
    """A method that turns observations into codes, to be compared with learned valuations.

    It takes one problem, an array of shape (samples, d_x), or D problems with the same
    environments at once, shape (D, samples, d_x); networks train as one stack then.
    """

    needs_valuations = False
    """Whether `fit` must be shown the truth: only a ceiling is."""

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
            True valuations, for a method that has :attr:`needs_valuations`; no other looks.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If shapes do not fit, an entry is not finite, or valuations are missing.
        """
        problems = as_problems(X, "X")
        labels = check_environment(environment)
        if problems.shape[1] != len(labels):
            raise ValueError(
                f"environment has {len(labels)} entries for {problems.shape[1]} rows of X: "
                "give one label a row"
            )
        truth = None
        if self.needs_valuations:
            if valuations is None:
                raise ValueError(
                    f"valuations must be given: {type(self).__name__} is a ceiling and sees them"
                )
            truth = as_problems(valuations, "valuations")
            if truth.shape[:2] != problems.shape[:2]:
                raise ValueError(
                    f"valuations must have leading shape {problems.shape[:2]} as X, "
                    f"got {truth.shape[:2]}"
                )
        self._shape = problems.shape
        self._fit(problems, labels, truth)
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return the codes of base observations.

        Parameters
        ----------
        X : array of shape (samples, d_x) or (D, samples, d_x)
            As many problems as in `fit`.

        Returns
        -------
        array of shape (samples, k) or (D, samples, k)

        Raises
        ------
        ValueError
            If the method is not fitted, or was fitted to another number of problems or of
            columns.
        """
        if not hasattr(self, "_shape"):
            raise ValueError(f"{type(self).__name__} is not fitted: call fit(X, environment) first")
        problems = as_problems(X, "X")
        fitted = (self._shape[0], self._shape[2])
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
        """Return codes of shape (D, samples, k)."""


def as_problems(value: ArrayLike, name: str) -> Array:
    """Return `value` with a leading axis of problems: (D, samples, columns).

    Raises
    ------
    TypeError, ValueError
        If it does not hold finite numbers with two or three axes.
    """
    axes = np.ndim(value)
    if axes not in (2, 3):
        raise ValueError(
            f"{name} must have shape (samples, columns) or (problems, samples, columns), "
            f"got {np.shape(value)}"
        )
    array = as_array(value, name, ndim=axes)
    return array if axes == 3 else array[None]
