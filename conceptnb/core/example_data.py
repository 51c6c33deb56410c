"""Data to try the other modules on: where they are synthetic, this is said where they are shown."""

from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from conceptnb.common.validation import Array
from conceptnb.core.concepts import random_atoms
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import random_mixture
from conceptnb.core.mixing import LinearMixing
from conceptnb.core.problems import sample_environments

LOOKED_FOR = {
    "dark": ["roast"],
    "light": ["roast"],
    "sour": ["acidity"],
    "dark and mild": ["roast", "acidity"],
}
"""What the example's environments were collected by; the base is ``"any"``."""


def write_environments(path: str | Path, rows: int = 400, seed: int = 2) -> pd.DataFrame:
    """Write a CSV of synthetic sensor readings of coffee beans, and return the hidden truth.

    Two concepts, roast and acidity (the columns that are returned), in four latent dimensions, seen
    by six sensors through a random linear mixing. Five environments of `rows` rows each: any beans,
    and four kinds of looking for something.
    """
    valuations, X, environment = draw_environments(np.random.default_rng(seed), rows, sensors=6)
    frame = pd.DataFrame(X, columns=[f"sensor_{k}" for k in range(1, 7)])
    frame.insert(0, "environment", np.array(["any", *LOOKED_FOR])[environment])
    frame.to_csv(path, index=False)
    return pd.DataFrame(valuations, columns=["roast", "acidity"])


def write_digits(path: str | Path, rows: int = 600, seed: int = 0) -> pd.DataFrame:
    """Write scikit-learn's digits as a table of environments; return what they select by.

    A row is a scan of 8 x 8 pixels. Environments of `rows` rows look for much or little *ink*, and
    for a large or small *height*, the share of it in the upper half, with the noise of Definition
    2: values of one standard deviation, noise of a quarter of its variance. The base has 900 rows.
    """
    from sklearn.datasets import load_digits  # noqa: PLC0415 - this table alone

    X, rng = load_digits().data, np.random.default_rng(seed)
    ink = X.sum(axis=1)
    measured = pd.DataFrame({"ink": ink, "height": X[:, :32].sum(axis=1) / ink})
    standard = (measured - measured.mean()) / measured.std()
    chosen, names = [rng.permutation(len(X))[:900]], ["any"] * 900
    sought = {
        "dark": ("ink", 1),
        "light": ("ink", -1),
        "high": ("height", 1),
        "low": ("height", -1),
    }
    for name, (of, value) in sought.items():
        weight = np.exp(-2 * (standard[of] - value) ** 2)
        chosen.append(rng.choice(len(X), rows, replace=False, p=weight / weight.sum()))
        names += [name] * rows
    order = np.concatenate(chosen)
    frame = pd.DataFrame(X[order]).add_prefix("pixel_")
    frame = frame.loc[:, frame.nunique() > 1]
    frame.insert(0, "environment", names)
    frame.to_csv(path, index=False)
    return measured.iloc[order].reset_index(drop=True)


def write_images(folder: str | Path, images: int = 480, seed: int = 0) -> None:
    """Write synthetic pictures of a ripening fruit, and ``labels.csv`` beside them.

    A disc on a noisy ground, 24 x 24 pixels. Its brightness is the *ripeness* (green, turning,
    ripe, late), its radius the *size* (small, large); the place is random, and so is
    *weekday*, a label that has nothing to do with the picture.
    """
    out, rng = Path(folder), np.random.default_rng(seed)
    out.mkdir(parents=True, exist_ok=True)
    ripeness, size = rng.integers(4, size=images), rng.integers(2, size=images)
    grid = np.arange(24)
    rows = []
    for k in range(images):
        x, y = rng.uniform(9, 15, size=2)
        inside = (grid[:, None] - y) ** 2 + (grid - x) ** 2 < (4.0 + 2.5 * size[k]) ** 2
        picture = np.full((24, 24, 3), 0.45) + rng.normal(scale=0.05, size=(24, 24, 3))
        picture[inside] = [0.35 + 0.17 * ripeness[k], 0.75 - 0.12 * ripeness[k], 0.2]
        name = f"{k:03d}.png"
        matplotlib.image.imsave(out / name, picture.clip(0, 1))
        rows.append(
            {
                "file": name,
                "ripeness": ("1 green", "2 turning", "3 ripe", "4 late")[ripeness[k]],
                "size": ("small", "large")[size[k]],
                "weekday": ("Mon", "Tue", "Wed", "Thu", "Fri")[k % 5],
            }
        )
    pd.DataFrame(rows).to_csv(out / "labels.csv", index=False)


def draw_environments(
    rng: np.random.Generator, rows: int, sensors: int, *, equal: bool = False
) -> tuple[Array, Array, NDArray[np.intp]]:
    """Return valuations (samples, 2), readings (samples, sensors) and environments, the base 0.

    Where `equal`, roast was looked for at one valuation only, against Assumption 4.
    """
    base, atoms = random_mixture(4, rng), random_atoms(2, 4, rng)
    centre = base.sample(4000, rng) @ atoms.T
    low, high = np.percentile(centre, [25, 75], axis=0)
    light = high[0] if equal else low[0]
    design = EnvironmentDesign(
        [[0], [0], [1], [0, 1]],
        [[high[0]], [light], [high[1]], [high[0], low[1]]],
        float(0.15 * centre.var()),
    )
    Z, environment = sample_environments(base, design, atoms, rows, rng, n_base=rows)
    return Z @ atoms.T, LinearMixing.random(4, sensors, rng)(Z).round(5), environment
