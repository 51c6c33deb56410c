"""Theorem 1 from samples: how errors of estimated log ratios travel through the proof.

With a linear mixing G_e is quadratic in x: logistic regression on x and its products (Lemma 3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from conceptnb.common.validation import Array, as_count, as_generator
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import GaussianMixture
from conceptnb.core.mixing import LinearMixing
from conceptnb.core.planner import propose_design
from conceptnb.core.problems import log_odds
from conceptnb.results.runner import Row
from conceptnb.theory.observables import Observables
from conceptnb.theory.standard_form import StandardForm, normalise_columns, standard_form
from conceptnb.theory.theorem1 import Subset, environment_matrix, evaluate_valuations, subsets

_VARIANCE = 0.05
_NOISE_WIDTHS = 4.0  # curvature counts as present if it exceeds this many times the estimated noise
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
"""Samples of each environment in the book's figure."""


@dataclass(frozen=True, eq=False)
class Quadratics:
    r"""Quadratic functions :math:`G_e(u) = \tfrac12 u^\top Q_e u - l_e^\top u + k_e`."""

    Q: Array  # (m, d, d)
    l: Array  # noqa: E741 - (m, d)
    k: Array  # (m,)

    def __call__(self, U: Array) -> Array:
        """Evaluate at points of shape (samples, d), shape (samples, m)."""
        return np.einsum("si,eij,sj->se", U, self.Q, U) / 2 - U @ self.l.T + self.k


class _LinearInstance(NamedTuple):
    """Ground truth of the experiment: three atoms in four dimensions, seen in six."""

    base: GaussianMixture
    atoms: Array
    design: EnvironmentDesign
    mixing: LinearMixing


def linear_instance(rng: np.random.Generator) -> _LinearInstance:
    """Draw an overlapping mixture, atoms, the planner's design and a random linear f."""
    d_z = 4
    means = as_generator(rng).uniform(-0.5, 0.5, size=(3, d_z))
    base = GaussianMixture(np.ones(3), means, np.tile(0.3 * np.eye(d_z), (3, 1, 1)))
    atoms = np.linalg.qr(rng.standard_normal((d_z, d_z)))[0][:3] + 0.2 * rng.standard_normal((3, 4))
    design = propose_design(3, _VARIANCE, base, atoms)
    return _LinearInstance(base, atoms, design, LinearMixing.random(d_z, 6, rng))


def estimate_ratios(base: Array, environments: list[Array]) -> Quadratics:
    """Estimate every G_e by logistic regression of environment e against the base (Lemma 3)."""
    d = base.shape[1]
    fits = [_logistic(base, X) for X in environments]
    coefficients = np.array([found for found, _ in fits])
    Q = np.empty((len(fits), d, d))
    rows, columns = np.triu_indices(d)
    # The logit is -G; a product u_i u_j with i < j stands for both Q_ij and Q_ji.
    Q[:, rows, columns] = Q[:, columns, rows] = -coefficients[:, d:] * (1.0 + (rows == columns))
    return Quadratics(Q, coefficients[:, :d], np.array([-offset for _, offset in fits]))


def _recover_quadratics(full: Quadratics, halves: tuple[Quadratics, Quadratics]) -> StandardForm:
    """Run Steps 3 and 4 on estimated quadratics; two fits to halves reveal the noise of ranks."""
    m = len(full.k)
    sizes: dict[Subset, int] = {frozenset(): 0}
    for T in subsets(m)[1:]:
        chosen = list(T)
        difference = (halves[0].Q[chosen] - halves[1].Q[chosen]).sum(axis=0) / 2
        noise = np.abs(np.linalg.eigvalsh(difference)).max()
        curvature = np.linalg.eigvalsh(full.Q[chosen].sum(axis=0))
        sizes[T] = int((curvature > _NOISE_WIDTHS * noise).sum())
    M = environment_matrix(sizes)
    B = np.zeros_like(M)
    for i in range(M.shape[1]):
        users, others = np.flatnonzero(M[:, i]), np.flatnonzero(M[:, i] == 0)
        rank = sizes[frozenset(others.tolist())]
        curvature, axes = np.linalg.eigh(full.Q[others].sum(axis=0))
        flat, steep = axes[:, : len(axes) - rank], axes[:, len(axes) - rank :]
        origin = steep @ ((steep.T @ full.l[others].sum(axis=0)) / curvature[len(axes) - rank :])
        line = flat @ np.linalg.eigh(flat.T @ full.Q[users].sum(axis=0) @ flat)[1][:, -1]
        alpha = np.einsum("i,eij,j->e", line, full.Q[users], line).mean()
        beta = full.l[users] @ line - np.einsum("i,eij,j->e", line, full.Q[users], origin)
        B[users, i] = beta / np.sqrt(alpha)
    B = normalise_columns(M, B)
    least = [
        full(np.linalg.lstsq(Q, b, rcond=0.05)[0][None])[0, e]
        for e, (Q, b) in enumerate(zip(full.Q, full.l, strict=True))
    ]
    return StandardForm(M, B, -np.array(least) - (B**2).sum(axis=1) / 2)


def recover_from_samples(
    instance: _LinearInstance,
    samples: int,
    rng: np.random.Generator,
    *,
    share: float = 1.0,
    mislabelled: bool = False,
) -> Row:
    """Draw a data set, run the proof on it, and measure every error.

    Controls use a `share` of the samples of each environment alone, or take each environment's
    data for the next one's (`mislabelled`). ``ratio_error`` is the root mean square error of the
    estimated G_e on base data, in nats, ``B_error`` that of B in standard form, in σ, and
    ``valuation_error`` the median absolute error of Step 5's valuations, in σ: the mean is
    dominated by points whose denominator is near zero. The last two are None where M is wrong.
    """
    base, design = instance.base, instance.design
    concepts = design.concepts(instance.atoms)
    parts = [base, *(base.condition(concept, design.variance) for concept in concepts)]
    latents = [p.sample(as_count(samples, "samples"), rng) for p in parts]
    chart = _chart(instance.mixing(latents[0]), base.d_z)
    used = round(share * samples)
    data = [((instance.mixing(Z) - chart[0]) @ chart[1])[:used] for Z in latents]
    if mislabelled:
        data = [data[0], *data[2:], data[1]]
    full = estimate_ratios(data[0], data[1:])
    halves = [estimate_ratios(data[0][s::2], [X[s::2] for X in data[1:]]) for s in (0, 1)]

    test = base.sample(2000, rng)
    U = (instance.mixing(test) - chart[0]) @ chart[1]
    exact = -log_odds(base, design, instance.atoms, test)
    row: Row = {
        "samples": samples,
        "ratio_error": float(np.sqrt(np.mean((full(U) - exact) ** 2))),
        "M_right": False,
        "B_error": None,
        "valuation_error": None,
    }
    M, B, order = standard_form(design.M, design.B, design.variance)
    try:
        model = _recover_quadratics(full, (halves[0], halves[1]))
    except ValueError:  # misread ranks that fit no M at all
        return row
    if model.M.shape != M.shape or (model.M != M).any():
        return row
    learned = evaluate_valuations(Observables(full, U, len(M)), model, U)
    true = _standard_valuations(instance, test, order)
    return row | {
        "M_right": True,
        "B_error": float(np.sqrt(np.mean((model.B - B)[M > 0] ** 2))),
        "valuation_error": float(np.median(np.abs(learned - true))),
    }


def estimation_errors(
    seeds: Sequence[int], samples: int, share: float = 1.0, mislabelled: bool = False
) -> list[Row]:
    """Recover the instance of each seed from samples: rows of `recover_from_samples`."""
    rows = []
    for seed in seeds:
        instance = linear_instance(np.random.default_rng([7, seed]))
        rng = np.random.default_rng([7, seed, samples])
        row = recover_from_samples(instance, samples, rng, share=share, mislabelled=mislabelled)
        rows.append({"seed": seed, **row})
    return rows


def _standard_valuations(instance: _LinearInstance, Z: Array, order: np.ndarray) -> Array:
    """Bring true valuations to the standard form of Step 1: in σ, centred and signed like B."""
    design = instance.design
    sigma = design.variance**0.5
    occurs, b = design.M * design.variance, design.B * sigma
    shift = b.sum(axis=0) / occurs.sum(axis=0)
    signs = np.sign((normalise_columns(occurs, b) * (b - occurs * shift)).sum(axis=0))
    return ((Z @ instance.atoms.T / sigma - shift) * signs)[:, order]


def _chart(X: Array, d: int) -> tuple[Array, Array]:
    """Centre and whitening map of the d-dimensional plane that the data lie on."""
    centre = X.mean(axis=0)
    _, singular, axes = np.linalg.svd(X - centre, full_matrices=False)
    return centre, axes[:d].T / singular[:d] * np.sqrt(len(X))


def _logistic(base: Array, environment: Array) -> tuple[Array, float]:
    """Unpenalised logistic regression on coordinates and their products."""
    rows, columns = np.triu_indices(base.shape[1])
    U = np.vstack([base, environment])
    features = np.hstack([U, U[:, rows] * U[:, columns]])
    label = np.repeat([0, 1], [len(base), len(environment)])
    fit = LogisticRegression(C=np.inf, solver="newton-cholesky", max_iter=100, tol=1e-8)
    fit.fit(features, label)
    prior = np.log(len(environment) / len(base))
    return fit.coef_[0], float(fit.intercept_[0] - prior)
