"""Define questions about ambiguous tables and their possible answers."""

from __future__ import annotations

from typing import Any, NamedTuple

from bnnviz.errors import BnnvizError
from bnnviz.messages import Message, Remedy

_SHOWN = 12  # names in a message
_LISTS = ("missing", "leave_out")  # options that take a list


class Answer(NamedTuple):
    """One answer to a question about a table."""

    label: str
    option: str
    values: tuple[str, ...]


class TableQuestion(BnnvizError):
    """The error of a table that cannot be read without an answer of the user."""

    def __init__(self, question: str, answers: tuple[Answer, ...], hint: str = "", field: str = "data") -> None:
        ways = [Remedy(hint)] if hint else []
        ways += [Remedy(answer.label[0].lower() + answer.label[1:], _options(answer)) for answer in answers]
        super().__init__(Message("remark", *ways, text=question), field)
        self.question, self.answers, self._hint = question, answers, hint

    def __reduce__(self) -> tuple:
        return type(self), (self.question, self.answers, self._hint, self.field)


def _options(answer: Answer) -> dict[str, Any]:
    if len(answer.values) > _SHOWN:
        return {}
    return {answer.option: list(answer.values) if answer.option in _LISTS else answer.values[0]}


def leave_out(*names: str) -> Answer:
    """Return the answer that leaves columns out."""
    return Answer("Leave it out" if len(names) == 1 else "Leave them out", "leave_out", names)
