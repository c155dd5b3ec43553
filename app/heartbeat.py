"""Receive from the browser the painted frame, its visibility, and pressed keys."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import panel as pn
from bokeh.models import ColumnDataSource, CustomJS, Spacer
from panel.custom import JSComponent

LOST_AFTER = 2.0  # seconds until an unacknowledged frame counts as lost
QUICK = 0.1  # seconds: a browser this quick may have two frames under way
WINDOW = 60  # frames that the measured rate and latency look back on
_PAINTED = Path(__file__).with_name("painted.js").read_text(encoding="utf-8")


class Keys(JSComponent):
    """Report keys, whether the page is seen, and whether it is to keep still, from an invisible element."""

    _esm = "keys.js"


class Heartbeat:
    """Keep at most one or two frames under way between server and paint (back-pressure)."""

    def __init__(self, on_key: Callable[[str], None]) -> None:
        self.hidden = False
        self.still = False  # the user prefers reduced motion
        self._on_key = on_key
        self._sent = ColumnDataSource({"number": [0], "at": [0.0]})
        self._painted = ColumnDataSource({"number": [0]})
        self._sent.js_on_change("data", CustomJS(args={"sent": self._sent, "painted": self._painted}, code=_PAINTED))
        self._painted.on_change("data", self._acknowledged)
        keys = Keys(width=0, height=0, sizing_mode="fixed")
        keys.on_msg(self._message)
        carrier = Spacer(width=0, height=0, tags=[self._sent])
        self.root = pn.Row(keys, pn.pane.Bokeh(carrier, margin=0), width=0, height=0)
        self.number = 0  # of the last frame sent
        self._under_way: dict[int, float] = {}
        self._latencies: deque[float] = deque(maxlen=WINDOW)
        self._painted_frames: deque[tuple[int, float]] = deque(maxlen=WINDOW)  # numbers and moments
        self._answered = asyncio.Event()

    def beat(self) -> None:
        """Add a number to the frame in the current document patch."""
        self.number += 1
        self._under_way[self.number] = time.perf_counter()
        # The time is for measurements from outside.
        self._sent.data = {"number": [self.number], "at": [time.time()]}

    async def room(self) -> None:
        """Wait until the browser may be sent another frame."""
        while not self._has_room():
            self._answered.clear()
            try:
                await asyncio.wait_for(self._answered.wait(), 0.2)
            except TimeoutError:
                continue

    def latency(self) -> float | None:
        """Return the median seconds from the server to the paint, over a second or so; None before the first."""
        recent = list(self._latencies)[-20:]
        return statistics.median(recent) if recent else None

    def rate(self) -> float:
        """Return how many frames were painted in the last second."""
        now = time.perf_counter()
        return float(sum(1 for _, at in self._painted_frames if now - at < 1.0))

    def has_shown(self, number: float, seconds: float) -> bool:
        """Return whether the browser has shown a frame for at least so long."""
        now = time.perf_counter()
        return any(painted >= number and now - at >= seconds for painted, at in self._painted_frames)

    def _has_room(self) -> bool:
        now = time.perf_counter()
        self._under_way = {n: at for n, at in self._under_way.items() if now - at < LOST_AFTER}
        latency = self.latency()
        return len(self._under_way) < (2 if latency is not None and latency < QUICK else 1)

    def _acknowledged(self, attr: str, old: Any, new: dict[str, Any]) -> None:
        numbers = new.get("number")
        if not (isinstance(numbers, list) and numbers and isinstance(numbers[0], int)):
            return  # not from our script
        now, number = time.perf_counter(), numbers[0]
        sent = self._under_way.get(number)
        self._under_way = {n: at for n, at in self._under_way.items() if n > number}
        if sent is not None:
            self._latencies.append(now - sent)
            self._painted_frames.append((number, now))
        self._answered.set()

    def _message(self, event: Any) -> None:
        if not isinstance(event.data, dict):
            return
        if "hidden" in event.data:
            self.hidden = bool(event.data["hidden"])
            self._under_way.clear()
        if "still" in event.data:
            self.still = bool(event.data["still"])
        if "key" in event.data:
            self._on_key(str(event.data["key"]))
