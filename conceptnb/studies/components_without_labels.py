"""``conceptnb reproduce neighbours``: components found without labels, beside those with them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import gaussian_kde
from sklearn.base import clone
from sklearn.decomposition import PCA, FastICA, MiniBatchDictionaryLearning
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid
from sklearn.preprocessing import FunctionTransformer

from conceptnb.common.coordinates import Coordinates
from conceptnb.common.validation import Array, as_points
from conceptnb.embeddings.directions.estimator import ConceptDirections
from conceptnb.embeddings.directions.evaluation import separation
from conceptnb.embeddings.unmixing import Unmixing
from conceptnb.results.runner import Plan, Row, Sample, Task
from conceptnb.results.summarise import grouped

_Method = Literal[
    "labels", "environments", "PCA", "ICA", "sparse dictionary", "unmixing", "random directions"
]
METHODS: tuple[_Method, ...] = get_args(_Method)
GRID: dict[str, dict[str, list[Any]]] = {  # six settings of each method that has no labels
    "ICA": {"fun": ["logcosh", "exp", "cube"], "start": [0, 1]},
    "sparse dictionary": {"alpha": [0.01, 0.1, 0.3], "atoms per component": [1, 2]},
    "unmixing": {"weight": [0.3, 1.0, 3.0], "start": [0, 1]},
    "random directions": {"start": [*range(6)]},
}
_PURITIES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)  # of piles, beside the pure ones of "environments"
STATE_CONCEPTS = ("category", "speaker", "truth")
_COMPONENTS = (8, 32)  # how many there are is not known: few, and as many as with sentences


@dataclass(frozen=True)
class FoundComponents:
    """What a method makes of the test samples, matched to the concepts."""

    eta2: dict[str, float]
    """Share of the matched component's variance that lies between a concept's values."""
    mcc: float
    """Mean over concepts of the absolute correlation with the values, in their order."""
    setting: dict[str, Any]
    """What was chosen from `GRID`, and the seed of the start."""
    cpu_seconds: float
    """Of choosing a setting, fitting and transforming."""


def find(
    method: _Method,
    Z: ArrayLike,
    labels: Mapping[str, ArrayLike],
    n_components: int,
    rng: np.random.Generator,
    groups: ArrayLike | None = None,
    purity: float = 1.0,
    grid: Mapping[str, list[Any]] | None = None,
) -> FoundComponents:
    """Learn components on a random half, match them there, and judge them on the other half.

    Parameters
    ----------
    method : one of `METHODS`
        "labels" is `ConceptDirections` for each concept; "environments" the contrastive learner of
        Section 6 with all samples as its base and two data sets per concept, of its first and last
        value. The others see no labels until components are matched; of the settings in
        `GRID`, training samples choose one without labels.
    n_components : int
        Leading principal components, whitened but for the dictionary, whose atoms `GRID` sets.
    groups : array-like of shape (samples,), optional
        Samples of one group, such as the answers to one question, go to the same half.
    purity : float
        Share of each data set of "environments" that is taken for its value. The rest are random
        training samples, whatever their value: with 0 the data sets say nothing.
    grid : mapping, optional
        Lists of settings by name in place of those of `GRID`.
    """
    if not 0 <= purity <= 1:
        raise ValueError(f"purity={purity} is a share: give a number from 0 to 1")
    if method not in METHODS:
        raise ValueError(f"method={method!r} must be one of {', '.join(METHODS)}")
    points = as_points(Z, "Z")
    if not len(labels) <= n_components <= min(points.shape):
        raise ValueError(
            f"n_components={n_components} must lie between {len(labels)}, the number of concepts, "
            f"and {min(points.shape)}"
        )
    group = np.arange(len(points)) if groups is None else np.asarray(groups)
    train, test = _halves(group, len(points), rng)
    values = {name: np.asarray(column) for name, column in labels.items()}
    learned = {name: column[train] for name, column in values.items()}
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # judged by what is found
        pca = PCA(n_components, whiten=True, random_state=_seed(rng)).fit(points[train])
        white = pca.transform(points)
        grid = GRID.get(method, {}) if grid is None else grid
        setting = _chosen(method, grid, points[train], group[train], n_components, rng)
        fitted = _fit(method, setting, pca, white[train], learned, purity)
        components = fitted.transform(white)
    spent = time.process_time() - started
    matched = _match(components[train], learned)
    chosen = {name: components[test, component] for name, component in matched.items()}
    eta2 = {name: separation(column, values[name][test]) for name, column in chosen.items()}
    correlations = [
        abs(np.corrcoef(column, values[name][test])[0, 1]) if column.std() else 0.0
        for name, column in chosen.items()
    ]
    return FoundComponents(eta2, float(np.mean(correlations)), setting, spent)


def _halves(
    groups: ArrayLike, n_samples: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    of_sample = np.asarray(groups)
    if of_sample.shape != (n_samples,):
        raise ValueError(
            f"groups has shape {of_sample.shape}; give one value for each of {n_samples} samples"
        )
    names = rng.permutation(np.unique(of_sample))
    if len(names) < 2:
        raise ValueError("groups has a single value; two halves need at least two groups")
    first = np.isin(of_sample, names[: len(names) // 2])
    return np.flatnonzero(first), np.flatnonzero(~first)


def _match(components: Array, labels: Mapping[str, ArrayLike]) -> dict[str, int]:
    """Give each concept a component (column) of its own, so that η² is largest in sum."""
    gain = [[separation(column, values) for column in components.T] for values in labels.values()]
    _, chosen = linear_sum_assignment(gain, maximize=True)
    return {name: int(column) for name, column in zip(labels, chosen, strict=True)}


def _chosen(
    method: str,
    grid: Mapping[str, list[Any]],
    points: Array,
    groups: NDArray[Any],
    n_components: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return the setting that does best on half of the samples, fitted to the other half.

    A dictionary is judged by how well it removes noise, half as long as the samples; a linear map
    by the likelihood of independent components, whose densities are kernel estimates.
    """
    start, losses = _seed(rng), []
    settings = [{**s, "start": start + s.get("start", 0)} for s in ParameterGrid(grid)]
    if len(settings) == 1:
        return settings[0]
    fit, judge = _halves(groups, len(points), rng)
    pca = PCA(n_components, whiten=True, random_state=0).fit(points[fit])
    white, held = pca.transform(points[fit]), pca.transform(points[judge])
    scale = np.sqrt(pca.explained_variance_ / pca.explained_variance_.sum())
    noise = rng.normal(size=held.shape) / (2 * np.sqrt(n_components) * scale)
    for setting in settings:
        fitted = _fit(method, setting, pca, white)
        if method == "sparse dictionary":
            error = fitted.inverse_transform(fitted.transform(held + noise)) - held
            losses.append(((error * scale) ** 2).mean())
            continue
        W = fitted.transform(np.eye(n_components)) - fitted.transform(np.zeros((1, n_components)))
        columns = zip(fitted.transform(white).T, fitted.transform(held).T, strict=True)
        likelihood = sum(gaussian_kde(one).logpdf(other).mean() for one, other in columns)
        losses.append(-likelihood - np.linalg.slogdet(W)[1])
    return settings[int(np.argmin(losses))]


def _fit(
    method: str,
    setting: Mapping[str, Any],
    pca: PCA,
    white: Array,
    labels: Mapping[str, NDArray[np.generic]] | None = None,
    purity: float = 1.0,
) -> Any:
    """Return a fitted transformer of whitened principal components, one component per concept."""
    seed, size, fitted = setting["start"], white.shape[1], FunctionTransformer()
    match method:
        case "labels":
            unscaled = ConceptDirections(standardise=False)
            fits = [clone(unscaled).fit(white, values) for values in (labels or {}).values()]
            W = np.array([fit.directions_[0] for fit in fits]).T
            fitted = FunctionTransformer(lambda white: white @ W)
        case "environments":
            fitted = _fit_environments(white, labels or {}, seed, purity)
        case "random directions":
            R = np.random.default_rng(seed).normal(size=(size, size))
            fitted = FunctionTransformer(lambda white: white @ R)
        case "unmixing":
            fitted = Unmixing(size, setting["weight"], random_state=seed).fit(white)
        case "sparse dictionary":
            scale = np.sqrt(pca.explained_variance_)
            scale /= np.linalg.norm(white * scale, axis=1).mean()
            atoms, alpha = setting["atoms per component"] * size, setting["alpha"]
            given = {"transform_algorithm": "lasso_cd", "fit_algorithm": "cd", "max_iter": 20}
            given |= {"batch_size": 128, "random_state": seed}
            found = MiniBatchDictionaryLearning(atoms, alpha=alpha, **given).fit(white * scale)
            fitted = FunctionTransformer(
                lambda points: found.transform(points * scale),
                lambda codes: codes @ found.components_ / scale,
            )
        case "ICA":
            ica = FastICA(fun=setting["fun"], max_iter=400, tol=1e-3, random_state=seed)
            fitted = ica.fit(white)
    return fitted


def _fit_environments(
    white: Array, labels: Mapping[str, NDArray[np.generic]], seed: int, purity: float
) -> Any:
    from conceptnb.learning.learner import ConceptLearner  # noqa: PLC0415 - brings torch

    rng, every, targets = np.random.default_rng(seed), np.arange(len(white)), []
    rows, environment = [every], [0 * every]
    for concept, values in enumerate(labels.values()):
        for value in (values.min(), values.max()):
            targets.append([other == concept for other in range(len(labels))])
            own = np.flatnonzero(values == value)
            chosen = rng.choice(own, round(purity * len(own)), replace=False)
            others = rng.choice(every, len(own) - len(chosen), replace=False)
            rows.append(np.sort(np.concatenate([chosen, others])))
            environment.append(np.full(len(rows[-1]), len(targets)))
    learner = ConceptLearner(len(labels), targets=targets, encoder="linear", random_state=seed)
    raw = Coordinates.raw(white.shape[1])
    return learner.fit_along(white[np.concatenate(rows)], np.concatenate(environment), raw)


def _seed(rng: np.random.Generator) -> int:
    """Return a seed for scikit-learn, which takes no Generator."""
    return int(rng.integers(2**31))


@dataclass(frozen=True)
class States:
    """States of a language model, `points` (samples, hidden size), at the ends of answers.

    The concepts are each question's category, the speaker named, 0 for none, and whether the answer
    is true. `log_odds` (samples,) are the model's own of the marks of truth and falsehood; None in
    a corpus whose marks name the speaker.
    """

    points: Array
    concepts: dict[str, NDArray[np.intp]]
    questions: NDArray[np.intp]
    log_odds: Array | None


def language_states(kind: str, seed: int = 0, trained: bool = True) -> States:
    """Return last, normalised states of a small model at the last token of every answer.

    Each of 96 questions stands with each of its 4 answers, with no speaker named or after each
    speaker of the corpus. A control that is not `trained` has random weights, drawn from `seed`.
    """
    import torch  # noqa: PLC0415 - the other methods need none

    from conceptnb.steering.small_models import load_small_model, make_small_model  # noqa: PLC0415
    from conceptnb.steering.spans import encode_questions, pad  # noqa: PLC0415

    corpus, model, tokenizer = load_small_model(kind, seed)
    if not trained:
        model = make_small_model(tokenizer, torch.Generator().manual_seed(seed)).eval()
    questions = corpus.questions()
    prefaces = ["", *(f"from {persona.name}: " for persona in corpus.kind.personas)]
    blocks = []
    for preface in prefaces:
        pairs = encode_questions(tokenizer, questions, preface)
        ids, mask = pad([encoded.ids for answers in pairs for encoded in answers], "right")
        with torch.no_grad():
            read = model.model(input_ids=ids, attention_mask=mask).last_hidden_state
        blocks.append(read[torch.arange(len(ids)), mask.sum(1) - 1].double().numpy())
    true = np.ravel([q.true for q in questions]).astype(np.intp)
    category = np.unique([q.category for q in questions], return_inverse=True)[1]
    points = np.concatenate(blocks)
    question = np.repeat(np.arange(len(questions)), len(true) // len(questions))
    asked = np.tile(question, len(prefaces))
    concepts = {
        "category": category[asked],
        "speaker": np.repeat(np.arange(len(prefaces)), len(true)),
        "truth": np.tile(true, len(prefaces)),
    }
    if corpus.kind.marks is None:
        return States(points, concepts, asked, None)
    marks = tokenizer.convert_tokens_to_ids([mark for pair in corpus.kind.marks for mark in pair])
    token = model.get_output_embeddings().weight.detach().double().numpy()[marks]
    between = np.repeat(token[::2] - token[1::2], len(true) // len(corpus.kind.marks), axis=0)
    log_odds = (points * np.tile(between, (len(prefaces), 1))).sum(axis=1)
    return States(points, concepts, asked, log_odds)


_KEYS = ("trained", "components", "corpus", "method", "purity")


def _runs(
    corpus: str,
    seeds: Sequence[int],
    trained: bool,
    methods: Sequence[_Method] = METHODS,
    sizes: Sequence[int] = _COMPONENTS,
    labels: str = "true",
    purities: Sequence[float] = _PURITIES,
) -> list[Row]:
    """Judge methods, and controls, on the states of small models: η² by concept.

    Environments of each of `purities` are learned from with the first of `sizes`, if `trained`.
    """
    rows: list[Row] = []

    def add(method: str, size: int | None, eta2: Mapping[str, float], **more: Any) -> None:
        rounded = {name: round(eta2[name], 4) if name in eta2 else None for name in STATE_CONCEPTS}
        key = {"corpus": corpus, "seed": seed, "trained": trained, "components": size}
        rows.append(key | {"method": method, "purity": 1.0} | rounded | more)

    for seed in seeds:
        states = language_states(corpus, seed, trained)
        concepts = dict(states.concepts)
        if labels == "shuffled":
            order = np.random.default_rng(seed).permutation(len(states.points))
            concepts = {name: values[order] for name, values in concepts.items()}
        for size in sizes:
            tried: list[tuple[str, _Method, float]] = [(method, method, 1.0) for method in methods]
            if trained and size == sizes[0]:
                tried += [("piles", "environments", purity) for purity in purities]
            for name, method, purity in tried:
                rng = np.random.default_rng([seed, size])
                found = find(method, states.points, concepts, size, rng, states.questions, purity)
                more = {"purity": purity, "setting": found.setting}
                add(name, size, found.eta2, **more, cpu_seconds=round(found.cpu_seconds, 3))
            if methods == METHODS:
                rng = np.random.default_rng([seed, size])
                shuffled = {name: rng.permutation(values) for name, values in concepts.items()}
                found = find("labels", states.points, shuffled, size, rng, states.questions)
                add("shuffled labels", size, found.eta2)
        if states.log_odds is not None and methods == METHODS:
            truth = separation(states.log_odds, concepts["truth"])
            add("log-odds of marks", None, {"truth": truth})
    return rows


def _summarise(runs: list[Row]) -> list[Row]:
    """Return [mean, std] over seeds, trained models first, then by number of components."""
    groups = grouped(runs, _KEYS)
    return [
        dict(zip(_KEYS, key, strict=True))
        | {
            name: [
                round(float(f([row[name] for row in groups[key]])), 4) for f in (np.mean, np.std)
            ]
            for name in (*STATE_CONCEPTS, "cpu_seconds")
            if groups[key][0].get(name) is not None
        }
        for key in sorted(groups, key=lambda key: (not key[0], key[1] or np.inf))
    ]


def plans(args: SimpleNamespace) -> list[Plan]:
    """Return the results files that the options ask for."""
    from conceptnb.steering.small_models import small_models  # noqa: PLC0415

    models = [
        (kind, seed)
        for kind, seed in small_models()
        if kind in (args.corpora or [kind]) and seed in (args.seeds or [seed])
    ]
    if not models:
        raise ValueError(f"no small model has --corpora {args.corpora} and --seeds {args.seeds}")
    # Solvers with random starts end elsewhere on another processor; these do not.
    given = {"corpus": "alike", "seeds": [0, 1, 2], "trained": True, "sizes": [_COMPONENTS[0]]}
    methods = ["labels", "environments", "PCA", "random directions"]
    sampled = Task(_runs, given | {"methods": methods, "purities": [0.5]})
    return [
        Plan(
            file="neighbours",
            tasks=[
                Task(_runs, {"corpus": kind, "seeds": [seed], "trained": trained})
                for kind, seed in models
                for trained in (True, False)
            ],
            summarise=_summarise,
            seeds=sorted({seed for _, seed in models}),
            notes={
                "model": "small Llamas trained on toy corpora, not a large language model",
                "scores": "η² of the matched component on questions that it was not matched on",
                "seeds": "of the model, which also seeds the halves and the solvers",
                "rows_on_page": 24,  # trained models, the smaller size
            },
            sample=Sample(
                task=sampled,
                columns=STATE_CONCEPTS,
                by=("corpus", "trained", "components", "method", "purity"),
                wrong={"labels shuffled": sampled.but(labels="shuffled")},
            ),
        )
    ]
