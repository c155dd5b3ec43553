"""Runs: the same draws however they are driven, changes, failures, checkpoints, frames, the Python calls."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from families import PDMPS
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st

import bnnviz
from bnnviz import targets
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec
from tests.driven import finished

PARTS = [
    *("status", "caption", "events", "envelope", "path", "ratios", "prediction", "trace", "acf", "table"),
    *("selection", "weights", "marginal", "graph"),
]


def spec(**changes) -> Spec:
    return Spec(**({"target": "banana", "sampler": "bps", "chains": 3, "draws": 60, "warmup": 20} | changes)).checked()


def prepared(spec: Spec) -> ViewedRun:
    run = ViewedRun(spec)
    run.prepare()
    return run


SPECS = [
    spec(),
    spec(sampler="boomerang", target="logistic_regression"),
    spec(settings={"bound": "interpolated"}),
    spec(settings={"samples": "events"}),
    spec(target="network", target_settings={"data": "toy_c", "hidden": "5"}, sampler="boomerang", draws=20),
    spec(sampler="boomerang", settings={"learn_reference": True, "adapt_events": 100}),
]


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS, ids=lambda s: f"{s.sampler}-{s.target}-{s.settings['bound']}")
def test_draws_depend_on_the_spec_alone(spec):
    """Stepping, playing with every view attached, and going on from a checkpoint give the same draws."""
    alone = finished(ViewedRun(spec))
    assert alone.draws.shape == (3, spec.draws, alone.target.dim)
    assert np.isfinite(alone.draws).all()

    watched = ViewedRun(spec)
    watched.watch(chain=1, plane={"kind": "pca"})
    while not watched.finished:
        watched.step_proposal()
        if watched.steps % 7 == 0:
            watched.frame(PARTS)
    assert np.array_equal(alone.draws, watched.draws)

    half = ViewedRun(spec)
    half.prepare()
    while half.steps < 0.6 * alone.steps:
        half.step_proposal()
    assert np.array_equal(alone.draws, finished(ViewedRun.restore(half.checkpoint())).draws)


LOOKS = {
    "step": lambda run, n: run.step_proposal(),
    "event": lambda run, n: run.step_event(),
    "play": lambda run, n: run.advance(0.002),
    "frame": lambda run, n: run.frame(PARTS),
    "chain": lambda run, n: run.watch(chain=n % 3),
    "plane": lambda run, n: run.watch(plane={"kind": ("pca", "coordinates")[n % 2], "i": 0, "j": 1}),
    "pick": lambda run, n: run.select({"view": "path", "box": [-1, 1, -1, 1]}),
    "figures": lambda run, n: (run.summary(), run.path_moments(), run.event_weights()),
    "record": lambda run, n: run.to_arviz() if run.draws.shape[1] else None,
    "checkpoint": lambda run, n: run.checkpoint(),
}


@pytest.mark.slow
@trials(max_examples=8, deadline=None)
@given(
    sampler=st.sampled_from(PDMPS),
    bound=st.sampled_from(["grid", "interpolated", "exact"]),
    samples=st.sampled_from(["path", "events"]),
    seed=st.integers(0, 2**31 - 1),
    looks=st.lists(st.tuples(st.sampled_from(sorted(LOOKS)), st.integers(0, 5)), max_size=30),
)
def test_nothing_that_looks_on_changes_a_draw(sampler, bound, samples, seed, looks):
    """Whatever views, picks, estimates or recordings are made on the way: draws depend on spec and seed alone."""
    chosen = {"sampler": sampler, "settings": {"bound": bound, "samples": samples, "mode_steps": 20}}
    alone, watched = (ViewedRun(spec(target="gaussian", seed=seed, draws=8, warmup=2, **chosen)) for _ in range(2))
    watched.prepare()
    for name, number in looks:
        LOOKS[name](watched, number)
    assert np.array_equal(finished(alone).draws, finished(watched).draws)


@pytest.mark.slow
def test_a_checkpoint_before_the_first_step_starts_anew():
    assert np.array_equal(
        finished(ViewedRun.restore(ViewedRun(spec()).checkpoint())).draws, finished(ViewedRun(spec())).draws
    )


def test_a_change_takes_effect_in_the_kernel():
    run = walked(prepared(spec(draws=None)), 300)
    run.change({"refresh_rate": 20.0})
    walked(run, 600)
    figures = run.sampler_stats.summary()
    assert figures["refreshes"] > 3 * figures["bounces"]


def test_bad_changes_are_refused_and_harm_nothing():
    run = prepared(spec(draws=None))
    run.advance(0.2)
    before = run.spec
    for bad, field in (({"alpha": 99.0}, "alpha"), ({"spacing": 1.0}, "spacing"), ({"nonsense": 1}, "nonsense")):
        with pytest.raises(bnnviz.BnnvizError) as caught:
            run.change(bad)
        assert caught.value.field == field
    assert run.spec == before and run.changes == []
    assert run.advance(0.1) > 0


@pytest.mark.slow
def test_a_live_run_thins_itself():
    run = ViewedRun(spec(draws=None, warmup=0, chains=2))
    run.store.buffer = run.store.buffer[:, :40]
    kept = []
    while run.store.every < 4:
        run.advance(0.05)
        kept.append(run.draws.shape[1])
    assert max(kept) <= 40
    assert run.store.every == 4
    whole = finished(ViewedRun(spec(draws=200, warmup=0, chains=2))).draws
    thinned = run.draws
    same = min(thinned.shape[1], 50)
    assert np.array_equal(thinned[:, :same], whole[:, ::4][:, :same])


class Cliff(targets.Target):
    """A Gaussian whose potential is not a number beyond 3.5, where some chains come and others do not."""

    title, dim = "Cliff", 1

    def potential(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x[:, 0] > 3.5, torch.nan, x[:, 0] ** 2 / 2)

    def initial(self, chains: int, rng: torch.Generator) -> torch.Tensor:
        start = torch.zeros(chains, 1, dtype=self.dtype)
        start[0] = 3.49
        return start


def test_a_run_ends_where_a_chain_meets_an_edge_and_keeps_the_draws_of_the_others():
    run = finished(ViewedRun(spec(chains=6, draws=300), target=Cliff()))
    assert (run.phase, run.error.code) == ("failed", "edge")
    assert 0 < run.alive.sum() < 6
    assert [note.values["chain"] for note in run.notes if note.code == "chain_stopped"] == [0]
    assert run.draws.shape[::2] == (run.alive.sum(), 1)
    assert np.isfinite(run.draws).all()


@pytest.mark.slow
def test_when_all_chains_fail_the_draws_are_kept():
    class Trap(Cliff):
        evaluations = 0

        def potential(self, x: torch.Tensor) -> torch.Tensor:
            self.evaluations += 1
            return x[:, 0] ** 2 / (2 if self.evaluations < 3000 else torch.nan)

    run = finished(ViewedRun(spec(chains=2, draws=100_000, warmup=0), target=Trap()))
    assert run.phase == "failed"
    assert run.error.code == "all_stopped"
    assert run.draws.shape[1] > 0


def test_frames_hold_what_the_views_need():
    run = prepared(SPECS[4].replace(draws=None))
    scene = run.scene()
    json.dumps(scene["spec"])
    assert set(PARTS) == set(scene["emits"])
    while run.store.common(run.alive) < 100:
        run.advance(0.1)
    run.frame(["acf"])
    frame = run.frame(PARTS)
    assert set(frame) == {"seq", *PARTS}
    assert frame["path"]["x"].shape == frame["path"]["y"].shape == frame["path"]["age"].shape
    assert len(frame["path"]["event_x"]) == len(frame["path"]["event_kind"])
    assert frame["trace"]["values"].shape == (3, len(frame["trace"]["index"]))
    band = frame["prediction"]
    assert (band["lo95"] <= band["lo50"]).all() and (band["hi50"] <= band["hi95"]).all()
    assert math.isfinite(frame["status"]["ess"])
    envelope = frame["envelope"]
    inside = (envelope["proposal_kind"] == 1) | (envelope["proposal_kind"] == 2)
    rate = np.interp(envelope["proposal_t"], envelope["rate_t"], np.maximum(envelope["rate"], 0))
    assert np.allclose(rate[inside], envelope["proposal_rate"][inside], rtol=0.2, atol=0.5)
    assert run.frame(["status"])["seq"] > frame["seq"]


# The Python calls.


# ---- data that change while a run goes on -----------------------------------------------------------------


def drawing(sampler: str = "boomerang", **changes) -> Spec:
    settings = {"data": "toy_c", "hidden": "8", "points": [[-0.3, -0.2], [0.0, 0.1], [0.3, 0.2]]}
    quick = {"settings": {"warmup_events": 60}} if sampler == "sigma_bps" else {}
    return spec(target="network", target_settings=settings, sampler=sampler, draws=None, warmup=5, **quick | changes)


MOVED = [[-0.3, 0.4], [0.0, 0.1], [0.3, 0.2]]


def walked(run: ViewedRun, steps: int) -> ViewedRun:
    while run.steps < steps:
        run.step_proposal()
    return run


@pytest.mark.slow
@pytest.mark.parametrize("sampler", PDMPS)
def test_a_chain_goes_on_from_where_it_is_when_the_data_change(sampler):
    run = walked(prepared(drawing(sampler)), 400)
    x, _ = run.sampler.flow(run.state.x, run.state.v, run.state.s, run.state.adaptation.scaling)
    before = run.target.potential(x)
    run.change({"target.points": MOVED})
    assert torch.allclose(run.state.x, x, atol=1e-6) and run.steps == 400
    assert not torch.allclose(run.target.potential(x), before)
    assert run.spec.target_settings["points"] == MOVED and run.generation == 1
    assert run.changes == [(400, {"target.points": MOVED})]


@pytest.mark.slow
@pytest.mark.parametrize("sampler", PDMPS)
def test_a_changed_run_repeats_itself_and_goes_on_from_a_checkpoint(sampler):
    def changed() -> ViewedRun:
        run = walked(prepared(drawing(sampler)), 300)
        run.change({"target.points": MOVED})
        return walked(run, 500)

    one, other = changed(), changed()
    restored = ViewedRun.restore(one.checkpoint())
    assert restored.spec.target_settings["points"] == MOVED
    for run in (one, other, restored):
        run.change({"target.points": MOVED[:2]})
        walked(run, 900)
    assert len(one.draws[0]) > 3
    assert np.array_equal(one.draws, other.draws) and np.array_equal(one.draws, restored.draws)


@pytest.mark.slow
def test_data_that_change_before_the_first_step_are_the_data_of_the_start():
    early = ViewedRun(drawing())
    early.advance(0.001)
    assert early.phase == "start"
    early.change({"target.points": MOVED})
    fresh = ViewedRun(drawing().replace(target_settings={**drawing().target_settings, "points": MOVED}).checked())
    assert np.array_equal(walked(early, 600).draws, walked(fresh, 600).draws)


def test_changed_data_that_do_not_fit_are_refused_and_harm_nothing():
    run = walked(prepared(drawing()), 50)
    before = run.target.potential(run.state.x)
    for bad in ([[0.0, 1.0, 1.0]], [[0.0]], "here", [[0.0, math.nan]]):
        with pytest.raises(bnnviz.BnnvizError):
            run.change({"target.points": bad})
    with pytest.raises(bnnviz.BnnvizError, match="cannot change"):
        run.change({"target.hidden": "3"})
    assert torch.equal(run.target.potential(run.state.x), before) and run.changes == []
