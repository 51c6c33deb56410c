"""A list of questions with right and wrong answers -> probes and steering (Appendix E)."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.core.table_files import read_table, read_text, require_columns
from conceptnb.steering.activations import collect_activations
from conceptnb.steering.methods import MASS_MEAN, MATRIX, METHODS, Training
from conceptnb.steering.probes import fit_probes
from conceptnb.steering.questions import Question, check_questions
from conceptnb.steering.scoring import AnswerScorer, ChoiceScores, choice_scores

COLUMNS = ("question", "best_answer", "incorrect_answers")
"""What a file must have; ``correct_answers``, ``category`` and ``id`` may be there too."""
TECHNIQUES = ("random direction", MASS_MEAN, MATRIX)
BASELINE = "not steered"
SEPARATOR = ";"


def read_questions(path: str | Path, encoding: str = "utf-8-sig") -> list[Question]:
    """Read questions from a CSV file, or from JSON lines (``.jsonl``).

    Parameters
    ----------
    path : path
        With the columns (keys) ``question``, ``best_answer`` and ``incorrect_answers``; several
        answers in one cell are separated by ``;``, in JSON they may be a list.
    encoding : str

    Returns
    -------
    list of Question
        The best answer first.

    Raises
    ------
    ValueError
        If columns are missing, a question has no best or no incorrect answer, an answer is both
        right and wrong, or a question is there twice; names file and row.
    """
    file = Path(path)
    rows = _json_lines(file, encoding) if file.suffix == ".jsonl" else _csv_rows(file, encoding)
    questions, seen = [], dict[str, int]()
    for number, row in rows:
        where = f"{file}, row {number}"
        question = _question(row, where)
        for kind, name in (("the question", question.text), ("the id", question.id)):
            if name in seen:
                raise ValueError(f"{where}: {kind} {name!r} is in row {seen[name]}, too")
            seen[name] = number
        questions.append(question)
    return questions


def write_questions(questions: Sequence[Question], path: str | Path) -> None:
    """Write questions as a CSV file that `read_questions` reads."""
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *COLUMNS, "correct_answers", "category"])
        for q in questions:
            parts: dict[bool, list[str]] = {True: [], False: []}
            for k, (answer, true) in enumerate(zip(q.answers, q.true, strict=True)):
                if k != q.best:
                    parts[true].append(answer)
            joined = {true: SEPARATOR.join(answers) for true, answers in parts.items()}
            writer.writerow(
                [q.id, q.text, q.answers[q.best], joined[False], joined[True], q.category]
            )


def _csv_rows(file: Path, encoding: str) -> list[tuple[int, dict[str, Any]]]:
    table = read_table(file, encoding)
    require_columns(table, COLUMNS, file)
    records = table.to_dict(orient="records")
    return [(k, {str(n): v for n, v in row.items()}) for k, row in enumerate(records, start=2)]


def _json_lines(file: Path, encoding: str) -> list[tuple[int, dict[str, Any]]]:
    if not file.is_file():
        raise FileNotFoundError(f"{file} is no file: give the path of a list of questions")
    rows = []
    for number, line in enumerate(read_text(file, encoding).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{file}, row {number}: no JSON ({error}); one object a line"
            ) from None
        missing = [name for name in COLUMNS if not isinstance(row, dict) or name not in row]
        if missing:
            raise ValueError(f"{file}, row {number} lacks the keys {missing}")
        rows.append((number, row))
    if not rows:
        raise ValueError(f"{file} is empty: write one JSON object a line, with {list(COLUMNS)}")
    return rows


def _question(row: dict[str, Any], where: str) -> Question:
    text, best = str(row["question"]).strip(), str(row["best_answer"]).strip()
    correct, incorrect = _answers(row.get("correct_answers")), _answers(row["incorrect_answers"])
    if not text:
        raise ValueError(f"{where}: the question is empty")
    if not best:
        raise ValueError(f"{where}: best_answer of {text!r} is empty; every question needs one")
    if not incorrect:
        raise ValueError(
            f"{where}: incorrect_answers of {text!r} is empty. Answers are judged in pairs: give "
            f"at least one that is wrong, several separated by {SEPARATOR!r}"
        )
    true = list(dict.fromkeys([best, *correct]))
    if both := [answer for answer in true if answer in incorrect]:
        raise ValueError(f"{where}: {both} are both right and wrong answers to {text!r}")
    return Question(
        id=str(row.get("id") or where.rsplit(" ", 1)[-1]),
        text=text,
        answers=(*true, *incorrect),
        true=(True,) * len(true) + (False,) * len(incorrect),
        category=str(row.get("category") or ""),
    )


def _answers(cell: Any) -> list[str]:
    parts = cell if isinstance(cell, list) else str(cell or "").split(SEPARATOR)
    return list(dict.fromkeys(str(part).strip() for part in parts if str(part).strip()))


@dataclass(frozen=True, eq=False)
class SteeringReport:
    """What steering does to answers that it was not fitted to, and what speaks against it.

    Attributes
    ----------
    questions : list of Question
    scores : dict of str to ChoiceScores
        By technique, in the order of `questions`; each question was scored by what the other
        half taught.
    probe_accuracy : ndarray of shape (layers, heads)
        Balanced accuracy of probes for truth on held-out questions, mean of both halves.
    warnings : list of str
    """

    questions: list[Question]
    scores: dict[str, ChoiceScores]
    probe_accuracy: np.ndarray
    warnings: list[str] = field(default_factory=list)

    def summary(self) -> pd.DataFrame:
        """Return a row for each technique: MC1, MC2, and the gain in MC1 with its error.

        The error is the standard error of the mean paired difference over questions.
        """
        rows = []
        for name, found in self.scores.items():
            gain, error = paired_gain(found.mc1, self.scores[BASELINE].mc1)
            rows.append(
                {
                    "technique": name,
                    "MC1": f"{found.mc1.mean():.3f}",
                    "MC2": f"{found.mc2.mean():.3f}",
                    "gain in MC1": "" if name == BASELINE else f"{gain:+.3f} ± {error:.3f}",
                }
            )
        return pd.DataFrame(rows)


def paired_gain(steered: np.ndarray, baseline: np.ndarray) -> tuple[float, float]:
    """Return the mean difference over questions, and its standard error."""
    difference = np.asarray(steered, dtype=float) - np.asarray(baseline, dtype=float)
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))


def steer_questions(
    questions: Sequence[Question],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    n_heads: int = 16,
    alpha: float = 2.0,
    techniques: Sequence[str] = TECHNIQUES,
    seed: int = 0,
) -> SteeringReport:
    """Fit probes and steering on one half of the questions, and score the other half; both ways.

    Parameters
    ----------
    questions : sequence of Question
    model, tokenizer
        Any causal language model of the transformers library.
    n_heads : int
        Heads that are steered, those with the best probes.
    alpha : float
        Strength in standard deviations. Fixed here and not searched for, so that nothing is
        chosen on the questions that are scored.
    techniques : sequence of str
        Names from `conceptnb.steering.methods.METHODS`.
    seed : int

    Returns
    -------
    SteeringReport

    Raises
    ------
    ValueError
        If there are fewer than 16 questions, or a technique is not known.
    """
    known = list(questions)
    check_questions(known)
    if len(known) < 16:
        raise ValueError(f"{len(known)} questions are too few to split in halves; give 16 or more")
    if unknown := [name for name in techniques if name not in METHODS]:
        raise ValueError(f"techniques={unknown} are not known; there are {list(METHODS)}")
    activations = collect_activations(model, tokenizer, known)
    order = np.random.default_rng(seed).permutation(len(known))
    halves = [[known[i] for i in order[::2]], [known[i] for i in order[1::2]]]
    answered: dict[str, dict[str, np.ndarray]] = {name: {} for name in (BASELINE, *techniques)}
    accuracy = []
    for k, (train, test) in enumerate([halves, halves[::-1]]):
        mine = activations.select(train)
        probes = fit_probes(mine, train, np.random.default_rng([seed, k]))
        accuracy.append(probes.accuracy)
        training = Training(mine, train, probes, model, tokenizer)
        scorer, heads = AnswerScorer(model, tokenizer, test), probes.top(n_heads)
        answered[BASELINE] |= scorer.score()
        for name in techniques:
            fitted = METHODS[name](training, np.random.default_rng([seed, k, 1]))
            answered[name] |= scorer.score(fitted.steer(alpha, heads))
    scores = {name: choice_scores(known, found) for name, found in answered.items()}
    report = SteeringReport(known, scores, np.mean(accuracy, axis=0))
    report.warnings.extend(_about_questions(known, tokenizer))
    report.warnings.extend(_about_results(report))
    return report


def _about_questions(questions: list[Question], tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Return what makes a list of questions a poor test: size, length, unknown words."""
    said = []
    if len(questions) < 100:
        said.append(
            f"{len(questions)} questions: MC1 is known to ± {0.5 / np.sqrt(len(questions)):.2f} "
            "at best (one standard error)."
        )
    longest = float(
        np.mean([len(q.answers[q.best]) > max(_lengths_of_wrong(q)) for q in questions])
    )
    chance = float(np.mean([1 / len(q.answers) for q in questions]))
    if longest > min(0.9, 2 * chance):
        said.append(
            f"In {longest:.0%} of the questions the best answer is the longest (chance: "
            f"{chance:.0%}): a probe can learn length instead of truth."
        )
    if tokenizer.unk_token_id is not None:
        tokens = [t for q in questions for t in tokenizer(q.text)["input_ids"]]
        unknown = float(np.mean([t == tokenizer.unk_token_id for t in tokens]))
        if unknown > 0.02:
            said.append(
                f"{unknown:.0%} of the questions' tokens are unknown to this model: it cannot "
                "read them."
            )
    return said


def _lengths_of_wrong(question: Question) -> list[int]:
    pairs = zip(question.answers, question.true, strict=True)
    return [len(answer) for answer, true in pairs if not true]


def _about_results(report: SteeringReport) -> list[str]:
    said = []
    baseline = report.scores[BASELINE].mc1
    if baseline.mean() > 0.95:
        said.append(f"MC1 is {baseline.mean():.2f} without steering: there is nothing to gain.")
    if (best := float(report.probe_accuracy.max())) < 0.6:
        said.append(f"No head tells truth (best probe {best:.2f}; chance is 0.5).")
    for name, found in report.scores.items():
        gain, error = paired_gain(found.mc1, baseline)
        if name == "random direction":
            if gain > 2 * error and gain > 0:
                said.append(
                    f"A random direction gains {gain:+.3f}: the change comes from disturbing the "
                    "model, and not from the direction."
                )
        elif name != BASELINE and gain <= 2 * error:
            said.append(f"{name}: no gain beyond two standard errors ({gain:+.3f} ± {error:.3f}).")
    return said
