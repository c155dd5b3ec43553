"""Share the Lab's stage among figures: of the figures in one place, its tab brings one to the front."""

from __future__ import annotations

import html
from collections.abc import Callable, Set

import panel_material_ui as pmui

from bnnviz.figures.places import ORDER, PLACES, titles
from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import ReaderChoice, Text, WideRow, set_changed
from bnnviz_app.theme import styles

_LINES = {
    "band": "Blue: 95% of the sampled networks. Orange: the current one. Click to add a point.",
    "area": "Colour: the probability of a class. Line: probability one half. Click to add a point.",
    "intervals": "A bar: the 95% interval of a test row. On the diagonal predictions are exact.",
    "classes": "A bar: the probability that the draws give the class of a test row.",
    "envelope": "The path bounces if u × envelope < rate, u random in [0, 1].",
    "path": "Dots: draws. Line: the last segments of one path, which turns at each bounce.",
    "moves": "Dots: draws. Line: the last moves of one chain.",
    "graph": "Width: the size of a weight now. Grey: how far it varies over the draws. Magenta is negative.",
    "density": "Bars: the draws. Line: the exact density.",
    "population": "Ellipses: the proposals. Dots: their draws.",
    "spread": "Colour: how far the draws disagree about the probability.",
}
_TAB = {"& button": {"textTransform": "none", "padding": "2px 12px", "whiteSpace": "nowrap"}}
_STYLES = styles(__file__)


class Place(PageComponent):
    """Choose by tabs which card is in front in a place of the stage."""

    def __init__(self, name: str, on_turn: Callable[[], None]) -> None:
        self.name, self._on_turn = name, on_turn
        self.chosen: str | None = None
        self._kind = self._statement = ""
        self.parts: list[str] = []
        self._tabs = pmui.RadioButtonGroup(options=[], size="small", margin=0, sx=_TAB)
        self._choice = ReaderChoice((self._tabs,), lambda event: self._turn(event.new))
        self._line = Text(margin=(4, 4, 0, 12), stylesheets=[_STYLES["line"]])
        self.enlarged = [self._line]
        area = {"grid-area": f"{name}-tabs", "order": str(ORDER[name])}
        # Without the tabs until there are several parts: the page is painted sooner.
        self.root = WideRow(self._line, min_height=30, styles=area, stylesheets=[_STYLES["tabs"]])

    @property
    def front(self) -> str | None:
        """The part in front; None where the run has nothing for this place."""
        return self.chosen if self.chosen in self.parts else next(iter(self.parts), None)

    def offer(self, parts: list[str], kind: str) -> None:
        """Share the place among these parts of a run whose prediction is of this kind."""
        self.parts, self._kind = parts, kind
        self._show()

    def bring(self, parts: Set[str]) -> None:
        """Bring the first available of these parts to the front."""
        self.chosen = next((part for part in PLACES[self.name] if part in parts), self.chosen)
        self._show()

    def say(self, text: str) -> None:
        """Show this text next to the tabs instead of that of the part in front."""
        self._statement, had_line = text, self.root.visible
        self._show()
        if self.root.visible != had_line:  # the stage needs a row for it, or no more
            self._on_turn()

    def _turn(self, part: str) -> None:
        self.chosen = part
        self._show()
        self._on_turn()

    def _show(self) -> None:
        names = titles(self.name)
        # Beside the prediction, instead of an envelope, is the path of a sampler without events.
        lines = {"prediction": self._kind, "path": "moves" if self.name == "why" else "path"}
        text = self._statement or _LINES.get(lines.get(self.front or "", self.front or ""), "")
        with self._choice.setting():
            options = {names[part]: part for part in self.parts}
            set_changed(self._tabs, options=options, value=self.front, visible=len(self.parts) > 1)
        if self._tabs.visible and self._tabs not in self.root:
            self.root.insert(0, self._tabs)
        set_changed(self._line, object=html.escape(text), visible=bool(text))
        self.root.visible = len(self.parts) > 1 or bool(self.parts and text)
