r"""Environments: which atoms each one conditions on, and at which valuations (Section 5).

Environment 0 is the base distribution. Environments 1, ..., m condition on concepts
whose rows are atoms of one shared collection (Assumption 2). The modules:

- `design`: :class:`EnvironmentDesign` with its matrices M and B of (7) and (8);
- `diversity`: the checks of Assumptions 4 and 5, Lemma 1 and Theorem 2;
- `planner`: the smallest designs that pass them.
"""

from __future__ import annotations

import importlib
from typing import Any

from conceptnb.environments.design import PAPER_VARIANCE, EnvironmentDesign, paper_design
from conceptnb.environments.diversity import DiversityReport, check_diversity

# The planner scores designs by their acceptance rates, so it stands on `sampling`,
# which stands on designs: it loads on first use.
_PLANNER = ("path_edges", "propose_design", "random_design", "star_edges", "tree_design")

__all__ = [
    "PAPER_VARIANCE",
    "DiversityReport",
    "EnvironmentDesign",
    "check_diversity",
    "paper_design",
    "path_edges",
    "propose_design",
    "random_design",
    "star_edges",
    "tree_design",
]


def __getattr__(name: str) -> Any:
    """Import the planner the first time it is used (PEP 562)."""
    if name in _PLANNER:
        return getattr(importlib.import_module(f"{__name__}.planner"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
