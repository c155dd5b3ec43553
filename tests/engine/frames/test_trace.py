"""The trace of a live run: its draws, after those of the warm-up."""

from __future__ import annotations

import numpy as np

from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec


def test_a_trace_begins_with_the_warm_up_in_its_order() -> None:
    settings = {"chains": 2, "draws": None, "seed": 1, "dtype": "float64"}
    traces = []
    for warmup in (30, 0):
        run = ViewedRun(Spec(target="gaussian", sampler="bps", warmup=warmup, **settings))
        while run.phase == "start" or not (run.store.counts >= 60 - warmup).all():
            run.advance(1)
        traces.append(run.frame(["trace"])["trace"])
    whole = np.concatenate([traces[0]["warmup"], traces[0]["values"]], axis=1)
    assert traces[0]["warmup"].shape == (2, 30) and traces[1]["warmup"].shape == (2, 0)
    np.testing.assert_array_equal(whole[:, :60], traces[1]["values"][:, :60])
