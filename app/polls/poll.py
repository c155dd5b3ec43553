"""Hold the question that a class is asked, and count its answers.

While a question is open, the answer of each person stands in memory under a keyed hash, so that it can be changed. When
the question is closed, the key and the single answers go, and numbers are left. Nothing is written anywhere.
"""

from __future__ import annotations

import hmac
import secrets
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import panel as pn

from bnnviz.errors import BnnvizError
from bnnviz_app.access.gate import Gate
from bnnviz_app.access.roles import Role

NONE, OPEN, CLOSED, SHOWN = "none", "open", "closed", "shown"  # phases of a question
MOST_ANSWERS = 1_000  # people who are counted: more than a class has
MOST_TEXT, MOST_CHOICE = 300, 120  # characters
LEAST_CHOICES, MOST_CHOICES = 2, 6
_POLL = "poll"  # under this name the server keeps it
_OWNERS = "Questions are the teacher's: students of a class answer them."


@dataclass(frozen=True)
class PollText:
    """Say a question in one language."""

    text: str
    choices: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True)
class PollQuestion:
    """Hold a question in the languages that it is there in."""

    language: str
    texts: Mapping[str, PollText]
    answer: int | None

    @property
    def size(self) -> int:
        """The number of choices."""
        return len(self.texts[self.language].choices)


class PollViewer(Protocol):
    """Name what a poll asks of the pages that show its question."""

    def refresh(self) -> None:
        """Show the question as it is now."""

    def people(self, gate: Gate) -> set[str]:
        """Return which students look at it."""


class Poll:
    """Ask one question after another."""

    def __init__(self) -> None:
        self.question: PollQuestion | None = None
        self.phase, self.number = NONE, ""
        self._key = b""
        self._answers: dict[bytes, int] = {}
        self._counts: tuple[int, ...] = ()
        self._viewers: weakref.WeakSet[PollViewer] = weakref.WeakSet()

    # ---- what the teacher does ----------------------------------------------------------------------------

    def ask(self, role: Role, question: PollQuestion) -> None:
        """Open a question; the one before goes."""
        _check_teacher(role)
        self.question, self.phase = question, OPEN
        self.number, self._key = secrets.token_urlsafe(9), secrets.token_bytes(32)
        self._answers, self._counts = {}, ()
        self._changed()

    def close(self, role: Role) -> None:
        """Take no more answers, and keep of those that came their numbers alone."""
        _check_teacher(role)
        if self.phase == OPEN:
            self._counts, self.phase = self.counts, CLOSED
            self._answers, self._key = {}, b""
            self._changed()

    def show(self, role: Role) -> None:
        """Show the numbers, and what is right, to everybody; answers are not taken any more."""
        self.close(role)
        if self.phase == CLOSED:
            self.phase = SHOWN
            self._changed()

    def end(self, role: Role) -> None:
        """Take the question off all pages."""
        _check_teacher(role)
        self.question, self.phase, self.number = None, NONE, ""
        self._answers, self._counts, self._key = {}, (), b""
        self._changed()

    # ---- what students do ---------------------------------------------------------------------------------

    def answer(self, person: str, number: Any, choice: Any) -> None:
        """Take the answer of a person, in the place of an earlier one."""
        if self.phase != OPEN or number != self.number:
            raise BnnvizError("This question is not open: no answer was taken.", "question")
        if type(choice) is not int or not 0 <= choice < self.question.size:
            raise BnnvizError(f"Choose one of 0 to {self.question.size - 1}.", "choice")
        who = hmac.digest(self._key, person.encode(errors="replace"), "sha256")
        if who not in self._answers and len(self._answers) >= MOST_ANSWERS:
            raise BnnvizError("More have answered than a class has people: no answer was taken.", "question")
        self._answers[who] = choice

    # ---- what is seen -------------------------------------------------------------------------------------

    @property
    def counts(self) -> tuple[int, ...]:
        """How many have chosen each of the choices."""
        if self.phase != OPEN:
            return self._counts
        counted = Counter(self._answers.values())
        return tuple(counted[choice] for choice in range(self.question.size))

    def told(self) -> dict[str, Any]:
        """Return what pages of students hold: no number and nothing of what is right until it is shown."""
        if self.question is None:
            return {}
        shown = self.phase == SHOWN
        texts = {
            language: {"text": said.text, "choices": list(said.choices)} | ({"reason": said.reason} if shown else {})
            for language, said in self.question.texts.items()
        }
        told = {"number": self.number, "phase": self.phase, "language": self.question.language, "texts": texts}
        return told | ({"counts": list(self.counts), "answer": self.question.answer} if shown else {})

    def join(self, viewer: PollViewer) -> None:
        """Have a page shown each change, as long as it is there."""
        self._viewers.add(viewer)

    def people(self, gate: Gate) -> int:
        """Return how many students have a page open that shows the question."""
        return len(set().union(*(viewer.people(gate) for viewer in list(self._viewers))))

    def _changed(self) -> None:
        for viewer in list(self._viewers):
            viewer.refresh()


def current() -> Poll:
    """Return the poll of this server's class."""
    return pn.state.cache.setdefault(_POLL, Poll())


def typed(given: Any, language: str, words: Callable[..., str]) -> PollQuestion:
    """Return the question that a teacher has typed."""
    given = given if isinstance(given, dict) else {}
    said, listed, answer = _plain(given.get("text")), given.get("choices"), given.get("answer")
    rows = [_plain(each) for each in listed] if isinstance(listed, list) else []
    choices = [row for row in rows if row]
    if not said:
        raise BnnvizError(words("no_text"), "text")
    if len(said) > MOST_TEXT:
        raise BnnvizError(words("long_text", most=MOST_TEXT, count=len(said)), "text")
    if not LEAST_CHOICES <= len(choices) <= MOST_CHOICES:
        raise BnnvizError(words("choices", least=LEAST_CHOICES, most=MOST_CHOICES, count=len(choices)), "choices")
    longest = max(choices, key=len)
    if len(longest) > MOST_CHOICE:
        raise BnnvizError(words("long_choice", most=MOST_CHOICE, count=len(longest)), "choices")
    if len(set(choices)) < len(choices):
        raise BnnvizError(words("same"), "choices")
    right = None
    if type(answer) is int and 0 <= answer < len(rows):
        if not rows[answer]:
            raise BnnvizError(words("empty_right"), "answer")
        right = choices.index(rows[answer])
    return PollQuestion(language, {language: PollText(said, tuple(choices))}, right)


def _plain(text: Any) -> str:
    """Return a text as one line of what can be printed."""
    line = " ".join(text.split()) if isinstance(text, str) else ""
    return "".join(letter for letter in line if letter.isprintable())


def _check_teacher(role: Role) -> None:
    if not role.keeps:
        raise BnnvizError(_OWNERS)
