"""Ratios of the command line: what a user waits for before the first word."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.measure import Benchmark


def benchmarks() -> list[Benchmark]:
    """Return the comparisons of this part."""
    return [
        Benchmark(
            "import conceptnb and its command line",
            "import torch",
            lambda: _import_seconds("conceptnb, conceptnb.commands.cli"),
            lambda: _import_seconds("torch"),
            at_least=5,
        )
    ]


def _import_seconds(modules: str) -> float:
    """Return the CPU seconds that a new interpreter spends on importing modules."""
    code = (
        f"import time; start = time.process_time(); import {modules}; "
        "print(time.process_time() - start)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return float(done.stdout)
