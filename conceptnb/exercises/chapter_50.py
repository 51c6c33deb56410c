"""Exercises of chapter 50: a table of environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from conceptnb.exercises.exercise import choice, construction, value


@value(
    rtol=1e-6,
    right="One more than there are concepts, beside the base: four data sets in all for two.",
    mistakes={
        "That counts the base too; the environments beside it are asked for.": 5,
        "With as many environments as concepts no v with v M = 0 is left.": 3,
        "That is what Theorem 2 asks for.": 6,
    },
)
def ex_how_many_environments() -> int:
    """Return the fewest environments for three concepts beside the base: Remark 2."""
    return 3 + 1


@construction(
    kind=dict,
    right="Rank 3, every concept twice or more, and each without each of the others somewhere.",
    example=lambda: {"e1": ["u", "v"], "e2": ["v", "w"], "e3": ["u", "w"], "e4": ["u", "v"]},
    wrong={
        "3 concepts": lambda: {"e1": ["u"], "e2": ["v"], "e3": ["u"], "e4": ["v"]},
        "4 environments": lambda: {"e1": ["u"], "e2": ["v"], "e3": ["w"]},
        "has rank 2": lambda: {"e1": ["u"], "e2": ["v", "w"], "e3": ["u"], "e4": ["v", "w"]},
        "once only": lambda: {"e1": ["u"], "e2": ["v"], "e3": ["w"], "e4": ["u", "v"]},
        "a list of names": lambda: {"e1": "u", "e2": ["v"], "e3": ["w"], "e4": ["u"]},
    },
)
def ex_plan(looked_for: Mapping[str, Any]) -> str | None:
    """Look for Assumptions 4 (rank, and each concept twice) and 5 in four environments."""
    if not all(isinstance(names, list | tuple) for names in looked_for.values()):
        return "Each environment has a list of names, also where it is one."
    concepts = sorted({name for names in looked_for.values() for name in names})
    if len(concepts) != 3:
        return f"3 concepts were asked for; yours are {concepts}."
    if len(looked_for) != 4:
        return f"4 environments were asked for; yours are {len(looked_for)}."
    M = np.array([[c in names for c in concepts] for names in looked_for.values()], dtype=float)
    if (rank := np.linalg.matrix_rank(M)) < 3:
        return f"M has rank {rank}: some concepts occur in one combination only."
    if once := [c for c, count in zip(concepts, M.sum(axis=0), strict=True) if count == 1]:
        return f"{once} are looked for once only: they have no contrast."
    return None


@choice(
    right="Agreement is about noise. An error that both halves share is invisible to it.",
    options={
        "proves": "Both halves can make the same mistake, as the shifted sensors above did.",
        "necessary": "",
        "nothing": "If two halves disagree, at least one of them has not learned the concept.",
    },
)
def ex_agreement() -> str:
    """Say what agreement of two halves tells about a learned concept."""
    return "necessary"


@choice(
    right="It was set, not selected: the other properties of the beans did not come along.",
    options={
        "conditioning": "Selecting leaves the beans as they are. What did the oven do?",
        "intervention": "",
        "base": "A base is collected without looking for, or doing, anything.",
    },
)
def ex_oven() -> str:
    """Say what an environment is that was made by changing things: Appendix B."""
    return "intervention"
