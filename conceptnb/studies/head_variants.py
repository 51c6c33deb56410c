"""Heads and losses compared, and the number of concepts chosen: Step 3, (87) and (88)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch

from conceptnb.core import scores as metrics
from conceptnb.core.problems import Problem, Setting, draw_problem
from conceptnb.core.validation import Array, as_count
from conceptnb.learning.data import stack
from conceptnb.learning.encoders import Encoder, LinearEncoder, MLPEncoder
from conceptnb.learning.fitting import ConceptFit, best_starts, oracle_loss, smallest_of_the_best
from conceptnb.learning.heads import GeneralHead, Head, TargetHead, TiedHead
from conceptnb.learning.losses import softmax_losses
from conceptnb.learning.model import ConceptModel, Whitening
from conceptnb.learning.training import Trainer, TrainingConfig
from conceptnb.results.show import Table

__all__ = ["VARIANTS", "Variant", "choose_n", "compare_variants", "fit_variant", "variant_table"]

STARTS = 4
"""Random starts a problem, of which the best held-out loss is kept."""
TRAINING = TrainingConfig(epochs=60, batch_size=512, encoder_rate=0.02, head_rate=0.05, l1=0.0)


@dataclass(frozen=True)
class Variant:
    """One way to write the head of (87) and to train it.

    Parameters
    ----------
    head : {"general", "targets", "tied"}
        Dense β and γ; known targets, with a β for each environment; known targets and
        β = 1/2.
    loss : {"binary", "softmax"}
        (88), or one softmax over all environments.
    l1 : float
        η of (88).
    """

    head: Literal["general", "targets", "tied"]
    loss: Literal["binary", "softmax"]
    l1: float = 0.0


VARIANTS = {
    "general head, binary": Variant("general", "binary"),
    "general head, binary, L1": Variant("general", "binary", 1e-3),
    "general head, softmax, L1": Variant("general", "softmax", 1e-3),
    "known targets, binary": Variant("targets", "binary"),
    "known targets, softmax": Variant("targets", "softmax"),
    "tied β, binary": Variant("tied", "binary"),
    "tied β, softmax": Variant("tied", "softmax"),
}
"""From the head as printed in (87), trained by (88), to the one of ``fit_best``."""


def fit_variant(
    problems: Sequence[Problem],
    variant: Variant,
    n: int | None = None,
    config: TrainingConfig = TRAINING,
) -> ConceptFit:
    """Fit problems of one setting by a variant, everything else alike.

    Observations are whitened, and the encoder is linear or a network with a linear skip,
    as the mixing is. Four random starts a problem are chosen among by held-out loss.

    Parameters
    ----------
    problems : sequence of D Problem
    variant : Variant
    n : int, optional
        Number of concepts that is assumed, for a general head; the true one by default.
    config : TrainingConfig
        Loss and L1 are the variant's.
    """
    first = problems[0]
    n = first.setting.n if n is None else as_count(n, "n")
    data = stack([p.X for p in problems], first.environment)
    whitening = Whitening.fit(data)
    data = replace(data, x=whitening(data.x))
    seeds = [1000 * p.seed + start for p in problems for start in range(STARTS)]
    encoder: Encoder = (
        LinearEncoder(data.d_x, n, seeds)
        if first.setting.mixing == "linear"
        else MLPEncoder(data.d_x, n, seeds, skip=True)
    )
    targets = torch.as_tensor(first.design.M > 0)
    head: Head
    if variant.head == "general":
        head = GeneralHead(len(seeds), n, data.n_environments)
    else:
        head = (TargetHead if variant.head == "targets" else TiedHead)(len(seeds), targets)
    model = ConceptModel(encoder, head)
    chosen_config = replace(config, loss=variant.loss, l1=variant.l1)
    trainer = Trainer(model, *data.split(), chosen_config)
    trainer.run(progress=False)
    return best_starts(trainer, whitening)


def compare_variants(
    setting: Setting,
    seeds: Sequence[int],
    *,
    samples: int = 1000,
    config: TrainingConfig = TRAINING,
) -> list[dict[str, Any]]:
    """Fit a setting's problems by every variant, and score them on fresh base samples.

    Returns
    -------
    list of dict
        Plain JSON values, a row a variant: R², MCC and the excess of the held-out loss over
        the oracle's of the same kind, mean and population deviation over seeds, and the
        values by seed.
    """
    problems = [draw_problem(setting, seed, samples=samples) for seed in seeds]
    fresh = [p.fresh(5000) for p in problems]
    truth = [p.valuations(Z) for p, Z in zip(problems, fresh, strict=True)]
    X = [p.mixing(Z) for p, Z in zip(problems, fresh, strict=True)]
    odds = [p.log_odds() for p in problems]
    rows = []
    for name, variant in VARIANTS.items():
        started = time.process_time()
        fit = fit_variant(problems, variant, config=config)
        seconds = (time.process_time() - started) / len(problems)
        learned = fit.valuations(X)
        oracle = oracle_loss(odds, problems[0].environment, kind=variant.loss)
        scores = {
            "r2": [metrics.r2(v, h) for v, h in zip(truth, learned, strict=True)],
            "mcc": [metrics.mcc(v, h) for v, h in zip(truth, learned, strict=True)],
            "excess_loss": (fit.held_out_loss.min(axis=1) - oracle).tolist(),
        }
        rows.append(_row(setting, name, scores) | {"cpu_seconds": round(seconds, 3)})
    return rows


def choose_n(
    setting: Setting,
    seeds: Sequence[int],
    candidates: Sequence[int],
    *,
    samples: int = 1000,
    config: TrainingConfig = TRAINING,
) -> list[dict[str, Any]]:
    """Choose the number of concepts by held-out loss alone, which Step 3 says is identifiable.

    The general head is fitted for every candidate. The smallest candidate is chosen whose
    held-out losses, row by row, are not above those of the best one by more than two
    standard errors of their difference.

    Returns
    -------
    list of dict
        A row a candidate: excess loss, mean and deviation over seeds, and ``chosen``, how
        many problems chose it.
    """
    problems = [draw_problem(setting, seed, samples=samples) for seed in seeds]
    environment = problems[0].environment
    X = [p.X for p in problems]
    odds = np.stack([p.log_odds() for p in problems])
    oracle = _held_out_losses(odds, environment)
    losses = np.stack(
        [
            _held_out_losses(
                fit_variant(problems, Variant("general", "softmax", 1e-3), n, config).log_odds(X),
                environment,
            )
            for n in candidates
        ]
    )  # (candidates, problems, rows)
    chosen = [smallest_of_the_best(losses[:, k]) for k in range(len(problems))]
    rows = []
    for i, n in enumerate(candidates):
        scores = {"excess_loss": (losses[i] - oracle).mean(axis=1).tolist()}
        rows.append(_row(setting, f"n = {n}", scores) | {"chosen": chosen.count(i)})
    return rows


def _held_out_losses(log_odds: Array, environment: np.ndarray) -> Array:
    """Softmax loss of every held-out row, shape (problems, rows)."""
    data = stack(list(log_odds), environment, dtype=torch.float64)
    held = data.split()[1]
    return softmax_losses(held.x, held.environment, held.log_prior).numpy()


def _row(setting: Setting, name: str, scores: dict[str, list[float]]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "variant": name,
        "mixing": setting.mixing,
        "n": setting.n,
        "dz": setting.d_z,
        "dx": setting.d_x,
    }
    for key, values in scores.items():
        row[f"{key}_mean"] = round(float(np.mean(values)), 5)
        row[f"{key}_std"] = round(float(np.std(values)), 5)
    return row | {"by_seed": {key: np.round(values, 5).tolist() for key, values in scores.items()}}


def variant_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return rows of :func:`compare_variants` for display, mean ± std over seeds."""
    columns = {"R²": "r2", "MCC": "mcc", "excess loss": "excess_loss"}
    return Table(
        [
            {"mixing": row["mixing"], "variant": row["variant"]}
            | {label: [row[f"{key}_mean"], row[f"{key}_std"]] for label, key in columns.items()}
            for row in rows
        ],
        ".3f",
    )
