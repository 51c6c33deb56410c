"""What the theory needs loads without torch."""

import subprocess
import sys

import conceptnb.core

BRING_TORCH = ("muon", "sentence_bert")


def test_core_and_theory_load_without_torch():
    folder = conceptnb.core.__path__[0]
    lines = [
        "import importlib, pkgutil, sys",
        f"names = [m.name for m in pkgutil.iter_modules([{folder!r}])]",
        f"names = ['core.' + n for n in names if n not in {BRING_TORCH}]",
        "names += ['theory', 'theory.counterexamples', 'theory.read_off', 'theory.theorem2']",
        "[importlib.import_module('conceptnb.' + n) for n in names]",
        "assert len(names) > 15 and 'torch' not in sys.modules",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)
