"""``conceptnb train-clip vit|resnet``: train a small CLIP model and record what it took."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from conceptnb.results.runner import _check_out, _refuse_outside


def run(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Train, and write half-precision weights and the record of the training."""
    args = parser.parse_args(words)
    out = args.out or Path(f"shapes-{args.kind}.safetensors")
    if out.suffix != ".safetensors":
        raise ValueError(f"--out {out} has to end in .safetensors: that is what is written")
    for file in (out, out.with_suffix(".json")):
        _check_out(file, args.force)
    _refuse_outside("steps", args.steps, {})
    if args.checkpoint is not None:
        _check_out(args.checkpoint, replace=True, option="--checkpoint")
    import numpy as np  # noqa: PLC0415 - a command loads what it needs when it runs
    from safetensors.torch import save_file  # noqa: PLC0415

    from conceptnb.common.files import write_text  # noqa: PLC0415
    from conceptnb.embeddings import clip  # noqa: PLC0415

    plan = None if args.steps is None else clip.TrainingPlan(cycles=(clip.Cycle(args.steps),))
    training = clip.ClipTraining(args.kind, plan)
    if args.checkpoint is not None and args.checkpoint.exists():
        training.load(args.checkpoint)
    training.run(args.checkpoint)
    state = training.model.state_dict().items()
    save_file({k: (v.half() if v.is_floating_point() else v).contiguous() for k, v in state}, out)
    steps = f" --steps {args.steps}" if args.steps else ""
    record = {
        "command": f"conceptnb train-clip {args.kind}{steps}",
        "steps": training.step,
        "batch_size": training.plan.batch_size,
        "seed": training.plan.seed,
        "parameters": sum(p.numel() for p in training.model.parameters()),
        "final_loss": round(float(np.mean(training.losses[-100:])), 4),
        "cpu_seconds": round(training.cpu_seconds, 1),
    }
    write_text(out.with_suffix(".json"), json.dumps(record, indent=1) + "\n")
    print(f"wrote {out} and {out.with_suffix('.json')}")
    return 0
