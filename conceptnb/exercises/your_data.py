"""Exercises on data of your own: a table of environments, images, questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from conceptnb.exercises.engine import Construction, Value

# A table of environments

ex_how_many_environments = Value(  # the rank of M without each environment in turn: Remark 2
    [3, 3, 3, 2],
    entries="the rank without the first, second, third and fourth environment",
    right="No v with v M = 0 uses the fourth: w has no contrast, so Assumption 4 fails for it.",
    mistakes={
        "Without the fourth environment no row of M has w.": [3, 3, 3, 3],
        "The rows (1, 0, 0) and (0, 1, 0) span (1, 1, 0): one of the three is superfluous.": 2,
    },
)


def _plan(looked_for: Mapping[str, Any]) -> str | None:
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


ex_plan = Construction(  # of Assumption 4: the rank of M, and each concept in two environments
    _plan,
    kind=dict,
    right="Rank 3, and every concept twice or more. That is needed for Assumption 4, not enough.",
)

ex_agreement = {  # what agreement of two halves tells about a learned concept
    "proves": "Both halves can make the same mistake, as the shifted sensors above did.",
    "necessary": "Right. Agreement measures noise; it does not show an error of both halves.",
    "nothing": "If two halves disagree, at least one of them has not learned the concept.",
}

ex_oven = {  # what an environment is that was made by changing things: Appendix B
    "conditioning": "Selecting leaves the beans as they are. What did the oven do?",
    "intervention": "Right. Roast was set, not selected, so its usual causes did not change.",
    "base": "A base is collected without looking for, or doing, anything.",
}

# A folder of images

ex_no_knowledge = Value(  # the accuracy of a constant answer for shares 0.7, 0.2 and 0.1
    max(0.7, 0.2, 0.1),
    right="Compare accuracies with this share: 0.72 would be little better.",
    mistakes={
        "That is one over the number of values; here one of them is more frequent.": 1 / 3,
        "That is guessing in proportion to the shares; always naming one value does better.": 0.54,
    },
)

ex_eta_by_hand = Value(  # η² of two equally frequent values at -2 and 2, with standard deviation 1
    2.0**2 / (2.0**2 + 1.0**2),
    rtol=0.005,
    right="It would be 1 if all pictures of each value lay on one plane.",
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
    right="Where one label determines the other, it is unknown which of them a direction reads.",
    mistakes={
        "In the first table, each size goes with each ripeness as often.": [1.0, 1.0],
        "In the second table, one label determines the other.": [0.0, 0.0],
        "The other way round: the balanced table comes first.": [1.0, 0.0],
    },
)

ex_weekday = {  # what it means if a label is read that the pictures cannot show
    "weekday": "A fruit does not show the weekday. What else in a picture may depend on the day?",
    "leak": "Right. The pictures of one weekday share something else, which a person may miss.",
    "chance": "Such an accuracy on hundreds of held-out pictures is far beyond chance.",
}

# A list of questions

_GAIN = np.array([1, 0, 0, 1, 0, 0, 1, -1])  # steered minus baseline

ex_paired = Value(  # the paired gain of eight answers and its standard error
    [_GAIN.mean(), _GAIN.std(ddof=1) / 8**0.5],
    entries="mean gain, its standard error",
    right="A gain of a quarter on eight questions is only one standard error.",
    mistakes={
        "The second is the standard deviation; divide by the root of 8.": [0.25, _GAIN.std(ddof=1)],
        "You subtracted the other way round.": lambda x: x * [-1.0, 1.0],
        "The error is that of paired differences, not of the steered answers.": [0.25, 0.182981],
    },
)

ex_enough = Value(  # for a power of 80 % at 5 %, if 96 questions have an error of 0.06
    96 * (0.06 * (1.96 + 0.84) / 0.1) ** 2,
    rtol=0.02,
    right="Nearly three times as many. With 96 questions such a gain is often missed.",
    mistakes={
        "At this number the gain is found on half of the lists only.": 96 * (0.06 * 19.6) ** 2,
        "The error goes with one over the root of the number.": 96 * 0.06 * 28,
    },
)

ex_random = {  # what the random direction of Table 6 is for
    "lower bound": "It may gain, as above, by chance or because any edit changes answers.",
    "control": "Right. It has the same heads and strength, but was not learned from answers.",
    "baseline": "The baseline is the model that is not steered. What does a random direction do "
    "that the baseline does not?",
}

ex_cue = {  # what a probe may learn where right answers are long and wrong ones short
    "truth": "Look at the lengths of the answers: what else tells the two apart?",
    "length": "Right. Length tells them apart, and a probe uses any difference.",
    "topic": "All answers are about the same question, so its topic does not tell them apart.",
}
