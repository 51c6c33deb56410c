"""What the theory needs loads without torch."""

import subprocess
import sys

import conceptnb.common
import conceptnb.core

BRING_TORCH = ("common.muon", "common.sentence_bert")


def test_core_and_theory_load_without_torch():
    rooms = {"common": conceptnb.common.__path__, "core": conceptnb.core.__path__}
    lines = [
        "import importlib, pkgutil, sys",
        f"rooms = { {room: list(path) for room, path in rooms.items()} }",
        "names = [f'{r}.{m.name}' for r in rooms for m in pkgutil.iter_modules(rooms[r])]",
        f"names = [n for n in names if n not in {BRING_TORCH}]",
        "names += ['theory', 'theory.counterexamples', 'theory.read_off', 'theory.theorem2']",
        "[importlib.import_module('conceptnb.' + n) for n in names]",
        "assert len(names) > 15 and 'torch' not in sys.modules",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)
