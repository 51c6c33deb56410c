"""Draw the picture of the README: level lines of two concepts, bent by a mixing, straightened.

``python -m tools.grid`` fits the learner to data of the paper's kind, in two latent dimensions so
that all of it can be drawn, and writes ``book/_static/grid.png``. Nothing is drawn by hand: the
third panel is what the learner makes of the second.
"""

from pathlib import Path

import numpy as np

from conceptnb.common.validation import Array
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import GaussianMixture
from conceptnb.core.mixing import MLPMixing
from conceptnb.core.problems import Problem, Setting, sample_environments
from conceptnb.core.scores import mcc
from conceptnb.learning import BEST, fit
from conceptnb.plotting.fits import bent_grid

_SEED, _SAMPLES = 2, 8000
_ATOMS = np.array([[1.0, 0.25], [-0.25, 1.0]])
_DESIGN = EnvironmentDesign(
    [[0], [0], [1], [1], [0, 1], [0, 1]],
    [[0.7], [-0.7], [0.7], [-0.7], [0.6, 0.6], [-0.6, 0.6]],
    0.2,
)
_LINES, _POINTS = 9, 200  # level lines of each atom, and points on a line
_TO = Path(__file__).resolve().parent.parent / "book" / "_static" / "grid.png"


def main() -> None:
    """Fit, draw, write."""
    problem = square_problem()
    fitted = fit([problem], BEST)
    Z = problem.fresh(2500)
    learned = fitted.transform([problem.mixing(Z)])[0]
    print(f"MCC on new samples: {mcc(problem.valuations(Z), learned):.3f}")
    lines = []
    for line in level_lines(problem):
        X = problem.mixing(line)
        lines.append((problem.valuations(line), X, fitted.transform([X])[0]))
    figure = bent_grid(problem.valuations(Z), problem.mixing(Z), learned, lines)
    figure.savefig(_TO, dpi=200)
    print(_TO)


def square_problem() -> Problem:
    """Return a problem whose base fills a square, so that lines can be drawn through it."""
    rng = np.random.default_rng(_SEED)
    centres = [[x, y] for x in (-0.7, 0.0, 0.7) for y in (-0.7, 0.0, 0.7)]
    base = GaussianMixture([1 / 9] * 9, centres, [0.06 * np.eye(2)] * 9)
    mixing = MLPMixing.random(2, 3, rng)
    Z, environment = sample_environments(base, _DESIGN, _ATOMS, _SAMPLES, rng)
    setting = Setting("nonlinear", 2, 2, 3)
    return Problem(setting, _SEED, base, _DESIGN, _ATOMS, mixing, Z, environment)


def level_lines(problem: Problem) -> list[Array]:
    """Return latent points (points, 2) on the level lines of the first atom, then of the other."""
    ends = np.linspace(-1, 1, _POINTS)
    lines: list[Array] = []
    for atom in range(2):
        for level in np.linspace(-1, 1, _LINES):
            line = np.empty((_POINTS, 2))
            line[:, atom], line[:, 1 - atom] = level, ends
            lines.append(np.asarray(np.linalg.solve(problem.atoms, line.T).T, dtype=float))
    return lines


if __name__ == "__main__":
    main()
