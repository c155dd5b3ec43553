"""Samplers whose draws are all one point: what is counted of them says so."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from bnnviz.engine.cluster.actor import RunActor
from bnnviz.engine.cluster.live_runs import LiveRuns
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec

POINTS = ("ensemble", "map", "mle")


@pytest.mark.parametrize("sampler", POINTS)
def test_without_an_end_it_ends_with_its_point(sampler: str) -> None:
    drawn = {"data": "toy_c", "points": [[-0.3, 0.4], [0.0, 0.1], [0.3, 0.2]], "hidden": "3"}
    run = ViewedRun(Spec("network", drawn, sampler, {"steps": 60}, chains=2, draws=None, seed=1).checked())
    while not run.finished:
        run.step_proposal()
        assert run.steps < 300
    assert run.draws.shape == (2, 1, run.target.dim) and run.progress == 1
    frame = run.frame(["caption", "prediction"])
    assert "the descent has ended" in frame["caption"]["text"]
    assert not frame["prediction"]["settling"] and frame["prediction"]["draws"] == 2
    first = run.draws
    run.change({"target.points": [[-0.3, -0.4], [0.3, 0.9]]})
    while not run.finished:
        run.step_proposal()
        assert run.steps < 600
    assert run.draws.shape == first.shape and np.abs(run.draws - first).min() > 0


@pytest.mark.slow
@pytest.mark.parametrize("plays", [True, False])
def test_a_live_run_that_played_to_its_point_plays_on_after_a_change(tmp_path: Path, plays: bool) -> None:
    """Who draws other points sees the descent to theirs, as with a run that goes on; one that was stepped stays so."""
    drawn = {"data": "toy_c", "points": [[-0.3, 0.4], [0.0, 0.1], [0.3, 0.2]], "hidden": "3"}
    spec = Spec("network", drawn, "map", {"steps": 60}, chains=2, draws=None, seed=1, device="cpu").checked()
    runs = LiveRuns(tmp_path / "live")

    async def end(run: RunActor) -> None:
        while (await run.scene())["state"] != "ended":
            await (asyncio.sleep(0.01) if plays else run.command("proposal", {"times": 20}))

    async def main() -> None:
        run = RunActor(spec, "a", factory="bnnviz.engine.viewed_run:ViewedRun", runs=runs, play=plays)
        await run.scene()
        await end(run)
        before = (await run.scene())["step"]
        reported = await run.command("change", {"settings": {"target.points": [[-0.3, -0.4], [0.3, 0.9]]}})
        assert reported["playing"] == plays
        await end(run)
        assert (await run.scene())["step"] > before

    asyncio.run(main())
    runs.close()
