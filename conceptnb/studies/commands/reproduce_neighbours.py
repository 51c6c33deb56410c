"""``conceptnb reproduce neighbours``: what is found without labels in the small models' states."""

from __future__ import annotations

import argparse
import time

from tqdm.auto import tqdm

from conceptnb import results
from conceptnb.steering.worlds.language_models import trained_models
from conceptnb.studies.language_components import Row, compare_states, summary

_LEARNER = "best clusters data encoders fitting heads learner linear model training"
MODULES = [
    "conceptnb.neighbours",
    "conceptnb.data.worlds",
    *(f"conceptnb.learning.{module}" for module in _LEARNER.split()),
    *(f"conceptnb.embeddings.directions.{module}" for module in ("estimator", "evaluation")),
    *(f"conceptnb.steering.{module}" for module in ("questions", "spans", "training", "world")),
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no option: nine models, and nine untrained ones, take three minutes."""
    del parser


def run(args: argparse.Namespace) -> int:
    """Compare all methods on every small model and write their rows."""
    del args
    started = time.process_time()
    rows = [
        row
        for kind, seed in tqdm(trained_models(), desc="models")
        for trained in (True, False)
        for row in compare_states(kind, seed, trained)
    ]
    table = summary(rows)
    notes = {
        "model": "small Llamas trained on invented worlds, not a large language model",
        "scores": "η² of the matched component on questions that it was not matched on",
        "seeds": "of the model, which also seeds the halves and the solvers",
    }
    kept: dict[str, tuple[list[Row], Row]] = {
        "neighbours_runs": (rows, {"summarised_in": "neighbours"}),
        "neighbours": (table, {"rows_on_page": 24}),  # trained models, the smaller size
    }
    for name, (content, note) in kept.items():
        path = results.save(
            name,
            content,
            command=results.command_line(),
            modules=MODULES,
            seeds=sorted({seed for _, seed in trained_models()}),
            cpu_seconds=time.process_time() - started,
            notes=notes | note,
        )
        print(path)
    return 0
