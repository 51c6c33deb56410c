from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings

# Examples are derived from the test's name, so that a run can be repeated.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("repeatable")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20241210)
