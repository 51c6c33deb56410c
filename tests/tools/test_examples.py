"""The examples in docstrings say what they print."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = [
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for file in sorted((ROOT / "conceptnb").rglob("*.py"))
    if ">>> " in file.read_text(encoding="utf-8")
]


def test_there_are_examples():
    assert len(MODULES) >= 10


@pytest.mark.parametrize(
    "name",
    [pytest.param(m, marks=[pytest.mark.slow] * m.endswith(".clip.loading")) for m in MODULES],
)
def test_examples_print_what_they_say(name, capsys):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0, capsys.readouterr().out
