"""Going back in a live run and parting it: every state that was is reached bit for bit, every future is its own run."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bnnviz.engine.cluster.actor import RunActor
from bnnviz.engine.cluster.live_runs import LiveRuns
from bnnviz.engine.history import timeline as timetravel
from bnnviz.engine.history.fork import Fork
from bnnviz.engine.history.timeline import Checkpoint, History
from bnnviz.engine.recording import reader
from bnnviz.engine.recording.writer import RecordingWriter
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec

PARTS = ["status", "timeline", "path", "trace", "table", "marginal", "prediction"]
# A setting of each that can change while it runs.
SAMPLERS = {
    "bps": {"refresh_rate": 5.0},
    "hmc": {"num_leapfrog_steps": 3},
    "sgld": {"step_size": 1e-4},
    "boomerang": {"alpha": 1.5},
}


def spec_of(sampler: str = "bps", **more: Any) -> Spec:
    return Spec(**{"target": "banana", "sampler": sampler, "chains": 2, "draws": None, "warmup": 5, **more}).checked()


def at(spec: Spec, step: int, *changes: tuple[int, dict[str, Any]]) -> ViewedRun:
    """Return a run that was never live, at a step."""
    run = ViewedRun(spec)
    run.prepare()
    for due, settings in [*changes, (step, None)]:
        while run.steps < due:
            run.take(due - run.steps, 1.0)
        if settings is not None:
            run.change(settings)
    return run


def same(run: ViewedRun, other: ViewedRun) -> bool:
    return run.steps == other.steps and torch.equal(run.state.x, other.state.x)


class Lab:
    """A live run, and what a page does with it."""

    def __init__(self, runs: LiveRuns, spec: Spec, **options: Any) -> None:
        self.actor = RunActor(spec, "run", factory=spec.factory, runs=runs, **options)

    @property
    def run(self) -> Any:
        """The run; its thread has it, so only look while it rests."""
        return self.actor.run.host.run

    async def do(self, name: str, **args: Any) -> dict[str, Any]:
        while (await self.actor.scene())["state"] != "running":
            await asyncio.sleep(0.01)
        reply = await self.actor.command(name, args)
        while self.run.phase == "start" or self.actor.run.host.goal is not None or self.actor.run.later:
            await asyncio.sleep(0.01)
            assert (await self.actor.scene())["state"] == "running"
        return reply

    async def play_to(self, step: int) -> None:
        await self.do("play")
        while self.run.steps < step:
            await asyncio.sleep(0.01)
        await self.do("pause")

    async def frame(self) -> dict[str, Any]:
        while True:
            frame = pickle.loads(await self.actor.frame(PARTS))["frame"]
            if frame is not None:
                return frame


@pytest.fixture
def travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a story of a live run: a coroutine function that is given a `Lab`."""
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))

    def tell(story: Callable[[Lab], Awaitable[None]], spec: Spec, **options: Any) -> None:
        runs = LiveRuns(tmp_path / "live")

        async def whole() -> None:
            lab = Lab(runs, spec, **options)
            await asyncio.wait_for(story(lab), 120)

        asyncio.run(whole())
        runs.close()

    return tell


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_step_that_was_is_reached_bit_for_bit_and_so_is_the_front(travel: Any, sampler: str) -> None:
    spec = spec_of(sampler)

    async def story(lab: Lab) -> None:
        await lab.play_to(400)
        front, x = lab.run.steps, lab.run.state.x.clone()
        events = (await lab.frame())["timeline"]["whole_step"]
        for step in (int(events[len(events) // 2]), int(events[1])):
            await lab.do("back", step=step)
            assert same(lab.run, at(spec, step))
            status = (await lab.frame())["status"]
            assert (status["step"], status["furthest"], status["behind"]) == (step, front, True)
        await lab.do("return")
        assert lab.run.steps == front
        assert torch.equal(lab.run.state.x, x)
        assert not (await lab.frame())["status"]["behind"]

    travel(story, spec)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_change_in_the_past_parts_the_run_and_both_futures_are_their_own(travel: Any, sampler: str) -> None:
    spec, change = spec_of(sampler), SAMPLERS[sampler]

    async def story(lab: Lab) -> None:
        await lab.play_to(300)
        parted = 150
        await lab.do("back", step=parted)
        assert not isinstance(lab.run, Fork)
        await lab.do("change", settings=change)
        assert isinstance(lab.run, Fork)
        await lab.play_to(parted + 250)
        await lab.do("proposal")
        step = lab.run.steps
        first, second = (branch.run for branch in lab.run.branches)
        assert same(first, at(spec, step))
        assert same(second, at(spec, step, (parted, change)))
        assert not torch.equal(first.state.x, second.state.x)
        status = (await lab.frame())["status"]
        assert (status["fork"], status["followed"]) == (parted, 1)
        names = [future["name"] for future in status["futures"]]
        assert names[0] == "as it was"
        assert names[1].endswith(f"{next(iter(change.values())):g}")
        await lab.do("keep", branch="A")
        await lab.play_to(step + 50)
        assert same(lab.run, at(spec, lab.run.steps))
        assert (await lab.frame())["timeline"]["fork"] is None

    travel(story, spec)


@pytest.mark.slow
def test_a_lost_fork_is_taken_up_with_all_its_futures(travel: Any, tmp_path: Path) -> None:
    spec = spec_of()
    kept: dict[str, Any] = {}

    async def story(lab: Lab) -> None:
        await lab.play_to(150)
        await lab.do("fork")
        kept["log"] = (await lab.do("change", settings={"refresh_rate": 5.0}))["log"]
        await lab.play_to(300)
        saved = tmp_path / "live" / "run.ckpt"
        written = saved.stat().st_mtime_ns if saved.exists() else 0
        await lab.do("proposal")
        end = time.monotonic() + 20
        while (not saved.exists() or saved.stat().st_mtime_ns == written) and time.monotonic() < end:
            await asyncio.sleep(0.05)
        kept["at"] = lab.run.at

    async def taken_up(lab: Lab) -> None:
        await lab.do("pause")
        step = lab.run.steps
        first, second = (branch.run for branch in lab.run.branches)
        assert step > 250
        assert same(first, at(spec, step))
        assert same(second, at(spec, step, *kept["log"]))
        frame = await lab.frame()
        assert frame["timeline"]["fork"] == kept["at"]
        await lab.play_to(step + 50)
        assert same(lab.run.branches[0].run, at(spec, lab.run.steps))

    travel(story, spec)
    travel(taken_up, spec, restore=True, past=kept["log"])


def test_a_recording_ends_where_its_run_is_left(travel: Any) -> None:
    async def story(lab: Lab) -> None:
        await lab.play_to(100)
        await lab.do("record", recording="mine")
        await lab.play_to(200)
        await lab.do("fork")
        assert (await lab.actor.scene())["record"] == "mine"  # of what goes on as it was
        await lab.do("keep", branch="B")
        status = await lab.actor.scene()
        assert status["record"] is None
        assert "mine" in status["message"]

    travel(story, spec_of())


@pytest.mark.slow
@pytest.mark.parametrize("draws", [None, 2000])
def test_a_run_that_continues_a_recording_goes_back_to_where_it_began_to(
    travel: Any, tmp_path: Path, draws: Any
) -> None:
    spec = spec_of(draws=draws)
    run = ViewedRun(spec)
    recorder = RecordingWriter(run, reader.new_place("mine"), every_s=1e9)
    run.prepare()
    for step in (100, 200, 300):
        while run.steps < step:
            run.take(step - run.steps)
        recorder.note(now=True)
    del recorder

    async def story(lab: Lab) -> None:
        await lab.do("pause")
        assert lab.run.steps == 300
        with pytest.raises(BnnvizError, match="step 300"):
            await lab.do("back", step=280)
        await lab.play_to(400)
        for goal in (330, 300):
            await lab.do("back", step=goal)
            there = at(spec, goal)
            assert same(lab.run, there)
            assert np.array_equal(lab.run.draws, there.draws)
        assert (await lab.actor.scene())["record"] is None

    travel(story, spec, record="mine", origin="mine")


def test_a_history_keeps_few_checkpoints_and_the_young_ones_close_together() -> None:
    history = History()
    for step in range(0, 200_000, 50):
        history.furthest = step
        history.add(Checkpoint(step, bytes(1000)))
    steps = np.array([mark.step for mark in history.checkpoints])
    assert len(steps) <= 160
    assert (steps[0], steps[-1]) == (0, 199_950)
    gaps, age = np.diff(steps), 199_950 - steps[:-1]
    assert gaps[-20:].max() <= 300
    assert (gaps <= 0.25 * age + 200).all()
    # Large ones: what they take has a limit, and the first and the last stay.
    large = History()
    for step in range(40):
        large.add(Checkpoint(step, bytes(timetravel._MOST_BYTES // 10)))
    assert len(large.checkpoints) <= 10
    assert (large.checkpoints[0].step, large.checkpoints[-1].step) == (0, 39)
    with pytest.raises(BnnvizError, match="can go back to a later step at the earliest"):
        History().before(10)
