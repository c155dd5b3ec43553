"""Frames of a run on a user's table: a typed row is predicted as by `run.predict`; the verdict is the summary's."""

from __future__ import annotations

import numpy as np
import pytest

import bnnviz
from bnnviz import BnnvizError
from bnnviz.engine.frames.own_table import LEVELS
from bnnviz.engine.history.fork import Fork
from bnnviz.engine.history.timeline import Timeline
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs import upload
from bnnviz.specs.run import Spec

RNG = np.random.default_rng(3)
POINTS = RNG.normal(size=(60, 3))
LINES = "".join(f"{a:.4f},{b:.4f},{a - b + 0.2 * e:.4f},{'yes' if a > b else 'no'}\n" for a, b, e in POINTS)
FILE = b"a,b,y,kind\n" + LINES.encode()
NEAR, FAR = [0.1, -0.2], [60.0, -80.0]


def spec_of(target: str, **more) -> Spec:
    settings = {"hidden": "3"} | ({"noise": "learned"} if target == "y" else {})
    base = Spec(target="network", target_settings=settings, sampler="hmc", chains=2, warmup=20, draws=15, **more)
    other = "kind" if target == "y" else "y"
    return (
        upload.attach(base.checked(), FILE, "mine.csv", target, leave_out=(other,))[0]
        .replace(settings={"mode_steps": 50})
        .checked()
    )


@pytest.fixture(scope="module", params=["y", "kind"])
def run(request: pytest.FixtureRequest) -> bnnviz.Run:
    return bnnviz.sample(spec_of(request.param))


@pytest.mark.parametrize("row", [NEAR, FAR])
def test_a_typed_row_is_predicted_as_the_run_predicts(run: bnnviz.Run, row: list[float]) -> None:
    run._run.watch(row=row)
    part = run._run.frame(["row"])["row"]
    found = run.predict(np.array([row]), LEVELS)
    for name in ("mean", "sd", "epistemic_sd", "aleatoric_sd", "entropy", "mutual_information"):
        values = getattr(found, name)
        assert part[name] == (None if values is None else pytest.approx(float(values[0]), rel=1e-9)), name
    assert part["quantiles"] == {level: pytest.approx(values[0], rel=1e-9) for level, values in found.quantiles.items()}
    if found.probabilities is not None:
        assert np.allclose(part["probabilities"], found.probabilities[0]) and part["classes"] == found.class_names
    assert part["far"] == bool(found.far[0]) == (row == FAR) and part["draws"] == 30


def test_the_verdict_of_an_ended_run_is_that_of_its_summary(run: bnnviz.Run) -> None:
    part = run._run.frame(["verdict"])["verdict"]
    assert (part["code"], part["text"]) == (run.verdict().code, run.verdict().text)
    assert {"verdict", "row"} <= set(run._run.scene()["emits"])


def test_a_future_and_a_past_keep_the_row() -> None:
    run = ViewedRun(spec_of("y").replace(draws=None).checked())
    run.watch(row=NEAR)
    while run.store.common(run.alive) < 2:
        run.advance(0.05)
    before = run.frame(["row"])["row"]["mean"]
    again = ViewedRun.restore(run.checkpoint())
    assert "row" not in again.frame(["row"])
    again.look_like(run)
    assert again.frame(["row"])["row"]["mean"] == pytest.approx(before)
    fork = Fork.of(run, Timeline(), [])
    assert fork.frame(["row"])["row"]["mean"] == pytest.approx(before)


def test_a_row_that_does_not_fit_is_refused() -> None:
    run = ViewedRun(spec_of("y"))
    for row in ([1.0], [1.0, float("nan")], ["x", 1], {"a": 1}):
        with pytest.raises(BnnvizError, match="2 numbers"):
            run.watch(row=row)
    other = ViewedRun(Spec(target="network", target_settings={"data": "toy_c", "hidden": "3"}).checked())
    assert {"verdict", "row"}.isdisjoint(other.scene()["emits"])
    with pytest.raises(BnnvizError, match="table"):
        other.watch(row=[0.0])
