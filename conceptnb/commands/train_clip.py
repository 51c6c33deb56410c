"""``conceptnb train-clip vit|resnet``: train a small CLIP model and record what it took."""

import json
from pathlib import Path

import click

from conceptnb.commands.options import COUNT, PATH, choice, command, force, option
from conceptnb.common.files import refuse_output


@command(
    "train-clip",
    "train one of the two small CLIP models on rendered images",
    click.Argument(["kind"], type=choice("vit", "resnet")),
    option("--steps", type=COUNT, help="length of the training; the recipe's by default"),
    option(
        "--out",
        type=PATH,
        help="the weights to write, by default shapes-KIND.safetensors in this folder; beside "
        "them a JSON file of the same name says how they were trained",
    ),
    option("--checkpoint", type=PATH, help="keeps the training; resumed if it exists"),
    force("the files of --out"),
)
def train_clip(
    kind: str, steps: int | None, out: Path | None, checkpoint: Path | None, force: bool
) -> None:
    """Train, and write half-precision weights and the record of the training."""
    out = out or Path(f"shapes-{kind}.safetensors")
    if out.suffix != ".safetensors":
        raise ValueError(f"--out {out} has to end in .safetensors: that is what is written")
    for file in (out, out.with_suffix(".json")):
        refuse_output(file, force)
    if checkpoint is not None:
        refuse_output(checkpoint, replace=True, option="--checkpoint")
    import numpy as np  # noqa: PLC0415 - a command loads what it needs when it runs
    from safetensors.torch import save_file  # noqa: PLC0415

    from conceptnb.common.files import write_text  # noqa: PLC0415
    from conceptnb.embeddings import clip  # noqa: PLC0415

    plan = None if steps is None else clip.TrainingPlan(cycles=(clip.Cycle(steps),))
    training = clip.ClipTraining(kind, plan)
    if checkpoint is not None and checkpoint.exists():
        training.load(checkpoint)
    training.run(checkpoint)
    state = training.model.state_dict().items()
    save_file({k: (v.half() if v.is_floating_point() else v).contiguous() for k, v in state}, out)
    length = f" --steps {steps}" if steps else ""
    record = {
        "command": f"conceptnb train-clip {kind}{length}",
        "steps": training.step,
        "batch_size": training.plan.batch_size,
        "seed": training.plan.seed,
        "parameters": sum(p.numel() for p in training.model.parameters()),
        "final_loss": round(float(np.mean(training.losses[-100:])), 4),
        "cpu_seconds": round(training.cpu_seconds, 1),
    }
    write_text(out.with_suffix(".json"), json.dumps(record, indent=1) + "\n")
    print(f"wrote {out} and {out.with_suffix('.json')}")
