"""The step-size microscope: its curves, its frames, its views, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bnnviz import diagnostics, samplers, targets
from bnnviz.engine.demos.step_size_grid import StepSizeGrid, _with_a_step_size
from bnnviz.errors import BnnvizError
from bnnviz.samplers.random import RandomNumbers, seeded
from bnnviz.views.demos.step_size import CellView, StepErrorView

KNOWN = [cls.registered for cls in _with_a_step_size() if cls().recursion(0.1, 1.0) is not None]


@pytest.fixture(scope="module")
def microscope() -> StepSizeGrid:
    found = StepSizeGrid(targets.Gaussian(size=1), sizes=4, chains=64)
    found.advance(1.5)
    return found


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_the_recursion_is_the_move(monkeypatch: pytest.MonkeyPatch, name: str, noise: float) -> None:
    precision, size = 2.0, 0.3
    target = targets.Gaussian(np.zeros(1), np.eye(1) / precision).to("cpu", torch.float64)
    sampler = samplers.REGISTRY.get(name)(step_size=size)
    sampler.prepare(target, None)
    rng = seeded(0)
    state = sampler.init(torch.tensor([[0.7]], dtype=torch.float64), rng)
    monkeypatch.setattr(
        RandomNumbers, "normal", lambda self, shape, dtype: torch.full(tuple(shape), noise, dtype=dtype)
    )
    after, _ = sampler.step(rng, state)
    matrix, spread = sampler.recursion(size, precision)
    before, moved = (np.array([float(s.x), float(s.momentum)])[: len(matrix)] for s in (state, after))
    assert moved == pytest.approx(matrix @ before + noise * np.sqrt(np.diag(spread)))


def test_a_recursion_that_diverges_has_no_variance() -> None:
    recursion = lambda size: (np.array([[1 - size / 2]]), np.array([[size]]))  # noqa: E731
    assert diagnostics.largest_stable(recursion, 0.01) == pytest.approx(4.0)
    assert diagnostics.stationary_variance(*recursion(1.0)) == pytest.approx(4 / 3)
    assert np.isnan(diagnostics.stationary_variance(*recursion(4.1)))
    assert diagnostics.largest_stable(lambda size: (np.array([[0.5]]), np.eye(1)), 0.01) == np.inf


def test_a_slope_is_that_of_a_power() -> None:
    x = np.array([0.1, 0.2, 0.4, 0.8])
    slope = diagnostics.log_slope(x, 3 * x**1.5, 0.01 * x**1.5)
    assert slope.value == pytest.approx(1.5)
    noisy = 3 * x**1.5 * (1 + 0.05 * np.random.default_rng(0).standard_normal((4000, 4)))
    found = [diagnostics.log_slope(x, y, 0.05 * 3 * x**1.5) for y in noisy]
    assert np.std([one.value for one in found]) == pytest.approx(found[0].error, rel=0.1)
    assert diagnostics.log_slope(x[:1], x[:1], x[:1]) is None


def test_every_sampler_with_a_step_size_has_its_lenses(microscope: StepSizeGrid) -> None:
    scene, frame = microscope.scene(), microscope.frame()
    assert [sampler["name"] for sampler in scene["samplers"]] == [cls.registered for cls in _with_a_step_size()]
    for sampler, found in zip(scene["samplers"], frame["errors"]["samplers"], strict=True):
        assert sampler["name"] == found["name"]
        assert len(found["error"]) == len(found["se"]) == len(sampler["size"]) == 4
        assert (sampler["known"] is not None) == (sampler["name"] in KNOWN)
    x, y = scene["density"]["x"], scene["density"]["y"]
    assert np.trapezoid(y, x) == pytest.approx(1.0, abs=1e-4)
    shown = frame["cell"]
    assert shown["y"].sum() * shown["width"] == pytest.approx(1.0) or shown["draws"] == 0


@pytest.mark.parametrize("name", KNOWN)
def test_its_errors_are_the_known_ones(name: str) -> None:
    found = StepSizeGrid(targets.Gaussian(size=1), sizes=5, chains=400)
    for cell in found.cells[name]:
        for _ in range(80):
            found._look(cell)
    (errors,) = [one for one in found.frame()["errors"]["samplers"] if one["name"] == name]
    recursions = [found.cells[name][0].sampler.recursion(size, found.precision) for size in errors["size"]]
    known = np.array([diagnostics.stationary_variance(*one) for one in recursions]) / found.variance - 1
    assert known[-1] > 10
    assert (np.abs(errors["error"] - known) / errors["se"]).max() < 4.5


def test_another_lens_is_shown(microscope: StepSizeGrid) -> None:
    for name in microscope.cells:
        microscope.choose(name, 2)
        shown = microscope.frame()["cell"]
        assert shown["name"] == name
        assert shown["size"] == microscope.cells[name][2].size
    for name, place, field in (("nobody", 0, "sampler"), (next(iter(microscope.cells)), 4, "place")):
        with pytest.raises(BnnvizError) as caught:
            microscope.choose(name, place)
        assert caught.value.field == field


def test_the_stiffest_direction_is_looked_at() -> None:
    target = targets.Gaussian(np.zeros(2), np.array([[1.0, 0.9], [0.9, 1.0]]))
    found = StepSizeGrid(target, sizes=2, chains=8)
    assert found.variance == pytest.approx(0.1)
    assert found.precision == pytest.approx(10.0)


@pytest.mark.parametrize("target", ["funnel", "network"])
def test_a_target_that_nobody_knows_is_refused(target: str) -> None:
    with pytest.raises(BnnvizError) as caught:
        StepSizeGrid(targets.REGISTRY.get(target)())
    assert caught.value.field == "target"


@pytest.mark.parametrize("dark", [False, True])
def test_its_views_show_a_frame(microscope: StepSizeGrid, dark: bool) -> None:
    scene, frame = microscope.scene(), microscope.frame()
    errors, cell = StepErrorView(scene, dark), CellView(scene, dark)
    assert errors.update(frame)
    assert not errors.update(frame)
    assert cell.update(frame) or not frame["cell"]["draws"]
    assert "step size" in cell.note
    points = errors.series[0][0].data
    shown = np.isfinite(frame["errors"]["samplers"][0]["error"]).sum()
    assert np.isfinite(points["y"]).sum() == shown
    assert all(sampler["title"] in errors.legend_html() for sampler in scene["samplers"][:6])
    errors.reset(scene)
    assert not np.isfinite(errors.series[0][0].data["y"]).any()
