"""A scikit-learn estimator over the contrastive algorithm, for any arrays."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from safetensors import safe_open
from safetensors.torch import save_file
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted, validate_data

from conceptnb.common.coordinates import Coordinates, refuse_sizes
from conceptnb.common.validation import Array, as_count
from conceptnb.learning.cluster_whitening import ClusterWhitening
from conceptnb.learning.data import check_environment, stack
from conceptnb.learning.encoders import LinearEncoder
from conceptnb.learning.fitting import ConceptFit, fit
from conceptnb.learning.heads import TiedHead
from conceptnb.learning.linear import LinearFit
from conceptnb.learning.model import Whitening
from conceptnb.learning.purity import ImpureFit, fit_impure
from conceptnb.learning.recipes import BEST, CLUSTER_WHITENED, UNKNOWN_TARGETS, Recipe
from conceptnb.learning.training import TrainingConfig


class ConceptLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Learn the valuations of concepts from environments (Problem 1, Appendix F).

    Columns may have any unit and origin: they are standardised by the base before the fit, and
    everything public is said in the columns that were given. Rows have no weights: where some
    count more, give them more often. To choose parameters by cross-validation every fold needs
    rows of every environment; scikit-learn stratifies by itself where ``cv`` is a whole number,
    as this estimator also predicts environments (:meth:`predict`), and StratifiedKFold does.

    Parameters
    ----------
    n_concepts : int
        Number n of atoms.
    targets : bool array of shape (m, n_concepts), optional
        Which concepts each environment conditions on, if that is known: then the recipe is
        :data:`~conceptnb.learning.BEST`, otherwise :data:`~conceptnb.learning.UNKNOWN_TARGETS`.
        Its rows are in the order of `environments_`, without the base.
    base : str, optional
        Name of the base environment, if environments have names and not numbers.
    encoder : {"linear", "mlp"}
        What the inverse of the mixing is taken to be.
    base_clusters : int, optional
        For known targets and a network, if the base is a mixture of that many clusters with
        one covariance in latent space: :data:`~conceptnb.learning.CLUSTER_WHITENED`.
    n_starts, epochs : int, optional
        Starts, and passes over the data, by default the recipe's. A linear encoder for known
        targets is searched and not trained: it takes neither.
    purity : "estimate", optional
        Some rows of an environment may not have been looked for, and come from the base: their
        unknown share is fitted with the concepts. Needs targets and a linear encoder. By default
        all rows are taken to have been looked for.
    held_out : float
        Share of every environment that chooses epoch and start.
    random_state : int, numpy.random.Generator or None
        Fixes the order of rows and the starts. None is another one in each fit.

    Attributes
    ----------
    n_environments_ : int
        Number m of concept conditional environments.
    environments_ : array of shape (m + 1,)
        0 to m, or names: the base, then the others in the order of the alphabet. `classes_` is
        another name for them.
    coef_ : array of shape (n_concepts, n_features)
        Of a linear encoder alone: valuations are ``X @ coef_.T + intercept_``. A weight is per
        unit of its column; times the column's standard deviation, weights can be compared.
    intercept_ : array of shape (n_concepts,)
        Which gives the base a mean valuation of about 0.
    seed_ : int
        Of the order of rows and the starts.
    held_out_loss_ : float
        Contrastive loss on the held-out share, in nats per row; with ``purity="estimate"``, of the
        fit that it starts from, which takes all rows as looked for.
    purity_, purity_errors_ : arrays of shape (m,)
        With ``purity="estimate"``: the share of each environment's rows that were looked for, and
        its standard error, which means nothing where the purity is 0 or 1.
    n_features_in_ : int

    Examples
    --------
    >>> from conceptnb.core.problems import TABLE_1, draw_problem
    >>> problem = draw_problem(TABLE_1[0], seed=6, samples=500)
    >>> learner = ConceptLearner(2, targets=problem.design.M > 0, encoder="linear")
    >>> learner.fit(problem.X, problem.environment).transform(problem.X).shape
    (3000, 2)
    """

    def __init__(
        self,
        n_concepts: int = 2,
        *,
        targets: ArrayLike | None = None,
        base: str | None = None,
        encoder: str = "mlp",
        base_clusters: int | None = None,
        purity: str | None = None,
        n_starts: int | None = None,
        epochs: int | None = None,
        held_out: float = 0.2,
        random_state: int | np.random.Generator | None = 0,
    ) -> None:
        self.n_concepts = n_concepts
        self.targets = targets
        self.base = base
        self.encoder = encoder
        self.base_clusters = base_clusters
        self.purity = purity
        self.n_starts = n_starts
        self.epochs = epochs
        self.held_out = held_out
        self.random_state = random_state

    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, *, environment: ArrayLike | None = None
    ) -> Self:
        """Learn concepts from observations and the environments that they come from.

        Parameters
        ----------
        X : array of shape (samples, d_x)
        y : array of shape (samples,)
            The environments: 0 for the base distribution, 1 to m for the concept conditional
            ones; with `base`, their names.
        environment : array of shape (samples,)
            Another name for `y`.

        Raises
        ------
        TypeError, ValueError
            If arguments do not fit together, an environment is too small to split, or there are
            more concepts than columns.
        """
        given = _either(y, environment)
        if given is None:
            raise ValueError(
                "requires y to be passed, but the target y is None: it holds the environments"
            )
        return self._learn(X, given, None)

    def fit_along(self, X: ArrayLike, y: ArrayLike, coordinates: Coordinates) -> Self:
        """Learn as :meth:`fit` does, in coordinates of the caller's in place of standard ones.

        The fitted learner takes and explains X's own columns.
        """
        return self._learn(X, y, coordinates)

    def _learn(self, X: ArrayLike, environment: ArrayLike, given: Coordinates | None) -> Self:
        rows: Array = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self.environments_, labels = self._numbered(environment)
        self.classes_ = self.environments_
        if len(labels) != len(rows):
            raise ValueError(f"environment has {len(labels)} entries for {len(rows)} rows of X")
        n = as_count(self.n_concepts, "n_concepts")
        if given is None and n > rows.shape[1]:
            raise ValueError(
                f"n_concepts={n} is more than X can hold, whose n_features={rows.shape[1]}: ask "
                "for as many concepts as columns, or fewer"
            )
        refuse_sizes(rows, getattr(self, "feature_names_in_", ()))
        recipe = self._recipe()
        self.seed_ = _as_seed(self.random_state)
        self._inputs = given or Coordinates.standard(rows, labels == 0)
        # Rows may come in any order; the split takes the last of every environment.
        order = np.random.default_rng(self.seed_).permutation(len(rows))
        inner = self._inputs(rows)
        data = stack([inner[order]], labels[order], self.targets)
        self._fit = fit(data, recipe, n_concepts=n, seeds=[self.seed_])
        if self._fit.whitening is not None and self._fit.whitening.matrix.shape[2] < n:
            warnings.warn(
                f"n_concepts={n}, and X has only {self._fit.whitening.matrix.shape[2]} independent "
                "columns in the base: some concepts are the same or mixtures of others",
                stacklevel=3,
            )
        if self.purity is not None:
            self._fit_purity(inner, labels)
        counts = np.bincount(labels)
        self.n_environments_ = len(counts) - 1
        self.held_out_loss_ = float(self._fit.held_out_loss.min())
        self._log_prior = np.log(counts / counts.sum())
        self._n_features_out = n
        return self

    def _fit_purity(self, rows: Array, labels: np.ndarray) -> None:
        """Fit purities beside the concepts, from the fit that takes all rows as looked for."""
        model = self._fit.model
        assert isinstance(model.head, TiedHead)
        assert isinstance(model.encoder, LinearEncoder)
        white = self._white(rows)
        W = model.encoder.layer.weight[0].detach().double().numpy()
        gamma, alpha = (
            a[0].detach().double().numpy() for a in (model.head.gamma, model.head.alpha)
        )
        start = LinearFit(W, alpha[0], gamma.T, 0.0)
        found = fit_impure(
            white,
            labels,
            np.asarray(self.targets),
            start,
            np.random.default_rng(self.seed_),
        )
        model.encoder.start_linear(torch.as_tensor(found.W[None]))
        model.head.start(
            torch.as_tensor(found.alpha[None, None]), torch.as_tensor(found.gamma.T[None])
        )
        self._keep_purity(found)

    def _keep_purity(self, found: ImpureFit) -> None:
        self.purity_, self.purity_errors_, self._impure = found.purity, found.purity_errors, found

    def _numbered(self, environment: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return the environments, the base first, and the number of each row's own."""
        if self.base is None:
            labels = check_environment(environment)
            return np.arange(labels.max() + 1), labels
        if not isinstance(self.base, str):
            raise TypeError(
                f"base={self.base!r} must be the name of an environment: leave it out where they "
                "are numbers, 0 for the base"
            )
        names = _names(environment)
        if self.base not in names:
            raise ValueError(f"base={self.base!r} is no environment; there are {sorted({*names})}")
        found = np.array([self.base, *np.unique(names[names != self.base])])
        if len(found) == 1:
            raise ValueError(f"environment holds {self.base!r} alone: give another to tell from it")
        return found, _positions(names, found)

    def _recipe(self) -> Recipe:
        if self.encoder not in ("linear", "mlp"):
            raise ValueError(f"encoder must be 'linear' or 'mlp', got {self.encoder!r}")
        if self.purity not in (None, "estimate"):
            raise ValueError(f"purity must be None or 'estimate', got {self.purity!r}")
        if self.purity is not None and (self.targets is None or self.encoder != "linear"):
            raise ValueError("purity='estimate' needs targets and encoder='linear'")
        changes: dict[str, Any] = {"encoder": self.encoder, "held_out": self.held_out}
        if self.base_clusters is not None:
            if self.targets is None or self.encoder == "linear":
                raise ValueError(
                    "base_clusters needs targets and encoder='mlp': leave it None otherwise"
                )
            changes["n_clusters"] = self.base_clusters
        known = BEST if self.base_clusters is None else CLUSTER_WHITENED
        recipe = UNKNOWN_TARGETS if self.targets is None else known
        searched = recipe.search and self.encoder == "linear"
        if searched and (self.n_starts, self.epochs) != (None, None):
            raise ValueError(
                "a linear encoder for known targets is searched and not trained: leave n_starts "
                "and epochs None, or take encoder='mlp'"
            )
        if self.n_starts is not None:
            changes["starts"] = self.n_starts
        if self.epochs is not None:
            changes["training"] = replace(recipe.training, epochs=self.epochs)
        return replace(recipe, **changes)

    def transform(self, X: ArrayLike) -> Array:
        """Return valuations (samples, n_concepts), up to order, scale, origin (Definition 4)."""
        return self._rows(X, "transform")

    def log_odds(self, X: ArrayLike) -> Array:
        """Return the learned ln p^e(x)/p^0(x), shape (samples, m), as in (87).

        With estimated purities, these are the log ratios of the mixtures that were collected.
        """
        looked_for = self._rows(X, "log_odds")
        if self.purity is None:
            return looked_for
        with np.errstate(divide="ignore"):
            return np.logaddexp(np.log(self.purity_) + looked_for, np.log1p(-self.purity_))

    def valuation_errors(self, X: ArrayLike) -> Array:
        """Return standard errors (samples, n_concepts) of valuations, with estimated purities.

        They are relative to the mean of the base, in the unit of the valuations.
        """
        check_is_fitted(self)
        if self.purity is None:
            raise ValueError(
                "these standard errors come with purity='estimate'; for pure environments see "
                "conceptnb.learning.standard_errors.valuation_errors"
            )
        rows: Array = validate_data(self, X, dtype=np.float64, reset=False)
        return self._impure.valuation_errors(self._white(self._inputs(rows)))

    def _white(self, rows: Array) -> Array:
        whitening = self._fit.whitening
        assert whitening is not None
        x = torch.as_tensor(rows, dtype=whitening.mean.dtype)[None]
        white: Array = whitening(x)[0].double().numpy()
        return white

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return probabilities (samples, m + 1) of the environments, in the order of `classes_`.

        The softmax over all environments, weighted as often as they occurred in the fit.
        """
        return np.exp(self._log_proba(X))

    def predict(self, X: ArrayLike) -> NDArray[np.generic]:
        """Return the most probable environment of each row, shape (samples,)."""
        likely = self._log_proba(X).argmax(axis=1)
        return self.environments_[likely]

    def score(
        self, X: ArrayLike, y: ArrayLike | None = None, *, environment: ArrayLike | None = None
    ) -> float:
        """Return the mean log-likelihood of the environments, in nats; higher is better.

        By :meth:`predict_proba`. No truth enters, so it may choose among learners. `environment` is
        another name for `y`.
        """
        learned = self._log_proba(X)
        known = self.environments_
        given = _either(y, environment)
        named = known.dtype.kind == "U" and given is not None
        own = _names(np.asarray(given)) if named else np.asarray(given)
        if own.ndim != 1 or own.dtype.kind not in "iuU":
            raise TypeError("environment must hold one integer per row, as in the fit")
        labels = _positions(own, known)
        if len(labels) != len(learned):
            raise ValueError(f"environment has {len(labels)} entries for {len(learned)} rows of X")
        return float(learned[np.arange(len(labels)), labels].mean())

    def _log_proba(self, X: ArrayLike) -> Array:
        odds = self.log_odds(X)
        return log_softmax(np.column_stack([np.zeros(len(odds)), odds]) + self._log_prior, axis=1)

    @property
    def coef_(self) -> Array:
        """Return the weights of the columns, (n_concepts, n_features), of a linear encoder."""
        return self._affine()[0]

    @property
    def intercept_(self) -> Array:
        """Return what is added to the weighted columns, (n_concepts,), of a linear encoder."""
        return self._affine()[1]

    def _affine(self) -> tuple[Array, Array]:
        encoder = self._fit.model.encoder if hasattr(self, "_fit") else None
        if not isinstance(encoder, LinearEncoder):
            raise AttributeError(
                "coef_ and intercept_ are those of a fitted learner with encoder='linear'"
            )
        weights, shift = encoder.layer.weight[0].detach().double(), 0.0
        if self._fit.whitening is not None:
            weights = self._fit.whitening.matrix[0].double() @ weights
            shift = (self._fit.whitening.mean[0].double() @ weights).numpy()[0]
        coef: Array = self._inputs.weights(weights.numpy()).T
        return coef, -coef @ self._inputs.origin - shift

    def save(self, path: str | Path) -> None:
        """Write the fitted learner as safetensors: arrays and parameters, no code."""
        check_is_fitted(self)
        modules = {"model": self._fit.model, "whitening": self._fit.whitening}
        tensors = {
            f"{prefix}.{name}": value.contiguous()
            for prefix, module in modules.items()
            if module is not None
            for name, value in module.state_dict().items()
        }
        tensors["log_prior"] = torch.as_tensor(self._log_prior)
        if self.purity is not None:
            tensors |= {
                f"impure.{k}": torch.tensor(np.ascontiguousarray(v))
                for k, v in asdict(self._impure).items()
            }
        tensors["inputs.origin"] = torch.as_tensor(self._inputs.origin)
        tensors["inputs.axes"] = torch.as_tensor(self._inputs.axes).contiguous()
        parameters = self.get_params()
        if not isinstance(parameters["random_state"], int | None):
            parameters["random_state"] = self.seed_
        if self.targets is not None:
            parameters["targets"] = np.asarray(self.targets).astype(int).tolist()
        for name, value in parameters.items():
            parameters[name] = value.item() if isinstance(value, np.generic) else value
        state = {
            "parameters": parameters,
            "columns": getattr(self, "feature_names_in_", np.empty(0)).tolist(),
            "environments": self.environments_.tolist(),
            "seed": self.seed_,
            "recipe": asdict(self._fit.recipe),
            "held_out_loss": self.held_out_loss_,
        }
        save_file(tensors, path, metadata={"conceptnb": json.dumps(state)})
        Path(path).chmod(0o644)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a learner that :meth:`save` wrote."""
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if "conceptnb" not in metadata:
                raise ValueError(f"{path} was not written by ConceptLearner.save")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        state = json.loads(metadata["conceptnb"])
        learner = cls(**state["parameters"])

        def part(prefix: str) -> dict[str, torch.Tensor]:
            start = f"{prefix}."
            return {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}

        buffers = part("whitening")
        whitening = Whitening(buffers.pop("mean"), buffers.pop("matrix"))
        columns, inputs = whitening.matrix.shape[1:]
        given = part("inputs") or {"origin": torch.zeros(columns), "axes": torch.ones(columns)}
        learner._inputs = Coordinates(given["origin"].numpy(), given["axes"].numpy())
        learner.n_features_in_ = len(learner._inputs.origin)
        if state.get("columns"):
            learner.feature_names_in_ = np.array(state["columns"], dtype=object)
        if buffers:
            whitening = clustered = ClusterWhitening(whitening, **buffers)
            inputs += clustered.rank
        learner._log_prior = tensors["log_prior"].numpy()
        learner.n_environments_ = m = len(learner._log_prior) - 1
        learner.environments_ = np.array(state.get("environments", range(m + 1)))
        learner.classes_, learner.seed_ = learner.environments_, state.get("seed", 0)
        training = TrainingConfig(**state["recipe"].pop("training"))
        recipe = Recipe(**state["recipe"], training=training)
        targets = learner.targets
        if targets is not None:
            targets = torch.as_tensor(np.asarray(targets).astype(bool))
        model = recipe.build(inputs, learner.n_concepts, m, targets, [0])
        model.load_state_dict(part("model"))
        learner.held_out_loss_ = state["held_out_loss"]
        if learner.purity is not None:
            learner._keep_purity(ImpureFit(**{k: v.numpy() for k, v in part("impure").items()}))
        curve, rows = np.empty((1, 0)), np.empty(0, int)
        losses = np.array([[learner.held_out_loss_]])
        learner._fit = ConceptFit(recipe, model, whitening, curve, curve, losses, rows)
        learner._n_features_out = learner.n_concepts
        return learner

    def _rows(self, X: ArrayLike, method: str) -> Array:
        check_is_fitted(self)
        rows: Array = validate_data(self, X, dtype=np.float64, reset=False)
        return getattr(self._fit, method)([self._inputs(rows)])[0]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fit")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.estimator_type = "classifier"  # so that folds are stratified by environment
        tags.classifier_tags = ClassifierTags(poor_score=True)  # it is no end in itself
        return tags


def _either(y: ArrayLike | None, environment: ArrayLike | None) -> ArrayLike | None:
    """Return the environments by either of their names."""
    if y is not None and environment is not None:
        raise TypeError("y and environment are two names for one argument: give it once")
    return environment if y is None else y


def _as_seed(random_state: object) -> int:
    if random_state is None:
        random_state = np.random.default_rng()
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if not isinstance(random_state, int | np.integer) or isinstance(random_state, bool):
        raise TypeError(
            "random_state must be an integer, a numpy.random.Generator or None, got "
            f"{type(random_state).__name__}"
        )
    return as_count(int(random_state), "random_state", minimum=0)


def _names(environment: ArrayLike) -> np.ndarray:
    """Return names of environments as text (samples,); ValueError where one is missing."""
    given = np.asarray(environment, dtype=object)
    if given.ndim != 1:
        raise ValueError(f"environment must have one axis, got shape {given.shape}")
    names = np.array([str(name).strip() for name in given])
    if (missing := pd.isna(given) | (names == "")).any():
        raise ValueError(f"environment: the name of row {int(missing.argmax()) + 1} is missing")
    return names


def _positions(names: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return where each name is among the known ones; ValueError for others."""
    if not np.isin(names, known).all():
        unknown = np.setdiff1d(names, known).tolist()
        raise ValueError(f"environment holds {unknown}; the fit knows {known.tolist()}")
    order = np.argsort(known)
    return order[np.searchsorted(known, names, sorter=order)]
