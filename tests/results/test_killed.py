"""A command that is killed goes on where it stopped, and ends with the same file."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from conceptnb import results
from tests.conftest import without_times

WORDS = ["reproduce", "theory", "--part", "violations"]


def start(out, jobs=1):
    return subprocess.Popen(
        [sys.executable, "-m", "conceptnb", *WORDS, "--jobs", str(jobs), "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def content(path):
    return json.dumps(without_times(results.read(path)))


@pytest.mark.slow
def test_killed_at_five_moments_and_beside_another_run_the_file_is_the_same(tmp_path):
    out, alone = tmp_path / "a" / "table.json", tmp_path / "b" / "table.json"
    assert start(alone, jobs=2).wait() == 0
    parts = out.with_name(f"{out.name}.parts")
    rng = np.random.default_rng(0)
    for kill in range(5):  # some with workers of their own
        process, before = start(out, 1 + (kill == 0)), len(list(parts.glob("*.json")))
        while process.poll() is None and len(list(parts.glob("*.json"))) == before:
            time.sleep(0.05)  # until it has finished one more task
        time.sleep(float(rng.uniform(0, 0.5)))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    # Two runs on one folder at once: both finish, and the file is right.
    both = [start(out), start(out)]
    assert {process.wait() for process in both} <= {0, 2}
    assert content(out) == content(alone)
    assert results.read(out).rows
