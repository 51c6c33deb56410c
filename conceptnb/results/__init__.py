"""Computed tables with their provenance, the paper's tables, and how both are shown."""

from conceptnb.results import paper
from conceptnb.results.store import (
    Result,
    Shown,
    beside,
    command_line,
    folder,
    is_stale,
    load,
    names,
    save,
    shown,
    source_hash,
)

__all__ = [
    "Result",
    "Shown",
    "beside",
    "command_line",
    "folder",
    "is_stale",
    "load",
    "names",
    "paper",
    "save",
    "shown",
    "source_hash",
]
