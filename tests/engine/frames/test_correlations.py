"""Correlations of blocks of coordinates and densities of what is followed: parts of a frame, and their views."""

from __future__ import annotations

import numpy as np
import pytest
from torch import nn

import bnnviz
from bnnviz import diagnostics, targets
from bnnviz.engine.frames.parts import coordinate_blocks
from tests.engine.monitor.test_components import WIDE, holding

RNG = np.random.default_rng(6)


def mixed(dim: int = 4, draws: int = 300) -> np.ndarray:
    """Return draws (2, draws, dim) of which the first two coordinates have the correlation -0.8."""
    x = RNG.normal(size=(2, draws, dim))
    x[..., 1] = -0.8 * x[..., 0] + 0.6 * x[..., 1]
    return x


# ---- parts ------------------------------------------------------------------------------------------------


def test_a_layer_is_a_block_and_a_large_one_is_cut():
    module = nn.Sequential(nn.Linear(1, 25), nn.Tanh(), nn.Linear(25, 10), nn.Tanh(), nn.Linear(10, 1))
    target = bnnviz.BNN(module, (np.zeros((3, 1)), np.zeros(3)), noise="learned")
    found = coordinate_blocks(target)
    assert found[0] == {"label": "0.weight, 0.bias", "first": 0, "count": 50}
    assert found[1] == {"label": "2.weight, 2.bias, 1 to 60 of 260", "first": 50, "count": 60}
    assert found[5] == {"label": "2.weight, 2.bias, 241 to 260 of 260", "first": 290, "count": 20}
    assert found[-1] == {"label": "log noise", "first": 321, "count": 1}
    wide = bnnviz.BNN(nn.Sequential(nn.Linear(400, 2)), (np.zeros((3, 400)), np.zeros(3)), "categorical")
    assert [block["first"] for block in coordinate_blocks(wide)] == list(range(0, 480, 60)), "eight blocks, and no more"
    plain = coordinate_blocks(targets.REGISTRY.get("gaussian")(size=3))
    assert plain == [{"label": "all", "first": 0, "count": 3}]


def test_the_correlations_are_those_of_all_draws():
    draws = mixed()
    run = holding(draws)
    part = run.frame(["weights"])["weights"]
    assert np.allclose(part["correlation"], np.corrcoef(draws.reshape(-1, 4).T))
    assert part["correlation"][0, 1] == pytest.approx(-0.8, abs=0.06)
    assert (part["first"], part["draws"], part["chosen"]) == (0, 600, None)
    run.watch(component={"kind": "coordinate", "i": 2})
    assert run.frame(["weights"])["weights"]["chosen"] == 2
    assert run.frame(["marginal"])["marginal"]["label"] == "x3"


def test_the_density_is_one_in_all_and_lies_where_the_draws_are():
    run = holding(WIDE)
    run.watch(component={"kind": "coordinate", "i": 1})
    part = run.frame(["marginal"])["marginal"]
    assert np.trapezoid(part["y"], part["x"]) == pytest.approx(1, abs=0.01)
    assert part["y"].max() == pytest.approx(1 / (3 * np.sqrt(2 * np.pi)), rel=0.25)
    assert part["draws"] == 240
    x, y = diagnostics.density(np.ones(50))
    assert x.size == y.size == 0
