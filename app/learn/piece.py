"""Share what lessons give their readers to try by hand: a few cards, fed with what the reader has chosen."""

from __future__ import annotations

from typing import Any, ClassVar

import param
from bokeh.models import CustomJSTickFormatter, TickFormatter
from panel.custom import JSComponent

from bnnviz.views.base import View
from bnnviz_app.components.cards.cards import Card
from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import script
from bnnviz_app.learn import languages
from bnnviz_app.learn.languages import PieceWords

#: Of a line of controls: they are drawn later than the figure below them, which does not notice that they take room.
CONTROLS = {"min-height": "50px"}


def number_format(words: PieceWords) -> TickFormatter:
    """Return what writes the number of a slider as the language does, with two decimals.

    Bokeh's scripts know how English writes numbers, and no other of the languages that its formatter may be given.
    """
    mark = languages.page(words.language)["decimal"]
    return CustomJSTickFormatter(args={"mark": mark}, code="return tick.toFixed(2).replace('.', mark)")


class SpokenLanguage(JSComponent):
    """Tell screen readers the language of what stands beside this invisible element."""

    language = param.String(doc="Its code; empty where it is that of the page.")

    _esm = script(__file__, "language.js")

    def __init__(self, **params: Any) -> None:
        super().__init__(**{"width": 0, "height": 0, "margin": 0, "sizing_mode": "fixed", **params})


class PieceView(View):
    """Draw what a reader does by hand, in the reader's language."""

    def __init__(self, words: PieceWords, dark: bool) -> None:
        self.words = words
        super().__init__(dark=dark)
        self.title = self._titled()
        self.mark_decimals(languages.page(words.language)["decimal"])

    @property
    def description(self) -> str:
        """What the figure shows now, in words, for those who cannot see it."""
        x, y = self._labels
        axes = ", " + self.words("against", x=x, y=y) if x and y else ""
        return f"{self.title}{axes}: {self._words() or self.words('nothing')}"

    def _titled(self) -> str:
        return self.words(self.name)


class LessonPiece(PageComponent):
    """Show cards that follow what a reader does by hand; a class says which."""

    grid: ClassVar[str]  # CSS template of the stage
    cards: dict[str, Card]

    def __init__(self, dark: bool, words: PieceWords) -> None:
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
