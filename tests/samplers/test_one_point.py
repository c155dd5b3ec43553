"""Samplers whose draws are all one point: what is counted of them says so."""

from __future__ import annotations

import numpy as np
import pytest

import bnnviz
from bnnviz import samplers
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec

POINTS = ("ensemble", "map", "mle")
NETWORK = {"data": "toy_a", "hidden": "3"}


def test_they_are_these() -> None:
    assert {cls.registered for cls in samplers.REGISTRY if cls.one_point} == set(POINTS)


@pytest.mark.parametrize("sampler", POINTS)
def test_a_page_counts_one_draw_of_each_chain(sampler: str) -> None:
    run = ViewedRun(
        Spec("network", NETWORK, sampler, {"steps": 20}, chains=2, draws=30, seed=1).checked(),
    )
    while not run.finished:
        run.advance(0.05)
    assert np.ptp(run.draws, axis=1).max() == 0
    assert run.frame(["status"])["status"]["draws"] == 1


def test_a_leaderboard_counts_one_draw() -> None:
    lanes = [("map", {"steps": 20}), ("sgld", {"mode_steps": 20, "batch_size": 10})]
    race = bnnviz.race("network", lanes, target_settings=NETWORK, budget=400_000, chains=2, seed=1, reference=False)
    table = {row["sampler"]: row["draws"] for row in race.table}
    assert table["map"] == 1 < table["sgld"]
