"""Multiple-choice questions: the record, its prompt, its checks and files (App. E, Table 6)."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from conceptnb.common.table_files import read_table, read_text, require_columns
from conceptnb.steering.question_texts import TextChecks

_COLUMNS = ("question", "best_answer", "incorrect_answers")
_SEPARATOR = ";"

PromptStyle = Literal["paper", "lm-eval", "chat"]

PREFACE_FILE = "qa_preface.txt"
"""Worked examples of lm-evaluation-harness, in the folder that ``CONCEPTNB_DATA`` names."""


@dataclass(frozen=True)
class Question:
    """A question with true and false answers.

    Parameters
    ----------
    id : str
        Unique name. Everything computed from a question carries it, so that a
        sort, filter or fold cannot pair a question with another one's activations.
    true : tuple of bool
        Whether each of the answers is true.
    best : int
        Index of the best true answer (the one MC1 asks about).
    category : str
        Topic of the question.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    true: tuple[bool, ...]
    best: int = 0
    category: str = ""

    def __post_init__(self) -> None:
        if len(self.answers) != len(self.true):
            raise ValueError(
                f"question {self.id!r} has {len(self.answers)} answers but {len(self.true)} "
                "entries in true; give one for each answer"
            )
        if all(self.true) or not any(self.true):
            raise ValueError(
                f"question {self.id!r} needs at least one true and one false answer, "
                f"given true={self.true}"
            )
        if not (0 <= self.best < len(self.answers) and self.true[self.best]):
            raise ValueError(f"best={self.best} of question {self.id!r} is not a true answer")

    def prompt(self, preface: str = "", style: PromptStyle = "paper") -> str:
        """Return the question as it is put to a model, after a preface that is taken as it is.

        `style` is ``"paper"`` for the original method's ``Q: {question} A:``, or ``"lm-eval"`` for
        that of lm-evaluation-harness, where the answer begins on a line of its own. There is no
        other without a tokenizer, which `encode_questions` has: ValueError.
        """
        if style not in ("paper", "lm-eval"):
            raise ValueError(f"prompt is {style!r}; give 'paper', 'lm-eval' or 'chat'")
        return f"{preface}Q: {self.text}{' ' if style == 'paper' else chr(10)}A:"


def check_questions(questions: list[Question]) -> None:
    """Raise ValueError if there is no question, or if two share an id."""
    if not questions:
        raise ValueError("questions is empty; give at least one Question")
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise ValueError(f"questions holds the id {question.id!r} twice; ids must be unique")
        seen.add(question.id)


def read_questions(
    path: str | Path, encoding: str = "utf-8-sig", contradictions: bool = False
) -> list[Question]:
    """Read questions from CSV, JSON lines (``.jsonl``) or a multiple-choice task (``.json``).

    Parameters
    ----------
    path : path
        With the columns (keys) ``question``, ``best_answer`` and ``incorrect_answers``, and
        perhaps ``correct_answers``, ``category`` and ``id``; ``Best Answer``, as TruthfulQA
        writes it, is the same. Several answers in one cell are separated by ``;``, in JSON they
        may be a list. A multiple-choice task is a list of objects in the form that TruthfulQA's
        has: ``question``, and ``mc1_targets`` and ``mc2_targets`` with 1 or 0 for each choice.
    contradictions : bool
        Accept answers that are listed as right and as wrong, as two of TruthfulQA's are.

    Returns
    -------
    list of Question
        The best answer first, and none twice. Without ids the file's row numbers are taken.

    Raises
    ------
    ValueError
        If columns are missing, a question has no best or no incorrect answer, an answer is both
        right and wrong, also as it looks, or a question is there twice; or a text holds control
        characters or shows nothing. Names file and row.

    Warns
    -----
    UserWarning
        Once, of texts that differ only in spaces, composition or invisible characters, of what
        looks like a special token, and of best answers that hold the separator; by row.
    """
    file = Path(path)
    read = {".jsonl": _json_lines, ".json": _task_rows}.get(file.suffix.lower(), _csv_rows)
    rows = read(file, encoding)
    questions, seen = [], dict[tuple[str, str], int]()
    checks = TextChecks(file, strict=not contradictions)
    for number, row in rows:
        where = f"{file}, row {number}"
        question = _question(row, where, contradictions)
        split = file.suffix.lower() not in (".json", ".jsonl")
        _check_looks(checks, number, question, split)
        for kind, name in (("the question", question.text), ("the id", question.id)):
            if (kind, name) in seen:
                raise ValueError(f"{where}: {kind} {name!r} is in row {seen[kind, name]}, too")
            seen[kind, name] = number
        questions.append(question)
    checks.warn()
    return questions


def _check_looks(checks: TextChecks, row: int, question: Question, split: bool) -> None:
    parts: dict[bool, list[str]] = {True: [], False: []}
    for answer, true in zip(question.answers, question.true, strict=True):
        parts[true].append(answer)
    best = question.answers[question.best]
    right = [best, *(x for x in parts[True] if x != best)]
    checks.check(row, question.text, right, parts[False], split)


def refuse_few(questions: Sequence[Question], source: str, fewest: int = 16) -> None:
    """Refuse questions too few to fit on one half and to judge on the other."""
    if len(questions) < fewest:
        raise ValueError(
            f"{source}: {len(questions)} questions are too few to split in halves; give {fewest} "
            "or more"
        )


def write_questions(questions: Sequence[Question], path: str | Path) -> None:
    """Write questions as a CSV file that `read_questions` reads; ValueError if it could not."""
    for q in questions:
        if bad := [a for k, a in enumerate(q.answers) if k != q.best and _SEPARATOR in a]:
            raise ValueError(
                f"question {q.id!r}: {bad} hold {_SEPARATOR!r}, which separates answers in a CSV "
                "file: write them as lists, in JSON lines"
            )
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *_COLUMNS, "correct_answers", "category"])
        for q in questions:
            parts: dict[bool, list[str]] = {True: [], False: []}
            for k, (answer, true) in enumerate(zip(q.answers, q.true, strict=True)):
                if k != q.best:
                    parts[true].append(answer)
            joined = {true: _SEPARATOR.join(answers) for true, answers in parts.items()}
            writer.writerow(
                [q.id, q.text, q.answers[q.best], joined[False], joined[True], q.category]
            )


def _csv_rows(file: Path, encoding: str) -> list[tuple[int, dict[str, Any]]]:
    table = read_table(file, encoding)
    plain = {str(name): str(name).lower().replace(" ", "_") for name in table.columns}
    if len(set(plain.values())) == len(plain):
        table = table.rename(columns=plain)
    require_columns(table, _COLUMNS, file)
    records = table.to_dict(orient="records")
    return [
        (int(k) + 2, {str(n): v for n, v in row.items()})
        for k, row in zip(table.index, records, strict=True)
    ]


def _text(file: Path, encoding: str) -> str:
    if not file.is_file():
        raise FileNotFoundError(f"{file} is no file: give the path of a list of questions")
    return read_text(file, encoding)


def _task_rows(file: Path, encoding: str) -> list[tuple[int, dict[str, Any]]]:
    """Return the questions of a multiple-choice task; a row is the object's place in the list."""
    try:
        found = json.loads(_text(file, encoding))
    except json.JSONDecodeError as error:
        raise ValueError(f"{file} is no JSON ({error})") from None
    rows = []
    for number, row in enumerate(found if isinstance(found, list) else [], start=1):
        where = f"{file}, row {number}"
        try:
            text, one, all_ = (row[k] for k in ("question", "mc1_targets", "mc2_targets"))
            _check_texts([text or None], where)
            one, all_ = _choices(one), _choices(all_)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ValueError(f"{where} lacks question, mc1_targets or mc2_targets") from None
        best = [choice for choice, true in one.items() if true]
        if len(best) != 1 or one != {c: t for c, t in all_.items() if c in best or not t}:
            raise ValueError(
                f"{where}: mc1_targets of {text!r} has to hold one of the right choices of "
                "mc2_targets, and all of its wrong ones"
            )
        rows.append((number, {"question": text, "best": best[0], "choices": all_}))
    if not rows:
        raise ValueError(f"{file} holds no list of questions")
    return rows


def _choices(targets: dict[str, Any]) -> dict[str, bool]:
    """Return whether each choice is right, of either form in which TruthfulQA is published."""
    if set(targets) == {"choices", "labels"}:
        targets = dict(zip(targets["choices"], targets["labels"], strict=True))
    return {str(choice): bool(label) for choice, label in targets.items()}


def _json_lines(file: Path, encoding: str) -> list[tuple[int, dict[str, Any]]]:
    rows = []
    for number, line in enumerate(_text(file, encoding).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{file}, row {number}: no JSON ({error}); one object per line"
            ) from None
        missing = [name for name in _COLUMNS if not isinstance(row, dict) or name not in row]
        if missing:
            raise ValueError(f"{file}, row {number} lacks the keys {missing}")
        rows.append((number, row))
    if not rows:
        raise ValueError(f"{file} is empty: write one JSON object per line, with {list(_COLUMNS)}")
    return rows


def _question(row: dict[str, Any], where: str, contradictions: bool) -> Question:
    if "choices" in row:  # as they are, every space included
        answers, true = zip(*row["choices"].items(), strict=True)
        best_of = answers.index(row["best"])
        return Question(where.rsplit(" ", 1)[-1], str(row["question"]), answers, true, best_of)
    cells = [row.get(k) or [] for k in ("correct_answers", "incorrect_answers")]
    lists = [part for cell in cells for part in (cell if isinstance(cell, list) else [cell])]
    given = ["" if row[k] is None else row[k] for k in ("question", "best_answer")]
    _check_texts([*given, *lists], where)
    text, best = (str(cell).strip() for cell in given)
    correct, incorrect = _answers(row.get("correct_answers")), _answers(row["incorrect_answers"])
    if not text:
        raise ValueError(f"{where}: the question is empty")
    if not best:
        raise ValueError(f"{where}: best_answer of {text!r} is empty; every question needs one")
    if not incorrect:
        raise ValueError(
            f"{where}: incorrect_answers of {text!r} is empty. Answers are judged in pairs: give "
            f"at least one that is wrong, several separated by {_SEPARATOR!r}"
        )
    right = list(dict.fromkeys([best, *correct]))
    both = [answer for answer in right if answer in incorrect]
    if both and not contradictions:
        raise ValueError(f"{where}: {both} are both right and wrong answers to {text!r}")
    return Question(
        id=where.rsplit(" ", 1)[-1] if row.get("id") in (None, "") else str(row["id"]),
        text=text,
        answers=(*right, *incorrect),
        true=(True,) * len(right) + (False,) * len(incorrect),
        category=str(row.get("category") or ""),
    )


def _check_texts(cells: Sequence[Any], where: str) -> None:
    for cell in cells:
        said = isinstance(cell, str) or (type(cell) in (int, float) and math.isfinite(cell))
        if not said:
            raise ValueError(f"{where}: {cell!r} is no text; questions and answers are")


def _answers(cell: Any) -> list[str]:
    parts = cell if isinstance(cell, list) else str(cell or "").split(_SEPARATOR)
    return list(dict.fromkeys(str(part).strip() for part in parts if str(part).strip()))


def read_preface(file: Path | None, prompt: PromptStyle) -> str:
    """Return the worked examples of a file and the blank line after them, or nothing.

    Without a file, prompts in the style of lm-evaluation-harness take `PREFACE_FILE` from the
    folder that ``CONCEPTNB_DATA`` names; the paper's have no examples.

    Raises
    ------
    FileNotFoundError
        If the file is missing.
    ValueError
        If it is empty.
    """
    folder = os.environ.get("CONCEPTNB_DATA")
    if file is None and prompt == "lm-eval":
        file = Path(folder) / PREFACE_FILE if folder else None
        if file is None or not file.is_file():
            raise FileNotFoundError(
                "--prompt lm-eval needs its worked examples: give a file with --preface, or put "
                f"{PREFACE_FILE} into the folder that CONCEPTNB_DATA names"
            )
    if file is None:
        return ""
    if not file.is_file():
        raise FileNotFoundError(f"--preface={file} is no file")
    text = read_text(file).strip()
    if not text:
        raise ValueError(f"--preface={file} is empty")
    return f"{text}\n\n"
