"""New rows are predicted as the closed form of a linear model says, and as its parts add up."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.stats import norm

import bnnviz
from bnnviz import diagnostics
from bnnviz.data import DataSet, read_table
from bnnviz.engine.evaluation import predictive_distribution as predicting
from bnnviz.engine.evaluation.metrics import NetworkDraws, transforms
from bnnviz.engine.evaluation.observables import ObservationLaw, quantiles
from bnnviz.errors import BnnvizError

NOISE, DRAWS = 0.3, 40_000  # on the network's scale


@pytest.fixture(scope="module")
def linear() -> tuple[NetworkDraws, np.ndarray, np.ndarray]:
    """Return exact draws of a straight line's posterior, and mean and covariance of its weights."""
    rng = np.random.default_rng(3)
    x = rng.normal(5, 2, (30, 1))
    y = 100 + 40 * x[:, 0] + rng.normal(0, 25, 30)
    rows = {"x_train": x, "y_train": y, "x_test": x[:5], "y_test": y[:5]}
    data = DataSet(name="line", title="line", doc="", task="regression", **rows)
    target = bnnviz.BNN(torch.nn.Linear(1, 1), data, noise_sd=NOISE)
    z, t = data.scaled("train")
    design = np.column_stack([z, np.ones(len(z))])
    covariance = np.linalg.inv(design.T @ design / NOISE**2 + np.eye(2))
    mean = covariance @ design.T @ t / NOISE**2
    theta = torch.as_tensor(rng.multivariate_normal(mean, covariance, DRAWS))
    return NetworkDraws(target, theta, None, 1), mean, covariance


def test_numbers_are_those_of_the_closed_form(linear: tuple) -> None:
    given, mean, covariance = linear
    scale = given.target.data_set.standardiser
    x = np.array([[5.0], [9.0], [0.0]])
    design = np.column_stack([scale.x(x), np.ones(3)])
    epistemic = scale.y_scale * np.sqrt(np.einsum("ri,ij,rj->r", design, covariance, design))
    found = predicting.predict(given, x, (0.05, 0.5, 0.9))
    error = epistemic / np.sqrt(DRAWS)
    assert (np.abs(found.mean - scale.y_back(design @ mean)) < 4 * error).all()
    assert np.allclose(found.epistemic_sd, epistemic, rtol=4 / np.sqrt(2 * DRAWS))
    assert np.allclose(found.aleatoric_sd, NOISE * scale.y_scale)
    assert np.allclose(found.sd**2, found.epistemic_sd**2 + found.aleatoric_sd**2)
    for level, values in found.quantiles.items():
        # The mixture of the thousand draws that make a quantile has errors of its own.
        assert np.allclose(values, found.mean + norm.ppf(level) * found.sd, atol=5 * epistemic.max() / np.sqrt(1000))


@pytest.mark.parametrize("discrete", [False, True])
def test_quantiles_are_those_of_the_mixture(discrete: bool) -> None:
    means, shares = np.array([[0.5, 1.0, 900.0], [400.0, 1.0, 1000.0]]), np.array([0.25, 0.75])
    sds = np.sqrt(means) if discrete else np.array([[0.5], [2.0]]) + 0 * means
    each = stats.poisson(means) if discrete else stats.norm(means, sds)
    law = SimpleNamespace(means=means, sds=sds, discrete=discrete, cdf=each.cdf)
    law.moments = partial(ObservationLaw.moments, law)
    levels = (1e-4, 0.25, 0.5, 0.99)
    for level, values in zip(levels, quantiles(law, shares, levels), strict=True):
        reached = shares @ each.cdf(values)
        if discrete:
            assert (reached >= level).all() and (shares @ each.cdf(values - 1) < level).all()
        else:
            np.testing.assert_allclose(reached, level, atol=1e-7)


def test_drawn_observations_have_the_law_that_is_predicted(linear: tuple) -> None:
    given, *_ = linear
    x = np.array([[4.0], [12.0]])
    found, drawn = predicting.predict(given, x), predicting.predictive_draws(given, x, 20_000, seed=1)
    assert (np.abs(drawn.mean(0) - found.mean) < 4 * found.sd / np.sqrt(20_000)).all()
    assert np.allclose(drawn.std(0), found.sd, rtol=4 / np.sqrt(40_000))
    assert np.array_equal(drawn, predicting.predictive_draws(given, x, 20_000, seed=1))


def test_rows_far_from_the_training_rows_are_reported(linear: tuple) -> None:
    given, *_ = linear
    assert predicting.predict(given, np.array([[5.0], [50.0], [-40.0]])).far.tolist() == [False, True, True]


def test_weights_count(linear: tuple) -> None:
    given, *_ = linear
    logs = np.full(DRAWS, -np.inf)
    logs[7] = 0.0
    one = predicting.predict(given._replace(log_weights=logs), np.array([[5.0]]))
    assert one.epistemic_sd[0] == 0
    own = given.target.outputs(given.theta[7:8], predicting._inputs(given.target, np.array([[5.0]])))
    assert one.mean[0] == pytest.approx(given.target.data_set.standardiser.y_back(float(own)))


def test_classes_have_probabilities_and_their_parts() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    target = bnnviz.BNN(torch.nn.Linear(2, 3), (x, rng.integers(0, 3, 40)), "categorical")
    given = NetworkDraws(target, torch.as_tensor(rng.normal(size=(500, target.dim))), None, 1)
    found = predicting.predict(given, x[:6])
    outputs = target.outputs(given.theta, torch.as_tensor(x[:6]))
    probabilities = torch.softmax(outputs, -1).numpy()
    mean = probabilities.mean(0)
    assert np.allclose(found.probabilities, mean) and np.allclose(found.probabilities.sum(1), 1)
    expected = -(probabilities * np.log(probabilities)).sum(-1).mean(0)
    assert np.allclose(found.entropy - found.mutual_information, expected)
    assert found.classes.tolist() == [str(i) for i in mean.argmax(1)]
    drawn = predicting.predictive_draws(given, x[:6], 8000)
    shares = np.stack([(drawn == i).mean(0) for i in range(3)], 1)
    assert (np.abs(shares - mean) < 4 * np.sqrt(mean * (1 - mean) / 8000) + 4 * mean.std() / np.sqrt(500)).all()


@pytest.mark.parametrize(
    ("x", "statement"),
    [
        (np.zeros((3, 2)), r"have the shape \(3, 2\); the network takes numbers of the shape \(rows, 1\)"),
        (np.array([["a"]]), "takes numbers"),
        (np.array([[np.nan]]), "missing or infinite"),
    ],
)
def test_rows_that_do_not_fit_are_refused(linear: tuple, x: np.ndarray, statement: str) -> None:
    with pytest.raises(BnnvizError, match=statement):
        predicting.predict(linear[0], x)


def test_quantiles_have_to_be_probabilities(linear: tuple) -> None:
    with pytest.raises(BnnvizError, match="quantiles"):
        predicting.predict(linear[0], np.zeros((1, 1)), (0.5, 95))


def test_a_network_on_a_table_predicts_a_file_as_it_predicts_a_frame(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    x = rng.normal(3, 2, (40, 2))
    frame = pandas.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x @ [1.0, 2.0]})
    net = torch.nn.Linear(2, 1)
    run = bnnviz.sample(bnnviz.BNN(net, read_table(frame, "y")), "hmc", draws=20, warmup=20, chains=2, seed=1)
    new = frame.iloc[:5][["b", "a"]]
    new.to_csv(tmp_path / "new.csv", index=False)
    expected = run.predict(x[:5]).mean
    for given in (new, tmp_path / "new.csv", str(tmp_path / "new.csv")):
        np.testing.assert_allclose(run.predict(given).mean, expected)
        np.testing.assert_allclose(run.rows(given).x, x[:5])
    assert run.table().target == "y"
    with pytest.raises(bnnviz.BnnvizError, match=r"missing .* \(b\)"):
        run.predict(new[["a"]])
    plain = bnnviz.sample(bnnviz.BNN(net, (x, frame.y)), "hmc", draws=4, warmup=4, chains=1)
    with pytest.raises(bnnviz.BnnvizError, match="CSV file"):
        plain.predict("new.csv")
    assert plain.table() is None
    with pytest.raises(bnnviz.BnnvizError, match="read_table"):
        bnnviz.BNN(net, "new.csv")


def test_the_prior_predictive_of_a_linear_model_is_the_known_normal_law() -> None:
    x = np.linspace(-1, 1, 12)[:, None]
    module = torch.nn.Linear(1, 1)
    target = bnnviz.BNN(module, (x, x[:, 0]), noise_sd=0.3, prior_sd=0.5, prior={"weight": 2.0})
    rows = np.array([[0.0], [1.0], [-3.0]])
    found = target.prior_predictive(rows, draws=10_000, seed=1)
    epistemic = np.sqrt(0.5**2 + (2.0 * rows[:, 0]) ** 2)
    np.testing.assert_allclose(found.epistemic_sd, epistemic, rtol=0.03)
    np.testing.assert_allclose(found.sd, np.hypot(epistemic, 0.3), rtol=0.03)
    assert (np.abs(found.mean) < 5 * epistemic / np.sqrt(10_000)).all()
    with pytest.raises(BnnvizError):
        target.prior_predictive([[1.0, 2.0]])
    with pytest.raises(BnnvizError):
        target.prior_predictive(rows, draws=0)


# --- probability integral transforms: with 40,000 exact draws within four standard errors, 4 / sqrt(40,000) = 0.02


def test_transforms_are_those_of_the_closed_form_and_weights_count(linear: tuple) -> None:
    given, mean, covariance = linear
    z, t = given.target.data_set.scaled("test")
    design = np.column_stack([z, np.ones(len(z))])
    known = norm.cdf(t, design @ mean, np.sqrt(np.einsum("ri,ij,rj->r", design, covariance, design) + NOISE**2))
    assert np.abs(transforms(given) - known).max() < 0.02
    half = np.where(np.arange(DRAWS) % 2, 0.0, -np.inf)
    moved = given._replace(theta=given.theta + 100 * (torch.arange(DRAWS) % 2 == 0)[:, None], log_weights=half)
    assert np.abs(transforms(moved) - known).max() < 0.03


def test_transforms_of_counts_are_uniform() -> None:
    rng = np.random.default_rng(2)
    x = np.zeros((4000, 1))
    y = stats.poisson.rvs(2.5, size=4000, random_state=rng).astype(float)
    module = torch.nn.Linear(1, 1)
    target = bnnviz.BNN(module, (x, y), likelihood="poisson")
    theta = torch.tensor([[0.0, float(np.log(2.5))]], dtype=torch.float64)
    found = diagnostics.coverage(transforms(NetworkDraws(target, theta, None, 1)))
    known = found.levels
    assert (np.abs(found.share - known) <= 4 * np.sqrt(known * (1 - known) / 4000)).all()
