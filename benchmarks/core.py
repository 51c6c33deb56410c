"""Ratios of `conceptnb.core`: rejection sampling."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import Benchmark, cpu_seconds
from conceptnb.core.concepts import Concept
from conceptnb.core.distributions import random_mixture, sample_one, sample_rejection


def benchmarks() -> list[Benchmark]:
    """Return the comparisons of this part."""
    rng = np.random.default_rng(0)
    base = random_mixture(3, rng)
    A = rng.standard_normal((1, 3)) / np.sqrt(3)
    concept = Concept(A, A @ base.sample(1, rng)[0])
    few, many = 300, 200_000
    return [
        Benchmark(
            "rejection in batches, per sample",
            "Algorithm 1 line by line, per sample",
            cpu_seconds(lambda: sample_rejection(base, concept, 0.5, many, rng), many),
            cpu_seconds(lambda: [sample_one(base, concept, 0.5, rng) for _ in range(few)], few),
            at_least=20,
        )
    ]
