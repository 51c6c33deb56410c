"""Exercises on data of your own: a table of environments, images, questions."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from conceptnb.exercises.engine import Construction


# A table of environments
@Construction.declare(kind=dict)
def _ex_plan(looked_for: Mapping[str, Any]) -> str | None:
    """Look for Assumption 4: the rank of M, and each concept in two environments."""
    if not all(isinstance(names, list | tuple) for names in looked_for.values()):
        return "Each environment needs a list of names, also for a single name."
    concepts = sorted({name for names in looked_for.values() for name in names})
    if len(concepts) != 3:
        return f"3 concepts were asked for; yours are {concepts}."
    if len(looked_for) != 4:
        return f"4 environments were asked for; yours are {len(looked_for)}."
    M = np.array([[c in names for c in concepts] for names in looked_for.values()], dtype=float)
    if (rank := np.linalg.matrix_rank(M)) < 3:
        return f"M has rank {rank}; three concepts need rank 3."
    if once := [c for c, count in zip(concepts, M.sum(axis=0), strict=True) if count == 1]:
        return f"{once} are looked for once only, so they have no contrast."
    return None
