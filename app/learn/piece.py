"""Share what lessons give their readers to try by hand: a few cards, fed with what the reader has chosen."""

from __future__ import annotations

from typing import Any, ClassVar

from bnnviz_app.components.cards.cards import Card
from bnnviz_app.components.component import PageComponent

#: Of a line of controls: they are drawn later than the figure below them, which does not notice that they take room.
CONTROLS = {"min-height": "50px"}


class LessonPiece(PageComponent):
    """Show cards that follow what a reader does by hand; a class says which."""

    grid: ClassVar[str]  # CSS template of the stage
    cards: dict[str, Card]

    def __init__(self, dark: bool) -> None:
        raise NotImplementedError

    @classmethod
    def prepared(cls) -> bool:
        """Tell whether what takes a while has been done; it is done once for all readers."""
        return True

    @classmethod
    def prepare(cls) -> None:
        """Do what takes a while."""

    def begin(self) -> None:
        """Go back to where the reader began."""
        for card in self.cards.values():
            card.reset({})
        self.paint()

    def frame(self) -> dict[str, Any]:
        """Return what the views show."""
        raise NotImplementedError

    def paint(self) -> None:
        """Show what the reader has chosen."""
        frame = self.frame()
        for card in self.cards.values():
            card.update(frame)
            card.head()

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""
        for card in self.cards.values():
            card.theme(dark)

    def magnify(self, large: bool) -> None:
        """Take the type of the projector, or put it down."""
        for card in self.cards.values():
            card.magnify(large)
