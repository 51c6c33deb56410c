"""Concepts as affine subspaces: a small library under an executable book.

The package implements *From Causal to Concept-Based Representation Learning* (Rajendran, Buchholz,
Aragam, Schölkopf and Ravikumar, NeurIPS 2024). Its rooms stand on floors, and each imports only
what is below it. They load on first use: ``import conceptnb`` needs no torch and no model library.
"""

import importlib
from types import ModuleType

__version__ = "1.0.0"

__all__ = [  # noqa: RUF022 - in the order in which data flow
    "__version__",
    "common",
    "core",
    "theory",
    "learning",
    "embeddings",
    "steering",
    "results",
    "studies",
    "tables",
    "plotting",
    "exercises",
    "commands",
]


def __getattr__(name: str) -> ModuleType:
    """Import a module of the package the first time it is used (PEP 562)."""
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
