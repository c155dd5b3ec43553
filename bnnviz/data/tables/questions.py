"""Define questions about ambiguous tables; their answers are options of `bnnviz.data.read_table`."""

from __future__ import annotations

from reprlib import repr as short_repr

from bnnviz.errors import BnnvizError
from bnnviz.messages import Remedy


class TableQuestion(BnnvizError):
    """The error of a table that cannot be read without an answer of the user."""

    def __init__(self, question: str, answers: tuple[Remedy, ...], hint: str = "", field: str = "data") -> None:
        super().__init__(question, field, *([Remedy(hint)] if hint else []), *answers)
        self.question, self.answers, self._hint = question, answers, hint

    def __reduce__(self) -> tuple:
        return type(self), (self.question, self.answers, self._hint, self.field)


def leave_out(name: str) -> Remedy:
    """Return the answer that leaves a column out."""
    return Remedy("leave it out", {"leave_out": [name]})


def treat_as_missing(text: str) -> Remedy:
    """Return the answer that takes a text for a missing value."""
    return Remedy(f"treat {short_repr(text)} as missing", {"missing": [text]})
