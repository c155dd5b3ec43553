"""The memory of closed pages is collected when nobody waits, or when it runs out."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import SimpleNamespace

import pytest

pytest.importorskip("panel")

from bnnviz_app import memory
from bnnviz_app.memory import LEAST_CLOSED, LOOK_S, PAGE_BYTES, QUIET_S, SHARE, Collector

ENOUGH, LITTLE = 1 << 40, 1 << 20


class Clock:
    """Run what is asked for later, as the server's loop would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.looks = 100.0, 0
        self._later: list[tuple[float, Callable[[], None]]] = []
        monkeypatch.setattr(memory, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(memory, "IOLoop", SimpleNamespace(current=lambda: self))
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


def test_closed_pages_are_collected_at_once_when_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, collector = Clock(monkeypatch), Collector(lambda: ENOUGH)
    collector.closed()
    collector.closed()
    clock.wait(LOOK_S)
    assert clock.looks == 1
    clock.wait(60)
    assert clock.looks == 1


def test_who_plays_or_opens_a_page_is_not_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, collector = Clock(monkeypatch), Collector(lambda: ENOUGH)
    for _ in range(100):
        collector.worked()
        collector.closed()
        clock.wait(QUIET_S / 2)
    assert clock.looks == 0
    clock.wait(QUIET_S + 2 * LOOK_S)
    assert clock.looks == 1


@pytest.mark.parametrize(
    ("free", "most"), [(LITTLE, LEAST_CLOSED), (None, LEAST_CLOSED), (40 * PAGE_BYTES / SHARE, 41)]
)
def test_closed_pages_take_no_more_than_their_share(
    free: float | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, collector = Clock(monkeypatch), Collector(lambda: free)
    for closed in range(1, most + 1):
        assert clock.looks == 0, closed
        collector.worked()
        collector.closed()
        clock.wait(LOOK_S)
    assert clock.looks == 1
