"""Ask what only a person can know of a table, with the answers that there are."""

from __future__ import annotations

from typing import NamedTuple

from bnnviz.errors import BnnvizError
from bnnviz.remedies import option

_SHOWN = 12  # names in a sentence


class Answer(NamedTuple):
    """One answer to a question about a table."""

    label: str
    option: str
    values: tuple[str, ...]


class TableQuestion(BnnvizError):
    """A table that cannot be read before somebody has answered."""

    def __init__(self, said: str, remedy: str, answers: tuple[Answer, ...], field: str = "data") -> None:
        super().__init__(said + remedy, field)
        self.said, self.remedy, self.answers = said, remedy, answers

    def __reduce__(self) -> tuple:
        return type(self), (self.said, self.remedy, self.answers, self.field)

    @property
    def question(self) -> str:
        """What is open, as a sentence."""
        return self.said if self.said.endswith("?") else f"{self.said}."


def leave_out(*names: str) -> Answer:
    """Return the answer that leaves columns out."""
    return Answer("Leave it out" if len(names) == 1 else "Leave them out", "leave_out", names)


def left_out(*names: str) -> str:
    """Return the words that leave columns out, with the option where that is not too long to be read."""
    words = f"leave {'it' if len(names) == 1 else 'them'} out"
    return f"{words} ({option(leave_out=list(names))})" if len(names) <= _SHOWN else words


def otherwise(remedy: str, key: str, is_target: bool) -> str:
    """Return what helps with a column: a remedy, or to leave the column out if it is not to be predicted."""
    return f"; {remedy}." if is_target else f"; {remedy}, or {left_out(key)}."
