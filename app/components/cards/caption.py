"""Show the latest event, its meaning and remedies above the views."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import panel as pn

from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import Text, WideRow, button, set_changed, set_class
from bnnviz_app.theme import SHEETS, styles

_STYLES = styles(__file__)
_LINK = {
    "textDecoration": "underline",
    "padding": "0 8px !important",
    "fontSize": "var(--remedy-size, 12.5px)",
    "justifyContent": "flex-start",
}
_LINK_HEIGHT = {False: 16, True: 20}  # pixels, by whether it is for a projector
_PREDICT = "The run waits. Predict or reveal to continue."
_NOTHING: dict[str, Any] = {"text": "", "warning": "", "remedies": []}


class Caption(PageComponent):
    """Show the latest event, a warning, and remedies as links that apply settings."""

    needs = frozenset({"caption"})

    def __init__(self, on_remedy: Callable[[dict[str, Any]], None]) -> None:
        self._on_remedy = on_remedy
        # A question is open, and a warning would answer it.
        self.reserved: Callable[[], bool] = lambda: False
        self._notice, self._failed, self._large = "", False, False
        self._caption = _NOTHING
        self._offered: list[dict[str, Any]] = []
        sheets = [_STYLES["text"], SHEETS["large_caption"]]
        self._text = Text(margin=(0, 14), align="center", stylesheets=sheets)
        self._remedies = pn.Column(margin=(0, 10, 0, 0), align="center", stylesheets=[_STYLES["remedies"]])
        look = {"css_classes": ["area-caption"], "stylesheets": [_STYLES["strip"]], "styles": {"grid-area": "caption"}}
        self.root = WideRow(self._text, self._remedies, height=64, **look)
        self.enlarged = [self._text, self.root]

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new run."""
        self._caption = _NOTHING
        self.notice("")

    def update(self, frame: dict[str, Any]) -> None:
        """Show a frame."""
        self._caption = frame["caption"]
        self.write()

    def notice(self, sentence: str, *, failed: bool = False) -> None:
        """Show the run's state or failure; an empty text removes it."""
        self._notice, self._failed = sentence, failed
        self.write()

    def magnify(self, large: bool) -> None:
        """Take the type of the projector, or put it down."""
        super().magnify(large)
        self._large = large
        for link in self._remedies:
            set_changed(link, height=_LINK_HEIGHT[large])

    def write(self) -> None:
        """Write the strip again, for example after a change of `reserved`."""
        parts, warns = [], bool(self._caption["warning"]) and not self.reserved()
        if self._notice:
            parts.append(f"<span class='notice'>{html.escape(self._notice)}</span>")
        if self.reserved() and not self._failed:
            parts.append(f"<span class='happened'>{html.escape(_PREDICT)}</span>")
        elif not self._failed:
            if self._caption["text"]:
                parts.append(f"<span class='happened'>{html.escape(self._caption['text'])}</span>")
            if warns:
                parts.append(f"<span class='warning'>{html.escape(self._caption['warning'])}</span>")
        set_changed(self._text, object=f"<div class='statement'>{' '.join(parts)}</div>")
        set_class(self.root, "warned", warns and not self._failed)
        set_class(self.root, "failed", self._failed)
        self._offer([] if self._failed or self.reserved() else self._caption["remedies"])

    def _offer(self, remedies: list[dict[str, Any]]) -> None:
        if remedies == self._offered:
            return
        self._offered = remedies
        self._remedies[:] = [self._button(remedy) for remedy in remedies]

    def _button(self, remedy: dict[str, Any]) -> Any:
        look = {"margin": 0, "height": _LINK_HEIGHT[self._large], "sx": _LINK}
        return button(remedy["label"], lambda: self._on_remedy(remedy["settings"]), **look)
