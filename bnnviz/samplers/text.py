"""What a sampler says of its moves: sentences and rows of the table, from the means of what it reports."""

from __future__ import annotations

from typing import Any, ClassVar


class Text:
    """Says what the moves of a sampler did, by the names in its ``info_means``; a family may say it better.

    Parameters
    ----------
    sampler : Sampler
    """

    #: What is said before the first move has ended.
    waiting: ClassVar[str] = "The first move has not ended yet."

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def caption(self, state: Any, info: Any, chain: int) -> str:
        """Say what the last move did to a chain."""
        return self._said({name: float(getattr(info, name)[chain]) for name in self.sampler.info_means}) + "."

    def mean_rows(self, means: dict[str, float]) -> list[list[str]]:
        """Return means over moves as rows (label, text, tone) of the table view."""
        named = self.sampler.info_means.items()
        return [[label[0].upper() + label[1:], f"{means[name]:.3g}", ""] for name, label in named]

    def mean_words(self, means: dict[str, float]) -> str:
        """Return means over moves as the end of a sentence."""
        return f"on average {self._said(means)}"

    def rows(self, state: Any) -> list[list[str]]:
        """Return figures on the chains where they are now, as rows (label, text, tone) of the table view."""
        return []

    def warning(self, figures: dict[str, float]) -> tuple[str, list[dict[str, Any]]]:
        """Return a sentence on what is known to be wrong with the settings ("" if nothing), and remedies."""
        return "", []

    def _said(self, values: dict[str, float]) -> str:
        return ", ".join(f"{label} {values[name]:.3g}" for name, label in self.sampler.info_means.items())
