"""Look for garbage when nobody waits: to look through all pages holds up those that play for a second and more."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import panel.io.document
from tornado.ioloop import IOLoop

from bnnviz import memory

QUIET_S = 2.0  # without a frame for any page, and without a page that opens
LOOK_S = 1.0
MOMENT_S = 0.5  # for which whoever was sent a frame counts as playing
PAGE_BYTES = 5_000_000  # of a page that is closed, until it is found
SHARE = 1 / 8  # of the memory that is free, for closed pages that wait for a quiet moment
LEAST_CLOSED = 12  # pages that may wait for it, however little memory is free, and while nobody plays
# Pages that may wait for it, however much memory is free: what the most of them took stays the process's, as what lives
# lies between it.
MOST_CLOSED = 40
_NEVER = 1 << 30


class Collector:
    """Collect the memory of pages that are closed."""

    def __init__(self, free: Callable[[], int | None] = memory.available) -> None:
        self._free = free
        self._closed = 0
        self._waits = False
        self._played = 0.0
        self._opened = 0.0

    @staticmethod
    def begin() -> None:
        """Have Python look through all objects no more by itself, but go on to look through the young ones."""
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, _NEVER)
        # Panel would look after each page that is closed.
        panel.io.document._garbage_collect = lambda: None

    def played(self) -> None:
        """Note that a page is sent a frame."""
        self._played = time.monotonic()

    def opened(self) -> None:
        """Note that a page is about to open."""
        self._opened = time.monotonic()

    @property
    def somebody_plays(self) -> bool:
        """Whether a page was sent a frame, or opened, a moment ago."""
        return time.monotonic() - max(self._played, self._opened) < MOMENT_S

    def closed(self) -> None:
        """Note that a page is closed."""
        self._closed += 1
        if not self._waits:
            self._waits = True
            IOLoop.current().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        if not self._quiet() and not self._full():
            IOLoop.current().call_later(LOOK_S, self._look)
            return
        self._closed, self._waits = 0, False
        gc.collect()
        memory.give_back()

    def _quiet(self) -> bool:
        """Tell whether nobody has waited for a while. Pages that open may wait for a second once in some pages."""
        now = time.monotonic()
        if self._closed < LEAST_CLOSED and now - self._opened < QUIET_S:
            return False
        return now - self._played > QUIET_S

    def _full(self) -> bool:
        """Tell whether closed pages take so much memory that somebody has to wait."""
        if self._closed < LEAST_CLOSED:
            return False
        free = self._free()
        return free is None or self._closed > MOST_CLOSED or self._closed * PAGE_BYTES > SHARE * free


COLLECTOR = Collector()
