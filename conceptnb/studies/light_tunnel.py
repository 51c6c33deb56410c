"""``conceptnb reproduce light-tunnel``: a physical device's camera, concepts found from its images.

Model F1 of the light tunnel (Gamella et al., 2025): an image holds the three numbers red m,
green m and blue m, with m = cos²(pol_1 - pol_2), and no other.
"""

import contextlib
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA

from conceptnb.common.coordinates import Coordinates
from conceptnb.common.validation import Array
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import log_acceptance
from conceptnb.core.planner import propose_design
from conceptnb.core.scores import mcc, r2
from conceptnb.learning.baselines.baseline import RandomProjection
from conceptnb.learning.baselines.supervised import Supervised
from conceptnb.learning.learner import ConceptLearner
from conceptnb.results.runner import Plan, Row, Sample, Task
from conceptnb.results.summarise import summary
from conceptnb.studies.scored_fits import consecutive_seeds

_FACTORS = dict.fromkeys(("red", "green", "blue"), (128, 30)) | {
    "pol_1": (45, 10),
    "pol_2": (0, 10),
}
"""Factor -> mean and standard deviation of its levels, of LEDs in 0 to 255 or in degrees."""
_SCENES = {
    "colours, polarizers fixed": ["red", "green", "blue"],
    "two colours and one polarizer": ["red", "green", "pol_1"],
    "all five factors": list(_FACTORS),
}
"""Simulated scene -> the factors that vary; others stay at their mean."""
_PIXELS, _NOISE, _VARIANCE, _SHARE, _FEWEST = 16, 0.02, 0.25, 1e-3, 30
_NAME = "lt_crl_benchmark_v1"
_URL = f"https://causalchamber.s3.eu-central-1.amazonaws.com/downloadables/{_NAME}.zip"
_MD5 = "8ec492afffd0142abd70b1fa7082b104"  # as its page says
_REAL = "published images"

_Render = Callable[[np.ndarray], Array]


def _simulated(scene: str, rows: int, rng: np.random.Generator) -> tuple[Array, _Render]:
    """Return standardised levels of the factors that vary, and what images rows of them have."""
    model = _camera()
    Z = rng.normal(size=(rows, len(_SCENES[scene])))

    def render(index: np.ndarray) -> Array:
        levels = {name: np.full(len(index), float(mean)) for name, (mean, _) in _FACTORS.items()}
        for name, z in zip(_SCENES[scene], Z[index].T, strict=True):
            levels[name] += _FACTORS[name][1] * z
        images = model.simulate_from_inputs(pd.DataFrame(levels))
        return (images + rng.normal(scale=_NOISE, size=images.shape)).reshape(len(index), -1)

    return Z, render


def _camera() -> Any:
    """Return Model F1; ImportError names the extra that brings it."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints how to cite it
            from causalchamber.simulators.lt import ModelF1  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise ImportError(
            "the light tunnel's simulator needs causalchamber: pip install 'conceptnb[tunnel]'"
        ) from None
    return ModelF1(center_x=0.5, center_y=0.5, radius=0.4, offset=0.0, image_size=_PIXELS)


def _published(folder: Path) -> tuple[list[str], Array, _Render]:
    """Return the factors that vary in NAME/NAME.csv, their levels, and the smallest images."""
    tables = sorted(folder.glob("*/*.csv")) or sorted(folder.glob("*.csv"))
    tables = [table for table in tables if table.stem == table.parent.name]
    if not tables:
        raise ValueError(f"--data {folder} has no NAME/NAME.csv: give the unpacked {_URL}")
    levels, files = [], []
    for table in tables:
        frame = pd.read_csv(table)
        if missing := {*_FACTORS, "image_file"} - {*frame.columns}:
            raise ValueError(f"{table} has no columns {sorted(missing)}: is it of {_NAME}?")
        sizes = [p for p in table.parent.glob("images_*") if p.name[7:].isdigit()]
        if not sizes:
            raise ValueError(f"{table.parent} has no folder images_SIZE: unpack {_URL} again")
        smallest = min(sizes, key=lambda path: int(path.name[7:]))
        levels.append(frame[list(_FACTORS)].to_numpy(dtype=float))
        files += [smallest / str(name) for name in frame["image_file"]]
    if absent := [file for file in files if not file.is_file()]:
        raise ValueError(f"{absent[0]} is not there ({len(absent)} in all): unpack {_URL} again")
    all_levels = np.concatenate(levels)
    varies = all_levels.std(axis=0) > 0
    if not (varies.any() and np.isfinite(all_levels).all()):
        raise ValueError(f"{tables[0]}: a cell is empty, or no factor varies: give other rows")
    Z = all_levels[:, varies]
    names = [name for name, moves in zip(_FACTORS, varies, strict=True) if moves]
    return names, (Z - Z.mean(axis=0)) / Z.std(axis=0), partial(_read_images, files)


def _read_images(files: list[Path], index: np.ndarray) -> Array:
    from PIL import Image  # noqa: PLC0415 - comes with matplotlib

    def read(file: Path) -> Array:
        with Image.open(file) as image:
            small = image.convert("RGB").resize((_PIXELS, _PIXELS), Image.Resampling.BOX)
            return np.asarray(small, dtype=float).ravel() / 255

    return np.stack([read(files[row]) for row in index])


def _select(
    Z: Array, design: EnvironmentDesign, rng: np.random.Generator, source: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return held-out rows, and rows of environments with labels; no row is in two of them.

    Environments keep rows by the probability of Algorithm 1, at most as many as the base has.
    """
    order, size = rng.permutation(len(Z)), len(Z) // 10
    found = [order[size : 2 * size]]
    shares = np.array_split(order[2 * size :], design.n_environments)
    for share, concept in zip(shares, design.concepts(np.eye(Z.shape[1])), strict=True):
        log_odds = log_acceptance(concept, design.variance, Z[share])
        found.append(share[np.log(rng.uniform(size=len(share))) <= log_odds][:size])
    counts = [len(rows) for rows in found]
    if min(counts) < _FEWEST:
        raise ValueError(
            f"{source}: {len(Z)} rows leave environment {np.argmin(counts)} with {min(counts)} "
            f"images, and {_FEWEST} are the fewest: give more rows"
        )
    return order[:size], np.concatenate(found), np.repeat(np.arange(len(counts)), counts)


def _runs(seeds: list[int], **arguments: Any) -> list[Row]:
    return [row for seed in seeds for row in _run(seed, **arguments)]


def _run(seed: int, scene: str, rows: int, data: str, labels: str = "true") -> list[Row]:
    """Return a row per method; "shuffled" labels of environments are a wrong one."""
    rng = np.random.default_rng(seed)
    if scene == _REAL:
        names, Z, render = _published(Path(data))
    else:
        names, (Z, render) = _SCENES[scene], _simulated(scene, rows, rng)
    n = len(names)
    design = propose_design(n, _VARIANCE)
    test, train, environment = _select(Z, design, rng, data)
    if labels == "shuffled":
        environment = rng.permutation(environment)
    images = render(train)
    pca = PCA(min(10, *images.shape), svd_solver="covariance_eigh").fit(images)
    kept = max(int((pca.explained_variance_ratio_ >= _SHARE).sum()), 1)
    X, unseen = (pca.transform(x)[:, :kept] for x in (images, render(test)))
    kind: Any = "linear" if scene == next(iter(_SCENES)) else "mlp"
    learner = ConceptLearner(n, targets=design.M > 0, encoder=kind, random_state=seed)
    codes = {
        "concepts": learner.fit_along(X, environment, Coordinates.raw(kept)).transform(unseen),
        "supervised": Supervised(kind, seed=seed).fit(X, environment, Z[train]).transform(unseen),
        "random projection": RandomProjection(n, seed=seed).fit(X, environment).transform(unseen),
    }
    shared = {"scene": scene, "factors": n, "components": kept, "seed": seed}
    found = []
    for method, code in codes.items():
        row = {"method": method, "mcc": mcc(Z[test], code), "r2": r2(Z[test], code)}
        each = {f: r2(Z[test][:, [names.index(f)]], code) if f in names else None for f in _FACTORS}
        found.append(shared | row | {f"r2_{f}": value for f, value in each.items()})
    return found


def _summarise(runs: list[Row]) -> list[Row]:
    """Return a row per scene and method."""
    by = ("scene", "method", "factors", "components")
    return summary(runs, by, ["mcc", "r2", *(f"r2_{name}" for name in _FACTORS)])


def _download() -> Path:
    """Return the published images' folder, fetched where needed; goes on where it stopped."""
    import pooch  # noqa: PLC0415 - only downloads need it

    from conceptnb.common.downloads import Resuming  # noqa: PLC0415

    folder = Path(pooch.os_cache("conceptnb")) / "light_tunnel"
    unzip = pooch.Unzip(extract_dir=".")
    file = f"{_NAME}.zip"
    pooch.retrieve(_URL, f"md5:{_MD5}", file, folder, unzip, Resuming(file))
    return folder / _NAME


def plans(args: SimpleNamespace) -> list[Plan]:
    """Return the results files that the options ask for."""
    seeds = consecutive_seeds(args.seeds)
    simulated, data = args.data == "simulated", args.data
    if simulated:
        _camera()
    else:
        folder = _download() if data == "download" else Path(data).expanduser()
        _published(folder)
        data = str(folder)
    common = {"rows": args.rows, "data": data}
    tasks = [
        Task(_runs, {"scene": scene, "seeds": [seed], **common})
        for scene in (_SCENES if simulated else [_REAL])
        for seed in seeds
    ]
    task = tasks[len(seeds) if simulated else 0].but(seeds=seeds[:3])
    model = "analytic images of Model F1 (causalchamber, MIT), not the device"
    notes = {
        "what": model if simulated else f"images of the device, {_NAME} (CC BY 4.0)",
        "levels": "Gaussian: mean, standard deviation of each factor" if simulated else "as kept",
        "factors": {name: list(levels) for name, levels in _FACTORS.items()},
        "pixels": _PIXELS,
        "noise": f"of the camera, Gaussian, standard deviation {_NOISE} of full scale",
        "environments": "n + 1 along a path, by selection on standardised factors",
        "variance_of_q": _VARIANCE,
        "features": f"principal components with at least {_SHARE} of the variance",
        "injective": "an image holds red m, green m and blue m, m = cos²(pol_1 - pol_2), so three "
        "concepts can be had from it and five cannot, whatever the method",
        "scores": "on held-out images of the base",
    }
    wrong = {"labels shuffled": task.but(labels="shuffled")}
    sample = Sample(task, ("mcc", "r2"), wrong, by=("scene", "method"))
    file = "light_tunnel" if simulated else "light_tunnel_images"
    return [Plan(file, tasks, _summarise, seeds, notes, sample)]
