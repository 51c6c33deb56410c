"""Figures of the book: one shared style, one function per figure, one module per subject."""

import importlib
from types import ModuleType

__all__ = [
    "cubes",
    "embedded",
    "field",
    "fits",
    "identification",
    "interactive",
    "measures",
    "moving",
    "planes",
    "recovery",
    "reports",
    "steered",
    "summaries",
]


def __getattr__(name: str) -> ModuleType:
    """Import a module of figures the first time they are used (PEP 562)."""
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
