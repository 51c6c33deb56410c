"""Computed tables with their provenance, the paper's tables, and how both are shown."""

from conceptnb.results import paper
from conceptnb.results.store import (
    Result,
    Shown,
    folder,
    load,
    names,
    read,
    save,
    shown,
    with_provenance,
)
