from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import settings

from conceptnb.results import Result

# Examples are derived from the test's name, so that a run can be repeated. The weekly run has
# others each time, `--hypothesis-profile=fuzz`; none may take ten seconds.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=40)
settings.register_profile("fuzz", deadline=10_000, max_examples=1550, print_blob=True)
settings.load_profile("repeatable")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20241210)


def without_times(value):
    """Return rows, runs or a whole table as plain values, without what differs from run to run."""
    times = ("cpu_seconds", "wall_seconds", "peak_gb", "computed", "marks", "verified")
    if isinstance(value, Result):
        return without_times(dataclasses.asdict(value))
    if isinstance(value, dict):
        return {key: without_times(v) for key, v in value.items() if key not in times}
    if isinstance(value, list | tuple):
        return [without_times(part) for part in value]
    return value
