"""``conceptnb reproduce clip``: Tables 2 to 5 for any CLIP models and images (Appendix D).

For each model and factor directions are learned on one half of the images and judged on the other;
trained models are compared in pairs, and so are untrained ones, the control.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from conceptnb.embeddings import clip, directions, shapes3d
from conceptnb.embeddings.clip.loading import PAPER_ENCODERS, load_encoder
from conceptnb.embeddings.directions.evaluation import ValuationTable
from conceptnb.results import paper
from conceptnb.results.runner import Plan, Row, Sample, Task
from conceptnb.results.show import Table
from conceptnb.results.store import Result

N_ORDERS = 50
PAPER_MODELS = ("ViT-B/32", "RN101")
OF_THE_PAPER = "clip_openai"
"""The table of the paper's own models and images: there after ``make paper``, which needs a network
for 0.9 GB. Pages say "not run" without it."""

Embeddings = dict[str, NDArray[np.float32]]
Reports = dict[str, dict[str, directions.FactorReport]]


def _runs(seed: int, split: str, labels: str = "true", **given: Any) -> list[Row]:
    """Return the rows of all tables for some models; "shuffled" labels are a wrong method."""
    embeddings, factors = _embedded(seed, **given)
    for name, size, values in zip(shapes3d.FACTORS, shapes3d.SIZES, factors.T, strict=True):
        if len(np.unique(values)) < size:
            raise ValueError(f"{len(factors)} images do not show all values of {name}; embed more")
    if labels == "shuffled":
        factors = np.random.default_rng(seed).permutation(factors)
    by_name = dict(zip(shapes3d.FACTORS, factors.T, strict=True))
    reports = {name: _report(Z, by_name, factors, seed, split) for name, Z in embeddings.items()}
    rows: list[Row] = []
    for model, report in reports.items():
        separations, valuations = _separations(report, seed), _valuations(report)
        rows += [{"table": "separation", "model": model, **row} for row in separations]
        rows += [{"table": "valuations", "model": model, **row} for row in valuations]
    for pair in combinations(embeddings, 2):
        key = {"models": list(pair), "model": " and ".join(pair)}
        agreements = _agreements(pair, reports, embeddings, by_name, seed)
        rows += [key | row for row in agreements]
    return [row | {"seed": seed} for row in rows]


def _separation_runs(**given: Any) -> list[Row]:
    """Return the rows on separation alone: what tests compute again."""
    return [row for row in _runs(**given) if row["table"] == "separation"]


def _embedded(
    seed: int,
    models: list[str],
    data: str,
    images: int,
    cache: str | None,
    architectures: Mapping[str, str] | None = None,
    device: str = "cpu",
    precision: str = "float32",
    progress: bool = False,
) -> tuple[Embeddings, NDArray[np.intp]]:
    shapes, index = _images(seed, models, data, images)
    found: Embeddings = {}
    for name in models:
        of = (architectures or {}).get(name)
        model = load_encoder(name, architecture=of, device=device, precision=precision)
        found[model.name] = clip.embed_images(model, shapes, index, cache=cache, progress=progress)
    return found, shapes3d.index_to_factors(index)


def _images(
    seed: int, models: list[str], data: str, images: int
) -> tuple[shapes3d.ShapesImages, NDArray[np.intp]]:
    rng = np.random.default_rng(seed)
    index = np.sort(rng.choice(shapes3d.N_IMAGES, images, replace=False))
    if data != "rendered":
        path = shapes3d.download() if data == "3dshapes" else data
        return shapes3d.PublishedShapes(path), index
    # The small models see 32 pixels, so nothing is lost by rendering those.
    small = all(name.startswith("small") for name in models)
    return shapes3d.RenderedShapes(clip.SMALL_SIZE if small else 64), index


def _report(
    Z: NDArray[np.float32],
    labels: Mapping[str, NDArray[np.intp]],
    factors: NDArray[np.intp],
    seed: int,
    split: str,
) -> dict[str, directions.FactorReport]:
    """Report all factors, split in halves or by the values of the other factors."""
    if split == "half":
        return directions.report_factors(Z, labels, np.random.default_rng(seed))
    found: dict[str, directions.FactorReport] = {}
    for column, name in enumerate(labels):
        parts = directions.first_values_split(factors, column, shapes3d.SIZES)
        rng, values = np.random.default_rng(seed), {name: labels[name]}
        found |= directions.report_factors(Z, values, rng, split=parts)
    return found


def _separations(reports: Mapping[str, directions.FactorReport], seed: int) -> Iterator[Row]:
    for factor, report in reports.items():
        cosines = directions.order_dependence(
            report.paper.regressions_.coefficients, N_ORDERS, np.random.default_rng(seed)
        )
        yield {
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


def _valuations(reports: Mapping[str, directions.FactorReport]) -> Iterator[Row]:
    """Yield the valuations of one model (Tables 2 to 4)."""
    for factor, report in reports.items():
        words, table = shapes3d.factor_labels(factor), report.table
        for value, mean, std in zip(table.values, table.means, table.stds, strict=True):
            yield {
                "factor": factor,
                "value": words[int(value)],
                "mean": round(float(mean[0]), 4),
                "std": round(float(std[0]), 4),
            }


def _agreements(
    pair: tuple[str, str],
    reports: Reports,
    embeddings: Embeddings,
    labels: Mapping[str, NDArray[np.intp]],
    seed: int,
) -> Iterator[Row]:
    """Yield how two models agree on each factor (Table 5), and on each hue, read in each way."""
    A, B = (embeddings[name] for name in pair)
    for factor, values in labels.items():
        rng = np.random.default_rng(seed + 1)
        smallest = directions.agreement_over_splits(A, B, values, rng)
        found = directions.agreement(reports[pair[0]][factor], A, reports[pair[1]][factor], B)
        assert found.paper is not None
        yield {
            "table": "agreement",
            "factor": factor,
            "correlation_paper": round(found.paper, 4),
            "dimensions": list(found.dimensions),
            "canonical": found.canonical.round(4).tolist(),
            "smallest_over_splits": [round(float(f(smallest)), 4) for f in (np.mean, np.std)],
        }
    for factor in (name for name in labels if name.endswith("_hue")):
        readings = directions.cyclic_readings(A, B, labels[factor], np.random.default_rng(seed))
        for name, reading in readings.items():
            yield {
                "table": "readings",
                "factor": factor,
                "reading": name,
                "dimensions": list(reading.dimensions),
                "accuracies": [round(accuracy, 4) for accuracy in reading.accuracies],
                "canonical": reading.canonical.round(4).tolist(),
            }


def _summarise(runs: list[Row]) -> list[Row]:
    return [
        {key: row[key] for key in row if key != "seed" and not (key == "model" and "models" in row)}
        for table in ("separation", "valuations", "agreement", "readings")
        for row in runs
        if row["table"] == table
    ]


def plans(args: SimpleNamespace) -> list[Plan]:
    """Return the results files that the options ask for."""
    small = [*clip.SMALL_NAMES, *(f"{name}-untrained" for name in clip.SMALL_NAMES)]
    groups = {"small": small, "openai": list(PAPER_ENCODERS)}
    names = [name for word in args.models for name in groups.get(word, [word])]
    given = {"data": args.data, "images": args.images, "split": args.split, "cache": args.cache}
    given |= {"seed": args.seed} | _where_and_how(args, names)
    kind = shapes3d.RenderedShapes if args.data == "rendered" else shapes3d.PublishedShapes
    controls = [name for name in names if _is_control(name)]
    trained = [name for name in names if name not in controls]
    sampled = Task(_separation_runs, given | {"models": trained[:1] or controls[:1]})
    return [
        Plan(
            file="clip",
            tasks=[Task(_runs, given | {"models": m}) for m in (trained, controls) if m],
            summarise=_summarise,
            seeds=[args.seed],
            notes={
                "paper_table": "table2",  # pages show it with tables 3 to 5
                "images": args.images,
                "data": kind.source,
                "models": {_shown(name): _source(name) for name in names},
                "split": args.split,
                "orders": N_ORDERS,
            },
            prepare=partial(_prepare, given | {"models": names}),
            sample=Sample(
                task=sampled,
                columns=("eta2", "accuracy", "accuracy_one_dimension"),
                by=("table", "model"),
                wrong={"labels shuffled": sampled.but(labels="shuffled")},
            ),
        )
    ]


def _where_and_how(args: SimpleNamespace, names: Sequence[str]) -> dict[str, Any]:
    """Return arguments of tasks that the small models need none of, so that their key is short."""
    found: dict[str, Any] = {}
    files = [name for name in names if Path(name).is_file()]
    if len(args.architecture) > len(files):
        raise ValueError(
            f"--architecture {' '.join(args.architecture)}: give one for each file of --models, in "
            f"their order; there are {len(files)}"
        )
    if args.architecture:
        found["architectures"] = dict(zip(files, args.architecture, strict=False))
    if args.device != "cpu":
        found["device"] = args.device
    if args.precision != "float32":
        found["precision"] = args.precision
    return found


def _is_control(name: str) -> bool:
    """Whether an encoder has random weights."""
    return name.endswith(("-untrained", "/untrained"))


def _shown(name: str) -> str:
    return Path(name).stem if Path(name).is_file() else name


def _source(name: str) -> str:
    """Return where the weights of an encoder are from."""
    if _is_control(name):
        return "random weights"
    if name.startswith("small-"):
        return "a small CLIP model trained here"
    if Path(name).exists():
        return f"the local checkpoint {Path(name).name}"
    return "OpenAI's weights" if name in PAPER_ENCODERS else f"the published weights {name}"


def _prepare(given: Row) -> None:
    """Fetch the published images; with a cache embed, saying how long it takes."""
    if given["data"] == "3dshapes":
        shapes3d.download()
    if given["cache"] is not None:
        _embedded(**{key: given[key] for key in given if key != "split"}, progress=True)


def paper_columns() -> dict[str, dict[str, list[list[float]]]]:
    """Return Tables 2 to 4 of the paper: [mean, std] per value, by factor and model."""
    printed = {
        name: column
        for table in ("table2", "table3", "table4")
        for name, column in paper.printed(table).items()
    }
    printed["orientation"] = printed["orientation_deg"]
    return {
        name: {model: printed[name][model] for model in PAPER_MODELS} for name in shapes3d.FACTORS
    }


def beside_paper(ours: Mapping[str, Mapping[str, ValuationTable]]) -> Table:
    """Return Tables 2 to 4: valuations of our models by factor, and the paper's beside them."""
    columns = paper_columns()
    rows = [
        {"factor": factor.replace("_", " "), "value": label}
        | {
            name: [float(tables[factor].means[k, 0]), float(tables[factor].stds[k, 0])]
            for name, tables in ours.items()
        }
        | {f"paper: {model}": columns[factor][model][k] for model in PAPER_MODELS}
        for factor in shapes3d.FACTORS
        for k, label in enumerate(shapes3d.factor_labels(factor))
    ]
    return Table(rows, ".1f")


def valuation_columns(result: Result, factors: Sequence[str]) -> Result:
    """Return mean ± standard deviation of valuations of some factors, a column per model."""
    rows: dict[tuple[str, str], Row] = {}
    for row in _table(result, "valuations"):
        if row["factor"] in factors and not _is_control(row["model"]):
            factor = row["factor"].replace("_", " ")
            line = rows.setdefault(
                (factor, row["value"]), {"factor": factor, "value": row["value"]}
            )
            line[row["model"]] = [row["mean"], row["std"]]
    return replace(result, rows=list(rows.values()))


def separation_columns(result: Result) -> Result:
    """Return η² of order-free directions, a row per factor and a column per model."""
    rows: dict[str, Row] = {}
    for row in _table(result, "separation"):
        factor = row["factor"].replace("_", " ")
        rows.setdefault(factor, {"factor": factor})[row["model"]] = row["eta2"]
    return replace(result, rows=list(rows.values()))


def agreement_rows(result: Result, table: Literal["agreement", "readings"] = "agreement") -> Result:
    """Return how two models agree, untrained ones last.

    "agreement" is Table 5, a row per factor, with the canonical correlations of the concepts in
    their proper dimensions, and the smallest of them as mean ± standard deviation over five random
    halves. "readings" has a row per hue and way to read it, see `cyclic_readings`.
    """
    shown = []
    for row in _table(result, table):
        line = {"models": " and ".join(row["models"]), "factor": row["factor"].replace("_", " ")}
        dimensions = {"dimensions": " and ".join(map(str, row["dimensions"]))}
        canonical = {"canonical correlations": _joined(row["canonical"])}
        if table == "readings":
            line |= {"reading": row["reading"]} | dimensions
            line |= {"accuracies": _joined(row["accuracies"])} | canonical
        else:
            smallest = "{:.3f} ± {:.3f}".format(*row["smallest_over_splits"])
            line |= {"paper's direction": row["correlation_paper"]} | dimensions
            line |= canonical | {"smallest, over splits": smallest}
        shown.append(line)
    return replace(result, rows=shown)


def _table(result: Result, table: str) -> list[Row]:
    rows = [row for row in result.rows if row.get("table") == table]
    if not rows:
        raise ValueError(
            f"result={result.name!r} has no rows of table {table!r}; "
            "it has to come from `conceptnb reproduce clip`"
        )
    return rows


def _joined(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.3f}" for number in numbers)
