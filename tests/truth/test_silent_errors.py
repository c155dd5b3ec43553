"""Wrong answers are told, and right ones are not suspected."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import special
from torch import nn
from torch.distributions import Independent, RelaxedOneHotCategorical, VonMises
from torch.distributions.relaxed_categorical import ExpRelaxedCategorical

import bnnviz
from bnnviz.engine.run.failures import edge_between
from bnnviz.targets import Callable

MIXING = np.array([[1, 0, 0], [0.6, 1, 0], [-0.4, 0.5, 1]])
SHAPES = np.array([0.7, 1.5, 4])
POPULATION = {"dim": 3, "draws": 100, "chains": 16}


def skewed(x: torch.Tensor) -> torch.Tensor:
    """Return U of x = A y, where exp(y) has independent gamma distributions."""
    y = x @ torch.as_tensor(np.linalg.inv(MIXING)).to(x).T
    return (y.exp() - torch.as_tensor(SHAPES).to(x) * y).sum(-1)


def heavy(x: torch.Tensor) -> torch.Tensor:
    """Return U of Student's t distribution with three degrees of freedom."""
    return 3 * torch.log1p(x.square().sum(-1) / 3)


def round_one(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x.square().sum(-1)


def correlated(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * (x[:, 0].square() + ((x[:, 1] - 0.9 * x[:, 0]) / 0.4).square() + x[:, 2].square())


def two_modes(x: torch.Tensor) -> torch.Tensor:
    return -torch.logsumexp(torch.stack([-0.5 * (x - 2).square().sum(-1), -0.5 * (x + 2).square().sum(-1)]), 0)


def codes(summary: dict[str, Any]) -> set[str]:
    return {warning.code if hasattr(warning, "code") else str(warning) for warning in summary["warnings"]}


@pytest.mark.parametrize("sampler", ["pmcnet", "pmcnet_light"])
@pytest.mark.parametrize("density", [skewed, heavy])
@pytest.mark.parametrize("seed", [0, 2])
def test_weights_that_miss_a_tail_are_reported(sampler: str, density: Any, seed: int) -> None:
    found = bnnviz.sample(density, sampler, seed=seed, **POPULATION).summary()
    assert codes(found) & {"variance_elsewhere", "pareto_k"}
    if density is skewed:
        assert found["shift"]["moment"] == "variance" and found["shift"]["check"] > 1.2 * found["shift"]["value"]
        true = np.diag(MIXING @ np.diag(special.polygamma(1, SHAPES)) @ MIXING.T)
        assert found["shift"]["check"] == pytest.approx(true[found["shift"]["coordinate"]], rel=0.1)


@pytest.mark.parametrize("sampler", ["pmcnet", "pmcnet_light"])
@pytest.mark.parametrize("density", [round_one, correlated, two_modes])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_weights_that_cover_the_density_are_not_suspected(sampler: str, density: Any, seed: int) -> None:
    assert bnnviz.sample(density, sampler, seed=seed, **POPULATION).summary()["shift"] is None


def test_draws_of_functionals_are_no_draws_of_a_skewed_density() -> None:
    found = bnnviz.sample(skewed, "func_hmc", dim=3, draws=400, seed=0).summary()
    mean = MIXING @ special.digamma(SHAPES)
    assert found["shift"] is not None and "functionals" in codes(found)
    assert abs(found["mean"][2] - mean[2]) > 0.2
    np.testing.assert_allclose(found["weighted_mean"], mean, atol=0.3)


@pytest.mark.parametrize(
    ("potential", "inside", "outside", "edge"),
    [
        (lambda x: x.exp().sum(-1), 0.0, 800.0, False),  # overflows beyond 709, in single precision beyond 88
        (lambda x: (x.exp() - 3 * x).sum(-1) + x.square().sum(-1) ** 2, 0.0, 1e5, False),
        (lambda x: -x.log().sum(-1), 1.0, -2.0, True),
        (lambda x: torch.where(x[:, 0] < 1, x.square().sum(-1), torch.inf), 0.0, 3.0, True),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_overflow_is_no_edge(potential: Any, inside: float, outside: float, edge: bool, dtype: torch.dtype) -> None:
    target = Callable(potential, 2).to("cpu", dtype)
    ends = (torch.full((1, 2), value, dtype=dtype) for value in (inside, outside))
    assert bool(edge_between(target, *ends)) == edge


@pytest.mark.parametrize("sampler", ["hmc", "bps", "sgld", "pmcnet", "func_hmc"])
@pytest.mark.parametrize(("draws", "chains"), [(1, 2), (2, 1), (3, 2)])
def test_a_few_draws_are_no_evidence(sampler: str, draws: int, chains: int) -> None:
    found = bnnviz.sample("gaussian", sampler, draws=draws, chains=chains, warmup=5).summary()
    assert not codes(found) & {"variance_wrong", "weighted_variance_wrong", "mean_elsewhere", "variance_elsewhere"}


# --- networks


def rows(count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (count, 1))
    return x, np.sin(3 * x[:, 0]) + 0.2 * rng.normal(size=count)


def net(*last: nn.Module, outputs: int = 1) -> nn.Module:
    return nn.Sequential(nn.Linear(1, 10), nn.Tanh(), nn.Linear(10, outputs), *last)


def test_the_noise_is_learned_unless_it_is_given() -> None:
    x, y = rows()
    target = bnnviz.BNN(net(), (x, y))
    assert target.noise_is_learned and target.likelihood.scales[0] == pytest.approx(y.std(), rel=0.01)
    assert not bnnviz.BNN(net(), (x, y), noise_sd=0.2).noise_is_learned
    run = bnnviz.sample(target, "nuts", draws=50, warmup=50, chains=2, seed=0)
    assert 0.14 < float(np.mean(run.parameters()["noise_sd"])) < 0.35


@pytest.mark.parametrize("labels", [lambda y: (y > 0).astype(int), lambda y: y > 0, lambda y: np.sign(y)])
def test_labels_need_a_likelihood(labels: Any) -> None:
    x, y = rows()
    with pytest.raises(bnnviz.BnnvizError, match="two values") as error:
        bnnviz.BNN(net(), (x, labels(y)))
    assert error.value.field == "likelihood"
    assert bnnviz.BNN(net(), (x, labels(y)), "gaussian").likelihood.name == "gaussian"


class Shares(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = net(outputs=3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.inner(x), -1)


@pytest.mark.parametrize(
    ("module", "likelihood"),
    [
        (net(nn.Softmax(-1), outputs=3), "categorical"),
        (Shares(), "categorical"),
        (net(nn.Sigmoid(), outputs=3), "categorical"),
        (net(nn.Sigmoid()), "bernoulli"),
        (net(nn.Tanh()), "bernoulli"),
        (net(nn.Sigmoid()), "poisson"),
    ],
)
def test_bounded_outputs_are_no_logits(module: nn.Module, likelihood: str) -> None:
    x, y = rows()
    with pytest.raises(bnnviz.BnnvizError) as error:
        bnnviz.BNN(module, (x, (y > 0).astype(int)), likelihood)
    assert error.value.field == "module"


@pytest.mark.parametrize(
    ("module", "likelihood", "code"),
    [
        (net(outputs=3), "categorical", None),
        (net(nn.LogSoftmax(-1), outputs=3), "categorical", None),
        (net(), "bernoulli", None),
        (net(), "poisson", None),
        (net(nn.Softplus()), "poisson", "outputs_positive"),
        (net(nn.ReLU(), outputs=3), "categorical", "outputs_positive"),
        (net(nn.Dropout(0.3)), "bernoulli", "dropout_off"),
        (net(nn.Sigmoid()), "gaussian", None),
    ],
)
def test_other_outputs_are_taken(module: nn.Module, likelihood: str, code: str | None) -> None:
    x, y = rows()
    found = [each.code for each in bnnviz.BNN(module, (x, (y > 0).astype(int)), likelihood).remarks()]
    assert found == ([] if code is None else [code])


def test_observations_beyond_what_a_module_reaches_are_reported() -> None:
    x, y = rows()
    assert "outputs_bounded" in [each.code for each in bnnviz.BNN(net(nn.Sigmoid()), (x, 100 * y)).remarks()]


@pytest.mark.parametrize(
    "function",
    [
        lambda f, y: torch.where(y > 0, torch.log(y) - (torch.log(y) - f[:, 0]) ** 2, -(f[:, 0] ** 2) * y.sqrt()),
        lambda f, y: torch.where(f[:, 0] > 0, -((y - f[:, 0].sqrt()) ** 2), -(y**2)),
        lambda f, y: torch.log(y - f[:, 0]),
    ],
)
def test_a_likelihood_without_a_finite_slope_is_refused(function: Any) -> None:
    x, y = rows()
    with pytest.raises(bnnviz.BnnvizError) as error:
        bnnviz.BNN(net(), (x, np.clip(y, 0, None)), function)
    assert error.value.field == "likelihood"


@pytest.mark.parametrize(
    ("function", "is_loss"),
    [
        (lambda f, y: -0.5 * (y - f[:, 0]) ** 2, False),
        (lambda f, y: 0.5 * (y - f[:, 0]) ** 2, True),
        (lambda f, y: -(y - f[:, 0]).abs(), False),
        (lambda f, y: (y - f[:, 0]).abs(), True),
        (lambda f, y: -torch.log1p((y - f[:, 0]) ** 2), False),
        (lambda f, y: -nn.functional.binary_cross_entropy_with_logits(f[:, 0], (y > 0).to(f), reduction="none"), False),
        (lambda f, y: nn.functional.binary_cross_entropy_with_logits(f[:, 0], (y > 0).to(f), reduction="none"), True),
        (lambda f, y: torch.where(y > 0, -0.5 * (y - f[:, 0]) ** 2, torch.special.log_ndtr(-f[:, 0])), False),
    ],
)
def test_a_loss_is_reported_from_a_log_likelihood(function: Any, is_loss: bool) -> None:
    x, y = rows()
    found = [each.code for each in bnnviz.BNN(net(), (x, np.clip(y, 0, None)), function).remarks()]
    assert ("likelihood_sign" in found) == is_loss


# --- supports


@pytest.mark.parametrize(
    "distribution",
    [
        VonMises(torch.tensor(2.5), torch.tensor(1.0)),
        Independent(VonMises(torch.tensor([2.5, -3.0]), torch.tensor([1.0, 4.0])), 1),
    ],
)
def test_angles_stay_in_one_turn(distribution: Any) -> None:
    x = bnnviz.sample(distribution, "nuts", draws=100, warmup=100, chains=6, seed=1).parameters()["x"]
    x = np.asarray(x).reshape(600, -1)
    torch.manual_seed(0)
    exact = distribution.sample((20_000,)).numpy().reshape(20_000, -1)
    assert np.abs(x).max() <= math.pi + 1e-6
    np.testing.assert_allclose(np.exp(1j * x).mean(0), np.exp(1j * exact).mean(0), atol=0.2)


def test_a_relaxed_category_is_a_simplex() -> None:
    distribution = RelaxedOneHotCategorical(torch.tensor(0.7), probs=torch.tensor([0.2, 0.3, 0.5]))
    x = np.asarray(
        bnnviz.sample(distribution, "nuts", draws=100, warmup=100, chains=6, seed=1).parameters()["x"]
    ).reshape(-1, 3)
    torch.manual_seed(0)
    exact = distribution.sample((20_000,)).numpy()
    np.testing.assert_allclose(x.sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose(x.mean(0), exact.mean(0), atol=0.1)
    np.testing.assert_allclose((x**2).mean(0), (exact**2).mean(0), atol=0.1)


def test_a_density_without_an_integral_is_refused() -> None:
    with pytest.raises(bnnviz.BnnvizError, match="integral"):
        bnnviz.targets.DistributionDensity(
            ExpRelaxedCategorical(torch.tensor(0.7), probs=torch.tensor([0.2, 0.3, 0.5]))
        )
    with pytest.raises(bnnviz.BnnvizError) as error:
        bnnviz.sample(lambda x: 2 * torch.cos(x[:, 0]), "nuts", dim=1, draws=2000)
    assert "normalised" in str(error.value)
