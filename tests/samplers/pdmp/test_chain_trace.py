"""What is drawn of a path and of the rate along it is what the flow and the rate are."""

import numpy as np
import pytest

from bnnviz.engine.viewed_run import ViewedRun
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
