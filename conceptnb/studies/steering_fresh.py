"""``conceptnb reproduce steering-fresh``: the toy corpora again, on models that no choice has seen.

Models of the seeds 0 to 2 were in view while the recipe of training, the techniques, their grids
and the KL of the comparison were settled. Fixed before this run:

- All of these stay as in ``steering``. Evidence are five further models per corpus, of the seeds 3
  to 7, and they alone.
- A fourth corpus, ``one-question``, whose questions have the same words but for a name, so that
  TF-IDF does not tell their category. Its models of the seeds 0 to 2 are trained here as well, and
  are no evidence.
- Comparisons, at a KL of .1: each of five matrices minus mass mean, corrected for the five, and
  mass mean minus a random direction. Intervals are over models and questions.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from conceptnb.results.runner import Plan, Row, Sample, Task
from conceptnb.steering.comparison import Settings
from conceptnb.steering.small_model_training import LessonPlan, train_small_model
from conceptnb.steering.toy_corpora import CORPUS_KINDS, make_toy_corpus
from conceptnb.studies.steering_rows import BASELINE, table6_rows
from conceptnb.studies.steering_subject import KL_MEANING, STRINGS_MEANING, subject_of
from conceptnb.studies.steering_techniques import STORIES, runs_of_folds

EVIDENCE = (3, 4, 5, 6, 7)
"""Seeds of the models that nothing was chosen with."""
_NEW, _SPLITS = "one-question", [0, 1, 2]


def fresh_runs(corpus: str, model_seed: int, shorter: int = 1, **options: Any) -> list[Row]:
    """Train a model and compare techniques on it, as ``steering`` does on those of the package.

    The lessons have one `shorter`-th of their steps. The other options are those of ``steering``.
    """
    facts, plan = make_toy_corpus(corpus), LessonPlan()
    lessons = [replace(lesson, steps=lesson.steps // shorter) for lesson in plan.lessons]
    short = replace(plan, lessons=tuple(lessons), warmup=plan.warmup // shorter)
    model, tokenizer, _ = train_small_model(facts, model_seed, short)
    model = model.half().float()  # as it would be after saving
    stories = list(itertools.islice(facts.stories(np.random.default_rng(99)), STORIES))
    subject = subject_of(model, tokenizer, facts.questions(), stories, Settings.batch_size)
    whose = {"world": corpus, "model_seed": model_seed}
    return [whose | run for run in runs_of_folds(subject, **options)]


def _evidence_rows(runs: list[Row]) -> list[Row]:
    return table6_rows(run for run in runs if run["model_seed"] in EVIDENCE)


def plans(args: SimpleNamespace) -> list[Plan]:
    """Return the results files that the options ask for."""
    usual = Settings()
    options = {"seeds": _SPLITS, "tested": [0, 1], "folds": usual.folds}
    grid = {"heads": list(usual.heads), "alphas": list(usual.alphas)}
    models = [(corpus, seed) for corpus in CORPUS_KINDS for seed in args.model_seeds]
    models += [(_NEW, seed) for seed in (0, 1, 2) if seed not in args.model_seeds]
    tasks = [
        Task(fresh_runs, {"corpus": corpus, "model_seed": seed} | options | grid)
        for corpus, seed in models
    ]
    short = {"corpus": "alike", "model_seed": EVIDENCE[0], "shorter": 10, "techniques": [BASELINE]}
    sampled = Task(fresh_runs, short | options | grid | {"chosen": False})
    wrong = {
        "half the training": sampled.but(shorter=20),
        "another corpus": sampled.but(corpus="no-source"),
    }
    notes = {
        "model": "small Llamas trained on toy corpora, not LLaMA-7B",
        "data": "invented questions, not TruthfulQA",
        "kl": f"{KL_MEANING}; here the stories of the toy corpus",
        "strings": STRINGS_MEANING,
        "seed": "of the split into folds; model_seed: of the trained model",
        "evidence": f"models of the seeds {', '.join(map(str, EVIDENCE))}",
        "chosen": "runs with chosen = false are of a tenth of the training; tests compute them "
        "again",
        "paper_table": "table6",
    }
    sample = Sample(sampled, ("mc2", "ce"), wrong, by=("method", "chosen"))
    return [Plan("steering_fresh", [*tasks, sampled], _evidence_rows, _SPLITS, notes, sample)]
