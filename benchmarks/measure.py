"""Two ways to do the same work, timed in turn, and the ratio of their costs."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Benchmark:
    """One way to do some work and another that it is compared with.

    Parameters
    ----------
    run, run_against : callable
        Do the work once and return its cost per unit of work, CPU seconds as a rule.
    repeats : int
        How often the pair is measured, after one run of both.
    at_least : float, optional
        The ratio that the book states: a row below it is marked in the table.
    """

    what: str
    against: str
    run: Callable[[], float]
    run_against: Callable[[], float]
    repeats: int = 5
    at_least: float | None = None


def cpu_seconds(work: Callable[[], object], units: float = 1.0) -> Callable[[], float]:
    """Return a function that does the work once and returns its CPU seconds per unit."""

    def timed() -> float:
        gc.collect()
        start = time.process_time()
        work()
        return (time.process_time() - start) / units

    return timed


def measured(part: str, benchmark: Benchmark, repeats: int | None = None) -> dict[str, Any]:
    """Return how many times as much the other way costs; the ways are measured in turn."""
    repeats = benchmark.repeats if repeats is None else repeats
    if repeats < 1:
        raise ValueError(f"repeats={repeats} has to be positive")
    benchmark.run(), benchmark.run_against()  # first calls import, allocate and compile
    ratios = []
    for _ in range(repeats):
        cost, other = benchmark.run(), benchmark.run_against()
        if min(cost, other) <= 0:
            raise ValueError(
                f"{benchmark.what!r} against {benchmark.against!r} cost {cost} and {other} CPU "
                "seconds: one call has to do more work for the clock to see it"
            )
        ratios.append(other / cost)
    return {
        "part": part,
        "what": benchmark.what,
        "against": benchmark.against,
        "ratio_median": _rounded(statistics.median(ratios)),
        "ratio_min": _rounded(min(ratios)),
        "ratio_max": _rounded(max(ratios)),
        "repeats": repeats,
        "at_least": benchmark.at_least,
    }


def _rounded(ratio: float) -> float:
    return float(f"{ratio:.3g}")
