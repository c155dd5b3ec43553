"""Samplers whose draws are all one point: what is counted of them says so."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

import bnnviz
from bnnviz import samplers
from bnnviz.cli.summary_table import print_summary
from bnnviz.engine.cluster.actor import LiveRun
from bnnviz.engine.cluster.loop import LiveLoop
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec

POINTS = ("ensemble", "map", "mle")
NETWORK = {"data": "toy_a", "hidden": "3"}


def test_they_are_these() -> None:
    assert {cls.registered for cls in samplers.REGISTRY if cls.traits.one_point} == set(POINTS)


@pytest.mark.parametrize("sampler", POINTS)
def test_a_page_counts_one_draw_of_each_chain(sampler: str) -> None:
    run = ViewedRun(
        Spec("network", NETWORK, sampler, {"steps": 20}, chains=2, draws=30, seed=1).checked(),
    )
    while not run.finished:
        run.advance(0.05)
    assert np.ptp(run.draws, axis=1).max() == 0
    assert run.frame(["status"])["status"]["draws"] == 1


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


@pytest.mark.parametrize("sampler", POINTS)
def test_nothing_is_said_of_how_copies_mix(sampler: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = bnnviz.sample("network", sampler, target_settings=NETWORK, settings={"steps": 20}, draws=12, chains=3)
    found = run.summary()
    assert [name for name, value in found.items() if name.startswith(("ess", "rhat")) and value is not None] == []
    print_summary(found, as_json=False)
    said = capsys.readouterr().out
    assert "12, all one point" in said and "ESS" not in said and "R-hat" not in said
    shown = ViewedRun(run.spec)
    assert {"trace", "acf", "weights", "marginal"}.isdisjoint(shown.scene()["emits"])
    while not shown.finished:
        shown.advance(0.05)
    frame = shown.frame(["status", "table"])
    assert np.isnan(frame["status"]["ess"])
    assert [row for row in frame["table"]["rows"] if "ESS" in row[0] or "R-hat" in row[0]] == []


@pytest.mark.slow
def test_a_leaderboard_counts_one_draw() -> None:
    lanes = [("map", {"steps": 20}), ("sgld", {"mode_steps": 20, "batch_size": 10})]
    race = bnnviz.race("network", lanes, target_settings=NETWORK, budget=400_000, chains=2, seed=1, reference=False)
    table = {row["sampler"]: row["draws"] for row in race.table}
    assert table["map"] == 1 < table["sgld"]


@pytest.mark.slow
@pytest.mark.parametrize("plays", [True, False])
def test_a_live_run_that_played_to_its_point_plays_on_after_a_change(tmp_path: Path, plays: bool) -> None:
    """Who draws other points sees the descent to theirs, as with a run that goes on; one that was stepped stays so."""
    drawn = {"data": "toy_c", "points": [[-0.3, 0.4], [0.0, 0.1], [0.3, 0.2]], "hidden": "3"}
    spec = Spec("network", drawn, "map", {"steps": 60}, chains=2, draws=None, seed=1, device="cpu").checked()
    loop = LiveLoop(tmp_path / "live")

    async def end(run: LiveRun) -> None:
        while (await run.status())["state"] != "ended":
            await (asyncio.sleep(0.01) if plays else run.command("proposal", {"times": 20}))

    async def main() -> None:
        run = LiveRun(spec, "a", factory="bnnviz.engine.viewed_run:ViewedRun", loop=loop, play=plays)
        await run.ready()
        await end(run)
        told = await run.command("change", {"settings": {"target.points": [[-0.3, -0.4], [0.3, 0.9]]}})
        assert told["playing"] == plays
        await end(run)
        assert run._slot.run.era == 1

    asyncio.run(main())
    loop.close()
