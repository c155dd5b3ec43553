"""Ask a class one question at a time, and count the answers without names.

While a question is open, each person's answer is held in memory under a keyed hash, so that it can be changed. When the
question closes, key and answers are deleted and only the counts stay.
"""

from __future__ import annotations

import hmac
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bnnviz.errors import BnnvizError

NONE, OPEN, CLOSED, SHOWN = "none", "open", "closed", "shown"  # phases of a question
MOST_ANSWERS = 1_000  # people who are counted: more than a class has
MOST_TEXT, MOST_CHOICE = 300, 120  # characters
LEAST_CHOICES, MOST_CHOICES = 2, 6


@dataclass(frozen=True)
class PollText:
    """A question in one language."""

    text: str
    choices: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True)
class PollQuestion:
    """A question in its languages, with the number of the right choice if there is one."""

    language: str
    texts: Mapping[str, PollText]
    answer: int | None

    @property
    def size(self) -> int:
        """The number of choices."""
        return len(self.texts[self.language].choices)


class Poll:
    """The open question and its answers."""

    def __init__(self) -> None:
        self.end()

    def ask(self, question: PollQuestion) -> None:
        """Open a question in place of the one before."""
        self.question, self.phase = question, OPEN
        self.number, self._key = secrets.token_urlsafe(9), secrets.token_bytes(32)
        self._answers, self._counts = {}, ()

    def close(self) -> None:
        """Take no more answers, and delete all but the counts."""
        if self.phase == OPEN:
            self._counts, self.phase = self.counts, CLOSED
            self._answers, self._key = {}, b""

    def show(self) -> None:
        """Close the question, and show counts and right answer to all students."""
        self.close()
        if self.phase == CLOSED:
            self.phase = SHOWN

    def end(self) -> None:
        """Take the question away."""
        self.question: PollQuestion | None = None
        self.phase, self.number, self._key = NONE, "", b""
        self._answers: dict[bytes, int] = {}
        self._counts: tuple[int, ...] = ()

    def answer(self, person: str, number: Any, choice: Any) -> None:
        """Count the answer of a person, in place of an earlier one."""
        if self.phase != OPEN or number != self.number:
            raise BnnvizError("This question is closed, so the answer was not counted.", "question")
        if type(choice) is not int or not 0 <= choice < self.question.size:
            raise BnnvizError(f"Choose one of 0 to {self.question.size - 1}.", "choice")
        who = hmac.digest(self._key, person.encode(errors="replace"), "sha256")
        if who not in self._answers and len(self._answers) >= MOST_ANSWERS:
            raise BnnvizError(f"{MOST_ANSWERS} people have answered; no more are counted.", "question")
        self._answers[who] = choice

    @property
    def counts(self) -> tuple[int, ...]:
        """How many have chosen each of the choices."""
        if self.phase != OPEN:
            return self._counts
        counted = Counter(self._answers.values())
        return tuple(counted[choice] for choice in range(self.question.size))

    def seen(self, by_teacher: bool) -> dict[str, Any] | None:
        """Return the question as JSON; students get counts, right answer and reason once they are shown."""
        if self.question is None:
            return None
        shown = self.phase == SHOWN
        texts = {
            language: {"text": statement.text, "choices": list(statement.choices)}
            | ({"reason": statement.reason} if shown else {})
            for language, statement in self.question.texts.items()
        }
        seen: dict[str, Any] = {"number": self.number, "phase": self.phase, "texts": texts}
        if shown or by_teacher:
            seen["counts"] = list(self.counts)
        if shown:
            seen["answer"] = self.question.answer
        return seen


def typed(given: Mapping[str, Any], language: str) -> PollQuestion:
    """Return the question that a teacher has typed, checked."""
    text, listed, answer = _line(given.get("text")), given.get("choices"), given.get("answer")
    rows = [_line(each) for each in listed] if isinstance(listed, list) else []
    choices = [row for row in rows if row]
    if not text:
        raise BnnvizError("Write a question.", "text")
    if len(text) > MOST_TEXT:
        raise BnnvizError(f"A question has at most {MOST_TEXT} characters; this one has {len(text)}.", "text")
    if not LEAST_CHOICES <= len(choices) <= MOST_CHOICES:
        raise BnnvizError(
            f"A question has {LEAST_CHOICES} to {MOST_CHOICES} choices; this one has {len(choices)}.", "choices"
        )
    longest = max(map(len, choices))
    if longest > MOST_CHOICE:
        raise BnnvizError(f"A choice has at most {MOST_CHOICE} characters; one has {longest}.", "choices")
    if len(set(choices)) < len(choices):
        raise BnnvizError("Two choices are equal. Change one of them.", "choices")
    right = None
    if type(answer) is int and 0 <= answer < len(rows):
        if not rows[answer]:
            raise BnnvizError("The correct choice is empty. Fill it in or mark a different choice.", "answer")
        right = choices.index(rows[answer])
    return PollQuestion(language, {language: PollText(text, tuple(choices))}, right)


def _line(text: Any) -> str:
    """Return a text as one line of printable characters."""
    line = " ".join(text.split()) if isinstance(text, str) else ""
    return "".join(letter for letter in line if letter.isprintable())
