"""``conceptnb directions``: labelled embeddings or images -> a report, and fitted directions."""

import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from conceptnb.commands.options import PATH, EncoderName, Several, Whole, command, option
from conceptnb.commands.reports import Part, fill, refuse_files, report_options, write_report
from conceptnb.commands.reproduce import CLIP_MODELS
from conceptnb.common.files import write_text

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray
    from sklearn.decomposition import PCA

    from conceptnb.common.validation import Array
    from conceptnb.embeddings.encoders import Encoder

_FILES = ("report.html", "directions.safetensors", "apply.py", "values.csv")
_OF_WORDS = ("report.html", "apply.py", "values.csv")
_LARGEST = 4096  # pixels of an image's side
_FIRST = ("factor", "accuracy", "chance", "shuffled labels", "p")  # columns that a phone shows


@command(
    "directions",
    "learn directions of labels in your own embeddings or images: a report, and how to apply it",
    click.Argument(["data"], type=PATH, metavar="EMBEDDINGS|FOLDER"),
    option(
        "--labels",
        type=PATH,
        metavar="FILE",
        help="CSV: a row for each embedding or image, a column for each factor",
    ),
    option(
        "--captions",
        type=PATH,
        metavar="FILE",
        help="with --encoder, beside labels or without: CSV with the columns factor, value and "
        "caption; a caption of the value * is a template, whose {} is replaced by each value",
    ),
    Several("--factors", metavar="COLUMN", help="columns to learn (default: all)"),
    option("--file-column", help="column of --labels that names images (default: file)"),
    option(
        "--size",
        type=Whole(1, _LARGEST),
        help="pixels that images are cropped and scaled to (default: they have one size)",
    ),
    option(
        "--encoder",
        type=EncoderName(*CLIP_MODELS),
        help="encoder of images (default: principal components of their pixels): ARCHITECTURE/TAG "
        "of open_clip, such as ViT-B-32/openai; hf-hub:OWNER/NAME; OWNER/NAME of transformers; a "
        "folder, a file of weights, small-vit or small-resnet",
    ),
    option(
        "--architecture",
        help="of a file of weights: an architecture of open_clip, such as ViT-B-32-quickgelu",
    ),
    *report_options(),
)
@click.pass_context
def directions(ctx: click.Context, **given: Any) -> None:
    """Learn a direction for each factor; write report, directions, code that applies them."""
    args = SimpleNamespace(**given)
    refuse_files(args, _FILES)
    names = args.factors or []
    if len({*names}) < len(names):
        raise ValueError(f"--factors {shlex.join(names)}: name each column once")
    _refuse_captions(args)
    if args.labels is None:
        _from_words_alone(args, ctx.meta["words"])
        return
    import numpy as np  # noqa: PLC0415 - what only a run needs

    from conceptnb.embeddings.own_images import learn_directions, save_directions  # noqa: PLC0415

    odd, components, encoder = [], None, None
    if args.data.is_dir():
        Z, labels, components, read, encoder = _read_images(args)
    else:
        rows, labels, read = _read_embeddings(args)
        Z, odd = rows.to_numpy(), _indices(rows, args.data)
    words, by_words = _beside_labels(args, encoder, Z, labels)
    report = learn_directions(Z, labels, embed=np.asarray, seed=args.seed)
    report.warnings[:0] = odd
    directions = {name: found.concept for name, found in report.factors.items()}
    save_directions(directions, args.out / "directions.safetensors", components)
    template = "apply_embeddings.txt" if args.data.is_file() else "apply_images.txt"
    load = "from conceptnb.embeddings.clip import load_encoder\n" if args.encoder else ""
    new = f"NEW{args.data.suffix}"
    code = fill(template, embed=read, load=load, size=args.size, new=new)
    first = next(iter(report.factors.values()))
    values = labels.assign(half=np.where(np.isin(np.arange(len(Z)), first.test), "judged", "fit"))
    for name, found in report.factors.items():
        values[f"{name}, read"] = found.concept.predict(Z)
        values[f"{name}, probability"] = found.concept.predict_proba(Z).max(axis=1).round(4)
    values = values.assign(**by_words)
    write_text(args.out / "values.csv", values.to_csv(index=False))
    from conceptnb.plotting.reports import valuations_by_value  # noqa: PLC0415 - matplotlib

    alt = "Held-out valuations along the direction of each factor, by value. " + "; ".join(
        f"{name}: share of variance between values {found.eta2:.2f}"
        for name, found in report.factors.items()
    )
    write_report(
        args.out,
        _FILES,
        "report_directions.html",
        {
            "summary": report.summary()[[*_FIRST, "balanced", "η²", "values", "dimensions"]],
            "figure": (valuations_by_value(report), alt),
            "words": words,
        },
        title=f"Directions in {args.data.name}",
        lead=f"{len(Z):,} rows in {Z.shape[1]} dimensions; {len(first.train):,} were learned from, "
        f"and {len(first.test):,} others are judged.",
        warnings=report.warnings,
        none="No warning. That does not prove that a direction means its factor: what always goes "
        "together with it is read as well.",
        code=code,
        command=shlex.join(["conceptnb", "directions", *ctx.meta["words"]]),
    )


def _read_embeddings(args: SimpleNamespace) -> "tuple[pd.DataFrame, pd.DataFrame, str]":
    """Return embeddings, a row each, their labels, and code that reads new ones."""
    from conceptnb.commands.table_rows import as_numbers  # noqa: PLC0415 - what only a run needs
    from conceptnb.common.table_checks import load_rows  # noqa: PLC0415
    from conceptnb.common.table_files import read_table, require_columns  # noqa: PLC0415
    from conceptnb.embeddings.own_images import refuse_labels  # noqa: PLC0415

    for_images = {
        "encoder": args.encoder,
        "architecture": args.architecture,
        "size": args.size,
        "file-column": args.file_column,
    }
    for name, value in for_images.items():
        if value is not None:
            raise ValueError(f"--{name} is for a folder of images, and {args.data} is a file")
    rows, labels = load_rows(args.data), read_table(args.labels)
    require_columns(labels, args.factors or [], args.labels)
    if len(rows) != len(labels):
        raise ValueError(
            f"{args.data} has {len(rows)} rows and {args.labels} {len(labels)}: give a row of "
            "labels for each embedding, in the same order"
        )
    chosen = labels[args.factors or list(labels)]
    refuse_labels(chosen, f"{args.labels}, ")
    named = f"[{list(rows)}]" if args.data.suffix.lower() in (".csv", ".parquet") else ""
    code = f"load_rows(given){named}.apply(pd.to_numeric).to_numpy(float)"
    return as_numbers(rows, args.data, None, ids=False), chosen, code


def _indices(rows: "pd.DataFrame", file: Path) -> list[str]:
    """Return warnings of columns that are no dimensions of an embedding, but number its rows."""
    import numpy as np  # noqa: PLC0415 - what only a run needs

    from conceptnb.common.table_checks import looks_like_index  # noqa: PLC0415

    one = np.zeros(len(rows), dtype=int)
    return [
        f"{name!r} looks like an index, a time or an identifier: it only numbers rows. Remove the "
        f"column from {file.name}, or directions read the order of the rows."
        for name, column in rows.items()
        if looks_like_index(column.to_numpy(), one)
    ]


def _refuse_captions(args: SimpleNamespace) -> None:
    """Refuse captions without what they need, and a command with neither captions nor labels."""
    if args.labels is None and args.captions is None:
        raise ValueError(
            "--labels FILE is missing: a CSV file with a row for each embedding or image; with "
            "--encoder, --captions FILE needs none"
        )
    if args.captions and not (args.encoder and args.data.is_dir()):
        raise ValueError(
            f"--captions {args.captions} needs a folder of images and --encoder: one model has to "
            "embed words and images"
        )


def _beside_labels(
    args: SimpleNamespace, encoder: "Encoder | None", Z: "Array", labels: "pd.DataFrame"
) -> "tuple[Part | str, dict[str, NDArray[Any]]]":
    """Return the report's part on captions, and columns of what they read; nothing without them."""
    if args.captions is None or encoder is None:
        return "", {}
    import numpy as np  # noqa: PLC0415 - what only a run needs
    import pandas as pd  # noqa: PLC0415

    from conceptnb.embeddings import words  # noqa: PLC0415
    from conceptnb.embeddings.own_images import SHRINKAGE  # noqa: PLC0415

    texts = words.read_captions(args.captions, labels)
    spoken = {f: words.concept_from_words(encoder.embed_texts, texts[f]) for f in texts}
    given = {f: labels[f].to_numpy(dtype=str) for f in spoken}
    rng = np.random.default_rng(args.seed)
    found = words.words_beside_labels(spoken, Z, given, rng, shrinkage=SHRINKAGE)
    read: dict[str, NDArray[Any]] = {}
    for name, concept in spoken.items():
        read[f"{name}, by words"] = concept.predict(Z)
        read[f"{name}, valuation by words"] = concept.transform(Z).round(4)
    table = pd.DataFrame(
        {
            "factor": name,
            "cosine": one.cosine,
            "other words": one.cosine_other,
            "AUC": one.auc,
            "AUC, other words": one.auc_other,
            "AUC, labels": one.auc_labels,
            "η²": one.eta2,
            "η², labels": one.eta2_labels,
            "accuracy": one.accuracy,
            "accuracy, labels": one.accuracy_labels,
            "chance": one.chance,
        }
        for name, one in found.items()
    )
    return Part("report_words.html", {"table": table}), read


def _from_words_alone(args: SimpleNamespace, typed: list[str]) -> None:
    """Read values of images by captions, with no label: values, and what reads new images."""
    if args.factors or args.file_column:
        option = "factors" if args.factors else "file-column"
        raise ValueError(f"--{option} is a column of --labels, and there are none")
    import pandas as pd  # noqa: PLC0415 - what only a run needs

    from conceptnb.embeddings import words  # noqa: PLC0415

    texts = words.read_captions(args.captions)
    Z, rows, _, _, encoder = _read_images(args)
    assert encoder is not None
    shares = []
    for name, captions in texts.items():
        concept = words.concept_from_words(encoder.embed_texts, captions)
        rows[name] = concept.predict(Z)
        rows[f"{name}, valuation"] = concept.transform(Z).round(4)
        counts = rows[name].value_counts()
        for value in captions:
            of = rows[rows[name] == value][f"{name}, valuation"]
            shares.append((name, value, int(counts.get(value, 0)), of.mean(), of.std()))
    columns = ["factor", "value", "images", "mean valuation", "deviation"]
    write_text(args.out / "values.csv", rows.to_csv(index=False))
    load = _loading(args, encoder)
    write_report(
        args.out,
        _OF_WORDS,
        "report_captions.html",
        {"shares": pd.DataFrame(shares, columns=columns)},
        title=f"{args.data.name}, read by captions",
        lead=f"{len(Z):,} images; what each shows is read by the captions in "
        f"{args.captions.name} alone.",
        warnings=[
            "No label was given, so nothing here is judged: look at some images of each value, or "
            "give --labels of a few."
        ],
        none="",
        code=fill("apply_captions.txt", encoder=load, captions=repr(texts), size=args.size),
        command=shlex.join(["conceptnb", "directions", *typed]),
    )


def _loading(args: SimpleNamespace, encoder: "Encoder") -> str:
    """Return the code that loads an encoder, and refuses other weights."""
    given = {"architecture": args.architecture, "weights": encoder.weights}
    said = "".join(f", {key}={value!r}" for key, value in given.items() if value)
    return f"load_encoder({args.encoder!r}{said})"


def _read_images(
    args: SimpleNamespace,
) -> "tuple[Array, pd.DataFrame, PCA | None, str, Encoder | None]":
    """Return embeddings of images, labels, what made them of pixels, code for new ones, encoder."""
    import numpy as np  # noqa: PLC0415 - what only a run needs

    from conceptnb.embeddings.own_images import fit_pixel_components, read_images  # noqa: PLC0415

    images, labels = read_images(
        args.data,
        args.labels,
        column=args.file_column or "file",
        factors=args.factors,
        size=args.size,
    )
    if args.encoder:
        from conceptnb.embeddings.clip import load_encoder  # noqa: PLC0415 - brings torch

        encoder = load_encoder(args.encoder, architecture=args.architecture)
        parts = [encoder.embed_images(images[i : i + 64]) for i in range(0, len(images), 64)]
        code = f"{_loading(args, encoder)}.embed_images(images)"
        return np.concatenate(parts).astype(float), labels, None, code, encoder
    components, Z = fit_pixel_components(images)
    return Z, labels, components, "images.reshape(len(images), -1) / 255", None
