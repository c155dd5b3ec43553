"""Gaps between the frames of a class's pages: freezes are told from the times in which a run waits for its turn."""

from __future__ import annotations

import time
from importlib import import_module

import pytest

from bnnviz.benchmarks.tabs import Tab

suite = import_module("bnnviz.benchmarks.suites.class")


def gaps(moments: list[float], told: list, now: float, monkeypatch: pytest.MonkeyPatch) -> list:
    monkeypatch.setattr(time, "monotonic", lambda: now)
    return suite._gaps([(moment, 0.0) for moment in moments], 0.0, told)


def test_frames_of_a_page_that_waits_are_no_freezes_however_near_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = [0.1, 0.2, 0.6, 1.05, 9.0, 9.1, 9.2, 11.0]
    found = gaps(moments, [(0.2, False), (9.05, True)], 11.1, monkeypatch)
    assert [round(gap, 3) for gap, waits in found if waits] == [0.4, 0.45, 7.95, 0.1]
    assert max(gap for gap, waits in found if not waits) == pytest.approx(1.8)  # it plays then: a freeze
    assert suite._waits(found) == pytest.approx([8.9])


def test_what_passes_until_a_page_is_told_that_it_waits_is_without_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    found = gaps([0.1, 0.9, 1.5], [(0.9, False)], 2.0, monkeypatch)
    assert [(round(gap, 3), waits) for gap, waits in found] == [(0.1, False), (0.8, False), (0.6, True), (0.5, True)]


def test_a_page_that_waits_from_before_until_now_has_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gaps([], [(-20.0, False)], 30.0, monkeypatch) == [(30.0, True)]
    assert gaps([], [], 30.0, monkeypatch) == [(30.0, False)]


def test_a_tab_hears_whether_its_run_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    tab = Tab("http://127.0.0.1/app", "token")
    change = b'{"kind":"ModelChanged","model":{"id":"%s"},"attr":"message","new":"%s"}'
    for teller, said in [(b"p2", b"other"), (b"p1", b"number 2 in the queue and goes on"), (b"p2", b""), (b"p1", b"")]:
        tab._hear(change % (teller, said))
    assert [plays for _, plays in tab.told] == [False, True]
