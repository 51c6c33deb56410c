"""``conceptnb reproduce steering``: Table 6 on the small worlds, or on a real model."""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from conceptnb import results
from conceptnb.steering.methods import METHODS, SENTENCE_BERT, category_oracle
from conceptnb.steering.truthfulqa import edition, find_truthfulqa, read_truthfulqa
from conceptnb.steering.worlds.language_models import load_trained, trained_models
from conceptnb.steering.worlds.toy_corpora import KINDS
from conceptnb.studies.steering_analysis import select
from conceptnb.studies.steering_cost import estimate
from conceptnb.studies.steering_study import Plan, Study
from conceptnb.studies.steering_tables import summary

_NUMBERS_COME_FROM = (
    "activations analysis divergence embeddings heads intervention matrices methods "
    "probes questions scoring spans study tables vectors world"
)
MODULES = [
    "conceptnb.data.worlds",
    *(f"conceptnb.steering.{m}" for m in _NUMBERS_COME_FROM.split()),
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--out", type=Path, help="JSON file to write; by default in results/")
    parser.add_argument("--checkpoints", type=Path, help="folder to keep finished stages in")
    parser.add_argument("--split-seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--heads", type=int, nargs="+", help="numbers of heads K to choose from")
    parser.add_argument("--alpha", type=float, nargs="+", help="strengths α to choose from")
    real = parser.add_argument_group("a real model", "without --model the small worlds are run")
    real.add_argument("--model", help="name on the hub, or directory, of a causal language model")
    real.add_argument("--data", default="truthfulqa", help="'truthfulqa', or a file of its format")
    real.add_argument("--texts", help="neutral texts: a file, one a line, or a data set's name")
    real.add_argument("--dtype", default="auto", choices=["auto", "float32", "float16", "bfloat16"])
    real.add_argument("--device-map", help="as in transformers, for instance 'auto' (accelerate)")
    real.add_argument("--sentence-bert", action="store_true", help="also embed by Sentence-BERT")
    real.add_argument("--batch-size", type=int, default=8)
    real.add_argument("--yes", action="store_true", help="start without asking")


def run(args: argparse.Namespace) -> int:
    """Run the study asked for and write its rows."""
    return run_worlds(args) if args.model is None else run_model(args)


def run_worlds(args: argparse.Namespace) -> int:
    """Every method on every small world and model seed."""
    rows: list[dict[str, Any]] = []
    spent = 0.0
    for kind, seed in trained_models():
        folder = _inside(args.checkpoints, f"{kind}-{seed}")
        study = world_study(kind, seed, make_plan(args), folder)
        rows += [{"world": kind, "model_seed": seed, **row} for row in study.run()]
        spent += study.cpu_seconds
        print(f"{kind}, model seed {seed}: done", file=sys.stderr)
    notes = {
        "model": "small Llamas trained on invented worlds, not LLaMA-7B",
        "data": "invented questions, not TruthfulQA",
        "kl": "KL(original ‖ steered), nats a token, on neutral stories of the world; "
        "kl_asked: the same under the edit of a tested question",
    }
    name = args.out.stem if args.out else "steering"
    _save(args, f"{name}_runs", rows, spent, {**notes, "summarised_in": name})
    worlds = {kind: select(rows, world=kind) for kind in KINDS}
    table = summary({kind: found for kind, found in worlds.items() if found})
    shown = {"paper_table": "table6", "rows_on_page": len(table)}
    return _save(args, name, table, spent, {**notes, **shown})


def world_study(
    kind: str, seed: int, plan: Plan | None = None, checkpoints: Path | None = None
) -> Study:
    """Return the study of one small model: its questions, 8 neutral stories, every method."""
    world, model, tokenizer = load_trained(kind, seed)
    questions = world.questions()
    stories = list(itertools.islice(world.stories(np.random.default_rng(99)), 8))
    methods = METHODS | category_oracle(questions)
    return Study(model, tokenizer, questions, stories, methods, plan, checkpoints, progress=True)


def run_model(args: argparse.Namespace) -> int:
    """Every method on a real model and TruthfulQA."""
    path = find_truthfulqa(None if args.data == "truthfulqa" else args.data)
    questions = read_truthfulqa(path)
    texts = _neutral_texts(args.texts)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    config = AutoConfig.from_pretrained(args.model)
    stored = getattr(config, "dtype", None) or torch.float32
    dtype = stored if args.dtype == "auto" else getattr(torch, args.dtype)
    methods = METHODS | category_oracle(questions) | (SENTENCE_BERT if args.sentence_bert else {})
    plan = make_plan(args, heads=(48,), alphas=(15.0,), batch_size=args.batch_size)
    print(f"{path}: {edition(questions, path)}")
    print(estimate(args.model, tokenizer, questions, texts, plan, len(methods), dtype))
    if not args.yes and input("start? [y/N] ").strip().lower() != "y":
        return 1
    model = AutoModelForCausalLM.from_pretrained(
        args.model, dtype=dtype, device_map=args.device_map, use_safetensors=True
    ).eval()
    name = "steering-" + "".join(c if c.isalnum() else "-" for c in Path(args.model).name)
    folder = args.checkpoints or Path(f"{name}-checkpoints")
    study = Study(model, tokenizer, questions, texts, methods, plan, folder, progress=True)
    rows = [{"world": Path(args.model).name, "model_seed": 0, **row} for row in study.run()]
    notes = {"model": args.model, "data": edition(questions, path), "texts": args.texts}
    return _save(args, args.out.stem if args.out else name, rows, study.cpu_seconds, notes)


def make_plan(
    args: argparse.Namespace,
    heads: tuple[int, ...] | None = None,
    alphas: tuple[float, ...] | None = None,
    batch_size: int = 64,
) -> Plan:
    """Return the plan that the options describe, with defaults where they say nothing."""
    usual = Plan()
    return Plan(
        heads=tuple(args.heads) if args.heads else heads or usual.heads,
        alphas=tuple(args.alpha) if args.alpha else alphas or usual.alphas,
        folds=args.folds,
        seeds=tuple(args.split_seeds),
        batch_size=batch_size,
    )


def _neutral_texts(source: str | None, count: int = 100) -> list[str]:
    """Return the first hundred neutral texts of a file or of a data set's column ``text``."""
    if source is None:
        raise ValueError(
            "--texts is missing: cross-entropy and KL need neutral text; give a file with one "
            "text a line, or the name of a data set with a column 'text'"
        )
    if Path(source).is_file():
        lines = Path(source).read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.strip()][:count]
    try:
        import datasets  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise ValueError(
            f"--texts {source} is no file, and reading it as a data set needs the package datasets"
        ) from error
    stream = datasets.load_dataset(source, split="train", streaming=True)
    return [row["text"] for row in stream.take(count)]


def _inside(folder: Path | None, name: str) -> Path | None:
    return None if folder is None else folder / name


def _save(
    args: argparse.Namespace, name: str, rows: list, spent: float, notes: dict[str, Any]
) -> int:
    """Write one table beside the others, or where ``--out`` says."""
    path = results.save(
        name,
        rows,
        command=results.command_line(),
        modules=MODULES,
        seeds=args.split_seeds,
        cpu_seconds=spent,
        notes=notes,
        where=args.out.parent if args.out else None,
    )
    print(path)
    return 0
