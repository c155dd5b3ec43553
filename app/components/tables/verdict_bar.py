"""Show a line above the stage: whether the predictions on a user's table are usable."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import Text, WideRow, button, set_changed
from bnnviz_app.theme import styles

_STYLES = styles(__file__)
_PART = "verdict"
_TONES = {"usable": "good", "not_usable": "bad"}


class VerdictBar(PageComponent):
    """Show the data, the verdict, and the next actions."""

    needs = frozenset({_PART})

    def __init__(self, on_row: Callable[[], None], on_data: Callable[[], None]) -> None:
        self._about = ""
        self._text = Text(margin=0, stylesheets=[_STYLES["text"]])
        self.enlarged = [self._text]
        look = {"variant": "outlined", "margin": 0}
        self._content = self._text, button("Predict a row", on_row, **look), button("Columns", on_data, **look)
        # Empty until it is first shown: most pages are painted without it.
        self.root = WideRow(visible=False, css_classes=["verdict"], stylesheets=[_STYLES["bar"]])

    def arrange(self, emits: frozenset[str]) -> None:
        """Show it where a run gives a verdict."""
        if self.needs <= emits and not self.root:
            self.root.extend(self._content)
        set_changed(self.root, visible=self.needs <= emits)

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin with a new run."""
        file = scene["spec"]["file"]
        self._about = f"<b>{html.escape(file['name'])}: {html.escape(file['target'])}</b>" if file else ""
        self._write("No verdict yet.", "")

    def update(self, frame: dict[str, Any]) -> None:
        """Show the verdict."""
        if _PART in frame:
            part = frame[_PART]
            self._write(part["text"], _TONES.get(part["code"], ""))

    def _write(self, sentence: str, tone: str) -> None:
        set_changed(self._text, object=f"<div>{self._about} <span class='{tone}'>{html.escape(sentence)}</span></div>")
