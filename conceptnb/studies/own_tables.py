"""``conceptnb reproduce own-tables``: how often a report's warnings are missed, and false.

Tables of the example of chapter 18, drawn anew: a base and four environments, two concepts in four
latent dimensions, a random linear mixing into four columns or, in every other table, six. The
thresholds of the warnings were chosen on the seeds 0 to 199, which are none of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from conceptnb.core.example_data import LOOKED_FOR, draw_environments
from conceptnb.core.scores import match_columns
from conceptnb.learning.environment_tables import ConceptReport, from_arrays, learn_concepts
from conceptnb.results.runner import Plan, Row, Sample, Task
from conceptnb.results.summarise import grouped

_ROWS = 400
_FIRST, _BLOCK = 1000, 10  # seed, and seeds of a task
SAID = {
    "an environment is changed": ("outside the range", "farther from", "more than", "overlap"),
    "an index among the columns": ("looks like an index",),
    "codes for missing values": ("a code for missing",),
    "one valuation only": ("nearly the same valuation",),
    "few rows": ("halves disagree",),
}
"""Faults, and what a warning of each says. Of few rows, the fault is a concept not learned."""
_BEFORE_THE_FIT = ("an index among the columns", "codes for missing values")
_LEARNED, _NOT_LEARNED = 0.95, 0.9
"""Correlation with the truth, of the worst concept, above and below which it counts as such."""


def table_runs(fault: str, seeds: Sequence[int], shift: Sequence[float] = (0.2, 0.5)) -> list[Row]:
    """Return a row per table: which faults its warnings name, and the worst correlation.

    A changed environment is moved by a number of the columns' standard deviations between those of
    `shift`, by a sign of its own in each column.
    """
    return [_run(fault, seed, shift) for seed in seeds]


def _run(fault: str, seed: int, shift: Sequence[float]) -> Row:
    rng = np.random.default_rng([seed, [*SAID, "none"].index(fault)])
    columns = 4 + 2 * (seed % 2)
    rows = int(rng.integers(20, 60)) if fault == "few rows" else _ROWS
    truth, X, environment = draw_environments(rng, rows, columns, equal="valuation" in fault)
    if fault == "an environment is changed":
        moved = rng.uniform(shift[0], shift[1]) * X.std(axis=0) * rng.choice([-1, 1], size=columns)
        X[environment == 3] += moved
    if fault == "codes for missing values":
        lost = rng.choice(len(X), rng.integers(1, 10), replace=False)
        X[lost, rng.integers(columns)] = rng.choice([-999, 999, 9999])
    if fault == "an index among the columns":
        X = np.column_stack([X, np.arange(len(X)) + rng.integers(1000)])
    table = from_arrays(X, [f"e{e}" for e in environment], "e0")
    looked_for = {f"e{e}": concepts for e, concepts in enumerate(LOOKED_FOR.values(), start=1)}
    warnings, worst = table.suspicious_columns(), None
    if fault not in _BEFORE_THE_FIT:
        report: ConceptReport = learn_concepts(table, looked_for)
        warnings = report.warnings
        worst = round(float(np.abs(match_columns(truth, report.valuations)[2]).min()), 4)
    said = {
        name: any(part in line for line in warnings for part in parts)
        for name, parts in SAID.items()
    }
    return {"fault": fault, "seed": seed, "columns": columns, "worst": worst, **said}


def _summarise(runs: list[Row]) -> list[Row]:
    """Return a row per fault: tables, the share that is missed, and of false alarms."""
    by_fault = {key[0]: group for key, group in grouped(runs, ["fault"]).items()}
    rows = []
    for name in SAID:
        faulty, clean = by_fault[name], by_fault["none"]
        if name == "few rows":
            clean = [run for run in faulty if run["worst"] > _LEARNED]
            faulty = [run for run in faulty if run["worst"] < _NOT_LEARNED]
        missed, false = (np.mean([run[name] for run in some]) for some in (faulty, clean))
        rows.append({
            "fault": name, "tables": len(faulty), "missed": round(1 - float(missed), 4),
            "clean": len(clean), "false": round(float(false), 4),
        })  # fmt: skip
    return rows


def plans(args: SimpleNamespace) -> list[Plan]:
    """Return the results files that the options ask for."""
    seeds = range(_FIRST, _FIRST + args.tables)
    blocks = [[*seeds[k : k + _BLOCK]] for k in range(0, args.tables, _BLOCK)]
    changed = next(iter(SAID))
    tasks = [
        Task(table_runs, {"fault": fault, "seeds": block})
        for fault in ("none", *SAID)
        for block in blocks
    ]
    notes: dict[str, Any] = {
        "what": "synthetic tables; warnings of conceptnb.learning.environment_tables",
        "rows": f"{_ROWS} per environment; between 20 and 59 where they are few",
        "columns": "4, as many as latent dimensions, or 6 in every other table",
        "changed": "one of four environments, by .2 to .5 standard deviations in each column",
        "few rows": f"missed: a concept's correlation with the truth is below {_NOT_LEARNED}; "
        f"false: all are above {_LEARNED}",
    }
    sampled = Task(table_runs, {"fault": changed, "seeds": blocks[0]})
    wrong = {"nothing is changed": sampled.but(shift=[0.0, 0.0])}
    sample = Sample(sampled, (changed,), wrong)
    return [Plan("own_tables", tasks, _summarise, seeds, notes, sample)]
