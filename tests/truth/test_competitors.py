"""What is trained, not sampled: known answers on linear models with Gaussian noise, where posteriors are normal."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from families import some_quick
from torch import Tensor, nn

import bnnviz
from bnnviz import samplers, targets
from bnnviz.samplers.baselines import sae as anchored
from bnnviz.samplers.baselines.adam import adam, squared
from bnnviz.samplers.baselines.mc_dropout import MCDropout, readers
from bnnviz.samplers.random import seeded
from bnnviz.targets import mlp_gradients

LIMIT = 4.5  # standard errors; p < 1e-5 each, some hundred numbers
CLOSE = 1e-3  # of a posterior sd: how near a descent comes to its end
NEAR = 0.03  # of a posterior sd, and of a variance's root: an optimum that is found from noisy gradients
NOISE, PRIOR = 0.5, 0.8


class Linear(NamedTuple):
    """A linear model, and in closed form: precision of the data, of the posterior, and the posterior's mean."""

    target: targets.BNN
    data: np.ndarray
    precision: np.ndarray
    mean: np.ndarray
    least_squares: np.ndarray


@pytest.fixture(scope="module")
def linear() -> Linear:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((30, 3)) @ np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.3, -0.4, 0.5]]).T
    y = x @ [1.0, -0.5, 0.3] + 0.2 + NOISE * rng.standard_normal(30)
    target = bnnviz.BNN(nn.Sequential(nn.Linear(3, 1)), (x, y), prior_sd=PRIOR, noise_sd=NOISE)
    design = np.column_stack([x, np.ones(30)])
    data = design.T @ design / NOISE**2
    precision = data + np.eye(4) / PRIOR**2
    pull = design.T @ y / NOISE**2
    return Linear(
        target.to("cpu", torch.float64), data, precision, np.linalg.solve(precision, pull), np.linalg.solve(data, pull)
    )


def begun(name: str, target: targets.Target, chains: int, mode: Tensor | None = None, **values: Any) -> tuple[Any, Any]:
    """Return a sampler and the state of its chains at random starts."""
    sampler = samplers.REGISTRY.get(name)(**values)
    sampler.prepare(target, mode)
    sampler.numbers = seeded(3)
    return sampler, sampler.init(target.initial(chains, sampler.numbers.generator), sampler.numbers)


def after(sampler: Any, state: Any, steps: int) -> Any:
    for _ in range(steps):
        state, _ = sampler.step(sampler.numbers, state)
    return state


def worst_z(values: np.ndarray, known: np.ndarray) -> float:
    """Return the largest standardised error of the mean over rows."""
    return float(np.abs((values.mean(0) - known) / (values.std(0, ddof=1) / len(values) ** 0.5)).max())


def off(x: Any, known: np.ndarray, linear: Linear) -> float:
    """Return the largest distance of points (chains, dim) from a known one, in posterior sds."""
    return float((np.abs(np.asarray(x) - known) / np.sqrt(np.diag(np.linalg.inv(linear.precision)))).max())


# --- points


def test_adam_is_torch_s() -> None:
    rng = torch.Generator().manual_seed(0)
    gradients = torch.randn(40, 3, 5, generator=rng, dtype=torch.float64)
    x = torch.zeros(3, 5, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([x], lr=0.1)
    ours, v, square = torch.zeros(3, 5, dtype=torch.float64), *torch.zeros(2, 3, 5, dtype=torch.float64)
    for number, g in enumerate(gradients):
        x.grad = g
        optimiser.step()
        step = adam(g, v, square, torch.full((3,), number + 1.0, dtype=torch.float64), torch.full((3,), 0.1))
        ours, v, square = ours - step.move, step.mean, step.square
    assert torch.allclose(ours, x.detach(), atol=1e-12)


@pytest.mark.parametrize(
    ("name", "settings", "regular"),
    [
        ("map", {}, True),
        pytest.param("mle", {}, False, marks=pytest.mark.slow),
        pytest.param("ensemble", {}, True, marks=pytest.mark.slow),
        ("ensemble", {"weight_decay": False}, False),
        ("mc_dropout", {"drop": 0.0}, True),
    ],
)
def test_descents_end_at_ridge_regression_or_at_least_squares(
    linear: Linear, name: str, settings: dict, regular: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MCDropout, "check", lambda self, target: None)
    sampler, state = begun(name, linear.target, 3, steps=1500, schedule="cosine", learning_rate=0.03, **settings)
    x = after(sampler, state, 1500).x
    right, wrong = (linear.mean, linear.least_squares) if regular else (linear.least_squares, linear.mean)
    assert off(x, right, linear) < CLOSE
    assert off(x, wrong, linear) > 10 * CLOSE


# --- Laplace


def test_laplace_is_exact(linear: Linear) -> None:
    mode, covariance = torch.as_tensor(linear.mean), np.linalg.inv(linear.precision)
    sampler, state = begun("laplace", linear.target, 20_000, mode)
    away = after(sampler, state, 1).x.numpy() - linear.mean
    assert worst_z(away, np.zeros(4)) < LIMIT
    assert worst_z((away[:, :, None] * away[:, None]).reshape(-1, 16), covariance.ravel()) < LIMIT
    assert worst_z((away[:, :, None] * away[:, None]).reshape(-1, 16), 1.05 * covariance.ravel()) > LIMIT
    assert np.allclose((sampler.scale.T @ sampler.scale).numpy(), covariance, rtol=1e-9)


def test_a_diagonal_laplace_has_the_precision_s_diagonal(linear: Linear) -> None:
    sampler, _ = begun("laplace", linear.target, 2, torch.as_tensor(linear.mean), structure="diagonal")
    assert np.allclose(sampler.scale.square().numpy(), 1 / np.diag(linear.precision), rtol=1e-9)


@pytest.mark.parametrize(
    ("likelihood", "outputs", "noise"),
    [("gaussian", 1, "fixed"), ("gaussian", 1, "learned"), ("bernoulli", 1, "fixed"), ("categorical", 3, "fixed")],
)
def test_gauss_newton_of_a_network_is_the_expected_square_of_the_score(
    likelihood: str, outputs: int, noise: str
) -> None:
    """By its definition as Fisher's information: E over labels that the network itself draws; exact by summing them."""
    torch.manual_seed(0)
    x = np.random.default_rng(0).standard_normal((7, 2))
    y = np.arange(7) % 2
    module = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, outputs))
    target = bnnviz.BNN(module, (x, y), likelihood, prior_sd=0.7, noise_sd=0.4, noise=noise).to("cpu", torch.float64)
    theta = 0.5 * torch.randn(target.dim, dtype=torch.float64)
    found = target.curvature_matrix(theta)
    assert torch.allclose(found.diagonal(), target.curvature_diagonal(theta), rtol=1e-9)
    part = target.last_layer()
    assert torch.allclose(found[part, part], target.curvature_matrix(theta, part), rtol=1e-9)
    assert torch.allclose(found, _information(target, theta), rtol=1e-8, atol=1e-9)


def _information(target: targets.BNN, theta: Tensor) -> Tensor:
    sd = float(target.own_values(theta[None]).get("noise_sd", getattr(target.likelihood, "scales", [1.0])[0]))
    nodes, weights = np.polynomial.hermite_e.hermegauss(6)
    total = torch.zeros(target.dim, target.dim, dtype=torch.float64)
    for row in target.x:
        f = target.outputs(theta[None], row[None])[0, 0].detach()
        if target.likelihood.name == "gaussian":
            labels, probabilities = float(f[0]) + sd * nodes, weights / weights.sum()
        elif target.likelihood.name == "bernoulli":
            labels, probabilities = [0.0, 1.0], [1 - float(torch.sigmoid(f[0])), float(torch.sigmoid(f[0]))]
        else:
            labels, probabilities = [0, 1, 2], torch.softmax(f, 0).tolist()
        for label, probability in zip(labels, probabilities, strict=True):
            flat = theta.clone().requires_grad_(True)
            y = torch.tensor([label], dtype=target.y.dtype)
            loss = target.likelihood_at(flat[None]).loss(target.outputs(flat[None], row[None]), y)
            (score,) = torch.autograd.grad(loss.sum(), flat)
            total += probability * torch.outer(score, score)
    return total


# --- Bayes by Backprop


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["local", "weights"])
def test_bayes_by_backprop_finds_the_best_mean_field(linear: Linear, gradient: str) -> None:
    """Its mean is the posterior's, its variances are 1 / precision_ii: not the posterior's own."""
    settings = {"gradient": gradient, "learning_rate": 0.03, "schedule": "cosine", "steps": 2500}
    sampler, state = begun("bbb", linear.target, 16, **settings)
    state = after(sampler, state, 2500)
    assert off(state.x.mean(0), linear.mean, linear) < NEAR
    sd = sampler.reading.sd(state.c)[:, 0].mean(0).numpy()
    assert np.abs(sd * np.sqrt(np.diag(linear.precision)) - 1).max() < NEAR
    assert np.abs(sd / np.sqrt(np.diag(np.linalg.inv(linear.precision))) - 1).max() > 3 * NEAR
    # At the optimum -ELBO has its known value: the mean-field gap in logarithms, and the evidence.
    known = _evidence(linear, sd)
    values = torch.stack([sampler.slope(sampler.numbers, state.c, ()).loss for _ in range(400)]).numpy().ravel()
    assert abs(values.mean() - known) < LIMIT * values.std() / len(values) ** 0.5 + 0.02


def _evidence(linear: Linear, sd: np.ndarray) -> float:
    """Return -ELBO at the posterior's mean with these sds, by the formulas of quadratic forms."""
    mean = torch.as_tensor(linear.mean)
    rows = linear.target.all_rows()
    fit = float(linear.target.likelihood.loss(linear.target.outputs(mean[None], rows.x), rows.y)[0])
    fit += 0.5 * float((np.diag(linear.data) * sd**2).sum())
    kl = 0.5 * (linear.mean**2 + sd**2) / PRIOR**2 - np.log(sd / PRIOR) - 0.5
    return fit + float(kl.sum())


def gradients(target: targets.BNN, c: Tensor, gradient: str, **settings: Any) -> np.ndarray:
    """Return gradients of -ELBO (chains, 2 dim), each from its own noise."""
    sampler, state = begun("bbb", target, len(c), gradient=gradient, **settings)
    rng = sampler.numbers
    return sampler.slope(rng, c, *sampler.pre_draw(rng, state)).gradient.flatten(1).numpy()


def coefficients(dim: int, chains: int) -> Tensor:
    rng = torch.Generator().manual_seed(9)
    c = torch.randn(2, dim, generator=rng, dtype=torch.float64)
    c[1] = -1 + 0.3 * c[1]
    return c.expand(chains, 2, dim).contiguous()


@pytest.mark.parametrize("gradient", ["local", "weights"])
@pytest.mark.parametrize("settings", [{}, {"batch_size": 4}], ids=str)
def test_the_gradient_of_the_elbo_has_the_known_mean(linear: Linear, gradient: str, settings: dict) -> None:
    c = coefficients(4, 20_000)
    mu, rho = c[0].numpy()
    sd, slope = np.log1p(np.exp(rho)), 1 / (1 + np.exp(-rho))
    known = np.concatenate([linear.precision @ (mu - linear.mean), slope * (np.diag(linear.precision) * sd - 1 / sd)])
    found = gradients(linear.target, c, gradient, **settings)
    assert worst_z(found, known) < LIMIT
    assert worst_z(found, 1.05 * known) > LIMIT


@pytest.mark.parametrize("noise", some_quick(["fixed", "learned"], 1))
def test_local_reparameterisation_is_quieter_and_not_biased(noise: str) -> None:
    torch.manual_seed(2)
    rng = np.random.default_rng(4)
    module = nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 1))
    data = rng.standard_normal((25, 2)), rng.standard_normal(25)
    target = bnnviz.BNN(module, data, noise_sd=0.7, noise=noise).to("cpu", torch.float64)
    c = coefficients(target.dim, 6000)
    local, weights = (gradients(target, c, gradient) for gradient in ("local", "weights"))
    error = np.sqrt((local.var(0) + weights.var(0)) / len(c))
    assert np.abs((local.mean(0) - weights.mean(0)) / error).max() < LIMIT
    assert local.var(0).sum() < 0.5 * weights.var(0).sum()


def test_a_broken_local_reparameterisation_is_caught(linear: Linear, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variances that are taken for sds."""
    right = mlp_gradients.noisy_outputs
    monkeypatch.setattr(
        mlp_gradients, "noisy_outputs", lambda layers, mean, sd, *rest: right(layers, mean, sd.square(), *rest)
    )
    c = coefficients(4, 20_000)
    mu, rho = c[0].numpy()
    sd, slope = np.log1p(np.exp(rho)), 1 / (1 + np.exp(-rho))
    known = np.concatenate([linear.precision @ (mu - linear.mean), slope * (np.diag(linear.precision) * sd - 1 / sd)])
    assert worst_z(gradients(linear.target, c, "local"), known) > LIMIT


# --- MC dropout


def dropping(p: float) -> tuple[targets.BNN, Any, Any]:
    """Return a network of one hidden layer, and a sampler at rest with 20,000 chains of the same weights."""
    torch.manual_seed(5)
    rng = np.random.default_rng(5)
    module = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 1))
    target = bnnviz.BNN(module, (rng.standard_normal((9, 2)), rng.standard_normal(9)), noise_sd=0.5)
    target.to("cpu", torch.float64)
    sampler, state = begun("mc_dropout", target, 20_000, drop=p)
    w = torch.randn(target.dim, generator=torch.Generator().manual_seed(1), dtype=torch.float64).repeat(20_000, 1)
    training = state.training._replace(taken=state.training.taken + sampler.steps)
    return target, sampler, state._replace(w=w, x=w, training=training)


def moments(target: targets.BNN, w: Tensor, p: float) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance (rows,) of the outputs under masks of the hidden layer."""
    names = target.unflatten(w)
    hidden = torch.tanh(target.x @ names["0.weight"].T + names["0.bias"])
    parts = hidden * names["2.weight"][0]
    mean = parts.sum(1) + names["2.bias"]
    return mean.numpy(), (p / (1 - p) * parts.square().sum(1)).numpy()


@pytest.mark.parametrize("p", [0.5, 0.2])
def test_masks_leave_the_mean_and_give_the_known_variance(p: float) -> None:
    target, sampler, state = dropping(p)
    state = sampler.freeze(sampler.numbers, state)
    x = after(sampler, state, 1).x
    f = target.outputs(x, target.x)[..., 0].numpy()
    mean, variance = moments(target, state.w[0], p)
    assert worst_z(f, mean) < LIMIT
    assert worst_z((f - mean) ** 2, variance) < LIMIT
    assert worst_z((f - mean) ** 2, 1.1 * variance) > LIMIT
    dropped = (x == 0).double().mean(0)
    assert float(dropped[: 2 * 6 + 6].max()) == 0, "the first layer keeps its inputs"


@pytest.mark.parametrize("way", ["_by_units", "_by_factors"])
def test_the_loss_of_the_training_has_the_known_mean(way: str) -> None:
    """That of the mean plus the variance's part; masks for each row and masks for all rows have the same one."""
    target, sampler, state = dropping(0.3)
    fit, g = getattr(sampler, way)(sampler.numbers, state.w, ())
    mean, variance = moments(target, state.w[0], 0.3)
    known = 0.5 * ((mean - target.y.numpy()) ** 2 + variance).sum() / 0.5**2
    assert worst_z(fit.numpy()[:, None], np.array([known])) < LIMIT
    # The gradient of the mean is the mean of the gradient.
    w = state.w[0].clone().requires_grad_(True)
    names = target.unflatten(w)
    hidden = torch.tanh(target.x @ names["0.weight"].T + names["0.bias"])
    parts = hidden * names["2.weight"][0]
    loss = (parts.sum(1) + names["2.bias"] - target.y).square() + 0.3 / 0.7 * parts.square().sum(1)
    (slope,) = torch.autograd.grad(0.5 * loss.sum() / 0.5**2, w)
    assert worst_z(g.numpy(), slope.numpy()) < LIMIT


def test_masks_that_are_not_divided_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = MCDropout._kept
    monkeypatch.setattr(MCDropout, "_kept", lambda self, *what: (1 - self.drop) * kept(self, *what))
    target, sampler, state = dropping(0.5)
    state = sampler.freeze(sampler.numbers, state)
    f = target.outputs(after(sampler, state, 1).x, target.x)[..., 0].numpy()
    assert worst_z(f, moments(target, state.w[0], 0.5)[0]) > LIMIT


class Convolving(nn.Module):
    """Convolutions, one of them in groups, then a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3)
        self.second = nn.Conv2d(4, 6, 3, groups=2)
        self.last = nn.Linear(24, 3)

    def forward(self, x: Tensor, masks: tuple[Tensor, ...] = ()) -> Tensor:
        """Return logits; with masks, of units that are multiplied by them."""
        a = torch.tanh(self.first(x))
        a = torch.tanh(self.second(a * masks[0][:, None, None] if masks else a)).flatten(1)
        return self.last(a * masks[1] if masks else a)


def test_a_mask_of_weights_is_a_mask_of_units_in_convolutions_too() -> None:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    data = rng.standard_normal((5, 1, 6, 6)), np.arange(5) % 3
    target = bnnviz.BNN(Convolving(), data, "categorical").to("cpu", torch.float64)
    sampler, state = begun("mc_dropout", target, 2)
    masks = [(torch.rand(2, reader.units) < 0.5).double() for reader in readers(target)]
    found = iter(masks)
    sampler._kept = lambda rng, shape, dtype: next(found)
    f = target.outputs(state.x * sampler.factors(sampler.numbers, state.x), target.x)
    for chain in range(2):
        parameters = target.unflatten(state.x[chain])
        own = torch.func.functional_call(target.module, parameters, (target.x, tuple(m[chain] for m in masks)))
        assert torch.allclose(f[chain], own, atol=1e-12)
    assert all(torch.isfinite(after(*begun("mc_dropout", target, 2, steps=5), 7).x.flatten()))


# --- sequential anchored ensembles


def walked(steps: int, sd: float, size: float) -> np.ndarray:
    """Return anchors of 20,000 chains after a guided walk that began in its law, N(0, sd^2)."""
    rng = torch.Generator().manual_seed(6)
    anchor = sd * torch.randn(20_000, 1, generator=rng, dtype=torch.float64)
    heading = torch.ones_like(anchor)
    heading[::2] = -1
    for _ in range(steps):
        length = size * sd * torch.randn(anchor.shape, generator=rng, dtype=torch.float64)
        lot = torch.rand(anchor.shape, generator=rng, dtype=torch.float64)
        anchor, heading, _ = anchored.guided_walk(anchor, heading, length, lot, sd**-2)
    return anchor.numpy() / sd


@pytest.mark.parametrize(("steps", "size"), [(60, 1.0), (200, 0.1)])
def test_anchors_follow_the_prior(steps: int, size: float) -> None:
    x = walked(steps, 0.7, size)
    assert worst_z(np.hstack([x, x**2, x**4]), np.array([0.0, 1.0, 3.0])) < LIMIT


def test_anchors_that_do_not_turn_or_are_always_accepted_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = anchored.guided_walk

    def goes_on(anchor: Tensor, heading: Tensor, *rest: Any) -> Any:
        walk = right(anchor, heading, *rest)
        return walk._replace(heading=heading)

    def accepts(anchor: Tensor, heading: Tensor, length: Tensor, lot: Tensor, precision: float) -> Any:
        return right(anchor, heading, length, torch.zeros_like(lot), precision)

    for wrong in (goes_on, accepts):
        monkeypatch.setattr(anchored, "guided_walk", wrong)
        x = walked(60, 0.7, 1.0)
        assert worst_z(np.hstack([x, x**2]), np.array([0.0, 1.0])) > LIMIT


SAE = {"batch_size": None, "first_epochs": 1200, "learning_rate": 0.05}


@pytest.mark.slow
def test_members_are_the_known_function_of_their_anchors(linear: Linear) -> None:
    """P^-1 (X'y / sd^2 + anchor / tau^2): so their law is N(m, P^-1 tau^-2 P^-1), narrower than the posterior."""
    sampler, state = begun("sae", linear.target, 5000, **SAE)
    before = after(sampler, state, 1199)
    member = sampler.step(sampler.numbers, before)[0].x.numpy()
    inverse = np.linalg.inv(linear.precision)
    known = linear.mean + before.anchor.numpy() @ inverse / PRIOR**2
    assert off(member, known, linear) < 10 * CLOSE
    away, law = member - linear.mean, inverse @ inverse / PRIOR**2
    assert worst_z(away, np.zeros(4)) < LIMIT
    assert worst_z((away[:, :, None] * away[:, None]).reshape(-1, 16), law.ravel()) < LIMIT
    assert np.linalg.eigvalsh(inverse - law).min() > 0
    assert worst_z(away**2, np.diag(inverse)) > LIMIT


def test_later_members_follow_their_anchors(linear: Linear) -> None:
    settings = SAE | {"epochs": 150, "anchor_step": 0.3, "later_rate": 0.02}
    sampler, state = begun("sae", linear.target, 50, **settings)
    state = after(sampler, state, 1200)
    state = sampler.freeze(sampler.numbers, state)
    for _ in range(3):
        anchor = state.anchor
        state = after(sampler, state, 150)
        known = linear.mean + anchor.numpy() @ np.linalg.inv(linear.precision) / PRIOR**2
        assert off(state.x, known, linear) < 10 * CLOSE
        assert not torch.equal(anchor, state.anchor)
    assert state.count.tolist() == [4.0] * 50


def test_members_that_are_drawn_to_the_origin_are_caught(linear: Linear, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler, state = begun("sae", linear.target, 50, **SAE)
    monkeypatch.setattr(anchored, "squared", lambda gap, precision: squared(gap + 0.5 * state.anchor, precision))
    before = after(sampler, state, 1199)
    known = linear.mean + before.anchor.numpy() @ np.linalg.inv(linear.precision) / PRIOR**2
    assert off(sampler.step(sampler.numbers, before)[0].x, known, linear) > 10 * CLOSE
