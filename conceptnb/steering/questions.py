"""Multiple-choice questions: the record, its prompt and its checks (Appendix E, Table 6)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """A question with true and false answers.

    Attributes
    ----------
    id
        Unique name. Everything computed from a question carries it, so that a
        sort, filter or fold cannot pair a question with another one's activations.
    text
        The question itself.
    answers, true
        Answers and, in the same order, whether each is true.
    best
        Index of the best true answer (the one MC1 asks about).
    category
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

    def prompt(self, preface: str = "") -> str:
        """Prompt of the original method: ``Q: {question} A:``, after an optional preface."""
        return f"{preface}Q: {self.text} A:"


def check_questions(questions: list[Question]) -> None:
    """Raise ValueError if there is no question, or if two share an id."""
    if not questions:
        raise ValueError("questions is empty; give at least one Question")
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise ValueError(f"questions holds the id {question.id!r} twice; ids must be unique")
        seen.add(question.id)
