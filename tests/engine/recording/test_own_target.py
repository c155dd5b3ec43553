"""A recording of a run on somebody's own network or density is read with it: draws, predictions, figures, measures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz import plots
from bnnviz.errors import BnnvizError

pytest.importorskip("zarr")

X = np.linspace(-1, 1, 30)[:, None]
Y = 0.5 * X[:, 0] + 0.1 * np.cos(40 * X[:, 0])
ROWS = np.array([[-0.5], [0.25], [2.0]])


def network() -> bnnviz.BNN:
    return bnnviz.BNN(torch.nn.Linear(1, 1), (X, Y), prior_sd=1.0, noise_sd=0.3)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> bnnviz.Run:
    folder = tmp_path_factory.mktemp("own") / "mine"
    return bnnviz.sample(network(), "hmc", draws=60, warmup=40, chains=2, seed=3, record=folder)


@pytest.fixture
def read(run: bnnviz.Run) -> bnnviz.api.recorded.PublicRecording:
    return bnnviz.recording(run.recording.folder, target=network())


def test_it_predicts_as_the_run_does(run: bnnviz.Run, read: bnnviz.api.recorded.PublicRecording) -> None:
    for found in (read, run.recording):
        np.testing.assert_allclose(found.predict(ROWS).mean, run.predict(ROWS).mean, rtol=1e-6)
        np.testing.assert_allclose(found.functions(ROWS), run.functions(ROWS), rtol=1e-6)
    assert set(read.to_arviz().children) >= {"posterior", "log_likelihood", "posterior_predictive"}


def test_it_is_measured_and_drawn_as_the_run_is(run: bnnviz.Run, read: bnnviz.api.recorded.PublicRecording) -> None:
    assert bnnviz.measure(read)["averaged"] == pytest.approx(bnnviz.measure(run)["averaged"])
    for figure in (plots.prediction, plots.calibration, plots.pit, plots.functions):
        figure(read)
    drawn, known = (
        plots.prediction(each, observations=True).get(1).dimension_values(1) for each in (read, run.recording)
    )
    np.testing.assert_allclose(drawn, known, rtol=1e-6)


def test_one_without_its_network_has_draws_and_says_what_it_needs(run: bnnviz.Run) -> None:
    bare = bnnviz.recording(run.recording.folder)
    np.testing.assert_array_equal(bare.draws, run.draws)
    plots.trace(bare)
    for ask in (plots.prediction, bnnviz.measure, lambda each: each.predict(ROWS)):
        with pytest.raises(BnnvizError, match=r"bnnviz\.recording\(name, target=\.\.\.\)"):
            ask(bare)


def test_a_recording_of_a_named_network_is_measured_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    settings = {"data": "toy_c", "hidden": "3"}
    run = bnnviz.sample("network", "hmc", target_settings=settings, draws=20, warmup=10, chains=2, record="named")
    assert bnnviz.measure("named")["averaged"] == pytest.approx(bnnviz.measure(run)["averaged"])


def test_named_parameters_are_read_and_summed_up(tmp_path: Path) -> None:
    def potential(p: dict[str, torch.Tensor]) -> torch.Tensor:
        return 0.5 * p["mu"].square() + p["sigma"]

    target = bnnviz.ParameterDensity(potential, {"mu": (), "sigma": bnnviz.positive()})
    run = bnnviz.sample(target, "hmc", draws=30, warmup=20, chains=2, record=tmp_path / "named")
    read = bnnviz.recording(tmp_path / "named", target=target)
    for name, values in run.parameters().items():
        np.testing.assert_array_equal(read.parameters()[name], values)
    assert str(read.parameter_summary()) == str(run.parameter_summary())
    assert read.stats == run.stats and read.event_weights() is None
    assert read.save(tmp_path / "run.nc").exists()


def test_a_density_of_ones_own_is_read_with_it(tmp_path: Path) -> None:
    def potential(x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x.square().sum(-1)

    run = bnnviz.sample(potential, "hmc", dim=2, draws=20, warmup=10, chains=2, record=tmp_path / "density")
    again = run.recording.to_arviz(True)
    np.testing.assert_allclose(again["posterior"]["x"], run.draws)
    assert bnnviz.resume(tmp_path / "density", target=potential, draws=5).wait().draws.shape == (2, 25, 2)
    for other in ("banana", torch.nn.Linear(2, 1), 3):
        with pytest.raises(BnnvizError):
            bnnviz.recording(tmp_path / "density", target=other)


def test_functions_are_those_of_each_draw(run: bnnviz.Run) -> None:
    weight, bias = run.draws[..., :1], run.draws[..., 1:]
    exact = weight * ROWS[:, 0] + bias
    np.testing.assert_allclose(run.functions(ROWS), exact, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_functions_of_classes_are_their_probabilities() -> None:
    labels = (X[:, 0] > 0).astype(int)
    own = bnnviz.BNN(torch.nn.Linear(1, 1), (X, labels), likelihood="bernoulli")
    run = bnnviz.sample(own, "hmc", draws=20, warmup=20, chains=2, seed=1)
    logits = run.draws[..., :1] * ROWS[:, 0] + run.draws[..., 1:]
    exact = 1 / (1 + np.exp(-logits))
    found = run.functions(ROWS)
    assert found.shape == (2, 20, 3, 2)
    np.testing.assert_allclose(found[..., 1], exact, rtol=1e-4)
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-5)


def test_observations_are_refused_where_there_is_no_band(run: bnnviz.Run) -> None:
    with pytest.raises(BnnvizError, match="Use a run or a recording"):
        plots.prediction({**run.frame(["prediction"])["prediction"], "scene": run.scene()}, observations=True)
    many = bnnviz.BNN(torch.nn.Linear(2, 1), (np.column_stack([X, X**2]), Y))
    with pytest.raises(BnnvizError, match="on one input"):
        plots.prediction(bnnviz.sample(many, "hmc", draws=10, warmup=10, chains=2), observations=True)
