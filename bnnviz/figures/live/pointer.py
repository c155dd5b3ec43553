"""Report the user's actions in a figure: picking events, dragging boxes, adding, moving and deleting points.

`pointer.js` handles mouse, touch and keyboard for all figures; a view declares its actions, and a page listens.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bokeh.models import ColumnDataSource, CustomJS
from bokeh.plotting import figure

from bnnviz.files import plain_json

_CODE = Path(__file__).with_name("pointer.js").read_text(encoding="utf-8")

Message = dict[str, Any]

_FARTHEST = 1e30  # coordinate limit: the page uses 32-bit floats


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _FARTHEST


def _is_place(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _FARTHEST


def _is_box(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 4 and all(map(_is_number, value))


_AT = {"x": _is_number, "y": _is_number}
#: The fields of each message besides its action.
_SAID: dict[str, dict[str, Callable[[Any], bool]]] = {
    "pick": {"event": lambda value: value is None or _is_place(value)},
    "box": {"box": lambda value: value is None or _is_box(value)},
    "add": _AT,
    "move": {"i": _is_place, **_AT, "done": lambda value: isinstance(value, bool)},
    "delete": {"i": _is_place},
    "undo": {},
    "class": {},
    "cell": _AT,
    "over": _AT,
    "out": {},
}


def read_message(text: Any) -> Message | None:
    """Return a message of `pointer.js`, or None for any other text, which may come from elsewhere."""
    try:
        message = plain_json(text)
    except (ValueError, TypeError):
        return None
    action = message.get("do") if isinstance(message, dict) else None
    parts = _SAID.get(action) if isinstance(action, str) else None
    if parts is None or not all(name in message and fits(message[name]) for name, fits in parts.items()):
        return None
    return message


class Pointer:
    """Report clicks, drags and keys in a figure; ``touch`` sets which of them."""

    def __init__(self, root: figure, **touch: bool) -> None:
        self._boxed = False
        chosen = {"picks": False, "cells": False, "hovers": False, "keyed": True} | touch
        tags = {"editable": False, "received": False, "unboxed": 0, **chosen}
        self._messages = ColumnDataSource({"statement": []}, tags=[tags])
        begin = CustomJS(args={"figure": root, "statement": self._messages}, code=_CODE)
        root.tags = [*root.tags, self._messages]
        for name in ("inner_width", "inner_height"):
            root.js_on_change(name, begin)
        self._messages.js_on_change("tags", begin)

    @property
    def editable(self) -> bool:
        """Whether points can be added, moved and deleted."""
        return self._messages.tags[0]["editable"]

    @editable.setter
    def editable(self, value: bool) -> None:
        if value != self.editable:
            self._messages.tags = [self._messages.tags[0] | {"editable": value}]

    def unbox(self) -> None:
        """Take the box away that was drawn in the figure."""
        if self._boxed:
            self._boxed = False
            self._messages.tags = [self._messages.tags[0] | {"unboxed": self._messages.tags[0]["unboxed"] + 1}]

    def listen(self, on_message: Callable[[Message], None]) -> None:
        """Listen to actions; needs a Bokeh server."""

        def receive(attr: str, old: Any, new: dict[str, Any]) -> None:
            statement = new.get("statement")
            for message in filter(None, map(read_message, statement if isinstance(statement, list) else [])):
                if message["do"] == "box":
                    self._boxed = message["box"] is not None
                on_message(message)

        self._messages.on_change("data", receive)
        # Without a listener, a figure leaves drags to Bokeh, which pans.
        self._messages.tags = [self._messages.tags[0] | {"received": True}]
