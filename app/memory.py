"""Look for garbage when nobody waits: to look through all pages holds up those that play for half a second."""

from __future__ import annotations

import gc
import time

import panel.io.document
from tornado.ioloop import IOLoop

QUIET_S = 2.0  # without a frame for any page
LOOK_S = 1.0
MOST_CLOSED = 12  # pages, some 4 MB each, whose memory waits for a quiet moment
_NEVER = 1 << 30


class Collector:
    """Collect the memory of pages that are closed."""

    def __init__(self) -> None:
        self._closed = 0
        self._waits = False
        self._painted = 0.0

    @staticmethod
    def begin() -> None:
        """Have Python look through all objects no more by itself, but go on to look through the young ones."""
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, _NEVER)
        # Panel would look after each page that is closed.
        panel.io.document._garbage_collect = lambda: None

    def painted(self) -> None:
        """Note that a page is sent a frame."""
        self._painted = time.monotonic()

    def closed(self) -> None:
        """Note that a page is closed."""
        self._closed += 1
        if not self._waits:
            self._waits = True
            IOLoop.current().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        if time.monotonic() - self._painted < QUIET_S and self._closed < MOST_CLOSED:
            IOLoop.current().call_later(LOOK_S, self._look)
            return
        self._closed, self._waits = 0, False
        gc.collect()


COLLECTOR = Collector()
