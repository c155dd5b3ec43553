"""The browser's side of a session: which frame it has painted, whether it is seen, which key was pressed."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import param
from panel.custom import JSComponent

LOST_AFTER = 2.0  # seconds until a frame that nobody acknowledged counts as lost
QUICK = 0.1  # seconds: a browser this quick may have two frames under way
WINDOW = 60  # frames that the measured rate and latency look back on


class Pulse(JSComponent):
    """An element without a face: it answers each frame's number once the browser has painted it."""

    sent = param.Integer(default=0, doc="Number of the latest frame, in the same document patch as its data.")

    _esm = "pulse.js"


class Heartbeat:
    """Back-pressure: at most one or two frames between server and paint.

    Parameters
    ----------
    on_key : callable
        Called with the name of each pressed key.
    """

    def __init__(self, on_key: Callable[[str], None]) -> None:
        self.root = Pulse(width=0, height=0, margin=0, sizing_mode="fixed")
        self.root.on_msg(self._message)
        self.hidden = False
        self._on_key = on_key
        self._under_way: dict[int, float] = {}
        self._latencies: deque[float] = deque(maxlen=WINDOW)
        self._painted: deque[float] = deque(maxlen=WINDOW)
        self._answered = asyncio.Event()

    def beat(self) -> None:
        """Give the frame in the current document patch its number."""
        number = self.root.sent + 1
        self._under_way[number] = time.perf_counter()
        self.root.sent = number

    async def room(self) -> None:
        """Wait until the browser may be sent another frame."""
        while not self._has_room():
            self._answered.clear()
            try:
                await asyncio.wait_for(self._answered.wait(), 0.2)
            except TimeoutError:
                continue

    def latency(self) -> float | None:
        """Median seconds from the server to the paint, over the last second or so; None before the first."""
        recent = list(self._latencies)[-20:]
        return statistics.median(recent) if recent else None

    def rate(self) -> float:
        """Frames painted a second, over the last second."""
        now = time.perf_counter()
        return float(sum(1 for at in self._painted if now - at < 1.0))

    def _has_room(self) -> bool:
        now = time.perf_counter()
        self._under_way = {n: at for n, at in self._under_way.items() if now - at < LOST_AFTER}
        latency = self.latency()
        return len(self._under_way) < (2 if latency is not None and latency < QUICK else 1)

    def _message(self, event: Any) -> None:
        message = event.data
        if "painted" in message:
            self._acknowledge(int(message["painted"]))
        if "hidden" in message:
            self.hidden = bool(message["hidden"])
            self._under_way.clear()
        if "key" in message:
            self._on_key(str(message["key"]))

    def _acknowledge(self, number: int) -> None:
        now = time.perf_counter()
        sent = self._under_way.get(number)
        self._under_way = {n: at for n, at in self._under_way.items() if n > number}
        if sent is not None:
            self._latencies.append(now - sent)
            self._painted.append(now)
        self._answered.set()
