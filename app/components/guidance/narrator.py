"""For people who use the keyboard, a screen reader or reduced motion: what the widgets leave out."""

from __future__ import annotations

import math
import time
from typing import Any

import param
from panel.custom import JSComponent

PACE_S = 3.0  # between two sentences while the run plays: a screen reader needs the time to say one


class Access(JSComponent):
    """An element that is heard, not seen; it also mends in the browser what the widgets do not do themselves."""

    said = param.String(default="", doc="What a screen reader says next.")

    _esm = "narrator.js"


class Narrator:
    """Tells the latest event and the figures so far, at once after a step and now and then while the run plays."""

    needs, hot = frozenset({"caption", "status"}), False

    def __init__(self) -> None:
        self.root = Access(width=0, height=0, margin=0, sizing_mode="fixed")
        self._said_at = -math.inf

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new run."""
        self._said_at = -math.inf

    def update(self, frame: dict[str, Any]) -> None:
        """Tell what a frame shows."""
        now = time.monotonic()
        if not frame["status"]["playing"] or now - self._said_at >= PACE_S:
            self._said_at = now
            self.say(sentence(frame["caption"], frame["status"]))

    def say(self, text: str) -> None:
        """Say something, unless it has just been said; an empty text says nothing."""
        if text and text != self.root.said:
            self.root.said = text

    def theme(self, dark: bool) -> None:
        """Turn light or dark: it has no face."""


def sentence(caption: dict[str, Any], status: dict[str, Any]) -> str:
    """Return what happened last and how far the run has come."""
    ess = f", effective sample size {status['ess']:,.0f}" if math.isfinite(status["ess"]) else ""
    figures = f"Step {status['step']:,}, {status['draws']:,} draws{ess}."
    return " ".join(part for part in (caption["text"], caption["warning"], figures) if part)
