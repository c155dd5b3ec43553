"""Gaps between the frames of a class's pages: freezes are told from the times in which a run waits for its turn."""

from __future__ import annotations

import time
from importlib import import_module

import pytest

suite = import_module("bnnviz.benchmarks.suites.class")


def gaps(moments: list[float], queued: list[float], now: float, monkeypatch: pytest.MonkeyPatch) -> list:
    monkeypatch.setattr(time, "monotonic", lambda: now)
    return suite._gaps([(moment, 0.0) for moment in moments], 0.0, queued)


def test_a_page_that_waits_hears_nothing_between_two_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = [0.1, 0.2, 4.5, 9.0, 13.5, 13.6, 13.7, 16.0]
    found = gaps(moments, [0.2, 4.5], 16.1, monkeypatch)
    waited = [round(gap, 3) for gap, waits in found if waits]
    assert waited == [4.3, 4.5, 4.5]  # the last of these is told by nothing but the number before
    assert max(gap for gap, waits in found if not waits) == pytest.approx(2.3)  # it plays then: a freeze


def test_a_page_that_waits_from_before_until_now_has_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gaps([], [-20.0], 30.0, monkeypatch) == [(30.0, True)]
    assert gaps([], [], 30.0, monkeypatch) == [(30.0, False)]
