"""Say and mend what the widgets leave out, for people who use the keyboard, a screen reader or reduced motion."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import param
from panel.custom import JSComponent

from bnnviz.engine.throttle import Throttle
from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import script

PACE_S = 3.0  # between two sentences while the run plays: a screen reader needs the time to say one


class Access(JSComponent):
    """Speak from an element that is not seen, and mend in the browser what the widgets do not do themselves."""

    message = param.String(default="", doc="What a screen reader says next.")

    _esm = script(__file__, "narrator.js")


class Narrator(PageComponent):
    """Tell the latest event, at once after a step and now and then while the run plays."""

    def __init__(self, playing: Callable[[], bool] = lambda: False, figures: bool = False) -> None:
        self.root = Access(width=0, height=0, margin=0, sizing_mode="fixed")
        self.needs = frozenset({"caption", "status"} if figures else {"caption"})
        self._playing, self._figures = playing, figures
        self._pace = Throttle(least=PACE_S)

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new run."""
        self._pace.expire()

    def update(self, frame: dict[str, Any]) -> None:
        """Tell what a frame shows."""
        if not self._playing() or self._pace.due:
            self._pace.spent()
            figures = _figures(frame["status"]) if self._figures else ""
            self.say(
                " ".join(part for part in (frame["caption"]["text"], frame["caption"]["warning"], figures) if part)
            )

    def say(self, text: str) -> None:
        """Say something, unless it has just been said; an empty text says nothing."""
        if text and text != self.root.message:
            self.root.message = text


def _figures(status: dict[str, Any]) -> str:
    """Say how far the run has come."""
    ess = f", effective sample size {status['ess']:,.0f}" if math.isfinite(status["ess"]) else ""
    return f"Step {status['step']:,}, {status['draws']:,} draws{ess}."
