"""Runs of the samplers that move from point to point: draws, frames, changes, and chains that diverge."""

from __future__ import annotations

import numpy as np
import pytest

from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec
from tests.driven import finished

ROWS = Spec("logistic_regression", {}, "sgld", {"batch_size": 20, "thin": 7}, chains=3, draws=30, device="cpu")
NETWORK = Spec(
    "network", {"data": "toy_c", "hidden": "4"}, "sgld", {"mode_steps": 50}, chains=3, draws=None, device="cpu"
)


def test_the_step_size_may_change_while_it_runs() -> None:
    run = ViewedRun(NETWORK.checked())
    run.prepare()
    run.advance(0.2)
    run.change({"step_size": 1e-5, "decay": 0.5})
    run.advance(0.1)
    assert run.generation == 1
    assert float(run.frame(["table"])["table"]["rows"][-1][1]) < 1e-5


def test_a_chain_that_diverges_is_named_and_the_others_go_on() -> None:
    spec = Spec("banana", {}, "sgld", {"step_size": 0.15, "thin": 1}, chains=16, draws=40, warmup=0, device="cpu")
    run = finished(ViewedRun(spec.checked()))
    stopped = [note for note in run.notes if note.code == "chain_stopped"]
    assert 0 < len(stopped) < 16
    assert run.phase == "done"
    assert np.isfinite(run.draws).all()


def test_a_trajectory_costs_its_own_gradients() -> None:
    run = ViewedRun(NETWORK.replace(sampler="hmc", settings={"num_leapfrog_steps": 8, "mode_steps": 50}).checked())
    run.prepare()
    before = run.gradients
    for _ in range(40):
        run.step_proposal()
    each = (run.gradients - before) / (40 * 3 * run.target.examples)
    assert 4 < each < 8
    assert abs(each - 6) < 4 * (2 / 40) ** 0.5


def test_a_tree_is_one_event_and_a_leapfrog_one_step() -> None:
    run = ViewedRun(NETWORK.replace(sampler="nuts", settings={"mode_steps": 50, "max_treedepth": 2}).checked())
    run.prepare()
    assert "tree has not ended" in run.frame(["caption"])["caption"]["text"] or run.steps == 0
    while run.phase == "tuning":
        run.step_proposal()
    steps, gradients, count = run.steps, run.gradients, float(run.state.count[0])
    run.step_event()
    assert float(run.state.count[0]) == count + 1
    assert run.gradients - gradients == 3 * run.target.examples * (run.steps - steps)
    run.frame([])
    assert "a tree of" in run.frame(["caption"])["caption"]["text"]


@pytest.mark.parametrize(
    ("name", "settings"), [("hmc", {"num_leapfrog_steps": 6, "jitter": False}), ("nuts", {"max_treedepth": 5})]
)
def test_the_points_of_a_move_are_reported(name: str, settings: dict) -> None:
    run = ViewedRun(Spec("banana", {}, name, settings, chains=3, draws=None, device="cpu").checked())
    run.prepare()
    run.advance(0.3)
    run.step_event()
    run.frame([])
    path = run.frame(["path"])["path"]
    x = np.column_stack([path["visited_x"], path["visited_y"]])
    start, end = np.column_stack([path["x"], path["y"]])[-2:]
    assert np.allclose(x[0], start)
    assert np.isclose(x, end).all(1).any(), "the draw is one of them"
    if name == "hmc":
        assert len(x) == 7
    # Blocks make no difference.
    run.advance(0.2)
    for _ in range(3):
        run.step_proposal()
    run.frame([])
    assert len(run.frame(["path"])["path"]["visited_x"]) > 1
