"""Define common widgets and functions for pages and components."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as pmui

from bnnviz_app.theme import styles

_STYLES = styles(__file__)
_DOM = (Path(__file__).parent / "dom.js").read_text(encoding="utf-8")


class Text(pn.pane.HTML):
    """Show HTML that changes often.

    Panel's pane looks up the files of its design at each change, which takes as long as drawing a frame.
    """

    priority = 0  # never chosen by Panel itself
    sizing_mode = "stretch_width"

    def _update(self, ref: str, model: Any) -> None:
        model.update(**self._process_param_change({"object": self.object}))


class WideColumn(pn.Column):
    """A column as wide as its place."""

    sizing_mode = "stretch_width"


class WideRow(pn.Row):
    """A row as wide as its place."""

    sizing_mode = "stretch_width"


def script(beside: str, name: str) -> str:
    """Read a script of a component, with the functions of ``dom.js`` before it."""
    return _DOM + Path(beside).with_name(name).read_text(encoding="utf-8")


def set_changed(widget: Any, **values: Any) -> None:
    """Set only changed properties: every change is sent to the browser."""
    changed = {name: value for name, value in values.items() if getattr(widget, name) != value}
    if changed:
        widget.param.update(**changed)


def set_class(pane: Any, name: str, on: bool) -> None:
    """Add a CSS class to a pane, or remove it."""
    kept = [each for each in pane.css_classes or [] if each != name]
    set_changed(pane, css_classes=[*kept, name] if on else kept)


#: How a button in the page's header looks.
HEADER = {
    "margin": (0, 2),
    "align": "center",
    "sx": {"color": "#fff", "opacity": 0.85, "fontSize": "14px", "minWidth": 0, "padding": "4px 8px"},
}
#: How a button in the heading of a card looks.
LINK = {"fontSize": "12.5px", "minWidth": 0, "padding": "0 6px", "textTransform": "none", "whiteSpace": "nowrap"}


def button(label: str, on_click: Callable[[], Any], **params: Any) -> pmui.Button:
    """Return a small button; its action may be a coroutine function."""
    made = pmui.Button(label=label, **{"variant": "text", "size": "small"} | params)
    made.on_click(_without_event(on_click))
    return made


def _without_event(on_click: Callable[[], Any]) -> Callable[[Any], Any]:
    """Return a widget's callback; Panel awaits only recognisable coroutine functions."""
    if not iscoroutinefunction(on_click):
        return lambda event: on_click()

    async def wait(event: Any) -> None:
        await on_click()

    return wait


def icon_button(icon: str, description: str, on_click: Callable[[], Any], **params: Any) -> pmui.IconButton:
    """Return a small button with a sign."""
    made = pmui.IconButton(icon=icon, description=description, **{"size": "small"} | params)
    made.on_click(_without_event(on_click))
    return made


def download_button(variant: str = "contained", **params: Any) -> pmui.FileDownload:
    """Return a small button that makes its file when it is pressed.

    The library passes a button's variant to a second initialiser, which warns about the duplicate: so the variant is
    set afterwards.
    """
    made = pmui.FileDownload(embed=False, auto=True, **{"size": "small"} | params)
    made.variant = variant
    return made


class Message:
    """Show a message of a control or a page on a line, which takes no room while empty."""

    def __init__(self, **params: Any) -> None:
        params = {"margin": (0, 14), "stylesheets": [_STYLES["message"]]} | params
        self.root = Text(visible=False, **params)

    def say(self, sentence: str, failed: bool = False) -> None:
        """Show a message, or remove it if empty; screen readers announce it, immediately after a failure."""
        role = "class='error' role='alert'" if failed else "class='note' role='status'"
        text = f"<div {role}>{html.escape(sentence)}</div>" if sentence else ""
        self.root.param.update(object=text, visible=bool(sentence))


class ReaderChoice:
    """Report the user's choices in widgets, but no values that the page sets."""

    def __init__(self, widgets: Sequence[Any], on_choice: Callable[[Any], None], watched: str = "value") -> None:
        self._on_choice, self._setting = on_choice, False
        for widget in widgets:
            widget.param.watch(self._changed, watched)

    @contextmanager
    def setting(self) -> Iterator[None]:
        """Report nothing while the page sets values."""
        self._setting = True
        try:
            yield
        finally:
            self._setting = False

    def _changed(self, event: Any) -> None:
        if not self._setting:
            self._on_choice(event)
