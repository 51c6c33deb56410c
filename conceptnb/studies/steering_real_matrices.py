"""``conceptnb reproduce steering-real-matrices``: other matrices and controls on SmolLM2.

Beside Table 6 (``steering-real``), on the same folds and heads: the matrix with TF-IDF in place of
Sentence-BERT, centred, and with optimised weights; and both controls at α = 4, where the curves
of mass mean and of the matrix are highest. Fixed before the run: each matrix minus mass mean at a
KL of .2, and mass mean and the matrix minus their controls at α = 4, intervals that hold together.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from conceptnb.results.runner import Plan, Row, Sample, Task
from conceptnb.steering.techniques import CONTROLS, MATRIX, TECHNIQUES, Technique
from conceptnb.studies.steering_real import load_subject, split_subject
from conceptnb.studies.steering_real import plans as real_plans
from conceptnb.studies.steering_rows import table6_rows
from conceptnb.studies.steering_subject import fold_scores

_MATRICES: dict[str, Technique] = {
    "matrix, TF-IDF": TECHNIQUES[MATRIX],
    "matrix, centred": TECHNIQUES["matrix, centred"],
    "matrix, optimised weights": TECHNIQUES["matrix, optimised weights"],
}
_ALPHAS = dict.fromkeys(_MATRICES, (2.0, 4.0)) | dict.fromkeys(CONTROLS, (4.0,))


def matrix_runs(
    model: str,
    every: int,
    seed: int,
    fold: int,
    method: str,
    alphas: list[float],
    preface: str,
    fingerprint: str,
    chosen: bool = True,
) -> list[Row]:
    """Test one of these techniques on a fold of each `every`-th question."""
    del fingerprint  # of weights, questions and texts: in the arguments, and so in the task's key
    subject = load_subject(model, every)
    part = split_subject(subject, preface, seed, fold, False)
    asked = [question.text for question in part.train]
    found = part.fit(
        (_MATRICES | CONTROLS)[method],
        100 + list(_ALPHAS).index(method),  # draws of its own
        alphas,
        lambda steering: float(subject.neutral.measure(steering, asked)[1].mean()),
    )
    whose = {"world": Path(model).name, "model_seed": 0, "questions": len(subject.questions)}
    run = {"seed": seed, "fold": fold, "method": method, "chosen": chosen}
    return [whose | run | fold_scores(subject, part, *found)]


def plans(args: SimpleNamespace) -> list[Plan]:
    """Return the results files that the options ask for."""
    (table6,) = real_plans(args)
    folds = [task.arguments for task in table6.tasks if task.arguments["method"] == "baseline"]
    tasks = [
        Task(matrix_runs, arguments | {"method": method, "alphas": list(alphas)})
        for arguments in folds
        for method, alphas in _ALPHAS.items()
    ]
    few = table6.tasks[-1].arguments | {"method": next(iter(_MATRICES))}
    sampled = Task(matrix_runs, few)
    wrong = {"the directions are reversed": sampled.but(alphas=[-2.0])}
    assert table6.sample is not None
    sample = Sample(sampled, table6.sample.columns, wrong, by=table6.sample.by)
    file = "steering_real_matrices"
    return [Plan(file, [*tasks, sampled], table6_rows, args.split_seeds, table6.notes, sample)]
