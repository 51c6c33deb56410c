"""``conceptnb train-clip vit|resnet``: train a small tower and measure it on held-out images."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conceptnb.embeddings.clip.clip_training import Trainer

HELD_OUT_IMAGES = 1000
MODULES = (
    "conceptnb.embeddings.clip.batches",
    "conceptnb.embeddings.clip.small",
    "conceptnb.embeddings.clip.tokenizer",
    "conceptnb.embeddings.clip.clip_training",
    "conceptnb.embeddings.clip.zeroshot",
    "conceptnb.embeddings.shapes3d",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("kind", choices=("vit", "resnet"), help="the tower to train")
    parser.add_argument("--steps", type=int, help="length of the training; the recipe's by default")
    parser.add_argument(
        "--out", type=Path, help="the weights to write (safetensors); the shipped ones by default"
    )
    parser.add_argument(
        "--checkpoint", type=Path, help="where to keep the training; taken up again if it exists"
    )
    parser.add_argument("--results", type=Path, help="folder of the record; results/ by default")


def run(args: argparse.Namespace) -> int:
    """Train, write half-precision weights, and record cost and zero-shot accuracy."""
    from conceptnb.embeddings import clip  # noqa: PLC0415 - a command loads what it needs when it runs

    plan = None if args.steps is None else clip.TrainingPlan(cycles=(clip.Cycle(args.steps),))
    trainer = clip.Trainer(args.kind, plan)
    if args.checkpoint is not None and args.checkpoint.exists():
        trainer.load(args.checkpoint)
    trainer.run(args.checkpoint)
    out = args.out or clip.weights_path(args.kind)
    clip.save_weights(trainer.model, out)
    print(f"wrote {out} and {record(trainer, out, args.results)}")
    return 0


def record(trainer: Trainer, weights: Path, where: Path | None = None) -> Path:
    """Measure the written weights and keep the numbers with the cost of the training.

    Parameters
    ----------
    trainer : the finished training
    weights : the file that was written; its accuracy is what is measured
    where : folder of the record; results/ by default
    """
    import numpy as np  # noqa: PLC0415

    from conceptnb import results  # noqa: PLC0415
    from conceptnb.embeddings import clip, shapes3d  # noqa: PLC0415

    towers = {"trained": clip.load_tower(weights)}
    towers["untrained"] = clip.load_tower(f"small-{trainer.kind}-untrained")
    rng = np.random.default_rng(1)
    factors = shapes3d.sample_factors(15 * HELD_OUT_IMAGES, rng)
    held_out = shapes3d.held_out_combinations(factors)
    shapes = shapes3d.RenderedShapes(clip.SMALL_SIZE)
    rows = []
    for name, seen in (("trained", True), ("trained", False), ("untrained", False)):
        kept = factors[held_out != seen][:HELD_OUT_IMAGES]
        tower = towers[name]
        Z = clip.embed(tower, shapes, shapes3d.factors_to_index(kept), progress=False)
        by_mean = clip.zero_shot_all(tower, Z, rng)
        by_caption = clip.best_captions(tower, Z, by_mean)
        best, mean = clip.accuracies(by_caption, kept), clip.accuracies(by_mean, kept)
        rows += [
            {
                "tower": name,
                "combinations": "trained on" if seen else "held out",
                "factor": factor,
                "accuracy": round(best[factor], 4),
                "accuracy_mean_captions": round(mean[factor], 4),
                "tolerance": clip.TOLERANCE.get(factor, 0),
            }
            for factor in shapes3d.FACTORS
        ]
    return results.save(
        f"train-clip-{trainer.kind}",
        rows,
        command=f"conceptnb train-clip {trainer.kind}",
        modules=MODULES,
        seeds=[trainer.plan.seed],
        cpu_seconds=trainer.cpu_seconds,
        notes={
            "what": "zero-shot accuracy of a small tower trained here on rendered images; "
            "not OpenAI's CLIP and not the published 3D Shapes",
            "steps": trainer.step,
            "batch_size": trainer.plan.batch_size,
            "images_a_row": HELD_OUT_IMAGES,
            "parameters": sum(p.numel() for p in trainer.model.parameters()),
            "bytes": weights.stat().st_size,
            "accuracy": "of the values named by the caption that fits best; beside it by "
            "classes that are means over captions",
            "final_loss": round(float(np.mean(trainer.losses[-100:])), 4),
        },
        where=where,
    )
