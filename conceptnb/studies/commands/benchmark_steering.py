"""``conceptnb benchmark steering``: what steering costs in CPU-seconds."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from conceptnb import results
from conceptnb.steering.scoring import Steering
from conceptnb.steering.worlds.language_models import make_tokenizer
from conceptnb.steering.worlds.toy_corpora import make_world
from conceptnb.studies import steering_benchmark as benchmarks

MODULES = [f"conceptnb.steering.{m}" for m in ("benchmarks", "intervention", "matrices", "scoring")]
_ALPHAS = (1.0, 2.0, 3.0, 4.0, 6.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--repeats", type=int, default=7, help="runs of each kind, in turns")
    parser.add_argument("--tokens", type=int, default=8, help="tokens generated, at one run")


def run(args: argparse.Namespace) -> int:
    """Measure, print and keep."""
    started = time.process_time()
    rows = [*choice(max(3, args.repeats // 3)), generation(args.repeats, args.tokens)]
    for row in rows:
        print(row)
    path = results.save(
        "steering_benchmark",
        rows,
        command=f"conceptnb benchmark steering --repeats {args.repeats} --tokens {args.tokens}",
        modules=MODULES,
        seeds=[0],
        cpu_seconds=time.process_time() - started,
        notes={"model": "random weights; 24 layers of width 896 where tokens are generated"},
    )
    print(path)
    return 0


def generation(repeats: int, tokens: int) -> dict[str, Any]:
    """Time a token of half a billion parameters, plain and under a steering matrix of 48 heads."""
    world = make_world("no-source")
    texts = [question.text for question in world.questions()]
    model = benchmarks.half_billion()
    steering = benchmarks.random_matrix(model, texts, 48, 1.0, np.random.default_rng(0))
    ids = torch.arange(3, 11)[None]
    plain, steered = benchmarks.generation_seconds(
        model, ids, texts[0], steering, tokens, repeats, progress=True
    )
    what = f"generate, {tokens} tokens, steering matrix on 48 heads of 336"
    return _row(what, model, plain, steered, "CPU-seconds a token")


def choice(repeats: int) -> list[dict[str, Any]]:
    """Time multiple choice on 24 questions: every pair whole, and with shared prompts."""
    world = make_world("no-source")
    tokenizer = make_tokenizer(world)
    questions = world.questions()[::4]
    model = benchmarks.random_llama(len(tokenizer), torch.Generator().manual_seed(0))
    rng = np.random.default_rng(0)
    matrix = benchmarks.random_matrix(model, [q.text for q in questions], 16, 1.0, rng)
    grid: list[Steering | None] = [None, *(replace(matrix, alpha=alpha) for alpha in _ALPHAS)]
    settings: dict[str, tuple[str, list[Steering | None]]] = {
        "question alone, not steered": ("", [None]),
        "question alone, six strengths": ("", grid),
        "four worked examples before it, not steered": (world.document(rng) + " ", [None]),
    }
    rows = []
    for name, (preface, steerings) in settings.items():
        whole, shared, difference = benchmarks.choice_seconds(
            model, tokenizer, questions, steerings, preface, repeats
        )
        what = f"multiple choice, {name}"
        rows.append(_row(what, model, whole, shared, "CPU-seconds", difference))
    return rows


def _row(
    what: str,
    model: torch.nn.Module,
    without: np.ndarray,
    with_it: np.ndarray,
    unit: str,
    difference: float | None = None,
) -> dict[str, Any]:
    """Return medians over the repeats; the ratio is of pairs that were measured together."""
    return {
        "what": what,
        "parameters": sum(p.numel() for p in model.parameters()),
        "without": float(np.median(without)),
        "with": float(np.median(with_it)),
        "unit": unit,
        "ratio": float(np.median(with_it / without)),
        "repeats": len(without),
        "largest difference": difference,
    }
