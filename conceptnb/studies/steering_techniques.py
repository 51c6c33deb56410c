"""``conceptnb reproduce steering``: Table 6 on toy corpora, or on a real language model.

A task is one fold of one split of a model's questions. Its training questions give probes, heads,
directions, matrices, σ, embeddings, and the choice of K and α; its other questions are scored over
the whole grid of α. `conceptnb.studies.steering_analysis` reads the runs.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    AutoConfig,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from conceptnb.core.files import tracked_files
from conceptnb.steering.activations import Activations, collect_activations
from conceptnb.steering.comparison import Fold, Settings
from conceptnb.steering.divergence import NeutralTexts
from conceptnb.steering.intervention import Steering
from conceptnb.steering.language_models import find_language_model, load_language_model
from conceptnb.steering.questions import Question
from conceptnb.steering.scoring import choice_scores
from conceptnb.steering.small_models import load_small_model, small_models
from conceptnb.steering.steer import MatrixIntervention
from conceptnb.steering.techniques import MASS_MEAN, SENTENCE_BERT, TECHNIQUES, category_oracle
from conceptnb.steering.truthfulqa import read_truthfulqa
from conceptnb.studies.runner import Plan, Row, Sample, Study, Task
from conceptnb.studies.steering_analysis import BASELINE, table6_rows
from conceptnb.studies.steering_cost import needs

_STORIES = 8
_KL = (
    "KL(original ‖ steered), nats per token, on neutral text; kl_asked: the same under the edits "
    "that answer the tested questions"
)
_STRINGS = (
    "tested: one character per question, 1 where it is in the tested fold; right: one character "
    "per tested question, 1 where the best answer was the most probable"
)


def toy_runs(corpus: str, model_seeds: Sequence[int], **options: Any) -> list[Row]:
    """Compare techniques on folds of a toy corpus's questions.

    Parameters
    ----------
    corpus : str
    model_seeds : sequence of int
        Of the small language models.
    **options
        ``seeds`` of the splits of the questions; ``tested``, numbers of the folds to test, and
        ``folds``, how many there are; ``heads`` and ``alphas``, to choose K and α from;
        ``techniques``, by default all; ``chosen``, false where K and α are given;
        ``shuffle_labels``, a control: learn from labels that say nothing.

    Returns
    -------
    list of dict
        A run per model, split, fold and technique, with its scores at the chosen α; ``tested``
        and ``curve`` as in `conceptnb.studies.steering_analysis`. ``kl`` takes λ from the neutral
        text itself, ``kl_asked`` from a question of the tested fold.
    """
    return [
        {"world": corpus, "model_seed": model_seed, **run}
        for model_seed in model_seeds
        for run in _runs(_small(corpus, model_seed), **options)
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
    """Compare techniques on one fold of TruthfulQA's questions, or of a file of its format.

    `fingerprint` is that of weights and questions: finished tasks belong to these alone.
    """
    del fingerprint  # in the arguments, and so in the task's key
    subject = _real(model, dtype, device_map, data, tuple(texts), options["batch_size"])
    name = Path(model).name
    return [{"world": name, "model_seed": 0, **run} for run in _runs(subject, **options)]


@dataclass(frozen=True)
class _Subject:
    """A language model, what it is asked, its activations, and its view of neutral texts."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    questions: Sequence[Question]
    activations: Activations
    neutral: NeutralTexts


def _subject(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    texts: Sequence[str],
    batch_size: int,
) -> _Subject:
    activations = collect_activations(model, tokenizer, questions, batch_size)
    neutral = NeutralTexts(model, tokenizer, texts, batch_size=batch_size)
    return _Subject(model, tokenizer, questions, activations, neutral)


@functools.lru_cache(maxsize=1)  # the folds of a model follow each other
def _small(corpus: str, seed: int) -> _Subject:
    facts, model, tokenizer = load_small_model(corpus, seed)
    stories = itertools.islice(facts.stories(np.random.default_rng(99)), _STORIES)
    return _subject(model, tokenizer, facts.questions(), list(stories), Settings.batch_size)


@functools.lru_cache(maxsize=1)
def _real(
    name: str, dtype: str, device_map: str | None, data: str, texts: Sequence[str], batch_size: int
) -> _Subject:
    questions, _ = read_truthfulqa(None if data == "truthfulqa" else data)
    model, tokenizer = load_language_model(name, dtype, device_map)
    return _subject(model, tokenizer, questions, texts, batch_size)


def _runs(
    subject: _Subject, seeds: Sequence[int], tested: Sequence[int], **options: Any
) -> list[Row]:
    """Return the runs of some folds of some splits."""
    return [
        run
        for seed in seeds
        for fold in tested
        for run in _fold_runs(subject, seed, fold, **options)
    ]


def _fold_runs(
    subject: _Subject,
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
        activations = _with_shuffled_labels(activations, np.random.default_rng(seed))
    model, tokenizer, questions = subject.model, subject.tokenizer, subject.questions
    part = Fold(model, tokenizer, questions, activations, settings, seed, fold)
    inside = {question.id for question in part.test}
    tested = "".join("01"[question.id in inside] for question in questions)
    runs = []
    for name in techniques or [BASELINE, *known]:
        if name == BASELINE:
            n_heads, alpha, points = 0, 0.0, {0.0: _point(subject, part, None)}
        else:
            n_heads, alpha, steerings = part.fit(known[name], list(known).index(name))
            points = {strength: _point(subject, part, s) for strength, s in steerings}
        curve = [{"alpha": strength, **point} for strength, (point, _) in points.items()]
        runs.append(
            {"seed": seed, "fold": fold, "method": name, "chosen": chosen}
            | {"heads": n_heads, "alpha": alpha}
            | points[alpha][1]
            | {"tested": tested, "curve": curve}
        )
    return runs


def _point(subject: _Subject, fold: Fold, steering: Steering | None) -> tuple[Row, Row]:
    """Return a point of the curve, and the scores of a run that chooses it."""
    order = {question.id: i for i, question in enumerate(subject.questions)}
    test = sorted(fold.test, key=lambda question: order[question.id])
    scores = choice_scores(test, fold.scorer.score(steering))
    moved = asked = subject.neutral.measure(steering)
    if isinstance(steering, MatrixIntervention):  # a vector edits every text alike
        asked = subject.neutral.measure(steering, [question.text for question in fold.test])
    of_texts = {"ce": moved[0], "kl": moved[1], "kl_asked": asked[1]}
    distance = {key: round(float(each.mean()), 5) for key, each in of_texts.items()}
    means = {key: round(float(getattr(scores, key).mean()), 5) for key in ("mc1", "mc2", "mc3")}
    right = "".join(str(int(x)) for x in scores.mc1)
    return {**distance, "mc2": means["mc2"], "right": right}, {**means, **distance}


def _with_shuffled_labels(activations: Activations, rng: np.random.Generator) -> Activations:
    true = activations.true.copy()
    for name in dict.fromkeys(activations.ids):
        rows = np.flatnonzero(activations.ids == name)
        true[rows] = rng.permutation(true[rows])
    return replace(activations, true=true)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--split-seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--heads", type=int, nargs="+", help="numbers of heads K to choose from")
    parser.add_argument("--alpha", type=float, nargs="+", help="strengths α to choose from")
    real = parser.add_argument_group("a real model", "without --model the toy corpora are run")
    real.add_argument("--model", help="name on the hub, or folder, of a causal language model")
    real.add_argument("--data", default="truthfulqa", help="'truthfulqa', or a file of its format")
    real.add_argument("--texts", help="neutral texts: a file, one per line, or a data set's name")
    real.add_argument("--dtype", default="auto", choices=["auto", "float32", "float16", "bfloat16"])
    real.add_argument("--device-map", help="as in transformers, for instance 'auto' (accelerate)")
    real.add_argument("--sentence-bert", action="store_true", help="also embed by Sentence-BERT")
    real.add_argument("--batch-size", type=int, default=8)
    real.add_argument("--yes", action="store_true", help="start without asking")


def _plans(args: argparse.Namespace) -> list[Plan]:
    return [_toy_plan(args) if args.model is None else _real_plan(args)]


def _splits(args: argparse.Namespace, usual: Settings) -> list[dict[str, Any]]:
    """Return what the options say of every fold of every split."""
    grid = {"heads": args.heads or list(usual.heads), "alphas": args.alpha or list(usual.alphas)}
    return [
        {"seeds": [seed], "tested": [fold], "folds": args.folds, **grid}
        for seed in args.split_seeds
        for fold in range(args.folds)
    ]


def _toy_plan(args: argparse.Namespace) -> Plan:
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
        "kl": f"{_KL}; here the stories of the toy corpus",
        "strings": _STRINGS,
        "seed": "of the split into folds; model_seed: of the trained model",
        "chosen": "runs with chosen = false have K and α given; tests compute them again",
        "paper_table": "table6",
        "rows_on_page": (len(TECHNIQUES) + 2) * len({kind for kind, _ in small_models()}),
    }
    sample = Sample(sampled, ("mc1", "mc2", "kl"), wrong, by=("world", "method", "chosen"))
    return Plan("steering", [*tasks, sampled], table6_rows, args.split_seeds, notes, sample)


def _real_plan(args: argparse.Namespace) -> Plan:
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
        "fingerprint": _fingerprint(source, questions),
        "batch_size": args.batch_size,
        "sentence_bert": args.sentence_bert,
    }
    notes = {
        "model": args.model,
        "data": edition,
        "texts": args.texts,
        "kl": _KL,
        "strings": _STRINGS,
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


def _fingerprint(model: str, questions: Sequence[Question]) -> str:
    """Return a hash of a model's files (of one on the hub, of its commit) and of questions."""
    total = hashlib.sha256(repr(list(questions)).encode())
    folder = Path(model)
    if not folder.is_dir():
        total.update(str(AutoConfig.from_pretrained(model)._commit_hash).encode())
        return total.hexdigest()
    for path in tracked_files(folder):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        total.update(f"{path.relative_to(folder)} {content}".encode())
    return total.hexdigest()


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


STUDY = Study(_add_options, _plans)
