"""Mark the selection of one view in all views: an event under the pointer, or the draws in a box."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bnnviz.figures.live.view import View
from bnnviz_app.components.component import PageComponent

PART = "selection"
_NOTHING = {"kind": "none"}


class SelectionLink(PageComponent):
    """Link the views."""

    def __init__(self, views: dict[str, View], on_pick: Callable[[dict[str, Any] | None], None]) -> None:
        self._views, self._on_pick = views, on_pick
        self._box: dict[str, Any] | None = None
        self.active = False
        for part, view in views.items():
            if view.pointer is not None:
                view.pointer.listen(partial(self._receive, part))

    def reset(self, scene: dict[str, Any] | None = None) -> None:
        """Begin a new run, in which nothing is picked."""
        self._box, self.active = None, False
        self._unbox()

    def forget(self) -> None:
        """Take the marks away: the draws that they were of have gone."""
        self.reset()
        self.mark(_NOTHING)

    def mark(self, selection: dict[str, Any]) -> None:
        """Mark the selection of a frame."""
        for view in self._views.values():
            view.mark(selection if self.active else _NOTHING)

    def _receive(self, part: str, message: dict[str, Any]) -> None:
        if message["do"] == "box":
            self._box = None if message["box"] is None else {"view": part, "box": message["box"]}
            self._unbox(but=part)
            self._choose(self._box)
        elif message["do"] == "pick":
            # Leaving an event restores the previous box.
            self._choose(self._box if message["event"] is None else {"event": message["event"]})

    def _unbox(self, but: str = "") -> None:
        """Take away the boxes drawn in all views but one."""
        for part, view in self._views.items():
            if part != but and view.pointer is not None:
                view.pointer.unbox()

    def _choose(self, choice: dict[str, Any] | None) -> None:
        self.active = choice is not None
        self._on_pick(choice)
        if not self.active:
            self.mark(_NOTHING)
