"""TruthfulQA: its 817 questions, which are no part of the package, with a checksum (Table 6)."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pooch

from conceptnb.steering.questions import Question, read_questions

# The edition of 2021; the file of the same name one folder up is the shorter one of 2025.
_URL = "https://raw.githubusercontent.com/sylinrl/TruthfulQA/main/data/v0/TruthfulQA.csv"
_SHA256 = "f9bd9e859cc102cb1f647f1064da7e009be752c416845cf9fa56e6eaae403a7d"
_FILE = "TruthfulQA.csv"
_EDITIONS = {
    817: "the 817 questions of the published results",
    790: "the 790 questions of January 2025: NOT COMPARABLE with published results on 817",
}


def read_truthfulqa(path: str | Path | None = None) -> tuple[list[Question], str]:
    """Read TruthfulQA's questions, and say which edition they are.

    Parameters
    ----------
    path : path, optional
        A file of its format. By default ``TruthfulQA.csv`` in the folder that ``CONCEPTNB_DATA``
        names, or else downloaded and checked.

    Returns
    -------
    questions, edition
        The edition in words for a results table: whether results compare with published ones.

    Raises
    ------
    FileNotFoundError
        If `path` is given and is no file.
    ConnectionError
        If the download fails.
    ValueError
        If the download is not the file with the known checksum, or the file holds no such table.
    """
    file = _find() if path is None else Path(path)
    questions = read_questions(file, contradictions=True)
    known = _EDITIONS.get(len(questions), f"{len(questions)} questions: NOT COMPARABLE")
    exact = hashlib.sha256(file.read_bytes()).hexdigest() == _SHA256
    return questions, known if exact or len(questions) != 817 else f"{known}, but the file differs"


def _find() -> Path:
    folder = os.environ.get("CONCEPTNB_DATA")
    if folder and (Path(folder) / _FILE).is_file():
        return Path(folder) / _FILE
    return Path(pooch.retrieve(_URL, f"sha256:{_SHA256}", fname=_FILE, progressbar=True))
