"""The cells of a study: one run of each is what a verification computes again.

This file imports nothing of the package, because `conceptnb.results.one_run` reads it in the trees
of earlier commits, too.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conceptnb.results.runner import Plan, Task

_SEEDS = ("seed", "seeds")


@dataclass(frozen=True)
class Stratum:
    """The tasks of a plan that differ in their seeds alone: a setting with a learner."""

    number: int
    """Its place among the strata of the plan, from 0."""
    tasks: tuple[Task, ...]
    sampled: bool = False
    """Whether it holds the plan's own sample, which takes seconds."""

    def one_run(self, rng: random.Random) -> Task:
        """Return a task of one seed, drawn from all of the stratum."""
        task = rng.choice(self.tasks)
        seeds = task.arguments.get("seeds")
        return task.but(seeds=[rng.choice(seeds)]) if isinstance(seeds, list) else task

    @property
    def runs(self) -> int:
        """How many runs of one seed it holds."""
        seeds = [task.arguments.get("seeds") for task in self.tasks]
        return sum(len(each) if isinstance(each, list) else 1 for each in seeds)


def strata(plan: Plan) -> list[Stratum]:
    """Return the strata of a plan, in the order of its tasks."""
    groups: dict[str, list[Task]] = {}
    for task in plan.tasks:
        groups.setdefault(_cell(task), []).append(task)
    sampled = _cell(plan.sample.task) if plan.sample else ""
    pairs = enumerate(groups.items())
    return [Stratum(i, tuple(tasks), cell == sampled) for i, (cell, tasks) in pairs]


def _cell(task: Task) -> str:
    plain = {key: value for key, value in task.arguments.items() if key not in _SEEDS}
    return f"{task.compute.__qualname__} {json.dumps(plain, sort_keys=True, default=str)}"
