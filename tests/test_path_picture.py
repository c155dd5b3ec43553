"""What is drawn of a path and of the rate along it is what the flow and the rate are."""

import math

import numpy as np
import pytest

from bnnviz.engine.run import Run
from bnnviz.samplers.pdmp_trace import _through
from bnnviz.spec import Spec


@pytest.fixture(params=["bps", "boomerang", "zigzag"])
def run(request) -> Run:
    target = {"size": 3, "correlation": 0.4, "spread": 5.0}
    run = Run(Spec(target="gaussian", target_settings=target, sampler=request.param, chains=2, seed=3))
    run.prepare()
    while run.steps < 200 or not run.tracer.now.duration > 0:
        run.step_proposal()
    return run


def test_the_path_ends_where_the_flow_leads_and_heads_where_it_goes(run: Run):
    path, plane, now = run.frame(["path"])["path"], run.plane(), run.tracer.now
    x, v = (part.double().numpy() for part in run.tracer._at_end(now))
    assert (path["now_x"], path["now_y"]) == pytest.approx((x - plane.centre) @ plane.axes, abs=1e-5)
    assert (path["now_dx"], path["now_dy"]) == pytest.approx(v @ plane.axes, abs=1e-5)


def test_the_path_goes_through_the_flow_between_two_events(run: Run):
    plane, segment = run.plane(), run.tracer.past[-1]
    run.frame(["path"])
    drawn = segment.drawn[1]
    for share, point in zip(np.linspace(0, 1, len(drawn)), drawn, strict=True):
        t = run.state.t.new_tensor([share * segment.duration])
        x = run.sampler.flow(segment.x[None], segment.v[None], t)[0][0].double().numpy()
        assert point == pytest.approx((x - plane.centre) @ plane.axes, abs=1e-5)


@pytest.mark.parametrize("unknown", [[], [0]])
@pytest.mark.parametrize("times", [(0.0, 0.4, 1.0), (0.0, 0.2, 0.2, 0.9, 1.1, 2.0)])
def test_the_curve_through_a_cubic_rate_is_that_cubic(times, unknown):
    cubic = np.polynomial.Polynomial([0.3, -1.0, 2.0, -0.7])
    slopes = [math.nan if k in unknown else cubic.deriv()(t) for k, t in enumerate(times)]
    knots = [(t, float(cubic(t)), float(d)) for t, d in zip(times, slopes, strict=True)]
    t, rate = _through(knots[::-1])
    assert (t[0], t[-1]) == (times[0], times[-1]) and (np.diff(t) >= 0).all() and len(t) >= 48
    np.testing.assert_allclose(rate, cubic(t), atol=1e-12)


def test_a_curve_without_slopes_goes_through_what_was_evaluated():
    knots = [(t, math.sin(3 * t), math.nan) for t in (0.0, 0.3, 0.7, 1.0)]
    t, rate = _through(knots)
    for at, known, _ in knots:
        assert np.interp(at, t, rate) == pytest.approx(known, abs=1e-12)


def test_one_known_rate_is_a_point():
    t, rate = _through([(0.5, 2.0, math.nan)])
    assert (t.tolist(), rate.tolist()) == ([0.5], [2.0])
