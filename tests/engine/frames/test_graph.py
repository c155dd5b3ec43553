"""The weights of a small network: a part of a frame, and its view."""

from __future__ import annotations

import numpy as np
from torch import nn

import bnnviz
from bnnviz import diagnostics
from bnnviz.engine.frames.parts import network_layers
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec

DATA = np.linspace(-1, 1, 9)[:, None], np.sin(np.linspace(-1, 1, 9))


def run_of(hidden: str = "3-2", **more: object) -> ViewedRun:
    spec = Spec(target="network", sampler="hmc", chains=2, warmup=5, target_settings={"hidden": hidden}, **more)
    return ViewedRun(spec.checked())


def test_layers_lie_where_the_module_has_its_weights():
    net = nn.Sequential(nn.Linear(1, 3, bias=False), nn.ReLU(), nn.Linear(3, 1))
    found = network_layers(bnnviz.BNN(net, DATA))
    assert found == [
        {"inputs": 1, "outputs": 3, "weight": 0, "bias": None},
        {"inputs": 3, "outputs": 1, "weight": 3, "bias": 6},
    ]


def test_the_part_has_the_chain_now_and_the_spread_of_all_draws():
    run = run_of(draws=40)
    assert "graph" in run.scene()["emits"] and run.scene()["layers"][0]["outputs"] == 3
    while run.store.common(run.alive) < 30:
        run.step_proposal()
    run.watch(component={"kind": "coordinate", "i": 4})
    part = run.frame(["graph"])["graph"]
    draws = run.draws.reshape(-1, run.target.dim)
    assert part["draws"] == len(draws) and part["chosen"] == 4
    assert np.allclose(part["weights"], run.chain_trace.current_point().numpy(), atol=1e-6)
    assert np.allclose(part["mean"], draws.mean(0), atol=1e-6)
    assert np.allclose(part["sd"], draws.std(0, ddof=1), atol=1e-6)
    run.watch(plane={"kind": "pca", "canonical": True})
    shown = run.frame(["graph"])["graph"]["weights"]
    reference = run.origin.double().numpy()
    assert np.allclose(
        shown, diagnostics.canonical(part["weights"].astype(float), run.target.units, reference), atol=1e-5
    )
