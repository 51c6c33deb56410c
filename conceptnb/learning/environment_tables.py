"""A table of environments -> learned concepts, checks, and warnings (Problem 1, Appendix F)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from conceptnb.common.coordinates import Coordinates, refuse_sizes
from conceptnb.common.fit_choices import as_components, as_shrinkage
from conceptnb.common.table_checks import looks_like_index, refuse_environments
from conceptnb.common.table_files import numbers, read_table, reads_as_missing, require_columns
from conceptnb.common.validation import Array, as_points
from conceptnb.core.scores import match_columns
from conceptnb.learning.learner import ConceptLearner

_NINES = 10.0 ** np.arange(2, 8) - 1  # 99, 999 and so on, the usual codes for missing values
_FAR, _OUTSIDE = 0.1, 0.15
"""Shares of an environment's rows far from the base, or outside its range, that are let pass."""
_ONE_VALUATION = 0.35
"""Standard deviations of the base within which valuations count as one."""
_USABLE, _STEADY = 0.7, 0.9
"""Correlations of two halves. What all rows give correlates with the truth at up to
sqrt(2 r / (1 + r)) (Spearman and Brown): 0.91 for r = 0.7, and 0.97 for r = 0.9.
"""
_BY_CHANCE = 0.01
"""Of tables, in which log-odds may be no function of the concepts, by the test of `_about_form`.

How often the warnings are false, and miss a fault, is what `conceptnb reproduce own-tables`
measures, on other tables than those on which these numbers were chosen; chapter 18 shows it.
"""


@dataclass(frozen=True, eq=False)
class EnvironmentTable:
    """Observations X (samples, d_x) and where they come from.

    `environment` (samples,) is 0 for the base, 1 to m for the environments, which have `names`, the
    base first. `columns` are the names of X's columns, empty where they have none.
    """

    X: Array
    environment: NDArray[np.intp]
    names: list[str]
    columns: list[str] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """Return the rows of each environment."""
        found = np.bincount(self.environment, minlength=len(self.names))
        return dict(zip(self.names, found.tolist(), strict=True))

    def suspicious_columns(self) -> list[str]:
        """Return, in words, which columns look like an index or hold codes for missing values."""
        said = []
        names = self.columns or [f"column {k + 1}" for k in range(self.X.shape[1])]
        for name, column in zip(names, self.X.T, strict=True):
            values, counts = np.unique(column, return_counts=True)
            if looks_like_index(column, self.environment):
                said.append(
                    f"{name!r} looks like an index, a time or an identifier: it only numbers "
                    "rows or environments. Leave the column out (--ids, or features=[...])."
                )
            if len(values) < 3:
                continue
            nines = np.isin(np.abs(values), _NINES)
            for at in (0, -1):
                middle = values[~nines & (values != values[at])]
                if len(middle) < 10 or not (nines[at] or counts[at] >= 3):
                    continue
                if np.abs(values[at] - middle).min() > 2 * np.ptp(middle):
                    said.append(
                        f"{name!r} is {values[at]:g} in {counts[at]} rows, far from all its other "
                        "values: a code for missing ones? Remove these rows (--missing)."
                    )
        return said


def read_environments(
    path: str | Path,
    base: str,
    *,
    column: str = "environment",
    features: Sequence[str] | None = None,
    encoding: str = "utf-8-sig",
) -> EnvironmentTable:
    """Read a CSV file with one row per observation and a column that names its environment.

    Parameters
    ----------
    base : str
        The environment that was collected without looking for anything: the base distribution.
    features : sequence of str, optional
        Columns to learn from; all others by default.

    Raises
    ------
    ValueError
        If something in the file cannot be used; names file, column, row and the way out.
    """
    table = read_table(path, encoding)
    require_columns(table, [column], path)
    chosen = list(features or [name for name in table.columns if name != column])
    require_columns(table, chosen, path)
    for name in chosen:
        if not pd.to_numeric(table[name], errors="coerce").notna().any():
            comma = table[name].str.fullmatch(r"[-+]?\d+,\d+").all()
            way = "write decimals with a point" if comma else "leave it out with features=[...]"
            raise ValueError(
                f"{path}: the column {name!r} holds no number, but {table[name].iloc[0]!r}: {way}"
            )
    X = numbers(table, chosen, path)
    return from_arrays(X, table[column].tolist(), base, source=str(path), columns=chosen)


def from_arrays(
    X: ArrayLike,
    environment: Sequence[str],
    base: str,
    *,
    source: str = "environment",
    columns: Sequence[str] = (),
) -> EnvironmentTable:
    """Return observations (samples, d_x) and the names of their environments as a table.

    `source` is what errors call the data, `columns` are names of X's columns, by default those that
    a DataFrame has.
    """
    if isinstance(X, pd.DataFrame) and not columns:
        columns = [str(name) for name in X.columns]
    points, labels = as_points(X, "X"), [str(name).strip() for name in environment]
    if columns and (len(columns) != points.shape[1] or len({*columns}) != len(columns)):
        raise ValueError(
            f"columns={list(columns)} must give each of X's {points.shape[1]} columns its own name"
        )
    if bad := {name for name in labels if reads_as_missing(name)} - {str(base)}:
        row = min(labels.index(name) for name in bad) + 1
        raise ValueError(
            f"{source}: the environment of row {row} of the data is missing, or its name reads so: "
            "leave the row out, or give the environment another name"
        )
    if len(labels) != len(points):
        raise ValueError(f"environment has {len(labels)} entries for {len(points)} rows of X")
    found = list(dict.fromkeys(labels))
    if str(base) not in found:
        raise ValueError(f"{source}: base={base!r} is no environment; there are {found}")
    names = [str(base), *(name for name in found if name != str(base))]
    numbered = np.array([names.index(name) for name in labels])
    table = EnvironmentTable(points, numbered, names, list(columns))
    refuse_environments(table.counts, source)
    return table


@dataclass(frozen=True, eq=False)
class ConceptReport:
    """What was learned from a table of environments, and what speaks against it.

    Parameters
    ----------
    learner : ConceptLearner
        Fitted on all rows; ``learner.transform`` gives valuations of new ones.
    separation : dict of str to float
        For each environment, the probability that held-out log-odds rank one of its samples
        above one of the base (area under the curve): 0.5 says nothing, 1 no overlap.
    agreement : dict of str to float
        For each concept, the absolute correlation of the valuations that two learners find,
        each fitted to one half of the rows. Where they disagree, one of them at least is wrong.
    components, shrinkage : int or None, float
        What held-out loss chose: principal components, None for all columns, and share.
    warnings : list of str
        Assumptions of the theorem that are not met, and signs that the data do not suffice.
    """

    table: EnvironmentTable
    concepts: list[str]
    learner: ConceptLearner
    separation: dict[str, float]
    agreement: dict[str, float]
    components: int | None = None
    shrinkage: float = 0
    warnings: list[str] = field(default_factory=list)

    @property
    def valuations(self) -> Array:
        """Return learned valuations, shape (samples, n): up to sign, unit and zero of each."""
        return self.learner.transform(self.table.X)

    def summary(self) -> pd.DataFrame:
        """Return a row for each environment: rows, separation, mean learned valuations."""
        counts = self.table.counts
        rows = pd.DataFrame({"environment": list(counts), "rows": list(counts.values())})
        rows["separation"] = rows["environment"].map(self.separation).round(3)
        learned = pd.DataFrame(self.valuations, columns=self.concepts).add_prefix("mean ")
        return rows.join(learned.groupby(self.table.environment).mean().round(2))


def learn_concepts(
    table: EnvironmentTable,
    looked_for: Mapping[str, Sequence[str]],
    *,
    encoder: str = "linear",
    components: Sequence[int] = (),
    shrinkage: Sequence[float] = (0,),
    starts: int | None = None,
    seed: int = 0,
) -> ConceptReport:
    """Learn the concepts that environments were collected by, and check what can be checked.

    Parameters
    ----------
    looked_for : dict of str to sequence of str
        For each environment but the base, its concepts: the rows of M of (7), in words.
    encoder : {"linear", "mlp"}
        What the inverse of the mixing is taken to be. In good features, linear is harder to fool.
    components : sequence of int
        Numbers of principal components to try: held-out loss decides. By default, all columns.
    shrinkage : sequence of float
        Shares of the average variance to try, with each number of components: held-out loss
        decides. A learned direction loses weight on a principal component of variance v by the
        factor v / ((1 - s) v + s average), as by the shrunk covariance of linear discriminants, and
        concepts are then learned from what is left of the directions. Needs a linear encoder.
    starts : int, optional
        Starts of a network, of which held-out loss chooses one, by default the recipe's.
    seed : int
        Of the split into halves and of the fits.

    Raises
    ------
    ValueError
        If `looked_for` does not name exactly the environments of the table.
    """
    concepts, targets = _targets(table, looked_for)
    refuse_sizes(table.X, table.columns)
    components = as_components(components, len(concepts), table.X.shape[1])
    shrinkage = as_shrinkage(shrinkage, encoder)
    learner = ConceptLearner(
        len(concepts), targets=targets, encoder=encoder, n_starts=starts, random_state=seed
    )
    order = np.random.default_rng(seed).permutation(len(table.X))
    halves = [np.sort(order[::2]), np.sort(order[1::2])]
    tried = _fits(learner, table.X, table.environment, components or [None], shrinkage)
    best = min(tried, key=lambda setting: tried[setting].held_out_loss_)
    learners = [
        _fits(learner, table.X[half], table.environment[half], best[:1], best[1:])[best]
        for half in halves
    ]
    separation = _separation(table, learners, halves)
    first, second = (learner.transform(table.X) for learner in learners)
    found = match_columns(first, second)
    agreement = {concepts[i]: float(abs(r)) for i, r in zip(found[0], found[2], strict=True)}
    report = ConceptReport(table, concepts, tried[best], separation, agreement, *best)
    report.warnings.extend([*table.suspicious_columns(), *_about_design(targets, concepts)])
    report.warnings.extend([*_about_data(report), *_about_support(table)])
    report.warnings.extend([*_about_form(report, targets), *_about_valuations(report, targets)])
    return report


def _fits(
    learner: ConceptLearner,
    X: Array,
    environment: NDArray[np.intp],
    components: Sequence[int | None],
    shrinkage: Sequence[float],
) -> dict[tuple[int | None, float], ConceptLearner]:
    """Fit by each number of components and share of shrinkage; what is returned takes X.

    All columns are all components: so no fit depends on the units of columns.
    """
    varies = np.ptp(X, axis=0) > 0
    origin, unit = X.mean(axis=0), np.where(varies, X.std(axis=0), 1.0)
    _, size, axes = np.linalg.svd((X - origin) / unit, full_matrices=False)
    average, found = (size**2).sum() / max(varies.sum(), 1), {}
    for kept in components:
        parts, variance = axes[:kept].T, size[:kept] ** 2
        along = Coordinates(origin, parts / unit[:, None])
        whole = clone(learner).fit_along(X, environment, along)
        for share in dict.fromkeys(shrinkage):
            found[kept, share] = whole
            if share:
                factor = variance / ((1 - share) * variance + share * average)
                weights = factor[:, None] * (parts.T @ (unit[:, None] * whole.coef_.T))
                into = Coordinates(origin, parts @ weights / unit[:, None])
                found[kept, share] = clone(learner).fit_along(X, environment, into)
    return found


def _targets(
    table: EnvironmentTable, looked_for: Mapping[str, Sequence[str]]
) -> tuple[list[str], NDArray[np.bool_]]:
    expected = table.names[1:]
    if set(looked_for) != set(expected):
        raise ValueError(
            f"looked_for names {sorted(looked_for)}; give what was looked for in each of "
            f"{sorted(expected)} (all but the base)"
        )
    bad = [
        e for e, c in looked_for.items() if isinstance(c, str) or not all(map(str.strip, c or " "))
    ]
    if bad:
        raise ValueError(f"looked_for of {bad} must be a list of at least one concept's name")
    concepts = list(dict.fromkeys(c for e in expected for c in looked_for[e]))
    return concepts, np.array([[c in looked_for[e] for c in concepts] for e in expected])


def _separation(
    table: EnvironmentTable, learners: Sequence[ConceptLearner], halves: Sequence[NDArray[np.intp]]
) -> dict[str, float]:
    """Return the area under the curve of each environment, on the half not learned from."""
    areas = np.zeros(len(table.names) - 1)
    for learner, other in zip(learners, reversed(halves), strict=True):
        odds, labels = learner.log_odds(table.X[other]), table.environment[other]
        for e in range(1, len(table.names)):
            kept = (labels == 0) | (labels == e)
            areas[e - 1] += roc_auc_score(labels[kept] == e, odds[kept, e - 1]) / 2
    return dict(zip(table.names[1:], areas.tolist(), strict=True))


def _about_design(targets: NDArray[np.bool_], concepts: list[str]) -> Iterator[str]:
    """Yield what the assumptions of Theorem 1 say against which environment has which concept."""
    m, n = targets.shape
    if m < n + 1:
        yield (
            f"Few environments: {n} concepts need at least {n + 1} beside the base, there are {m} "
            "(Remark 2). Collect more, or ask for fewer concepts."
        )
    if (rank := int(np.linalg.matrix_rank(targets.astype(float)))) < n:
        yield (
            f"M has rank {rank}, not {n} (Assumption 4): some concepts are always looked for in "
            "the same combination, and only the combination can be learned."
        )
    for i in range(n):
        if targets[:, i].sum() == 1:
            yield (
                f"{concepts[i]!r} is looked for in one environment only (Assumption 4): its two "
                "sides can be confused. Look for it again, at another valuation."
            )
        for j in range(n):
            if i != j and not (targets[:, i] & ~targets[:, j]).any():
                yield (
                    f"{concepts[i]!r} is never looked for without {concepts[j]!r} "
                    "(Assumption 5): check that the two learned concepts differ."
                )


def _about_data(report: ConceptReport) -> Iterator[str]:
    """Yield signs that the data do not suffice: sizes, overlap, separation, agreement."""
    table = report.table
    lower, upper = (table.X[table.environment == 0].min(0), table.X[table.environment == 0].max(0))
    for e, (name, count) in enumerate(table.counts.items()):
        if count < 200:
            yield f"{name!r} has {count} rows; some hundreds make a learner steady."
        own = table.X[table.environment == e]
        outside = float(((own < lower) | (own > upper)).any(axis=1).mean())
        if outside > _OUTSIDE:
            yield (
                f"{outside:.0%} of {name!r} lie outside the range of the base. Conditioning only "
                "selects: these were changed, or the base is too small to contain them."
            )
        if e and report.separation[name] < 0.55:
            yield (
                f"{name!r} can barely be told from the base (separation "
                f"{report.separation[name]:.2f}): nothing is learned from it."
            )
        if e and report.separation[name] > 0.999:
            yield (
                f"{name!r} does not overlap with the base (separation 1.00): log-odds have no "
                "finite value, and the unit of valuations means nothing."
            )
    for concept, value in report.agreement.items():
        if value < _STEADY:
            said = f"about {concept!r} (correlation {value:.2f})"
            advice = "More rows, --components or --shrinkage may help."
            if value < _USABLE:
                yield f"Two halves disagree {said}: do not use its valuations. {advice}"
            else:
                yield f"Two halves agree in part only {said}: its valuations are rough. {advice}"


def _about_support(table: EnvironmentTable) -> Iterator[str]:
    """Yield which environments hold rows where the base has none: changed, not selected.

    Distances are in units of the base's principal components, also of those with next to no
    variance, so that a change which leaves the base's plane shows however small it is.
    """
    white = _white(table, 1e-9)
    base = white[table.environment == 0]
    tree = KDTree(base)
    farthest = tree.query(base, k=2)[0][:, 1].max()
    for e, name in list(enumerate(table.names))[1:]:
        own = white[table.environment == e]
        outside = float((tree.query(own)[0] > farthest).mean())
        if outside > _FAR:
            yield (
                f"{outside:.0%} of {name!r} are farther from the base than any of its rows is from "
                "the next. Conditioning only selects: these were changed, or the base is too small."
            )


def _white(table: EnvironmentTable, least: float) -> Array:
    """Return the base's principal components in its units, of singular values above a share."""
    base = table.X[table.environment == 0]
    middle = base.mean(axis=0)
    _, size, axes = np.linalg.svd(base - middle, full_matrices=False)
    kept = size > least * size[0]
    return (table.X - middle) @ (axes[kept].T / size[kept] * np.sqrt(len(base)))


def _about_form(report: ConceptReport, targets: NDArray[np.bool_]) -> Iterator[str]:
    """Yield which environments differ from the base in more than their concepts, by (9).

    Log-odds of an environment are a parabola of each of its concepts. For an affine encoder, all
    squares and products of the base's components have nothing to add to it: twice the gain in
    log-likelihood is a χ². There have to be 20 rows for each of them.
    """
    table, learned = report.table, report.valuations
    white = _white(table, 1e-4)
    i, j = np.triu_indices(white.shape[1])
    for e, name in list(enumerate(table.names))[1:]:
        rows = (table.environment == 0) | (table.environment == e)
        if report.learner.encoder != "linear" or rows.sum() < 20 * (len(i) + white.shape[1]):
            continue
        C, W = learned[rows][:, targets[e - 1]], white[rows]
        parabola = _standardised(np.hstack([C, C**2]))
        more = _standardised(np.hstack([parabola, W, W[:, i] * W[:, j]]))
        label = table.environment[rows] > 0
        small, large = (
            -log_loss(label, _logistic(F, label).predict_proba(F), normalize=False)
            for F in (parabola, more)
        )
        extra = np.linalg.matrix_rank(more, rtol=1e-5) - parabola.shape[1]
        if chi2.sf(2 * (large - small), extra) < _BY_CHANCE / (len(table.names) - 1):
            yield (
                f"{name!r} differs from the base in more than its concepts: it was changed, or "
                "something else was looked for as well, or the concepts are no affine function of "
                "the columns (encoder='mlp', --encoder mlp)."
            )


def _standardised(X: Array) -> Array:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def _about_valuations(report: ConceptReport, targets: NDArray[np.bool_]) -> Iterator[str]:
    """Yield which concepts were looked for at one valuation only: where the log-odds are highest.

    The top of each parabola, in standard deviations of the base.
    """
    environment, tops = report.table.environment, np.full(targets.shape, np.nan)
    scaled = report.valuations / report.valuations[environment == 0].std(axis=0)
    for e, looked in enumerate(targets):
        rows = (environment == 0) | (environment == e + 1)
        C = scaled[rows][:, looked]
        slope, bend = _logistic(np.hstack([C, C**2]), environment[rows] > 0).coef_.reshape(2, -1)
        tops[e, looked] = np.where(bend < 0, -slope / (2 * bend), np.nan)  # others are lowest there
    for concept, found, looked in zip(report.concepts, tops.T, targets.T, strict=True):
        kept = found[np.isfinite(found)]
        if len(kept) > 1 and np.ptp(kept) < _ONE_VALUATION:
            yield (
                f"{concept!r} was looked for at nearly the same valuation in {len(kept)} of its "
                f"{looked.sum()} environments (Assumption 4): add one at another."
            )


def _logistic(features: Array, label: NDArray[np.bool_]) -> LogisticRegression:
    return LogisticRegression(C=100, solver="newton-cholesky", max_iter=200).fit(features, label)
