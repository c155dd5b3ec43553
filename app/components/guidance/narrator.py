"""Complement the widgets for users of the keyboard, of a screen reader or of reduced motion."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import param
from panel.custom import JSComponent

from bnnviz.engine.throttle import Throttle
from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import script, set_changed

PACE_S = 3.0  # between two announcements while the run plays: a screen reader needs the time to read one


class Access(JSComponent):
    """Announce texts from an invisible element, and complement the widgets in the browser."""

    message = param.String(default="", doc="The text for a screen reader.")

    live = param.Boolean(default=True, doc="Whether a screen reader announces the text when it changes.")

    _esm = script(__file__, "narrator.js")


class Narrator(PageComponent):
    """Announce the latest event, immediately after a step and occasionally while the run plays."""

    def __init__(self, playing: Callable[[], bool] = lambda: False, figures: bool = False) -> None:
        self.root = Access(width=0, height=0, sizing_mode="fixed")
        self.needs = frozenset({"caption", "status"} if figures else {"caption"})
        self._playing, self._figures = playing, figures
        self._pace = Throttle(least=PACE_S)

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new run."""
        self._pace.expire()

    def update(self, frame: dict[str, Any]) -> None:
        """Write the texts of a frame; while the run plays, only some are announced."""
        announced = not self._playing() or self._pace.due
        if announced:
            self._pace.spent()
        figures = _figures(frame["status"]) if self._figures else ""
        parts = (frame["caption"]["text"], frame["caption"]["warning"], figures)
        self.say(" ".join(part for part in parts if part), announced)

    def say(self, text: str, announced: bool = True) -> None:
        """Write a text; an empty one changes nothing."""
        if text:
            set_changed(self.root, live=announced, message=text)


def _figures(status: dict[str, Any]) -> str:
    """Return the progress of the run."""
    ess = f", effective sample size {status['ess']:,.0f}" if math.isfinite(status["ess"]) else ""
    return f"Step {status['step']:,}, {status['draws']:,} draws{ess}."
