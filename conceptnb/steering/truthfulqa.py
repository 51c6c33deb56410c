"""TruthfulQA: its 817 questions, with a checksum (Table 6's data).

The file is not part of the package. It is read from a path, from the folder
named by the environment variable ``CONCEPTNB_DATA``, or downloaded.
"""

from __future__ import annotations

import csv
import hashlib
import os
from pathlib import Path

import pooch

from conceptnb.steering.questions import Question

# The edition of 2021; the file of the same name one folder up is the shorter one of 2025.
URL = "https://raw.githubusercontent.com/sylinrl/TruthfulQA/main/data/v0/TruthfulQA.csv"
SHA256 = "f9bd9e859cc102cb1f647f1064da7e009be752c416845cf9fa56e6eaae403a7d"
FILE_NAME = "TruthfulQA.csv"
_COLUMNS = {"Category", "Question", "Best Answer", "Correct Answers", "Incorrect Answers"}
_EDITIONS = {
    817: "the 817 questions of the published results",
    790: "the 790 questions of January 2025: NOT COMPARABLE with published results on 817",
}


def find_truthfulqa(path: str | Path | None = None) -> Path:
    """Path of ``TruthfulQA.csv``: as given, from ``CONCEPTNB_DATA``, or downloaded and checked.

    Raises
    ------
    FileNotFoundError
        If ``path`` is given and is no file.
    ConnectionError, ValueError
        If the download fails, or is not the file with the known checksum.
    """
    if path is not None:
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"{path} is no file; give the path of {FILE_NAME}")
        return path
    folder = os.environ.get("CONCEPTNB_DATA")
    if folder and (Path(folder) / FILE_NAME).is_file():
        return Path(folder) / FILE_NAME
    return Path(pooch.retrieve(URL, f"sha256:{SHA256}", fname=FILE_NAME, progressbar=True))


def edition(questions: list[Question], path: Path) -> str:
    """Which edition of the data set a file holds, in words for a results table."""
    known = _EDITIONS.get(len(questions), f"{len(questions)} questions: NOT COMPARABLE")
    exact = hashlib.sha256(path.read_bytes()).hexdigest() == SHA256
    return known if exact or len(questions) != 817 else f"{known}, but the file differs"


def read_truthfulqa(path: str | Path) -> list[Question]:
    """Read the questions of a TruthfulQA file.

    Parameters
    ----------
    path
        A CSV file with columns Category, Question, Best Answer, Correct Answers
        and Incorrect Answers, the last two separated by semicolons.

    Returns
    -------
    list of Question
        In the file's order, with ids ``"0"``, ``"1"``, ...; the best answer comes
        first, and an answer listed twice is kept once.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        missing = _COLUMNS - set(reader.fieldnames or ())
        if missing:
            raise ValueError(f"{path} lacks the columns {sorted(missing)}")
        return [_question(str(i), row) for i, row in enumerate(reader)]


def _question(name: str, row: dict[str, str]) -> Question:
    best = row["Best Answer"].strip()
    true = list(dict.fromkeys([best, *_split(row["Correct Answers"])]))
    false = list(dict.fromkeys(_split(row["Incorrect Answers"])))
    return Question(
        id=name,
        text=row["Question"].strip(),
        answers=(*true, *false),
        true=(True,) * len(true) + (False,) * len(false),
        best=0,
        category=row["Category"].strip(),
    )


def _split(cell: str) -> list[str]:
    return [answer.strip() for answer in cell.split(";") if answer.strip()]
