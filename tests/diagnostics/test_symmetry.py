"""Canonical representatives of a network's weights: the function stays, copies meet, and paths are cut, not bent."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import bnnviz
from bnnviz.diagnostics import canonical
from bnnviz.diagnostics.geometry.symmetry import ODD
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.models import ACTIVATIONS, mlp
from bnnviz.specs.run import Spec

widths = st.lists(st.integers(1, 6), min_size=1, max_size=3)
seeds = st.integers(0, 2**31)


def network(activation: str, hidden: list[int], inputs: int = 2, outputs: int = 1) -> bnnviz.BNN:
    rows = np.random.default_rng(0).normal(size=(7, inputs)), np.arange(7) % 2
    likelihood = "gaussian" if outputs == 1 else "categorical"
    target = bnnviz.BNN(mlp(inputs, hidden, outputs, activation), rows, likelihood)
    return target.to("cpu", torch.float64)


def copied(draws: np.ndarray, layers: list, rng: np.random.Generator) -> np.ndarray:
    """Return draws with the hidden units in a random order, and with random signs where these are free."""
    draws = draws.copy()
    for layer, after in zip(layers[:-1], layers[1:], strict=True):
        order = rng.permutation(layer.outputs)
        sign = rng.choice([-1.0, 1.0], layer.outputs) if layer.activation in ODD else np.ones(layer.outputs)
        for row in draws:
            into = row[layer.weight : layer.weight + layer.inputs * layer.outputs].reshape(layer.outputs, -1)
            out = row[after.weight : after.weight + after.inputs * after.outputs].reshape(after.outputs, -1)
            into[:] = into[order] * sign[:, None]
            out[:] = out[:, order] * sign
            if layer.bias is not None:
                bias = row[layer.bias : layer.bias + layer.outputs]
                bias[:] = bias[order] * sign
    return draws


@given(st.sampled_from(ACTIVATIONS), widths, st.integers(1, 3), st.sampled_from([1, 3]), st.booleans(), seeds)
def test_the_function_stays_copies_meet_and_twice_is_once(activation, hidden, inputs, outputs, near, seed):
    target, rng = network(activation, hidden, inputs, outputs), np.random.default_rng(seed)
    draws = rng.normal(size=(5, target.dim))
    reference = rng.normal(size=target.dim) if near else None
    found = canonical(draws, target.units, reference)
    x = torch.as_tensor(rng.normal(size=(9, inputs)))
    before, after = (target.outputs(torch.as_tensor(theta), x).numpy() for theta in (draws, found))
    assert np.allclose(before, after, rtol=1e-9, atol=1e-10)
    assert np.allclose(*(target.potential(torch.as_tensor(theta)).numpy() for theta in (draws, found)))
    assert np.array_equal(canonical(found, target.units, reference), found)
    assert np.array_equal(canonical(copied(draws, target.units, rng), target.units, reference), found)


def test_one_hidden_layer_comes_as_near_to_the_reference_as_any_copy():
    target, rng = network("tanh", [4]), np.random.default_rng(3)
    draw, reference = rng.normal(size=(2, target.dim))
    nearest = np.linalg.norm(canonical(draw, target.units, reference) - reference)
    copies = np.concatenate([copied(draw[None], target.units, rng) for _ in range(4000)])
    away = np.linalg.norm(copies - reference, axis=1)
    # Of the copies 4! 2^4 = 384 are different.
    assert nearest == pytest.approx(away.min()) and nearest < np.median(away)


@given(st.sampled_from(["tanh", "relu"]), widths, st.booleans(), seeds)
def test_a_draw_and_a_direction_at_it_move_together(activation, hidden, near, seed):
    target, rng = network(activation, hidden), np.random.default_rng(seed)
    draws, v = rng.normal(size=(2, 4, 3, target.dim))
    reference = rng.normal(size=target.dim) if near else None
    moved = canonical(draws, target.units, reference, v)
    assert moved.shape == v.shape
    # On the same side of all cuts the fold is a rotation.
    beside, here = (canonical(each, target.units, reference) for each in (draws + 1e-9 * v, draws))
    assert np.allclose(beside - here, 1e-9 * moved, atol=1e-15)
    assert np.allclose(np.linalg.norm(moved, axis=-1), np.linalg.norm(v, axis=-1))


def test_units_are_in_the_order_of_their_first_weight_which_is_positive_where_signs_are_free():
    for activation in ("tanh", "silu"):
        target = network(activation, [6])
        first = canonical(np.random.default_rng(1).normal(size=(20, target.dim)), target.units)[:, 0:12:2]
        assert (np.diff(first, axis=1) >= 0).all()
        assert (first >= 0).all() == (activation == "tanh")


def test_what_is_no_weight_of_a_layer_and_the_draws_themselves_stay():
    module = nn.Sequential(nn.Linear(1, 3, bias=False), nn.Tanh(), nn.Linear(3, 1))
    target = bnnviz.BNN(module, (np.zeros((3, 1)), np.zeros(3)), noise="learned")
    draws = np.random.default_rng(2).normal(size=(4, target.dim))
    before = draws.copy()
    found = canonical(draws, target.units)
    assert np.array_equal(found[:, -2:], draws[:, -2:]) and np.array_equal(draws, before)


@pytest.mark.parametrize(
    "module",
    [nn.Linear(1, 1), nn.Sequential(nn.Linear(1, 2), nn.PReLU(), nn.Linear(2, 1)), nn.Sequential(nn.Linear(1, 1))],
)
def test_what_has_no_hidden_units_that_may_change_places_is_reported(module):
    target = bnnviz.BNN(module, (np.zeros((3, 1)), np.zeros(3)))
    assert not target.units
    run = ViewedRun(Spec(target="", sampler="bps"), target=target)
    assert run.scene()["canonical"] == ""
    with pytest.raises(bnnviz.BnnvizError, match="no hidden units"):
        run.watch(plane={"kind": "pca", "canonical": True})
