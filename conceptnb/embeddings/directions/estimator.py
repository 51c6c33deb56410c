"""`ConceptDirections`: concept directions of one factor, in the style of scikit-learn."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from scipy.special import softmax
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.extmath import svd_flip
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from conceptnb.common.coordinates import Coordinates, refuse_sizes
from conceptnb.common.validation import Array
from conceptnb.core.concepts import Concept
from conceptnb.embeddings.directions.pairwise import (
    averaged_direction,
    check_labels,
    leading_directions,
    pairwise_regressions,
)

Method = Literal["discriminant", "pairwise", "ordinal", "circular", "paper"]
METHODS: tuple[Method, ...] = ("discriminant", "pairwise", "ordinal", "circular", "paper")


class ConceptDirections(
    ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Directions along which an embedding says which value a factor takes.

    The rows of `directions_` are the linear map A of a concept (Definition 1); the images of one
    value should lie near the plane A z = b, whose b is the value's row of `planes_`.

    Columns may have any unit and origin: they are standardised inside, and `directions_` and
    `planes_` are said in the columns that were given. Rows have no weights: where some count more,
    give them more often.

    Parameters
    ----------
    method : {"discriminant", "pairwise", "ordinal", "circular", "paper"}
        discriminant: the directions of largest between-class over within-class variance.
        pairwise: leading eigenvectors of Σ w wᵀ over all pairwise logistic regressions.
        ordinal: ridge regression on the value's rank, one dimension. circular: ridge
        regression on the cosine and sine of the value's place on a wheel, two dimensions.
        paper: the sign-aligned mean of Appendix D.1, one dimension, pairs in the order of values.
    n_components : int
        Dimensions k of the concept.
    C : float
        Inverse penalty of the logistic regressions.
    shrinkage : float
        Share in [0, 1] of the average variance that is mixed into the within-class covariance
        of standardised columns, for methods discriminant, ordinal and circular.
    standardise : bool
        False for an embedding whose coordinates have one unit in common: shrinkage and penalties
        are then those of raw coordinates, as in Appendix D.1.

    Attributes
    ----------
    directions_ : (k, dimensions)
        Rows of A, scaled by method discriminant to unit variance within values. `coef_` is another
        name, as that of scikit-learn's linear models.
    planes_ : (n_values, k)
        Mean valuation of each value: the concept planes.
    variance_ : float
        Of valuations around the plane of their value, the mean over the k dimensions.
    classes_ : (n_values,)
    regressions_ : PairwiseRegressions
        For methods pairwise and paper.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1, 2], 50)
    >>> Z = rng.normal(size=(150, 5)) + 6 * labels[:, None] * np.eye(5)[0]
    >>> estimator = ConceptDirections().fit(Z, labels)
    >>> estimator.score(Z, labels) > 0.95
    True
    """

    def __init__(
        self,
        method: Method = "discriminant",
        n_components: int = 1,
        C: float = 1.0,
        shrinkage: float = 1e-3,
        standardise: bool = True,
    ) -> None:
        self.method = method
        self.n_components = n_components
        self.C = C
        self.shrinkage = shrinkage
        self.standardise = standardise

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn directions and planes from embeddings X (samples, dimensions) and labels y.

        Raises
        ------
        ValueError
            If labels have one value or are no classes, a parameter does not fit the data, or a
            column, which is named, is beyond what double precision holds.
        """
        points, raw = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(raw)
        self.classes_, index = np.unique(raw, return_inverse=True)
        check_labels(index, len(points))
        refuse_sizes(points, getattr(self, "feature_names_in_", ()))
        self._check_parameters(len(self.classes_), points.shape[1])
        inputs = Coordinates.raw(points.shape[1])
        if self.standardise:
            inputs = Coordinates.standard(points, np.ones(len(points), dtype=bool))
        inner = inputs(points)
        if hasattr(self, "regressions_"):
            delattr(self, "regressions_")  # of an earlier fit, by another method
        if self.method in ("pairwise", "paper"):
            found = pairwise_regressions(inner, index, C=self.C)
            self.regressions_ = found.of_columns(inputs)
            if self.method == "paper":
                A = averaged_direction(found.coefficients)[None]
            else:
                A = leading_directions(found.coefficients, self.n_components)
        else:
            A = self._from_covariances(inner, index)
        self.directions_ = inputs.weights(A.T).T
        valuations = points @ self.directions_.T
        self._n_features_out = len(self.directions_)
        self.planes_ = np.stack([valuations[index == k].mean(axis=0) for k in np.unique(index)])
        around = inner @ A.T - (self.planes_ - inputs.origin @ self.directions_.T)[index]
        self.variance_ = float((around**2).mean())
        return self

    def _check_parameters(self, n_values: int, dimensions: int) -> None:
        """Raise ValueError where parameters do not fit the number of values and dimensions."""
        if self.method not in METHODS:
            raise ValueError(f"method={self.method!r} must be one of {', '.join(METHODS)}")
        most = {
            "discriminant": min(n_values - 1, dimensions),
            "pairwise": min(n_values * (n_values - 1) // 2, dimensions),
            "circular": 2,
        }.get(self.method, 1)
        if self.method == "circular" and self.n_components != 2:
            raise ValueError(
                f"n_components={self.n_components} must be 2 for method='circular': "
                "a place on a wheel has two coordinates"
            )
        if not 1 <= self.n_components <= most:
            raise ValueError(
                f"n_components={self.n_components} must lie between 1 and {most} for "
                f"method={self.method!r} with {n_values} values"
            )
        if not 0 <= self.shrinkage <= 1:
            raise ValueError(f"shrinkage={self.shrinkage} must lie in [0, 1]")

    @property
    def coef_(self) -> Array:
        """Return the weights of the columns, (k, dimensions): `directions_`."""
        return self.directions_

    def _from_covariances(self, points: Array, index: NDArray[np.intp]) -> Array:
        """Directions of the methods that need only class means and covariances."""
        means = np.stack([points[index == k].mean(axis=0) for k in range(index.max() + 1)])
        residuals = points - means[index]
        within = residuals.T @ residuals / len(points)
        average = np.trace(within) / len(within)
        ridge = max(self.shrinkage, 1e-12) * (average or 1.0)
        within = (1 - self.shrinkage) * within + ridge * np.eye(len(within))
        spread = means[index] - points.mean(axis=0)
        if self.method in ("ordinal", "circular"):
            target = _places(index, circular=self.method == "circular")
            A = np.linalg.solve(within + spread.T @ spread / len(points), points.T @ target).T
            return A / np.sqrt(np.einsum("kd,de,ke->k", A, within, A).mean())
        last = [len(within) - self.n_components, len(within) - 1]
        _, vectors = eigh(spread.T @ spread / len(points), within, subset_by_index=last)
        return svd_flip(None, vectors.T[::-1], u_based_decision=False)[1]

    def transform(self, X: ArrayLike) -> Array:
        """Valuations (samples, k) of embeddings, A z without intercept."""
        check_is_fitted(self)
        points = validate_data(self, X, dtype=np.float64, reset=False)
        return points @ self.directions_.T

    def predict(self, X: ArrayLike) -> NDArray[np.generic]:
        """Value (samples,) whose concept plane is nearest in valuation."""
        nearest = self._squares(X).argmin(axis=1)
        return self.classes_[nearest]

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probability (samples, n_values) of each value, in the order of `classes_`.

        The noise of Definition 2 is taken to be normal, of `variance_` in all dimensions, and all
        values to be equally frequent. :meth:`predict` then returns the most probable value. Where
        values do not vary at all, such as with one sample of each, the nearest plane is certain.
        """
        squares = self._squares(X)
        squares -= squares.min(axis=1, keepdims=True)
        with np.errstate(over="ignore"):  # of a share by next to nothing: that value is impossible
            exponents = squares / max(2 * self.variance_, np.finfo(float).tiny)
        return softmax(-exponents, axis=1)

    def _squares(self, X: ArrayLike) -> Array:
        """Squared distances (samples, n_values) from the planes, by differences."""
        return ((self.transform(X)[:, None] - self.planes_) ** 2).sum(axis=2)

    def concept(self, value: int | str) -> Concept:
        """Return the concept A z = b of one value that occurred in training (Definition 1)."""
        check_is_fitted(self)
        if value not in self.classes_:
            raise ValueError(f"value={value} must be one of {self.classes_.tolist()}")
        row = int(np.flatnonzero(self.classes_ == value)[0])
        return Concept(self.directions_, self.planes_[row])


def _places(index: NDArray[np.intp], *, circular: bool) -> Array:
    """Centred targets (samples, k) of a regression: ranks on a line, or places on a wheel."""
    if circular:
        angle = 2 * np.pi * index / (index.max() + 1)
        places = np.column_stack([np.cos(angle), np.sin(angle)])
    else:
        places = index[:, None].astype(float)
    return places - places.mean(axis=0)
