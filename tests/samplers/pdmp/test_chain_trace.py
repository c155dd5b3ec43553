"""What is drawn of a path and of the rate along it is what the flow and the rate are."""

import math

import numpy as np
import pytest

from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.samplers.pdmp.trace.chain_trace import hermite_curve
from bnnviz.specs.run import Spec


@pytest.fixture(params=["bps", "boomerang", "zigzag"])
def run(request) -> ViewedRun:
    target = {"size": 3, "correlation": 0.4, "spread": 5.0}
    run = ViewedRun(Spec(target="gaussian", target_settings=target, sampler=request.param, chains=2, seed=3))
    run.prepare()
    while run.steps < 200 or not run.chain_trace.now.duration > 0:
        run.step_proposal()
    return run


def test_the_path_ends_where_the_flow_leads_and_heads_where_it_goes(run: ViewedRun):
    path, plane, now = run.frame(["path"])["path"], run.frames.plane(), run.chain_trace.now
    x, v = (part.double().numpy() for part in run.chain_trace.end_of(now))
    assert (path["now_x"], path["now_y"]) == pytest.approx((x - plane.centre) @ plane.axes, abs=1e-5)
    assert (path["now_dx"], path["now_dy"]) == pytest.approx(v @ plane.axes, abs=1e-5)


def test_the_path_goes_through_the_flow_between_two_events(run: ViewedRun):
    plane, segment = run.frames.plane(), run.chain_trace.past[-1]
    path = run.frame(["path"])["path"]
    points = np.column_stack([path["x"], path["y"]])
    each = 8 if run.sampler.curved else 1
    drawn = points[-2 * each - 1 : -each]
    for share, point in zip(np.linspace(0, 1, each + 1), drawn, strict=True):
        t = run.state.t.new_tensor([share * segment.duration])
        x = run.sampler.flow(segment.x[None], segment.v[None], t, segment.scaling)[0][0].double().numpy()
        assert point == pytest.approx((x - plane.centre) @ plane.axes, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("sampler", "target"), [("bps", "gaussian"), ("boomerang", "double_well")])
def test_a_path_that_is_looked_at_often_is_drawn_as_one_looked_at_once(sampler: str, target: str):
    spec = Spec(target=target, sampler=sampler, chains=2, seed=3)
    often, once = ViewedRun(spec), ViewedRun(spec)
    for steps in (3, 4, 44, 250, 252, 1000, 1004):
        for run in (often, once):
            run.prepare()
            while run.steps < steps:
                run.take(steps - run.steps)
        # A frame of many new steps may leave the path out, for the time that the last one took.
        seen = often.frame(["path"])["path"]
        # Nobody has looked before: nothing is kept of earlier frames.
        once.chain_trace.picture._drawn = None
        anew = once.frame(["path"])["path"]
        for name in ("x", "y", "age", "event_x", "event_y", "event_kind", "event_step", "now_x", "now_dx"):
            np.testing.assert_allclose(seen[name], anew[name], rtol=0, atol=1e-6, err_msg=name)
    assert len(seen["event_step"]) == (60 if often.sampler.curved else 120)


@pytest.mark.parametrize("unknown", [[], [0]])
@pytest.mark.parametrize("times", [(0.0, 0.4, 1.0), (0.0, 0.2, 0.2, 0.9, 1.1, 2.0)])
def test_the_curve_through_a_cubic_rate_is_that_cubic(times, unknown):
    cubic = np.polynomial.Polynomial([0.3, -1.0, 2.0, -0.7])
    slopes = [math.nan if k in unknown else cubic.deriv()(t) for k, t in enumerate(times)]
    knots = [(t, float(cubic(t)), float(d)) for t, d in zip(times, slopes, strict=True)]
    t, rate = hermite_curve(knots[::-1])
    assert (t[0], t[-1]) == (times[0], times[-1]) and (np.diff(t) >= 0).all() and len(t) >= 48
    np.testing.assert_allclose(rate, cubic(t), atol=1e-12)
