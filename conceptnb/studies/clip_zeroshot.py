"""``conceptnb reproduce clip-zeroshot``: the shipped CLIP models on unseen combinations."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np

from conceptnb.embeddings import clip, shapes3d
from conceptnb.results.runner import Plan, Row, Sample, Task

_SEED = 1


def _runs(kind: str, seed: int, images: int, labels: str = "true") -> list[Row]:
    """Return accuracies by factor, trained and untrained; "shuffled" labels are a wrong method."""
    rng = np.random.default_rng(seed)
    factors = shapes3d.sample_factors(15 * images, rng)
    held_out = shapes3d.held_out_combinations(factors)
    shapes = shapes3d.RenderedShapes(clip.SMALL_SIZE)
    rows: list[Row] = []
    for weights, seen in (("trained", True), ("trained", False), ("untrained", False)):
        name = f"small-{kind}" + ("-untrained" if weights == "untrained" else "")
        model, kept = clip.load_encoder(name), factors[held_out != seen][:images]
        Z = clip.embed_images(model, shapes, shapes3d.factors_to_index(kept))
        by_mean = clip.zero_shot(model, Z, rng)
        by_caption = clip.best_captions(model, Z, by_mean)
        if labels == "shuffled":
            kept = np.roll(kept, 1, axis=0)
        best, mean = clip.accuracies(by_caption, kept), clip.accuracies(by_mean, kept)
        rows += [
            {
                "kind": kind,
                "weights": weights,
                "combinations": "trained on" if seen else "held out",
                "factor": factor,
                "accuracy": round(best[factor], 4),
                "accuracy_mean_captions": round(mean[factor], 4),
                "tolerance": clip.TOLERANCE.get(factor, 0),
                "seed": seed,
            }
            for factor in shapes3d.FACTORS
        ]
    return rows


def _summarise(runs: list[Row]) -> list[Row]:
    return [{key: value for key, value in row.items() if key != "seed"} for row in runs]


def _training(kind: str) -> dict[str, Any]:
    """Return the record of the training, and the size of the weights."""
    record = json.loads(clip.WEIGHTS[kind].with_suffix(".json").read_text(encoding="utf-8"))
    return record | {"bytes": clip.WEIGHTS[kind].stat().st_size}


def plans(args: SimpleNamespace) -> list[Plan]:
    """Return the results files that the options ask for."""
    tasks = [
        Task(_runs, {"seed": _SEED, "images": args.images, "kind": kind})
        for kind in clip.SMALL_KINDS
    ]
    return [
        Plan(
            file="clip_zeroshot",
            tasks=tasks,
            summarise=_summarise,
            seeds=[_SEED],
            notes={
                "what": "zero-shot accuracy of small CLIP models trained here on rendered images; "
                "not OpenAI's CLIP and not the published 3D Shapes",
                "images_per_row": args.images,
                "accuracy": "of the values named by the caption that fits best; beside it by "
                "classes that are means over captions",
                "training": {kind: _training(kind) for kind in clip.SMALL_KINDS},
            },
            sample=Sample(
                task=tasks[0],
                columns=("accuracy", "accuracy_mean_captions"),
                by=("kind", "weights", "combinations"),
                wrong={"labels shuffled": tasks[0].but(labels="shuffled")},
            ),
        )
    ]
