"""Noise whose form is not known: its potential is found with the concepts."""

import numpy as np
import pytest

from conceptnb.learning.linear import fit_linear
from conceptnb.learning.noise import GAUSSIAN, NoiseLikelihood, Potential, fit_noise

SIGMA = 0.1**0.5
TARGETS = np.array([[True, False], [True, True], [False, True]])
VALUES = np.array([[-0.5, 0.0], [0.5, -0.5], [0.0, 0.5]])


def noisy_table(potential, rows, rng):
    """Draw a base and its environments by rejection; the concepts are the coordinates."""
    parts = [rng.standard_normal((rows, 2))]
    for targets, values in zip(TARGETS, VALUES, strict=True):
        Z = rng.standard_normal((40 * rows, 2))
        log_rate = -potential((Z - values) / SIGMA)[:, targets].sum(axis=1)
        parts.append(Z[np.log(rng.random(len(Z))) < log_rate][:rows])
        assert len(parts[-1]) == rows
    return np.vstack(parts), np.repeat(np.arange(4), rows)


def unit_and_error(h, true):
    """Common unit of valuations, and their root mean square error once it is set right."""
    r = np.corrcoef(h.T, true.T)[:2, 2:]
    order = np.abs(r).argmax(axis=0)
    assert sorted(order) == [0, 1]
    h = h[:, order] * np.sign(r[order, [0, 1]])
    unit = (h * true).sum() / (true**2).sum()
    return unit, np.sqrt(((h / unit - true) ** 2).mean())


@pytest.mark.parametrize(
    ("potential", "shortest", "longest"),
    [
        (lambda u: u**2 / 2, 0.95, 1.05),
        (lambda u: 2 * np.log(np.cosh(u / np.sqrt(2))), 0.7, 0.9),
        (lambda u: 2 * np.log1p(u**2 / 4), 0.5, 0.75),
    ],
    ids=["Gaussian", "logistic", "Student"],
)
def test_concepts_and_the_form_of_their_noise_are_found_together(potential, shortest, longest):
    """A Gaussian that is assumed shortens all valuations alike; a learned potential does not."""
    rng = np.random.default_rng(0)
    mixing = np.array([[1.0, 0.4], [-0.3, 0.9]])
    Z, environment = noisy_table(potential, 1500, rng)
    X = Z @ mixing.T
    start = fit_linear(X, environment, TARGETS, rng, starts=6)[0]
    learned = fit_noise(X, environment, TARGETS, start)
    assumed = fit_noise(X, environment, TARGETS, start, potential=GAUSSIAN)
    unit, error = unit_and_error(X @ learned.W, Z / SIGMA)
    assert 0.88 < unit < 1.12
    assert error < 0.15
    u = np.linspace(-3, 3, 61)
    assert np.abs(learned.potential(u) - potential(u)).max() < 0.5
    unit, error = unit_and_error(X @ assumed.W, Z / SIGMA)
    assert shortest < unit < longest
    assert error < 0.15
    assert learned.loss < assumed.loss + 1e-4


def test_the_gradient_is_the_slope_of_the_loss():
    rng = np.random.default_rng(1)
    Z, environment = noisy_table(lambda u: u**2 / 2, 100, rng)
    start = fit_linear(Z, environment, TARGETS, rng)[0]
    for known in (None, Potential(np.full(7, 1 / 7))):
        task = NoiseLikelihood(Z, environment, TARGETS.astype(float), known)
        theta = task.start(start, 1.2)
        theta = theta + 0.3 * rng.normal(size=len(theta))
        _, gradient = task.objective(theta)
        h = 1e-6 * np.eye(len(theta))
        slopes = [(task.objective(theta + s)[0] - task.objective(theta - s)[0]) / 2e-6 for s in h]
        np.testing.assert_allclose(gradient, slopes, atol=1e-6)


def test_a_potential_is_even_has_curvature_one_and_a_density_of_mass_one():
    potential = Potential(np.array([0.2, 0.1, 0.3, 0.1, 0.1, 0.1, 0.1]))
    u = np.linspace(-30, 30, 6001)
    np.testing.assert_allclose(potential(u), potential(-u))
    h = 1e-4
    assert (potential(h) + potential(-h)) / h**2 == pytest.approx(1.0, abs=1e-5)
    slopes = np.gradient(potential(u), u)[1:-1]
    np.testing.assert_allclose(slopes, potential.slope(u)[1:-1], atol=1e-3)
    assert np.trapezoid(potential.density(u), u) == pytest.approx(1.0, abs=1e-3)
    assert potential(np.float64(0.0)) == 0
