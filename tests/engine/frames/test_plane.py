"""The plane of the path: principal axes from enough draws on, whichever views are looked at."""

from __future__ import annotations

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
