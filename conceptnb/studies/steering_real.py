"""``conceptnb reproduce steering-real``: Table 6 on SmolLM2-135M-Instruct and TruthfulQA.

The design, fixed before the first run:

- Each third of the 817 questions (``--every 3``) first, since all of them take hours: what it shows
  may be tested on the other two thirds. Two folds by question, splits by seed; six-shot prompts of
  lm-evaluation-harness; edits at the positions that predict an answer's tokens.
- K = 48 heads, as in the paper. α: 1, 2, 4; for the two directions that disturb little, 2 and 8;
  for the controls, 2. The α of Table 6 is that of the highest MC1 on 30 % of the training
  questions, among those whose KL on neutral prose is at most .3 nats per token.
- The headline: MC1 of the steering matrix (Sentence-BERT) minus that of mass mean, paired by
  question, at a KL of .2. Second, the order of Table 6 at α = 2 and at that KL: five comparisons
  of neighbours, with intervals that hold for all five together (Bonferroni).
- A control counts as beaten where the interval of the difference at α = 2 lies above zero.
"""

from __future__ import annotations

import functools
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from conceptnb.results.runner import Plan, Row, Sample, Task
from conceptnb.steering.comparison import Fold, Settings
from conceptnb.steering.language_models import find_language_model, load_language_model
from conceptnb.steering.questions import read_preface
from conceptnb.steering.techniques import CONTROLS, MASS_MEAN, MATRIX, SENTENCE_BERT, TECHNIQUES
from conceptnb.steering.truthfulqa import read_truthfulqa
from conceptnb.studies.steering_rows import BASELINE, table6_rows
from conceptnb.studies.steering_subject import (
    KL_MEANING,
    STRINGS_MEANING,
    Subject,
    fingerprint_of,
    fold_scores,
    subject_of,
)

_HEADS, _BUDGET, _FOLDS = 48, 0.3, 2
_ALPHAS = {
    "random direction": (2.0, 8.0),
    "CCS direction": (2.0, 8.0),
    "ITI: probe weight direction": (1.0, 2.0, 4.0),
    MASS_MEAN: (1.0, 2.0, 4.0),
    MATRIX: (1.0, 2.0, 4.0),
} | dict.fromkeys(CONTROLS, (2.0,))
_SAMPLED_EVERY = 13  # the sample that tests compute again has each 13th question


def real_runs(
    model: str,
    every: int,
    seed: int,
    fold: int,
    method: str,
    alphas: list[float],
    preface: str,
    fingerprint: str,
    chosen: bool = True,
    shuffle_labels: bool = False,
) -> list[Row]:
    """Test one technique of Table 6 on a fold of each `every`-th question."""
    del fingerprint  # of weights, questions and texts: in the arguments, and so in the task's key
    subject = load_subject(model, every)
    part = split_subject(subject, preface, seed, fold, shuffle_labels)
    if method == BASELINE:
        found = fold_scores(subject, part, 0, 0.0, [(0.0, None)])
    else:
        known = TECHNIQUES | CONTROLS | {MATRIX: SENTENCE_BERT["matrix, Sentence-BERT"]}
        asked = [question.text for question in part.train]
        heads, alpha, steerings = part.fit(
            known[method],
            [*_ALPHAS, *known].index(method),
            alphas,
            lambda steering: float(subject.neutral.measure(steering, asked)[1].mean()),
        )
        found = fold_scores(subject, part, heads, alpha, steerings)
    whose = {"world": Path(model).name, "model_seed": 0, "questions": len(subject.questions)}
    return [whose | {"seed": seed, "fold": fold, "method": method, "chosen": chosen} | found]


@functools.lru_cache(maxsize=1)
def load_subject(model: str, every: int) -> Subject:
    """Return a model with every so many'th question of TruthfulQA and neutral paragraphs."""
    questions = read_truthfulqa()[0][::every]
    return subject_of(*load_language_model(model), questions, _texts(), batch_size=8)


@functools.lru_cache(maxsize=2)  # two workers take the folds of a split in turn
def split_subject(
    subject: Subject, preface: str, seed: int, fold: int, shuffle_labels: bool
) -> Fold:
    """Return one fold of a split of the questions, on request with shuffled labels."""
    settings = Settings((_HEADS,), (), _FOLDS, preface, "lm-eval", _BUDGET)
    activations = subject.activations
    if shuffle_labels:
        activations = activations.shuffled(np.random.default_rng(seed))
    model, tokenizer = subject.model, subject.tokenizer
    return Fold(model, tokenizer, subject.questions, activations, settings, seed, fold)


def _texts() -> list[str]:
    """Return paragraphs of this book's own prose: neutral text that needs no download."""
    prose = Path(__file__).with_name("neutral_prose.txt")
    return prose.read_text(encoding="utf-8").splitlines()


def plans(args: SimpleNamespace) -> list[Plan]:
    """Return the results files that the options ask for."""
    questions, edition = read_truthfulqa()
    source = find_language_model(args.model)
    shared = {
        "model": args.model,
        "preface": read_preface(args.preface, "lm-eval"),
        "fingerprint": fingerprint_of(source, questions),
    }
    tasks = [
        Task(
            real_runs,
            {
                "every": args.every,
                "seed": seed,
                "method": method,
                "alphas": list(alphas),
                "fold": fold,
            }
            | shared,
        )
        for seed in args.split_seeds
        for method, alphas in ({BASELINE: ()} | _ALPHAS).items()
        for fold in range(_FOLDS)
    ]
    few = {"every": _SAMPLED_EVERY, "seed": 0, "fold": 0, "method": MASS_MEAN, "alphas": [2.0]}
    sampled = Task(real_runs, few | shared | {"chosen": False})
    wrong = {
        "the direction is reversed": sampled.but(alphas=[-2.0]),
        "labels are shuffled": sampled.but(shuffle_labels=True),
    }
    notes = {
        "model": args.model,
        "data": f"{edition}; one question in {args.every}" if args.every > 1 else edition,
        "texts": "paragraphs of this book",
        "kl": KL_MEANING,
        "budget": f"α chosen where KL is at most {_BUDGET} nats per token, K = {_HEADS}",
        "strings": STRINGS_MEANING,
        "chosen": f"runs with chosen = false are of one question in {_SAMPLED_EVERY}; tests "
        "compute them again",
        "paper_table": "table6",
    }
    sample = Sample(sampled, ("mc1", "mc2", "kl"), wrong, by=("world", "method", "chosen"))
    tasks.append(sampled)
    return [Plan("steering_real", tasks, table6_rows, args.split_seeds, notes, sample)]
