"""Texts that look alike or hold what nobody sees, in files of questions: refused, or doubted.

A file is judged row by row as it is read. What cannot be meant is refused; what may be meant, but
changes tokens without showing, is collected and warned of once, by file and row.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u2800\u3164\uffa0"
"""Characters that show nothing, although Unicode counts them among marks, letters and symbols."""

_JOINERS = "\u200c\u200d"  # parts of the spelling of Persian, of emoji and of others
_SPECIAL = re.compile(
    r"<\|[^<>|\s]+\|>|<\uff5c[^<>\s]+\uff5c>|</?(?:s|bos|eos|pad|unk|mask)>"
    r"|<(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>|\[(?:CLS|SEP|MASK|PAD)\]"
)
_NOTHING_ELSE = "spaces, composition or invisible characters alone"
_MOST = 5


def _is_invisible(character: str) -> bool:
    variation = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    return unicodedata.category(character) == "Cf" or character in _BLANK or variation


def visible(text: str) -> str:
    """Return what a reader sees of a text: composed, without what is invisible, one space each."""
    seen = "".join(x for x in text if not _is_invisible(x))
    return " ".join(unicodedata.normalize("NFC", seen).split())


def _codes(characters: Iterable[str]) -> str:
    return ", ".join(f"U+{ord(x):04X}" for x in dict.fromkeys(characters))


@dataclass
class TextChecks:
    """What was found in one file so far.

    Parameters
    ----------
    file : Path
        Whose name stands in what is said.
    strict : bool
        Whether a right answer that looks like a wrong one is refused, and not doubted.
    """

    file: Path
    strict: bool = True
    doubts: list[str] = field(default_factory=list)
    questions: dict[str, tuple[int, str]] = field(default_factory=dict)

    def check(
        self, row: int, question: str, right: list[str], wrong: list[str], whole: bool
    ) -> None:
        """Refuse a row's texts or note what is doubtful.

        Parameters
        ----------
        right, wrong : list of str
            Its answers, the best one first.
        whole : bool
            Whether the best answer's ``;`` did not separate answers, as that of others does.

        Raises
        ------
        ValueError
            If a text holds control characters or shows nothing, or a right answer looks like a
            wrong one; names file and row.
        """
        where = f"{self.file}, row {row}"
        for text in (question, *right, *wrong):
            self._characters(row, where, text)
        self._question(row, question)
        self._answers(row, where, right, wrong)
        if whole and ";" in right[0]:
            self._doubt(row, f"the best answer {right[0]!r} stays whole, but ';' separates others")

    def warn(self) -> None:
        """Warn once of all that is doubtful, the first few rows named."""
        if self.doubts:
            more = len(self.doubts) - _MOST
            rest = f"; and {more} more" if more > 0 else ""
            warnings.warn(
                f"{self.file}: {'; '.join(self.doubts[:_MOST])}{rest}", UserWarning, stacklevel=3
            )

    def _doubt(self, row: int, said: str) -> None:
        self.doubts.append(f"row {row}: {said}")

    def _characters(self, row: int, where: str, text: str) -> None:
        odd = [x for x in text if unicodedata.category(x) in ("Cc", "Cs")]
        if bad := [x for x in odd if not x.isspace()]:
            raise ValueError(
                f"{where}: {text!r} holds control characters ({_codes(bad)}): take them out"
            )
        if not visible(text):
            raise ValueError(f"{where}: {text!r} shows nothing ({_codes(text)}): write a text")
        if breaks := [x for x in odd if x not in "\n\r\t"]:
            self._doubt(row, f"{text!r} holds control characters ({_codes(breaks)})")
        if hidden := [x for x in text if unicodedata.category(x) == "Cf" and x not in _JOINERS]:
            self._doubt(row, f"{text!r} holds invisible characters ({_codes(hidden)})")
        if special := _SPECIAL.search(text):
            said = "looks like a special token: models read it as one"
            self._doubt(row, f"{special.group()!r} in {text!r} {said}")

    def _question(self, row: int, text: str) -> None:
        key = visible(text).replace(" ", "")
        other, before = self.questions.setdefault(key, (row, text))
        if other != row:
            self._doubt(row, f"{text!r} differs from {before!r} in row {other} by {_NOTHING_ELSE}")

    def _answers(self, row: int, where: str, right: list[str], wrong: list[str]) -> None:
        seen: dict[str, tuple[str, bool]] = {}
        for text, true in [*((x, True) for x in right), *((x, False) for x in wrong)]:
            before, of_right = seen.setdefault(visible(text).replace(" ", ""), (text, true))
            if before == text:
                continue
            said = f"{text!r} differs from {before!r} by {_NOTHING_ELSE}"
            same = visible(text) == visible(before)
            if true is not of_right and same and self.strict:
                raise ValueError(f"{where}: {said}, and one is right, the other wrong")
            self._doubt(row, said)
