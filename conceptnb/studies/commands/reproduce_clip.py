"""``conceptnb reproduce clip``: Tables 2-5 for any CLIP models and images (Appendix D)."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from conceptnb.embeddings.directions.factor_report import FactorReport
    from conceptnb.embeddings.shapes3d.images import ShapesImages

    Array = NDArray[np.floating]
    Reports = dict[str, dict[str, FactorReport]]

N_ORDERS = 50
MODULES = (
    "conceptnb.embeddings.clip.image_embedding",
    "conceptnb.embeddings.clip.small",
    "conceptnb.embeddings.clip.image_encoders",
    "conceptnb.embeddings.clip.weights",
    "conceptnb.embeddings.directions",
    "conceptnb.embeddings.shapes3d",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "--models",
        nargs="+",
        default=["small"],
        help="small (trained here, with untrained controls), openai (ViT-B-32 and RN101 of "
        "Appendix D), or names and local checkpoints",
    )
    parser.add_argument(
        "--data",
        default="rendered",
        help="rendered (made here), 3dshapes (the published file, downloaded once), or its path",
    )
    parser.add_argument(
        "--images", type=int, default=20_000, help="how many images, drawn at random; 480000 is all"
    )
    parser.add_argument("--split", choices=("half", "first-values"), default="half")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings for later runs")
    parser.add_argument("--out", type=Path, help="JSON file; results/clip.json by default")


def run(args: argparse.Namespace) -> int:
    """Embed, analyse and write one JSON file of rows."""
    import numpy as np  # noqa: PLC0415 - a command loads what it needs when it runs

    from conceptnb import results  # noqa: PLC0415
    from conceptnb.embeddings import clip, directions, shapes3d  # noqa: PLC0415

    start = time.process_time()
    if not 1 <= args.images <= shapes3d.N_IMAGES:
        raise ValueError(f"--images {args.images} must lie in [1, {shapes3d.N_IMAGES}]")
    names = _model_names(args.models)
    shapes = _open_data(args.data, small_only=all(name.startswith("small") for name in names))
    rng = np.random.default_rng(args.seed)
    index = np.sort(rng.choice(shapes3d.N_IMAGES, args.images, replace=False))
    factors = shapes.factors(index)
    embeddings, sources, reports = {}, {}, {}
    for name in names:
        tower = clip.load_tower(name)
        embeddings[tower.name] = clip.embed(tower, shapes, index, cache=args.cache)
        sources[tower.name] = tower.source
        reports[tower.name] = directions.report(
            embeddings[tower.name], factors, np.random.default_rng(args.seed), split=args.split
        )
    rows = [
        *_factor_rows(reports, args.seed),
        *_agreement_rows(reports, embeddings, factors, args.seed),
        *_reading_rows(embeddings, factors, args.seed),
    ]
    out = args.out or results.folder() / "clip.json"
    path = results.save(
        out.stem,
        rows,
        command=_command(args),
        modules=MODULES,
        seeds=[args.seed],
        cpu_seconds=time.process_time() - start,
        notes={
            "paper_table": "table2",  # shown with tables 3 to 5 by conceptnb.studies.clip_tables
            "images": args.images,
            "data": shapes.source,
            "models": sources,
            "split": args.split,
            "orders": N_ORDERS,
        },
        where=out.parent,
    )
    print(f"wrote {path}")
    return 0


def _command(args: argparse.Namespace) -> str:
    """Spell the command without options that change no number."""
    words = ["conceptnb reproduce clip --models", *(Path(m).name for m in args.models)]
    data = args.data if args.data in ("rendered", "3dshapes") else Path(args.data).name
    words += [f"--data {data}", f"--images {args.images}"]
    return " ".join([*words, f"--split {args.split}", f"--seed {args.seed}"])


def _model_names(words: list[str]) -> list[str]:
    from conceptnb.embeddings import clip  # noqa: PLC0415

    small = [*clip.SMALL_NAMES, *(f"{name}-untrained" for name in clip.SMALL_NAMES)]
    groups = {"small": small, "openai": list(clip.REAL_NAMES)}
    return [name for word in words for name in groups.get(word, [word])]


def _open_data(data: str, *, small_only: bool) -> ShapesImages:
    from conceptnb.embeddings import clip, shapes3d  # noqa: PLC0415

    if data == "rendered":  # small towers see 32 pixels, so nothing is lost by rendering those
        return shapes3d.RenderedShapes(clip.SMALL_SIZE if small_only else 64)
    return shapes3d.PublishedShapes(shapes3d.download() if data == "3dshapes" else data)


def _factor_rows(reports: Reports, seed: int) -> Iterator[dict[str, Any]]:
    """One row a model and factor, and one a model, factor and value (Tables 2-4)."""
    import numpy as np  # noqa: PLC0415

    from conceptnb.embeddings import directions, shapes3d  # noqa: PLC0415

    for model, by_factor in reports.items():
        for factor, report in by_factor.items():
            cosines = directions.order_dependence(
                report.paper.regressions_.coefficients, N_ORDERS, np.random.default_rng(seed)
            )
            yield {
                "table": "separation",
                "model": model,
                "factor": factor,
                "eta2": round(report.eta2, 4),
                "eta2_paper": round(report.eta2_paper, 4),
                "accuracy_one_dimension": round(report.accuracy_atom, 4),
                "accuracy_two_dimensions": round(report.accuracy_plane, 4),
                "dimensions": len(report.concept.directions_),
                "accuracy": round(report.accuracy, 4),
                "order_cosine_mean": round(float(cosines.mean()), 4),
                "order_cosine_min": round(float(cosines.min()), 4),
                "n_train": len(report.train),
                "n_test": len(report.test),
            }
        for factor, report in by_factor.items():
            labels = shapes3d.factor_labels(factor)
            table = report.table
            for value, mean, std in zip(table.values, table.means, table.stds, strict=True):
                yield {
                    "table": "valuations",
                    "model": model,
                    "factor": factor,
                    "value": labels[int(value)],
                    "mean": round(float(mean[0]), 4),
                    "std": round(float(std[0]), 4),
                }


def _agreement_rows(
    reports: Reports, embeddings: dict[str, Array], factors: NDArray[np.intp], seed: int
) -> Iterator[dict[str, Any]]:
    """One row a factor and pair of models (Table 5, and in the proper dimension)."""
    import numpy as np  # noqa: PLC0415

    from conceptnb.embeddings import directions  # noqa: PLC0415

    for first, second in _pairs(reports):
        for column, factor in enumerate(reports[first]):
            smallest = directions.agreement_over_splits(
                embeddings[first],
                embeddings[second],
                factors[:, column],
                np.random.default_rng(seed + 1),
            )
            agreement = directions.agreement(
                reports[first][factor],
                embeddings[first],
                reports[second][factor],
                embeddings[second],
            )
            yield {
                "table": "agreement",
                "models": [first, second],
                "factor": factor,
                "correlation_paper": round(agreement.paper, 4),
                "dimensions": list(agreement.dimensions),
                "canonical": [round(float(r), 4) for r in agreement.canonical],
                "smallest_over_splits": [
                    round(float(smallest.mean()), 4),
                    round(float(smallest.std()), 4),
                ],
            }


def _reading_rows(
    embeddings: dict[str, Array], factors: NDArray[np.intp], seed: int
) -> Iterator[dict[str, Any]]:
    """One row a hue, pair of models, and way to read the hue from both."""
    import numpy as np  # noqa: PLC0415

    from conceptnb.embeddings import directions, shapes3d  # noqa: PLC0415

    for first, second in _pairs(embeddings):
        for column, factor in enumerate(shapes3d.FACTORS):
            if not factor.endswith("_hue"):
                continue
            for reading in directions.readings(
                embeddings[first],
                embeddings[second],
                factors[:, column],
                np.random.default_rng(seed),
            ):
                yield {
                    "table": "readings",
                    "models": [first, second],
                    "factor": factor,
                    "reading": reading.name,
                    "dimensions": list(reading.dimensions),
                    "accuracies": [round(accuracy, 4) for accuracy in reading.accuracies],
                    "canonical": [round(float(r), 4) for r in reading.canonical],
                }


def _pairs(models: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of trained models, then pairs of untrained ones, the control."""
    names = list(models)
    for control in (False, True):
        yield from combinations([n for n in names if n.endswith("-untrained") == control], 2)
