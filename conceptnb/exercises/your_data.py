"""Exercises on data of your own: a table of environments, images, questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from conceptnb.exercises.engine import Construction, Value

# A table of environments

ex_how_many_environments = Value(  # the fewest for three concepts beside the base: Remark 2
    3 + 1,
    rtol=1e-6,
    right="One more than there are concepts, beside the base: four data sets in all for two.",
    mistakes={
        "That counts the base too; the environments beside it are asked for.": 5,
        "With as many environments as concepts no v with v M = 0 is left.": 3,
        "That is what Theorem 2 asks for.": 6,
    },
)


def _plan(looked_for: Mapping[str, Any]) -> str | None:
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


ex_plan = Construction(  # Assumptions 4 (rank, and each concept twice) and 5 in four environments
    _plan,
    kind=dict,
    right="Rank 3, every concept twice or more, and each without each of the others somewhere.",
)

ex_agreement = {  # what agreement of two halves tells about a learned concept
    "proves": "Both halves can make the same mistake, as the shifted sensors above did.",
    "necessary": "Right. Agreement is about noise; an error of both halves is invisible to it.",
    "nothing": "If two halves disagree, at least one of them has not learned the concept.",
}

ex_oven = {  # what an environment is that was made by changing things: Appendix B
    "conditioning": "Selecting leaves the beans as they are. What did the oven do?",
    "intervention": "Right. It was set, not selected: other properties of beans did not follow.",
    "base": "A base is collected without looking for, or doing, anything.",
}

# A folder of images

ex_no_knowledge = Value(  # the accuracy of a constant answer for shares 0.7, 0.2 and 0.1
    max(0.7, 0.2, 0.1),
    right="Always compare with it: an accuracy of 0.72 is less than it sounds.",
    mistakes={
        "That is one over the number of values; here one of them is more frequent.": 1 / 3,
        "That is guessing in proportion to the shares; the most frequent one does better.": 0.54,
    },
)

ex_eta_by_hand = Value(  # η² of two equally frequent values at -2 and 2, with standard deviation 1
    2.0**2 / (2.0**2 + 1.0**2),
    rtol=0.005,
    right="All pictures of a value on one plane would be 1.",
    mistakes={
        "That is the share within values; one minus it is between them.": 0.2,
        "That is the ratio of the two; the share is of the total.": 4.0,
        "Use variances, the squares of standard deviations.": 2 / 3,
    },
)

ex_together = Value(  # Cramér's V of a balanced table and of a diagonal one, from χ²
    [0.0, 1.0],
    atol=0.01,
    entries="Cramér's V of the first and of the second table",
    right="Where one label tells the other, no picture can tell which of them a direction reads.",
    mistakes={
        "In the first table, each size goes with each ripeness as often.": [1.0, 1.0],
        "In the second table, knowing one tells the other.": [0.0, 0.0],
        "The other way round: first the balanced table.": [1.0, 0.0],
    },
)

ex_weekday = {  # what it means if a label is read that the pictures cannot show
    "weekday": "A picture of fruit has no weekday in it. What has?",
    "leak": "Right. The pictures of Mondays show something else that a human eye may miss.",
    "chance": "Accuracy on hundreds of held-out pictures, far above shuffled labels, is not.",
}

# A list of questions

_GAIN = np.array([1, 0, 0, 1, 0, 0, 1, -1])  # steered minus baseline

ex_paired = Value(  # the paired gain of eight answers and its standard error
    [_GAIN.mean(), _GAIN.std(ddof=1) / 8**0.5],
    entries="mean gain, its standard error",
    right="A gain of a quarter on eight questions is not two standard errors.",
    mistakes={
        "The second is the standard deviation; divide by the root of 8.": [0.25, _GAIN.std(ddof=1)],
        "You subtracted the other way round.": lambda x: x * [-1.0, 1.0],
        "The error is that of paired differences, not of the steered answers.": [0.25, 0.182981],
    },
)

ex_enough = Value(  # how many questions make the error 0.03, if 96 make it 0.06
    96 * (0.06 / 0.03) ** 2,
    rtol=0.05,
    right="Four times the questions halve the error: some four hundred.",
    mistakes={
        "Twice the questions shrink the error by √2 only.": 192,
        "Round numbers are welcome, but the error has to fall to half: a factor of four.": 288,
    },
)

ex_random = {  # what the random direction of Table 6 is for
    "lower bound": "It may gain, as above, by disturbing what kept the model from the truth.",
    "control": "Right. It disturbs as much as the others do, and knows nothing.",
    "baseline": "The baseline is the model that is not steered. What does a random direction have "
    "that it has not?",
}

ex_cue = {  # what a probe may learn where right answers are long and wrong ones short
    "truth": "Look at the lengths of the answers: what else tells the two apart?",
    "length": "Right. Length tells them apart, and a probe takes what it can get.",
    "topic": "Both answers are about the same question, so its topic tells nothing.",
}
