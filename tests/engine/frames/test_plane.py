"""The plane of the path: principal axes from enough draws on, whichever views are looked at."""

from __future__ import annotations

import pytest

from bnnviz.engine.monitor.components import PCA_FIRST
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec


def test_the_path_alone_goes_over_to_principal_axes() -> None:
    run = ViewedRun(Spec(target="gaussian", target_settings={"size": 5}, sampler="hmc", chains=2, warmup=0, seed=1))
    assert run.frame(["path"]).get("path", {}).get("awaits") != ""
    while run.frame(["status"])["status"]["draws"] < PCA_FIRST:
        run.advance()
    path = run.frame(["path"])["path"]
    assert path["awaits"] == ""
    assert path["x_label"] == "PC 1"


@pytest.mark.parametrize(("first", "last"), [(-0.4, 0.4), (-1.0, 0.4), (-0.4, 2.0)])
def test_a_predicted_line_reaches_over_all_points(first: float, last: float) -> None:
    settings = {"data": "toy_c", "hidden": "5", "points": [[first, 0.1], [last, 0.2]]}
    run = ViewedRun(Spec(target="network", target_settings=settings, sampler="hmc", chains=2, warmup=2))
    while "prediction" not in (frame := run.frame(["prediction"])):
        run.advance()
    x = frame["prediction"]["x"]
    assert x[0] < first and x[-1] > last
