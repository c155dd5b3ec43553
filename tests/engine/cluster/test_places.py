"""A place belongs to who plays: runs that rest give theirs back, keep what they have, and get one at a touch."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from test_backend import look, start, until

from bnnviz.engine.cluster import places, slot
from bnnviz.engine.cluster.loop import LiveLoop


@pytest.fixture
def loop(tmp_path: Path):
    made = LiveLoop(tmp_path / "live", capacity=2)
    made._places.rest_s = 0.3
    yield made
    made.close()


def test_a_page_gives_its_place_back_within_a_minute() -> None:
    assert places.REST_S <= 60


def test_idle_runs_give_their_places_to_who_waits_and_get_them_again_at_a_touch(loop: LiveLoop) -> None:
    async def main() -> None:
        idle = [start(loop, run_id=name) for name in "ab"]
        for run in idle:
            await run.ready()
        await idle[0].command("event", {})
        step = idle[0]._slot.step
        assert step > 0
        ninth = start(loop, run_id="c", play=True)
        await until(lambda: "number 1 in the queue" in ninth._slot.message)
        await until(lambda: ninth._slot.state == "running" and ninth._slot.step > 0, 5)
        # What it had is still there, and it goes on with it.
        assert idle[0]._slot.step == step and idle[0]._slot.state == "running"
        await idle[0].command("play", {})
        await until(lambda: idle[0]._slot.step > step)

    asyncio.run(main())


def test_who_touches_a_full_worker_waits_in_the_queue_and_goes_on_in_its_turn(loop: LiveLoop) -> None:
    async def main() -> None:
        rests, second = start(loop, run_id="rests"), start(loop, run_id="second")
        await rests.ready()
        await second.ready()
        await asyncio.sleep(0.4)
        plays = [start(loop, run_id=name, play=True) for name in "ab"]
        await until(lambda: all(run._slot.step > 0 for run in plays))
        reply = await rests.command("play", {})
        assert reply["playing"] and "number 1 in the queue" in reply["message"]
        assert "number 2 in the queue" in (await second.command("event", {}))["message"]
        assert (rests._slot.step, second._slot.step) == (0, 0)
        assert (await look(rests, "status"))["frame"]["status"]["playing"]
        await plays[0].stop()
        await until(lambda: rests._slot.step > 0)
        assert rests._slot.message == "" and second._slot.step == 0
        assert "number 1 in the queue" in second._slot.message
        await rests.command("pause", {})
        await until(lambda: second._slot.step > 0, 5)

    asyncio.run(main())


def test_a_pause_takes_back_what_waits(loop: LiveLoop) -> None:
    async def main() -> None:
        rests = start(loop, run_id="rests")
        await rests.ready()
        await asyncio.sleep(0.4)
        plays = [start(loop, run_id=name, play=True) for name in "ab"]
        await until(lambda: all(run._slot.step > 0 for run in plays))
        await rests.command("play", {})
        reply = await rests.command("pause", {})
        assert not reply["playing"] and reply["message"] == ""
        await plays[0].stop()
        await asyncio.sleep(0.2)
        assert rests._slot.step == 0

    asyncio.run(main())


def test_where_more_play_than_there_are_places_they_take_turns(loop: LiveLoop) -> None:
    loop._places.turn_s = 0.3

    async def main() -> None:
        runs = [start(loop, run_id=name, play=True) for name in "abcde"]
        await until(lambda: all(run._slot.step > 0 for run in runs), 20)
        before = [run._slot.step for run in runs]
        await until(lambda: all(run._slot.step > step for run, step in zip(runs, before, strict=True)), 20)
        assert all(run._slot.report()["playing"] for run in runs)
        assert sum(run._slot.playing for run in runs) <= 2
        assert any("in its turn" in run._slot.message for run in runs)

    asyncio.run(main())


def test_who_plays_alone_or_steps_keeps_the_place(loop: LiveLoop) -> None:
    loop._places.turn_s = 0.1

    async def main() -> None:
        runs = [start(loop, run_id=name, play=True) for name in "ab"]
        await until(lambda: all(run._slot.step > 0 for run in runs))
        await asyncio.sleep(0.4)
        assert all(run._slot.playing and not run._slot.held_back for run in runs)

    asyncio.run(main())


def test_a_worker_that_is_full_lets_on_who_is_in_it(loop: LiveLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MOST_HELD", 1)

    async def main() -> None:
        inside = [start(loop, run_id=name) for name in "ab"]
        for run in inside:
            await run.ready()
        await asyncio.sleep(0.4)
        outside = start(loop, run_id="c", play=True)
        await until(lambda: "already holds 2 live runs" in outside._slot.message)
        await inside[0].command("play", {})
        await until(lambda: inside[0]._slot.step > 0)
        await inside[1].stop()
        await until(lambda: outside._slot.step > 0)

    asyncio.run(main())


def test_who_waits_is_drawn_once_and_hears_of_the_others_in_its_status(
    loop: LiveLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole frames for pages that wait took the thread of the pages for a second whenever others took turns."""
    monkeypatch.setattr(slot, "SETTLE_S", 0.2)

    async def main() -> None:
        waits = start(loop, run_id="waits")
        await waits.ready()
        await waits.command("event", {})
        await asyncio.sleep(0.4)
        plays = [start(loop, run_id=name, play=True) for name in "ab"]
        await until(lambda: all(run._slot.step > 0 for run in plays))
        await waits.command("play", {})
        await asyncio.sleep(0.3)
        reply = await look(waits, "status", "trace")
        assert {"status", "trace"} < set(reply["frame"])
        await plays[0].command("speed", {"value": 50})
        reply = await look(waits, "status", "trace", seen=reply["version"])
        assert set(reply["frame"]) == {"seq", "status"} and reply["frame"]["status"]["shared"] == 2
        assert (await look(waits, "status", "trace", seen=reply["version"]))["frame"] is None
        assert (await look(waits, "trace"))["frame"] is not None  # of somebody who has not seen it
        await plays[0].stop()
        await until(lambda: waits._slot.step > reply["step"])
        assert "trace" in (await look(waits, "status", "trace", seen=reply["version"]))["frame"]

    asyncio.run(main())
