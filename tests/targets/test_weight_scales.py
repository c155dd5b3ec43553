"""Test priors whose scales follow the fan-in or are learned: states, weights and derivatives belong together."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch.distributions import Gamma, HalfCauchy, Laplace, Normal, StudentT

import bnnviz
from bnnviz.models import mlp
from bnnviz.targets.base import differentiate, differentiate_twice

#: The last match counts: 0.bias has sd 2.
BY_NAME = {"0": 0.3, "*.bias": Normal(0.0, 2.0), "4.weight": 1.5}


def network(
    prior: str | dict[str, Any], kind: str = "gaussian", prior_sd: float = 0.7, path: bool = False
) -> bnnviz.BNN:
    """Return a small perceptron on made-up rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 3))
    y = rng.normal(size=30) if kind == "gaussian" else rng.integers(0, 2, 30)
    module = mlp(3, [10, 12], 1, linear_path=path)
    noise = "learned" if kind == "gaussian" else "fixed"
    return bnnviz.BNN(module, (x, y), kind, prior_sd=prior_sd, noise_sd=0.5, noise=noise, prior=prior)


def states(target: bnnviz.BNN, count: int = 3) -> torch.Tensor:
    """Return random states in double precision."""
    return torch.randn(count, target.dim, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
@pytest.mark.parametrize(
    ("prior", "path"),
    [("fan_in", False), ("learned", False), ("equal", True), ("fan_in", True), ("learned", True), (BY_NAME, False)],
)
def test_derivatives_by_hand_are_those_of_automatic_differentiation(prior, path, kind):
    target = network(prior, kind, path=path)
    assert target.layers is not None
    theta, v = states(target), states(target).flip(0)
    for rows in (target, target.batch(torch.tensor([[0, 3, 5], [1, 1, 2], [7, 8, 9]]))):
        value, gradient = rows.gradient(theta)
        known, slope = differentiate(rows.potential, theta)
        torch.testing.assert_close(value, known)
        torch.testing.assert_close(gradient, slope)
        *_, product = differentiate_twice(rows.potential, theta, v)
        torch.testing.assert_close(rows.gradient_and_curvature(theta, v)[2], (product * v).sum(-1))


@pytest.mark.parametrize("prior", ["equal", "fan_in", "learned"])
def test_the_weights_of_a_state_have_the_prior_that_is_stated(prior):
    target = network(prior)
    theta = 0.7 * states(target, 20_000)
    weights = target.unflatten(theta)
    for name, part in weights.items():
        fan = 1 if prior == "equal" or part.ndim < 3 else part.shape[2]
        if prior == "learned" and part.ndim == 3:
            # The product of a normal number and one whose logarithm is normal: E w^2 = sd^2 e^2, so that logs are
            # compared, in which heavy tails do no harm: E log w^2 does not change, and its variance grows by 4.
            spread = part[:, 0, 0].square().log().var()
            assert spread == pytest.approx(np.pi**2 / 2 + 4, rel=0.06)
            continue
        sd = 0.7 / fan**0.5
        assert part.std().item() == pytest.approx(sd, rel=0.02), name


@pytest.mark.parametrize("path", [False, True])
@pytest.mark.parametrize("prior", ["fan_in", "learned"])
def test_the_potential_is_that_of_the_module_with_the_weights_of_a_state(prior, path):
    target = network(prior, path=path)
    theta = states(target)
    known = []
    for state in theta:
        target.module.load_state_dict(target.state_dict(state))
        with torch.no_grad():
            f = target.module(target.x)[:, 0]
        sd = 0.5 * torch.exp(state[-1] / 0.7)
        known.append(-Normal(f, sd).log_prob(target.y).sum() + 0.5 * (state / 0.7).square().sum())
    # Up to a constant.
    apart = target.potential(theta) - torch.stack(known)
    torch.testing.assert_close(apart, apart[:1].expand_as(apart))


def test_each_input_has_a_scale_and_the_last_layer_its_place():
    target = network("learned")
    assert len(target.scale_names) == 3 + 1 + 1
    assert target.dim == target.weights + 5 + 1
    assert target.names()[target.weights] == "log scale 0.weight[:, 0]"
    assert target.names()[-1] == "log noise"
    assert target.last_layer() == slice(target.weights - 13, target.weights)
    assert sum(size for _, size in target.groups()) == target.dim


@pytest.mark.parametrize(
    ("inputs", "hidden", "expected"),
    [
        (9, 10, [*(f"log scale body.0.weight[:, {k}]" for k in range(9)), "log scale body.2.weight"]),
        (10, 9, ["log scale linear.weight", "log scale body.0.weight"]),
        (4, 3, ["log scale body.0.weight"]),
        (3, 3, []),
    ],
)
def test_a_scale_is_learned_of_ten_weights_at_least(inputs, hidden, expected):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, inputs)), rng.normal(size=20)
    target = bnnviz.BNN(mlp(inputs, [hidden], 1, linear_path=True), (x, y), prior="learned")
    assert [name for name in target.names() if "scale" in name] == target.scale_names
    assert target.scale_names == expected
    theta = states(target)
    torch.testing.assert_close(target.gradient(theta)[1], differentiate(target.potential, theta)[1])


def test_a_prior_by_name_has_the_standard_deviations_that_it_gives():
    target = network(BY_NAME)
    requested = {"0.weight": 0.3, "0.bias": 2.0, "2.weight": 0.7, "2.bias": 2.0, "4.weight": 1.5, "4.bias": 2.0}
    weights = target.unflatten(0.7 * states(target, 20_000))
    assert {name: pytest.approx(part.std().item(), rel=0.02) for name, part in weights.items()} == requested
    # The potential is that of these normal distributions, up to a constant.
    theta = states(target)
    weights, noise = target.unflatten(theta), target.own_values(theta)["noise_sd"]
    outputs = target.outputs(theta, target.x).squeeze(-1)
    exact = -Normal(outputs, noise[:, None]).log_prob(target.y.reshape(-1)).sum(1)
    exact = exact + 0.5 * (theta[:, -1] / 0.7).square()
    for name, part in weights.items():
        exact = exact - Normal(0.0, requested[name]).log_prob(part).flatten(1).sum(1)
    difference = target.potential(theta) - exact
    torch.testing.assert_close(difference, difference.mean().expand(3))


@pytest.mark.parametrize(
    "prior",
    [
        *({"9.weight": 1.0}, {"0": 0.0}, {"0": "wide"}),
        *({"0": Gamma(1.0, 1.0)}, {"0": Normal(torch.zeros(3), 1.0)}, {"0": lambda z: z[:1]}),
    ],
)
def test_a_prior_by_name_that_does_not_fit_is_refused(prior):
    with pytest.raises(bnnviz.BnnvizError):
        network(prior)


LAWS = {
    "laplace": (Laplace(0.5, 2.0), stats.laplace(0.5, 2.0)),
    "student_t": (StudentT(3.0, 0.0, 0.5), stats.t(3, 0.0, 0.5)),
    "normal": (Normal(1.0, 0.2), stats.norm(1.0, 0.2)),
    "scipy": (stats.logistic(0.0, 0.3), stats.logistic(0.0, 0.3)),
    "function": (lambda z: 0.1 * z.exp(), stats.lognorm(1.0, scale=0.1)),
}


@pytest.mark.parametrize("law", LAWS)
def test_weights_have_the_distribution_that_is_given(law):
    prior, reference = LAWS[law]
    target = network({"0.weight": prior})
    weights = target.unflatten(0.7 * states(target, 3000))
    assert stats.kstest(weights["0.weight"].flatten().numpy(), reference.cdf).pvalue > 1e-3
    assert weights["2.weight"].std().item() == pytest.approx(0.7, rel=0.02)
    theta = states(target)
    for found, expected in zip(target.gradient(theta), differentiate(target.potential, theta), strict=True):
        torch.testing.assert_close(found, expected)
    if law != "function":
        state = target.state_dict(target.point())
        for name, own in target.module.state_dict().items():
            torch.testing.assert_close(state[name].double(), own.double(), atol=1e-3, rtol=1e-3)


def test_a_diverging_trajectory_under_a_law_is_not_finite_and_raises_nothing():
    target = network({"0.weight": Laplace(0.0, 1.0)})
    theta = states(target)
    theta[0, 0], theta[1, 0] = torch.nan, torch.inf
    potential, gradient = target.gradient(theta)
    assert torch.isfinite(potential).tolist() == [False, False, True] and torch.isfinite(gradient[2]).all()


def test_a_horseshoe_is_a_normal_with_a_half_cauchy_scale_for_each_weight():
    target = network({"0.weight": HalfCauchy(0.3)})
    weights = target.unflatten(0.7 * states(target, 5000))["0.weight"].flatten().numpy()
    rng = np.random.default_rng(0)
    drawn = 0.3 * rng.normal(size=len(weights)) * np.abs(rng.standard_cauchy(len(weights)))
    assert stats.ks_2samp(weights, drawn).pvalue > 1e-3


def test_the_posterior_under_a_laplace_prior_is_that_of_quadrature():
    x = torch.linspace(-1, 1, 12)[:, None]
    y = 0.8 * x[:, 0]
    module = torch.nn.Linear(1, 1, bias=False)
    target = bnnviz.BNN(module, (x, y), noise_sd=1.0, prior={"weight": Laplace(0.0, 0.3)})
    theta = torch.linspace(-7, 7, 20_001, dtype=torch.float64)[:, None]
    mass = torch.softmax(-target.potential(theta), 0)
    weights = target.unflatten(theta)["weight"].flatten()

    def density(w: float) -> float:
        return np.exp(-0.5 * float(((y - w * x[:, 0]) ** 2).sum()) - abs(w) / 0.3)

    total, mean, square = (integrate.quad(lambda w, k=k: w**k * density(w), -8, 8, points=[0])[0] for k in range(3))
    assert (mass @ weights).item() == pytest.approx(mean / total, rel=1e-5)
    assert (mass @ weights.square()).item() == pytest.approx(square / total, rel=1e-5)
