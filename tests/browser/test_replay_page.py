"""A film's page in a browser without a network: every frame, the same by whatever way one gets there; its pictures."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from bnnviz.engine.recording.replay_frames import ReplayFrames, take_frames
from bnnviz.replays.player import page
from tests.replays.test_replay import BANANA, HOSTILE, NETWORK, hostile

SHEETS = """async () => {
  const p = await bnnviz_player, found = {}
  for (const card of p.cards.values()) {
    if (card.section.hidden) { continue }
    for (const id of card.models) {
      const model = p.doc.get_model_by_id(id)
      if (model?.data?.packed) { found[id] = [...model.data.packed].map(String) }
      if (model?.type === "Range1d") { found[id] = [model.start, model.end] }
    }
  }
  return found
}"""
SEEK = "async (to) => { const p = await bnnviz_player; p.seek(to); await p.when_painted() }"
FRAMES = 120


@pytest.fixture(scope="module", params=["banana", "network"])
def shot(request: pytest.FixtureRequest) -> ReplayFrames:
    return take_frames({"banana": BANANA, "network": NETWORK}[request.param], FRAMES)


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Return a function that opens a film's page from its file, offline; nothing may go wrong on it."""
    problems: list[str] = []
    contexts = []

    def opened(reported: ReplayFrames, **options: Any) -> Any:
        place = tmp_path / "film.html"
        place.write_text(page(reported), encoding="utf-8")
        context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, "offline": True, **options})
        contexts.append(context)
        shown = context.new_page()
        shown.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
        shown.on("pageerror", lambda error: problems.append(str(error)))
        shown.on("request", lambda r: None if r.url == place.as_uri() else problems.append(f"asked for {r.url[:200]}"))
        shown.on("dialog", lambda dialog: problems.append(dialog.message))
        shown.goto(place.as_uri())
        shown.evaluate("async () => { await bnnviz_player }")
        return shown

    yield opened
    for context in contexts:
        context.close()
    assert not problems, "\n".join(problems)


def frame_of(shown: Any) -> int:
    return int(shown.evaluate("document.body.dataset.frame"))


def test_it_plays_to_the_end_without_a_network(shot: ReplayFrames, opened: Any, capsys: Any) -> None:
    shown = opened(shot)
    size = len(page(shot).encode())
    shown.select_option("#speed", "60")
    begun = time.monotonic()
    shown.click("#play")
    assert shown.inner_text("#play") == "Pause"
    assert shown.get_attribute("#caption", "aria-live") == "off"
    shown.wait_for_function(f"document.body.dataset.frame == {len(shot.frames) - 1}", timeout=60_000)
    rate = len(shot.frames) / (time.monotonic() - begun)
    with capsys.disabled():
        sys.stdout.write(f"{len(shot.frames)} frames, {size / 1e6:.2f} MB, {rate:.0f} frames/s\n")
    shown.wait_for_function("document.getElementById('play').textContent === 'Play'")
    assert shown.get_attribute("#caption", "aria-live") == "polite"
    assert shown.inner_text("#where") == f"{len(shot.frames)} / {len(shot.frames)}"
    assert shot.frames[-1]["caption"]["text"] in shown.inner_text("#caption")
    for width, height in ((1400, 900), (1280, 720)):
        shown.set_viewport_size({"width": width, "height": height})
        assert shown.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]") == [
            width,
            height,
        ]


def test_a_frame_is_the_same_by_whatever_way_one_gets_there(shot: ReplayFrames, opened: Any) -> None:
    shown = opened(shot)
    stops, there = [0, 1, 17, 60, FRAMES // 2 + 20, len(shot.frames) - 1], {}
    for number in range(len(shot.frames)):
        shown.evaluate(SEEK, number)
        if number in stops:
            there[number] = shown.evaluate(SHEETS)
    for number in (stops[3], stops[0], stops[5], stops[2], stops[4], stops[1]):
        shown.evaluate(SEEK, number)
        assert shown.evaluate(SHEETS) == there[number], number
    # What lies behind catches up when it is turned to the front.
    shown.evaluate(SEEK, stops[5])
    shown.click("#card-acf .head button")
    behind = shown.evaluate(SHEETS)
    shown.evaluate(SEEK, stops[2])
    shown.evaluate(SEEK, stops[5])
    assert shown.evaluate(SHEETS) == behind and behind != there[stops[5]]


def test_keys_step_play_and_go_to_the_ends(shot: ReplayFrames, opened: Any) -> None:
    shown, last = opened(shot), len(shot.frames) - 1
    for key, expected in (
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("End", last),
        ("ArrowRight", last),
        ("Home", 0),
        ("ArrowLeft", 0),
        ("PageDown", 10),
    ):
        shown.keyboard.press(key)
        assert frame_of(shown) == expected, key
    shown.keyboard.press(" ")
    shown.wait_for_function("document.body.dataset.frame > 12")
    shown.keyboard.press(" ")
    paused = frame_of(shown)
    shown.wait_for_timeout(300)
    assert frame_of(shown) == paused
    shown.click("#back")
    assert frame_of(shown) == paused - 1
    shown.fill("#scrubber", "5")
    assert frame_of(shown) == 5
    assert shown.evaluate("document.getElementById('scrubber').getAttribute('aria-valuetext')").startswith("frame 6 of")


def test_it_follows_the_readers_colours_and_turns(shot: ReplayFrames, opened: Any) -> None:
    shown = opened(shot, color_scheme="dark")
    shown.evaluate(SEEK, len(shot.frames) - 1)
    ground = "getComputedStyle(document.querySelector('.card')).backgroundColor"
    ink = """async () => { const p = await bnnviz_player
      const front = [...p.cards.values()].filter((card) => !card.section.hidden)
      const marks = front.flatMap((card) => p.doc.get_model_by_id(card.root).tags[0].tags)
      return marks.find((mark) => ["path", "mean"].includes(mark.label)).colour }"""
    assert shown.evaluate(ground) == "rgb(27, 37, 48)"
    assert shown.evaluate(ink) == "#e4ebf2"
    data = shown.evaluate(SHEETS)
    shown.click("#theme")
    assert shown.evaluate(ground) == "rgb(255, 255, 255)"
    assert shown.evaluate(ink) == "#1f3347"
    assert shown.evaluate(SHEETS) == data


def test_the_page_can_be_read_by_everybody(shot: ReplayFrames, opened: Any) -> None:
    for scheme in ("light", "dark"):
        # The policy of the page lets no script in, not even that of the test.
        shown = opened(shot, color_scheme=scheme, bypass_csp=True)
        shown.evaluate(SEEK, len(shot.frames) // 2)
        found = Axe().run(shown)
        serious = [each["id"] for each in found.response["violations"] if each["impact"] in ("serious", "critical")]
        assert not serious, found.generate_report()


def test_hostile_names_are_words(shot: ReplayFrames, opened: Any) -> None:
    shown = opened(hostile(shot))
    assert shown.inner_text("#title") == HOSTILE.replace("\u2028", "\u2028")
    shown.click("#about")
    assert HOSTILE[:20] in shown.inner_text("#settings")
    assert shown.evaluate("document.images.length") == 0
    shown.keyboard.press("Escape")
    shown.evaluate(SEEK, len(shot.frames) - 1)
