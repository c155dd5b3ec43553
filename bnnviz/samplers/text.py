"""Describe a sampler's moves: captions and table rows from its statistics."""

from __future__ import annotations

from typing import Any, ClassVar

from bnnviz.messages import Message, fill


class MoveText:
    """Describe the moves of a sampler; without templates, by the labels in its ``info_means``."""

    waiting: ClassVar[str] = "The first move has not ended yet."
    move: ClassVar[str] = ""  # template of the caption, with the fields of an info
    # Templates with means over moves: of a clause, and of rows of the table view by their labels
    words: ClassVar[str] = ""
    table: ClassVar[dict[str, str]] = {}

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def caption(self, state: Any, info: Any, chain: int) -> str:
        """Describe a chain's last move."""
        values = {name: float(part[chain]) for name, part in info._asdict().items() if part.ndim == 1}
        return fill(self.move or f"{self._names() or 'the chain has moved'}.", values | self.more(state, values))

    def more(self, state: Any, values: dict[str, float]) -> dict[str, Any]:
        """Return further values for the caption, computed from the fields of an info."""
        return {}

    def mean_rows(self, means: dict[str, float]) -> list[list[str]]:
        """Return means over moves as rows (label, text, tone) of the table view."""
        names = {label[0].upper() + label[1:]: f"{{{name}:.3g}}" for name, label in self.sampler.info_means.items()}
        return [[label, fill(form, means), ""] for label, form in (self.table or names).items()]

    def mean_words(self, means: dict[str, float]) -> str:
        """Return means over moves as a clause."""
        names = self._names()
        return fill(self.words or (names and f"on average {names}"), means)

    def rows(self, state: Any) -> list[list[str]]:
        """Return statistics of the chains' current state as rows (label, text, tone) of the table view."""
        return []

    def warnings(self, figures: dict[str, float]) -> list[Message]:
        """Return warnings about the settings; remedies are settings of the sampler."""
        return []

    def _names(self) -> str:
        return ", ".join(f"{label} {{{name}:.3g}}" for name, label in self.sampler.info_means.items())


def percent(share: float) -> str:
    """Format a share as a percentage with two significant digits, three from 100% on."""
    return f"{float(f'{100 * share:.{2 if abs(share) < 0.995 else 3}g}'):g}%"
