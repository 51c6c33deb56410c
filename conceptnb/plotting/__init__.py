"""Figures of the book: one shared style, one function a figure, one module a part."""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = [
    "clip",
    "concepts",
    "interactive",
    "learning",
    "limits",
    "measures",
    "neighbours",
    "owndata",
    "sentences",
    "steering",
    "style",
    "synthetic",
    "theory",
]


def __getattr__(name: str) -> ModuleType:
    """Import a part's figures the first time they are used (PEP 562)."""
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
