"""The memory of closed pages is collected when nobody waits, or when it runs out."""

from __future__ import annotations

import gc
import platform
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

pytest.importorskip("panel")

from bnnviz_app import memory
from bnnviz_app.memory import LEAST_CLOSED, LOOK_S, MOST_CLOSED, PAGE_BYTES, QUIET_S, SHARE, Collector

ENOUGH, LITTLE = 1 << 40, 1 << 20


class Clock:
    """Run what is asked for later, as the server's loop would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.looks, self.given_back = 100.0, 0, 0
        self._later: list[tuple[float, Callable[[], None]]] = []
        monkeypatch.setattr(memory, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(memory, "IOLoop", SimpleNamespace(current=lambda: self))
        monkeypatch.setattr(memory.memory, "give_back", self._give_back)
        monkeypatch.setattr(memory, "gc", SimpleNamespace(collect=self._collect, get_threshold=gc.get_threshold))

    def call_later(self, seconds: float, callback: Callable[[], None]) -> None:
        self._later.append((self.now + seconds, callback))

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while self._later and self._later[0][0] <= end:
            self.now, callback = self._later.pop(0)
            callback()
        self.now = end

    def _collect(self) -> None:
        self.looks += 1

    def _give_back(self) -> None:
        self.given_back = self.looks


def test_closed_pages_are_collected_at_once_when_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, collector = Clock(monkeypatch), Collector(lambda: ENOUGH)
    collector.closed()
    collector.closed()
    clock.wait(LOOK_S)
    assert clock.looks == clock.given_back == 1
    clock.wait(60)
    assert clock.looks == 1


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps what is free for the process")
def test_memory_that_is_free_is_given_back_to_the_system() -> None:
    held = [np.ones(8_000) for _ in range(2_000)]  # 128 MB
    last = np.ones(8_000)  # what lies behind it stays the process's
    del held
    before = psutil.Process().memory_info().rss
    memory.memory.give_back()
    assert before - psutil.Process().memory_info().rss > 1e8 and len(last) == 8_000


def test_who_plays_or_opens_a_page_is_not_held_up_by_a_few_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, collector = Clock(monkeypatch), Collector(lambda: ENOUGH)
    for closed in range(60):
        collector.played() if closed % 2 else collector.opened()
        if closed < LEAST_CLOSED - 1:
            collector.closed()
        clock.wait(QUIET_S / 2)
    assert clock.looks == 0
    clock.wait(QUIET_S + 2 * LOOK_S)
    assert clock.looks == 1


@pytest.mark.parametrize(("somebody", "most"), [("opened", LEAST_CLOSED), ("played", MOST_CLOSED + 1)])
def test_no_more_than_so_many_pages_wait_however_much_memory_is_free(
    somebody: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, collector = Clock(monkeypatch), Collector(lambda: ENOUGH)
    for closed in range(1, 5 * most + 1):
        getattr(collector, somebody)()
        collector.closed()
        clock.wait(LOOK_S)
        assert clock.looks == closed // most


@pytest.mark.parametrize(
    ("free", "most"), [(LITTLE, LEAST_CLOSED), (None, LEAST_CLOSED), (20 * PAGE_BYTES / SHARE, 21)]
)
def test_closed_pages_take_no_more_than_their_share(
    free: float | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, collector = Clock(monkeypatch), Collector(lambda: free)
    for closed in range(1, most + 1):
        assert clock.looks == 0, closed
        collector.played()
        collector.closed()
        clock.wait(LOOK_S)
    assert clock.looks == 1
