"""What ArviZ reads of a run: its groups, by its own functions; and the table of named parameters beside ArviZ's."""

from __future__ import annotations

from pathlib import Path

import arviz_plots
import arviz_stats
import numpy as np
import pytest
import torch
from torch import Tensor, nn

import bnnviz
from bnnviz.data import read_table
from bnnviz.errors import BnnvizError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((15, 2))
Y = X[:, 0] + 0.5 * RNG.standard_normal(15)
FEW = {"draws": 60, "warmup": 40, "chains": 2, "seed": 1}


def linear(y: np.ndarray = Y, **options: object) -> bnnviz.BNN:
    torch.manual_seed(0)
    return bnnviz.BNN(nn.Sequential(nn.Linear(2, 1)), (X, y), **options)


def sampled(target: bnnviz.BNN, sampler: str = "nuts") -> bnnviz.Run:
    return bnnviz.sample(target, sampler, settings={"mode_steps": 20} if sampler == "hmc" else {}, **FEW)


@pytest.fixture(scope="module")
def run() -> bnnviz.Run:
    return sampled(linear(noise_sd=1.0, noise="learned"))


def test_groups_have_the_densities_and_the_rows(run: bnnviz.Run) -> None:
    tree = run.to_arviz()
    requested = {
        "posterior",
        "sample_stats",
        "log_likelihood",
        "posterior_predictive",
        "observed_data",
        "constant_data",
    }
    assert requested <= set(tree.children)
    stats = {"acceptance_rate", "diverging", "energy", "n_steps", "tree_depth", "lp"}
    assert stats <= set(tree["sample_stats"].data_vars)
    moved = tree["unconstrained_posterior"]
    assert moved.coordinate.values.tolist()[:2] == ["0.weight[0, 0]", "0.weight[0, 1]"]
    np.testing.assert_array_equal(moved.x, run.draws)
    assert {name: each.shape[2:] for name, each in tree.posterior.data_vars.items()} == {
        "0.weight": (1, 2),
        "0.bias": (1,),
        "noise_sd": (),
    }
    np.testing.assert_array_equal(tree.posterior["0.weight"].values[:, :, 0], run.draws[..., :2])
    np.testing.assert_allclose(tree["constant_data"]["inputs"], X, rtol=1e-6)
    np.testing.assert_allclose(tree["observed_data"]["y"], Y, rtol=1e-6)
    # By hand, of a linear model: w x + b and the noise.
    theta = run.draws.astype(float)
    sd = np.exp(theta[..., 3:])
    mean = theta[..., :2] @ X.T + theta[..., 2:3]
    exact = -0.5 * ((Y - mean) / sd) ** 2 - np.log(sd * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(tree["log_likelihood"]["y"], exact, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(tree.posterior.noise_sd, sd[..., 0], rtol=1e-6)
    off = tree["sample_stats"]["lp"].values - exact.sum(-1) + 0.5 * (theta**2).sum(-1)
    np.testing.assert_allclose(off, off.mean(), atol=1e-3)
    pulls = (tree["posterior_predictive"]["y"].values - mean) / sd
    assert abs(pulls.mean()) < 4 / np.sqrt(pulls.size)
    assert abs(pulls.var() - 1) < 4 * np.sqrt(2 / pulls.size)
    steps, depth = tree["sample_stats"]["n_steps"].values, tree["sample_stats"]["tree_depth"].values
    assert ((2 ** (depth - 1) <= steps) & (steps < 2**depth)).all()
    assert "log_likelihood" not in run.to_arviz(predictions=False).children


def test_arviz_computes_from_them(run: bnnviz.Run) -> None:
    other = sampled(linear(likelihood="student_t", noise="learned"), "hmc")
    trees = {"normal": run.to_arviz(), "student": other.to_arviz()}
    found = arviz_stats.loo(trees["normal"])
    # Leave-one-out lies below the density of rows that were seen.
    seen = np.logaddexp.reduce(trees["normal"]["log_likelihood"]["y"].values.reshape(-1, 15)) - np.log(120)
    assert found.elpd < seen.sum()
    compared = arviz_stats.compare(trees)
    assert set(compared.index) == {"normal", "student"}
    assert (arviz_stats.bfmi(trees["normal"]).to_dataset().to_array() > 0.2).all()


def test_posterior_predictive_checks_are_drawn(run: bnnviz.Run) -> None:
    assert arviz_plots.plot_ppc_dist(run.to_arviz(), backend="none") is not None


def test_a_data_set_is_in_its_own_units(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack([X, 100 + 20 * Y]), delimiter=",", header="a,b,price", comments="")
    table = read_table(path, "price")
    target = bnnviz.BNN(nn.Sequential(nn.Linear(2, 1)), table, noise_sd=0.5)
    tree = sampled(target, "hmc").to_arviz()
    observed = tree["observed_data"]["y"].values
    assert set(observed.tolist()) <= set(np.loadtxt(path, delimiter=",", skiprows=1)[:, 2].tolist())
    assert abs(tree["posterior_predictive"]["y"].values.mean() - observed.mean()) < 20
    sd = 0.5 * target.data_set.standardiser.y_scale
    # At most the density of a normal at its centre, in the unit of the data.
    assert tree["log_likelihood"]["y"].max() <= -np.log(sd * np.sqrt(2 * np.pi)) + 1e-6


def test_classes_and_functions_have_the_groups_that_they_can_have() -> None:
    classes = sampled(linear(np.arange(15) % 2, likelihood="bernoulli"), "hmc").to_arviz()
    assert set(np.unique(classes["posterior_predictive"]["y"])) <= {0, 1}
    own = sampled(linear(likelihood=lambda f, y: -(y - f[:, 0]).abs()), "hmc").to_arviz()
    assert "log_likelihood" in own.children
    assert "posterior_predictive" not in own.children


def test_a_recording_has_them_where_its_network_is_given(tmp_path: Path, run: bnnviz.Run) -> None:
    folder = str(tmp_path / "kept")
    made = bnnviz.sample(linear(noise="learned"), "hmc", record=folder, settings={"mode_steps": 20}, **FEW)
    assert "log_likelihood" not in bnnviz.recording(folder).to_arviz().children
    tree = bnnviz.recording(folder, target=linear(noise="learned")).to_arviz()
    np.testing.assert_allclose(tree["log_likelihood"]["y"], made.to_arviz()["log_likelihood"]["y"], rtol=1e-5)


def gamma(given: dict[str, Tensor]) -> Tensor:
    return given["x"] - 2 * given["x"].log() + given["z"].square().sum((1, 2)) / 2


def test_parameters_are_summarised_by_name() -> None:
    named = {"x": bnnviz.positive(), "z": (2, 2)}
    run = bnnviz.sample(gamma, "nuts", parameters=named, draws=200, warmup=100, chains=4, seed=0)
    table = run.parameter_summary()
    assert list(table.index) == ["x", "z[0, 0]", "z[0, 1]", "z[1, 0]", "z[1, 1]"]
    assert abs(table["mean"]["x"] - 3) < 4 * table["mcse_mean"]["x"]
    assert table["sd"]["x"] == pytest.approx(run.parameters()["x"].std(), rel=0.01)
    assert list(run.parameter_summary(["x"]).index) == ["x"]
    with pytest.raises(BnnvizError, match="no parameter y"):
        run.parameter_summary(["y"])
