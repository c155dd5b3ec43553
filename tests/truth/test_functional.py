"""Samplers of functionals: the stationary law of their coefficients is known on a Gaussian."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import integrate

from bnnviz import samplers, targets
from bnnviz.samplers import warmup
from bnnviz.samplers.functional.base import Hermite, MeanField, energy, quadrature
from bnnviz.samplers.functional.sgfuncrld import SGFuncRLD
from bnnviz.samplers.random import RandomNumbers, seeded

CHAINS = 20_000
LIMIT = 4.5  # standard errors; p < 1e-5 each, some twenty numbers
PRECISION = 4.0
MEDIAN = 0.4549  # of the square of a standard normal number


def begun(name: str, chains: int = CHAINS, **settings: Any) -> tuple[Any, Any]:
    """Return a sampler on N(0, 1 / PRECISION) and the state of its chains, at their start."""
    target = targets.Gaussian(np.zeros(1), np.eye(1) / PRECISION).to("cpu", torch.float64)
    sampler = samplers.REGISTRY.get(name)(**settings)
    sampler.prepare(target, None)
    sampler.numbers = seeded(7)
    return sampler, sampler.init(torch.zeros(chains, 1, dtype=torch.float64), sampler.numbers)


def moments(state: Any, sampler: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the chains' mean of mu^2 and of sd^2, and standard errors."""
    values = torch.cat([state.c[:, :1], sampler.reading.sd(state.c)], 1)[..., 0].square().numpy()
    return values.mean(0), values.std(0) / len(values) ** 0.5


def known(sampler: Any) -> np.ndarray:
    """Return the means of mu^2 and sd^2 under exp(-energy) d mu d rho."""

    def density(sd: float) -> float:
        # d rho = d sd / sd for the logarithm, d sd / (1 - exp(-sd)) for softplus; exp(entropy) = sd.
        volume = 1 / -np.expm1(-sd) if sampler.reading.softplus else 1 / sd
        return sd * np.exp(-0.5 * PRECISION * sd**2) * volume

    mass = integrate.quad(density, 0, 10)[0]
    return np.array([1 / PRECISION, integrate.quad(lambda sd: sd**2 * density(sd), 0, 10)[0] / mass])


def worst(state: Any, sampler: Any) -> float:
    found, error = moments(state, sampler)
    return float(np.abs((found - known(sampler)) / error).max())


def after(sampler: Any, state: Any, moves: int) -> Any:
    for _ in range(moves):
        state, _ = sampler.step(sampler.numbers, state)
    return state


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"momentum_persistence": 0.9, "num_leapfrog_steps": 3}])
def test_func_hmc_keeps_its_law(settings: dict) -> None:
    sampler, state = begun("func_hmc", step_size=0.3, **settings)
    assert worst(after(sampler, state, 60), sampler) < LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1.05, 0.95])
def test_func_hmc_with_noise_of_another_scale_is_caught(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    normal = RandomNumbers.normal
    monkeypatch.setattr(RandomNumbers, "normal", lambda self, shape, dtype: factor * normal(self, shape, dtype))
    sampler, state = begun("func_hmc", step_size=0.3)
    assert worst(after(sampler, state, 60), sampler) > LIMIT


def test_without_the_entropy_functionals_shrink() -> None:
    sampler, state = begun("func_hmc", chains=500, step_size=0.3, entropy=False)
    state = after(sampler, state, 50)
    assert float(sampler.reading.sd(state.c).median()) < 1e-6
    # What is left is HMC of the means.
    found, error = moments(after(sampler, state, 50), sampler)
    assert abs(found[0] - 1 / PRECISION) < LIMIT * error[0]


def exact(sampler: Any, count: int) -> torch.Tensor:
    """Return coefficients (count, 2, 1) from their law."""
    rng, sd = np.random.default_rng(4), np.linspace(1e-3, 4, 40_001)
    density = sd * np.exp(-0.5 * PRECISION * sd**2) / -np.expm1(-sd)
    sd = np.interp(rng.random(count), np.cumsum(density) / density.sum(), sd)
    c = np.stack([rng.standard_normal(count) / PRECISION**0.5, np.log(np.expm1(sd))], 1)
    return torch.as_tensor(c)[..., None]


def corrected() -> tuple[Any, Any]:
    """Return SGFuncRLD with a preconditioner that is learned, 500 moves after its chains had the right law."""
    sampler, state = begun("sgfuncrld", step_size=0.01, smoothing=0.98)
    state = sampler.freeze(sampler.numbers, warmup.run(sampler, sampler.numbers, state))
    return sampler, after(sampler, state._replace(c=exact(sampler, CHAINS)), 500)


@pytest.mark.slow
def test_sgfuncrld_corrected_has_the_right_law() -> None:
    sampler, state = corrected()
    assert worst(state, sampler) < LIMIT


def riemannian() -> tuple[Any, Any]:
    """Return SGFuncRLD with a metric that its functionals carry along, 800 moves after its chains had the right law."""
    sampler, state = begun("sgfuncrld", step_size=0.02, smoothing=0.98, variant="riemannian")
    state = sampler.freeze(sampler.numbers, warmup.run(sampler, sampler.numbers, state))
    return sampler, after(sampler, state._replace(c=exact(sampler, CHAINS)), 800)


@pytest.mark.slow
def test_sgfuncrld_with_the_gamma_term_has_the_right_law() -> None:
    sampler, state = riemannian()
    assert worst(state, sampler) < LIMIT


@pytest.mark.slow
def test_sgfuncrld_without_the_gamma_term_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = SGFuncRLD._metric
    monkeypatch.setattr(SGFuncRLD, "_metric", lambda self, c, square: (metric(self, c, square)[0], 0 * c))
    sampler, state = riemannian()
    assert worst(state, sampler) > LIMIT


def test_the_gamma_term_is_the_divergence_of_the_metric() -> None:
    sampler, state = begun("sgfuncrld", chains=50, variant="riemannian")
    c = exact(sampler, 50).requires_grad_()
    metric, divergence = sampler._metric(c, state.square)
    for part in (0, 1):
        (slopes,) = torch.autograd.grad(metric[:, part].sum(), c, retain_graph=True)
        torch.testing.assert_close(divergence[:, part].detach(), slopes[:, part])


@pytest.mark.slow
def test_sgfuncrld_with_noise_of_another_scale_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    normal = RandomNumbers.normal

    def louder(self: RandomNumbers, shape: Any, dtype: torch.dtype) -> torch.Tensor:
        # (chains, 1, dim) is z of the functionals, (chains, 2, dim) the noise of the move.
        return (1.05 if tuple(shape)[1] == 2 else 1.0) * normal(self, shape, dtype)

    monkeypatch.setattr(RandomNumbers, "normal", louder)
    sampler, state = corrected()
    assert worst(state, sampler) > LIMIT


@pytest.mark.slow
def test_sgfuncrld_as_printed_has_another_law() -> None:
    """Far too cold but for rare wild moves, where a gradient was small: more than half lies within the median."""
    sampler, state = begun("sgfuncrld", chains=4000, variant="paper", step_size=0.01)
    square = after(sampler, state, 1500).c[:, 0, 0].square() * PRECISION
    within = (square < MEDIAN).double()
    assert within.mean() - 0.5 > 3 * LIMIT * 0.5 / len(square) ** 0.5
    assert square.mean() > 10


@pytest.mark.slow
def test_the_mixture_is_wider_than_the_target_and_weights_undo_it() -> None:
    sampler, state = begun("func_hmc", chains=2000, step_size=0.3, draws_each=1)
    state = after(sampler, state, 60)
    draw_collector = sampler.draw_collector(sampler.numbers, state)
    draw_collector.kept = [state.c[:1000]]
    rng = torch.Generator().manual_seed(1)
    theta = sampler.reading.at(state.c[1000:], torch.randn(1000, 50, 1, generator=rng, dtype=torch.float64)).flatten(
        0, 1
    )
    square = theta.square().mean()
    error = theta.square().view(1000, 50).mean(1).std() / 1000**0.5
    assert abs(square - 2 / PRECISION) < LIMIT * error
    # 1,000 functionals stand for their law: the weighted variance has an error of some per cent.
    weights = sampler.event_weights(theta, draw_collector)
    assert float((weights * theta[:, 0].square()).sum()) == pytest.approx(1 / PRECISION, rel=0.05)


@pytest.mark.parametrize("reading", [MeanField("log"), MeanField("softplus"), Hermite(2), Hermite(5)], ids=type)
@pytest.mark.parametrize("share", [0.0, 1.0, 0.3])
def test_the_gradient_is_that_of_the_energy(reading: Any, share: float) -> None:
    target = targets.REGISTRY.get("double_well")().to("cpu", torch.float64)
    rng = torch.Generator().manual_seed(2)
    c = reading.first(torch.randn(6, 1, generator=rng, dtype=torch.float64), 0.7)
    c = (c + 0.03 * torch.randn(c.shape, generator=rng, dtype=torch.float64)).requires_grad_(True)
    nodes, weights = quadrature(c)
    theta = reading.at(c, nodes.expand(6, -1, -1))
    stretch = reading.stretch(c, nodes.expand(6, -1, -1)).expand_as(theta)
    entropy = (weights[:, None] * stretch.abs().log()).sum((1, 2))
    expected = (weights * target.potential(theta.flatten(0, 1)).view(6, -1)).sum(1)
    (requested,) = torch.autograd.grad((expected - share * entropy).sum(), c)
    found = energy(reading, target, c.detach(), nodes, weights, share)
    assert torch.allclose(found.gradient, requested)
    assert torch.allclose(found.expected, expected) and torch.allclose(found.entropy, entropy)


def test_the_energy_on_the_double_well_is_the_papers() -> None:
    """E[U] = -2 (m^2 + s^2) + b (m^4 + 6 m^2 s^2 + 3 s^4), entropy log s."""
    target = targets.REGISTRY.get("double_well")(reading="text").to("cpu", torch.float64)
    m, s, b = 0.7, 0.4, 0.2
    c = MeanField("log").first(torch.full((1, 1), m, dtype=torch.float64), s)
    found = energy(MeanField("log"), target, c, *quadrature(c), 1.0)
    assert float(found.expected) == pytest.approx(-2 * (m**2 + s**2) + b * (m**4 + 6 * m**2 * s**2 + 3 * s**4))
    assert float(found.entropy) == pytest.approx(np.log(s))


def test_a_density_has_mass_one_and_folds_add_up() -> None:
    line = torch.linspace(-6, 6, 1201, dtype=torch.float64)
    for reading, c in (
        (MeanField("log"), MeanField("log").first(torch.tensor([[0.5]]).double(), 0.8)),
        (Hermite(3), torch.tensor([[[0.2], [0.1], [1.0]]]).double()),
    ):
        density = reading.density(c, line)
        assert float(torch.trapezoid(density, line)) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("sd", [0.8, 0.05, 1e-3, 1e-9, 1e-200])
def test_a_functional_that_is_narrower_than_a_step_of_the_line_is_seen_on_it(sd: float) -> None:
    line = torch.linspace(-6, 6, 241, dtype=torch.float64)
    reading = MeanField("log")
    centre = 0.5123  # between two points
    density = reading.density(reading.first(torch.tensor([[centre]]).double(), sd), line)[0]
    assert float(density.sum() * (line[1] - line[0])) == pytest.approx(1, abs=1e-9)
    assert abs(float(line[density.argmax()]) - centre) <= 0.025
    if sd == 0.8:
        known = torch.distributions.Normal(centre, sd).log_prob(line).exp()
        assert float((density - known).abs().max()) < 1e-3
