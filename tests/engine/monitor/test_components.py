"""What trace and autocorrelation follow: principal components and single coordinates."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz import diagnostics
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.samplers.observers import Draws
from bnnviz.specs.run import Spec
from bnnviz.targets import Target
from tests.driven import finished

RNG = np.random.default_rng(4)
WIDE = RNG.normal(size=(3, 80, 5)) * (5.0, 3.0, 1.0, 0.5, 0.1)


def holding(draws: np.ndarray, target: Target | None = None) -> ViewedRun:
    """Return a run that has made these draws (chains, draws, dim) of a Gaussian or another target."""
    chains, count, dim = draws.shape
    settings = {"size": dim, "correlation": 0.0}
    spec = Spec(target="gaussian", target_settings=settings, sampler="bps", chains=chains, draws=None, warmup=0)
    spec = spec.replace(dtype="float64")
    run = ViewedRun(spec) if target is None else ViewedRun(spec.replace(target="", target_settings={}), target=target)
    add(run, draws)
    return run


def add(run: ViewedRun, draws: np.ndarray) -> None:
    begun = run.store.common(run.alive)
    chain, index = (torch.as_tensor(each.ravel()) for each in np.indices(draws.shape[:2]))
    run.store.add(Draws(chain, index + begun, torch.as_tensor(draws.reshape(-1, draws.shape[2]))))


def shown(run: ViewedRun, **component) -> tuple[dict, dict]:
    """Return the trace and the autocorrelation of a component."""
    run.watch(component=component)
    frame = run.frame(["acf", "trace"])
    return frame["trace"], frame["acf"]


@pytest.mark.parametrize(("number", "column", "label"), [(1, 0, "PC 1"), (2, 1, "PC 2"), (-1, 4, "last PC")])
def test_a_principal_component_is_the_coordinate_with_its_spread(number, column, label):
    run = holding(WIDE)
    trace, acf = shown(run, kind="pc", number=number)
    assert trace["label"] == acf["label"] == label
    centred = WIDE[:, :, column] - WIDE[:, :, column].mean()
    assert np.abs(np.corrcoef(trace["values"].ravel(), centred.ravel())[0, 1]) > 0.98
    assert abs(trace["values"].mean()) < 1e-9
    assert acf["ess"] == pytest.approx(diagnostics.ess(trace["values"]))


def test_a_single_coordinate_is_followed_as_it_comes_in():
    run = holding(WIDE[:, :50])
    trace, acf = shown(run, kind="coordinate", i=3)
    assert trace["label"] == run.target.names()[3] and np.allclose(trace["values"], WIDE[:, :50, 3])
    assert np.allclose(acf["acf"], diagnostics.autocorrelation(WIDE[:, :50, 3]))
    add(run, WIDE[:, 50:])
    assert np.allclose(run.frame(["trace"])["trace"]["values"], WIDE[:, :, 3])
    run.change({"refresh_rate": 2.0})
    add(run, WIDE[:, :9])
    assert np.allclose(run.frame(["trace"])["trace"]["values"], WIDE[:, :9, 3]), "a new era is followed too"


@pytest.mark.parametrize(
    "bad", [{"kind": "coordinate", "i": 5}, {"kind": "coordinate"}, {"kind": "pc", "number": 3}, {}, {"kind": "ic"}]
)
def test_what_is_not_there_cannot_be_followed(bad):
    run = holding(WIDE)
    with pytest.raises(bnnviz.BnnvizError) as caught:
        run.watch(component=bad)
    assert caught.value.field == "component"


@pytest.mark.parametrize("shape", [(200, 6), (6, 20)])
def test_the_last_axis_is_the_narrowest_along_which_draws_vary(shape):
    rows = RNG.normal(size=shape) * np.geomspace(3, 0.3, shape[1])
    axis = diagnostics.last_axis(rows)
    spread = np.linalg.svd(rows - rows.mean(0), compute_uv=False)
    along = np.linalg.norm((rows - rows.mean(0)) @ axis)
    assert along == pytest.approx(spread[min(shape[0] - 1, shape[1]) - 1], rel=1e-6)
    assert np.linalg.norm(axis) == pytest.approx(1) and axis[np.abs(axis).argmax()] > 0


def test_a_sample_statistic_is_followed_by_its_name() -> None:
    spec = Spec(target="gaussian", target_settings={"size": 5}, sampler="nuts", chains=2, draws=60, warmup=5)
    run = ViewedRun(spec)
    finished(run)
    trace, acf = shown(run, kind="stat", name="n_steps")
    assert trace["label"] == "n_steps" and acf
    np.testing.assert_array_equal(trace["values"], run.sample_stats["n_steps"])
    assert run.frames.components.label == "PC 1" and run.frames.components.of(run.store.view(run.alive)).shape == (
        2,
        60,
    )
    with pytest.raises(bnnviz.BnnvizError, match="no sample statistic 'lp' to follow; choose acceptance_rate, "):
        run.watch(component={"kind": "stat", "name": "lp"})
