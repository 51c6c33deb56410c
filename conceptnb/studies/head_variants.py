"""``conceptnb reproduce variants``: heads and losses compared, and n chosen: Step 3, (87), (88)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, astuple, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from conceptnb.common.validation import Array
from conceptnb.core.problems import TABLE_1
from conceptnb.learning.data import stack
from conceptnb.learning.fitting import fit, smallest_of_the_best
from conceptnb.learning.losses import contrastive_losses
from conceptnb.learning.recipes import Recipe
from conceptnb.learning.training import TrainingConfig
from conceptnb.results.runner import Plan, Row, Sample, Task
from conceptnb.results.show import Table, means
from conceptnb.results.summarise import grouped, summary
from conceptnb.studies.scored_fits import (
    consecutive_seeds,
    draw_problems,
    fit_and_score,
    setting_columns,
    shortened,
    spoilt_tasks,
)

__all__ = ["VARIANTS", "plans", "variant_table"]

_COMMON = Recipe(
    whitening="plain",
    skip=True,
    starts=4,
    training=TrainingConfig(epochs=60, batch_size=512, encoder_rate=0.02, head_rate=0.05, l1=0.0),
)
"""Whitened observations, and four random starts of which the best held-out loss is kept."""


def _variant(head: Any, loss: Any, l1: float = 0.0) -> Recipe:
    return replace(_COMMON, head=head, training=replace(_COMMON.training, loss=loss, l1=l1))


VARIANTS = {
    "general head, binary": _variant("general", "binary"),
    "general head, binary, L1": _variant("general", "binary", 1e-3),
    "general head, softmax, L1": _variant("general", "softmax", 1e-3),
    "known targets, binary": _variant("targets", "binary"),
    "known targets, softmax": _variant("targets", "softmax"),
    "tied β, binary": _variant("tied", "binary"),
    "tied β, softmax": _variant("tied", "softmax"),
}
"""From the head as printed in (87), trained by (88), to that of the best recipe."""
_SETTINGS = (TABLE_1[2], TABLE_1[1])
"""Linear (3, 4, 6), where starts get stuck, and the smallest nonlinear row."""
_CANDIDATES = [1, 2, 3, 4, 5]  # numbers of concepts to choose among, for the first of the settings


def variant_table(rows: Sequence[Row]) -> Table:
    """Return scores of every variant for display, mean ± std over seeds."""
    columns = {"R²": "r2", "MCC": "mcc", "excess loss": "excess_loss"}
    return Table(
        [
            {"mixing": row["mixing"], "variant": row["variant"]} | means(row, columns)
            for row in rows
        ],
        ".3f",
    )


def _fit_variant(
    setting: list[Any],
    variant: str,
    seeds: list[int],
    samples: int,
    epochs: int | None = None,
    wrong: str | None = None,
) -> list[Row]:
    recipe = shortened(VARIANTS[variant], epochs)
    problems = draw_problems(setting, seeds, samples)
    rows = fit_and_score(problems, lambda seen: fit(seen, recipe), wrong=wrong)
    return [{"study": "variants", "variant": variant} | row for row in rows]


def _choose_n(
    setting: list[Any],
    candidates: list[int],
    seeds: list[int],
    samples: int,
    epochs: int | None = None,
) -> list[Row]:
    """Choose the number of concepts by held-out loss of the general head alone (Step 3)."""
    recipe = shortened(VARIANTS["general head, softmax, L1"], epochs)
    problems = draw_problems(setting, seeds, samples)
    environment = problems[0].environment
    oracle = _held_out_losses(np.stack([p.log_odds() for p in problems]), environment)
    X = np.stack([p.X for p in problems])
    losses = np.stack(
        [
            _held_out_losses(fit(problems, recipe, n_concepts=n).log_odds(X), environment)
            for n in candidates
        ]
    )  # (candidates, problems, rows)
    chosen = [smallest_of_the_best(losses[:, k]) for k in range(len(problems))]
    return [
        {"study": "number", "variant": f"n = {n}", **setting_columns(problem.setting)}
        | {
            "seed": problem.seed,
            "excess_loss": round(float((losses[i, k] - oracle[k]).mean()), 6),
            "chosen": chosen[k] == i,
        }
        for i, n in enumerate(candidates)
        for k, problem in enumerate(problems)
    ]


def _held_out_losses(log_odds: Array, environment: np.ndarray) -> Array:
    """Softmax loss of every held-out row, shape (problems, rows)."""
    held = stack(list(log_odds), environment, dtype=torch.float64).split()[1]
    return contrastive_losses(held.x, held, "softmax").numpy()


def _rows(runs: list[Row]) -> list[Row]:
    by = ("study", "variant", "mixing", "n", "dz", "dx")
    fits, choices = (
        [run for run in runs if run["study"] == study] for study in ("variants", "number")
    )
    numbers = summary(choices, by, ["excess_loss"])
    for row, own in zip(numbers, grouped(choices, by).values(), strict=True):
        row["chosen"] = sum(run["chosen"] for run in own)
    return summary(fits, by, ["r2", "mcc", "excess_loss"], ["cpu_seconds"]) + numbers


def plans(args: SimpleNamespace) -> list[Plan]:
    """Return the results files that the options ask for."""
    seeds = consecutive_seeds(args.seeds)
    settings = [list(astuple(s)) for s in _SETTINGS]
    common: dict[str, Any] = {"seeds": seeds, "samples": args.samples}
    tasks = [
        Task(_fit_variant, {"setting": setting, "variant": name, **common})
        for setting in settings
        for name in VARIANTS
    ]
    task = tasks[list(VARIANTS).index("tied β, softmax")]
    free = {"β free in each environment": task.but(variant="known targets, softmax")}
    choice = Task(_choose_n, {"setting": settings[0], "candidates": _CANDIDATES, **common})
    return [
        Plan(
            file="synthetic_variants",
            tasks=[*tasks, choice],
            summarise=_rows,
            seeds=seeds,
            notes={
                "samples": args.samples,
                "recipe": asdict(_COMMON),
                "data": "synthetic, drawn as in Appendix G; the authors' environments",
                "scores": "on 5000 fresh base samples; losses in nats per row",
            },
            sample=Sample(
                task,
                ("r2", "mcc", "held_out_loss", "excess_loss"),
                spoilt_tasks(task) | free,
                by=("mixing", "study"),
            ),
        )
    ]
