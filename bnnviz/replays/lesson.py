"""Say what a page of films says beside them: the steps of a lesson, its question, and all other words in its language.

Who has lessons hands them over as these; no text is HTML.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from bnnviz.engine.recording.replay_frames import ReplayFrames

#: A text in pieces, and of each whether it is a term that is explained.
Passage = tuple[tuple[str, bool], ...]
#: Terms, and what they mean.
Meanings = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ReplayStep:
    """Hold a step: its texts and its film."""

    number: int
    title: str
    text: Passage
    terms: Meanings
    film: ReplayFrames | None
    show: tuple[str, ...] = ()
    grid: str = ""
    note: str = ""


@dataclass(frozen=True)
class ReplayQuestion:
    """Hold a question, whose answer is not shown before somebody chooses."""

    text: Passage
    choices: tuple[str, ...]
    answer: int
    reason: Passage
    terms: Meanings


@dataclass(frozen=True)
class ReplayLesson:
    """Hold steps of a lesson, which one page shows."""

    title: str
    steps: tuple[ReplayStep, ...]
    question: ReplayQuestion
    words: dict[str, str]
    language: str = "en"

    def plain(self) -> dict[str, Any]:
        """Return the texts as JSON has them; of a film the place among the films."""
        films = iter(range(len(self.steps)))
        steps = [
            {
                "number": step.number,
                "title": step.title,
                "text": step.text,
                "terms": step.terms,
                "note": step.note,
                "film": None if step.film is None else next(films),
            }
            for step in self.steps
        ]
        return {
            "title": self.title,
            "steps": steps,
            "question": asdict(self.question),
            "words": self.words,
        }
