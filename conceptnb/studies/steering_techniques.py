"""``conceptnb reproduce steering``: Table 6 on toy corpora, or on a real language model.

A task is one fold of one split of a model's questions.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from transformers import (
    AutoConfig,
    AutoTokenizer,
)

from conceptnb.results.runner import Plan, Row, Sample, Task
from conceptnb.steering.comparison import Fold, Settings
from conceptnb.steering.intervention import Steering
from conceptnb.steering.language_models import find_language_model, load_language_model
from conceptnb.steering.small_models import load_small_model, small_models
from conceptnb.steering.techniques import MASS_MEAN, SENTENCE_BERT, TECHNIQUES, category_oracle
from conceptnb.steering.truthfulqa import read_truthfulqa
from conceptnb.studies.steering_cost import needs
from conceptnb.studies.steering_rows import BASELINE, table6_rows
from conceptnb.studies.steering_subject import (
    KL_MEANING,
    STRINGS_MEANING,
    Subject,
    fingerprint_of,
    fold_scores,
    subject_of,
)

STORIES = 8
"""How many of a corpus's stories are the neutral text on which KL is measured."""


def toy_runs(corpus: str, model_seeds: Sequence[int], **options: Any) -> list[Row]:
    """Compare techniques on folds of a toy corpus's questions; the options are `_fold_runs`'s.

    A run per model, split, fold and technique: its scores at the chosen α, and ``tested`` and
    ``curve`` as in `conceptnb.tables.steering_analysis`. ``kl`` takes λ from the neutral text
    itself, ``kl_asked`` from a question of the tested fold.
    """
    return [
        {"world": corpus, "model_seed": model_seed, **run}
        for model_seed in model_seeds
        for run in runs_of_folds(_small(corpus, model_seed), **options)
    ]


def model_runs(
    model: str,
    dtype: str,
    device_map: str | None,
    data: str,
    texts: Sequence[str],
    fingerprint: str,
    **options: Any,
) -> list[Row]:
    """Compare techniques on one fold of TruthfulQA's questions, or of a file of its format."""
    del fingerprint  # in the arguments, and so in the task's key
    subject = _real(model, dtype, device_map, data, tuple(texts), options["batch_size"])
    name = Path(model).name
    return [{"world": name, "model_seed": 0, **run} for run in runs_of_folds(subject, **options)]


@functools.lru_cache(maxsize=1)  # the folds of a model follow each other
def _small(corpus: str, seed: int) -> Subject:
    facts, model, tokenizer = load_small_model(corpus, seed)
    stories = itertools.islice(facts.stories(np.random.default_rng(99)), STORIES)
    return subject_of(model, tokenizer, facts.questions(), list(stories), Settings.batch_size)


@functools.lru_cache(maxsize=1)
def _real(
    name: str, dtype: str, device_map: str | None, data: str, texts: Sequence[str], batch_size: int
) -> Subject:
    questions, _ = read_truthfulqa(None if data == "truthfulqa" else data)
    model, tokenizer = load_language_model(name, dtype, device_map)
    return subject_of(model, tokenizer, questions, texts, batch_size)


def runs_of_folds(
    subject: Subject, seeds: Sequence[int], tested: Sequence[int], **options: Any
) -> list[Row]:
    """Return the runs of one model: of each split of `seeds`, the folds `tested`."""
    return [
        run
        for seed in seeds
        for fold in tested
        for run in _fold_runs(subject, seed, fold, **options)
    ]


def _fold_runs(
    subject: Subject,
    seed: int,
    fold: int,
    folds: int,
    heads: Sequence[int],
    alphas: Sequence[float],
    batch_size: int = Settings.batch_size,
    techniques: Sequence[str] | None = None,
    sentence_bert: bool = False,
    chosen: bool = True,
    shuffle_labels: bool = False,
) -> list[Row]:
    """Test techniques on one fold with what the others teach: one run per technique."""
    known = TECHNIQUES | category_oracle(subject.questions)
    known |= SENTENCE_BERT if sentence_bert else {}
    settings = Settings(tuple(heads), tuple(alphas), folds, batch_size=batch_size)
    activations = subject.activations
    if shuffle_labels:
        activations = activations.shuffled(np.random.default_rng(seed))
    model, tokenizer, questions = subject.model, subject.tokenizer, subject.questions
    part = Fold(model, tokenizer, questions, activations, settings, seed, fold)
    runs = []
    for name in techniques or [BASELINE, *known]:
        found: tuple[int, float, Sequence[tuple[float, Steering | None]]]
        if name == BASELINE:
            found = 0, 0.0, [(0.0, None)]
        else:
            found = part.fit(known[name], list(known).index(name))
        runs.append(
            {"seed": seed, "fold": fold, "method": name, "chosen": chosen}
            | fold_scores(subject, part, *found)
        )
    return runs


def plans(args: SimpleNamespace) -> list[Plan]:
    """Return the results files that the options ask for."""
    return [_toy_plan(args) if args.model is None else _real_plan(args)]


def _splits(args: SimpleNamespace, usual: Settings) -> list[dict[str, Any]]:
    grid = {"heads": args.heads or list(usual.heads), "alphas": args.alpha or list(usual.alphas)}
    return [
        {"seeds": [seed], "tested": [fold], "folds": args.folds, **grid}
        for seed in args.split_seeds
        for fold in range(args.folds)
    ]


def _toy_plan(args: SimpleNamespace) -> Plan:
    tasks = [
        Task(toy_runs, {"corpus": kind, "model_seeds": [seed]} | split)
        for kind, seed in small_models()
        for split in _splits(args, Settings())
    ]
    given = {
        "corpus": "alike",
        "model_seeds": [seed for kind, seed in small_models() if kind == "alike"],
        "seeds": args.split_seeds,
        "tested": list(range(args.folds)),
        "folds": args.folds,
        "techniques": [MASS_MEAN],
        "heads": [16],
        "alphas": [5.0],
        "chosen": False,  # so that a processor's rounding cannot change a choice
    }
    sampled = Task(toy_runs, given)
    wrong = {
        "the direction is reversed": sampled.but(alphas=[-5.0]),
        "labels are shuffled": sampled.but(shuffle_labels=True),
    }
    notes = {
        "model": "small Llamas trained on toy corpora, not LLaMA-7B",
        "data": "invented questions, not TruthfulQA",
        "kl": f"{KL_MEANING}; here the stories of the toy corpus",
        "strings": STRINGS_MEANING,
        "seed": "of the split into folds; model_seed: of the trained model",
        "chosen": "runs with chosen = false have K and α given; tests compute them again",
        "paper_table": "table6",
        "rows_on_page": (len(TECHNIQUES) + 2) * len({kind for kind, _ in small_models()}),
    }
    sample = Sample(sampled, ("mc1", "mc2", "kl"), wrong, by=("world", "method", "chosen"))
    return Plan("steering", [*tasks, sampled], table6_rows, args.split_seeds, notes, sample)


def _real_plan(args: SimpleNamespace) -> Plan:
    questions, edition = read_truthfulqa(None if args.data == "truthfulqa" else args.data)
    texts = _neutral_texts(args.texts)
    source = find_language_model(args.model)
    stored = getattr(AutoConfig.from_pretrained(source), "dtype", None) or torch.float32
    dtype = stored if args.dtype == "auto" else getattr(torch, args.dtype)
    usual = Settings(heads=(48,), alphas=(15.0,), batch_size=args.batch_size)
    splits = _splits(args, usual)
    settings = Settings(tuple(splits[0]["heads"]), tuple(splits[0]["alphas"]), args.folds)
    n_techniques = len(TECHNIQUES) + 2 + args.sentence_bert
    tokenizer = AutoTokenizer.from_pretrained(source)
    amounts = (n_techniques, len(args.split_seeds))
    print(f"{args.data}: {edition}")
    print(needs(source, tokenizer, questions, texts, settings, *amounts, dtype))
    if not args.yes:
        _confirm()
    subject = {
        "model": source,
        "dtype": str(dtype).removeprefix("torch."),
        "device_map": args.device_map,
        "data": args.data,
        "texts": texts,
        "fingerprint": fingerprint_of(source, questions),
        "batch_size": args.batch_size,
        "sentence_bert": args.sentence_bert,
    }
    notes = {
        "model": args.model,
        "data": edition,
        "texts": args.texts,
        "kl": KL_MEANING,
        "strings": STRINGS_MEANING,
        "paper_table": "table6",
    }
    file = "steering-" + "".join(c if c.isalnum() else "-" for c in Path(args.model).name)
    tasks = [Task(model_runs, subject | split) for split in splits]
    return Plan(file, tasks, table6_rows, args.split_seeds, notes)


def _confirm() -> None:
    if not sys.stdin.isatty():
        raise ValueError("nothing is started without asking: give --yes to start all the same")
    if input("start? [y/N] ").strip().lower() != "y":
        raise ValueError("not started")


def _neutral_texts(source: str | None, count: int = 100) -> list[str]:
    """Return the first hundred neutral texts of a file or of a data set's column ``text``."""
    if source is None:
        raise ValueError(
            "--texts is missing: cross-entropy and KL need neutral text; give a file with one "
            "text per line, or the name of a data set with a column 'text'"
        )
    if Path(source).is_file():
        lines = Path(source).read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.strip()][:count]
    try:
        import datasets  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise ValueError(
            f"--texts {source} is no file, and reading it as a data set needs the package datasets"
        ) from error
    stream = datasets.load_dataset(source, split="train", streaming=True)
    return [row["text"] for row in stream.take(count)]
