"""Adaptive importance sampling: what its weights estimate without bias, and its equations worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from families import some_quick
from scipy import optimize, stats

from bnnviz import samplers, targets
from bnnviz.samplers.importance.mixture import Diagonal, Full
from bnnviz.samplers.importance.population import MOVE, WEIGH, clip_largest, temper
from bnnviz.samplers.random import seeded

RUNS = 200
LIMIT = 4.5  # standard errors; p < 1e-5 each, some sixty numbers
PROPOSALS, EACH, ITERATIONS = 6, 30, 3
COV = np.array([[1.0, 0.6], [0.6, 1.5]])
MEAN = np.array([0.4, -0.3])
VARIANTS = {
    "pmcnet": ("pmcnet", {}),
    "light": ("pmcnet_light", {}),
    "gradfree": ("pmcnet", {"gradient": False}),
    "covfree": ("pmcnet", {"adapt_covariance": False}),
    "dm-pmc": ("pmcnet", {"gradient": False, "adapt_covariance": False}),
    "reference-code": ("pmcnet", {"variant": "reference-code"}),
    "tempered": ("pmcnet", {"least_ess": 0.6}),
}


def begun(name: str, target: Any, x0: torch.Tensor, seed: int = 0, **settings: Any) -> tuple[Any, Any]:
    sampler = samplers.REGISTRY.get(name)(**settings)
    sampler.prepare(target, None)
    sampler.numbers = seeded(seed)
    return sampler, sampler.init(x0, sampler.numbers)


def weighed(sampler: Any, state: Any, iterations: int) -> Any:
    """Return the state when the draws of the last iteration have been weighed."""
    while True:
        state, info = sampler.step(sampler.numbers, state)
        if info.phase == WEIGH and float(state.count[0]) == iterations - 1:
            return state


def estimates(variant: str) -> np.ndarray:
    """Return (runs, 5): the means of w, w x1, w x2, w x1^2, w x2^2 by the true ones, each of expectation 1."""
    name, settings = VARIANTS[variant]
    target = targets.Gaussian(MEAN, COV).to("cpu", torch.float64)
    # The target's own U leaves nothing out but the constant that this integral is.
    log_z = math.log(2 * math.pi) + 0.5 * np.linalg.slogdet(COV)[1]
    square = np.diag(COV) + MEAN**2
    found = []
    for seed in range(RUNS):
        x0 = torch.randn(PROPOSALS, 2, generator=torch.Generator().manual_seed(1000 + seed), dtype=torch.float64)
        sampler, state = begun(name, target, x0, seed, draws_each=EACH, sigma0=1.6, **settings)
        state = weighed(sampler, state, ITERATIONS)
        w = (state.logs - log_z).exp().numpy().ravel()
        x = state.draws.numpy().reshape(-1, 2)
        found.append([w.mean(), *(w[:, None] * x).mean(0) / MEAN, *(w[:, None] * x**2).mean(0) / square])
    return np.array(found)


def worst(found: np.ndarray) -> float:
    return float(np.abs((found.mean(0) - 1) / (found.std(0, ddof=1) / math.sqrt(len(found)))).max())


@pytest.mark.parametrize("variant", some_quick(VARIANTS, 3))
def test_the_integral_and_the_moments_come_out_in_the_mean(variant: str) -> None:
    assert worst(estimates(variant)) < LIMIT


@pytest.mark.parametrize("wrong", some_quick(["one proposal", "sum instead of mean", "old means"], 1))
def test_a_denominator_that_is_not_the_mixture_is_caught(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    right = Full.log_mixture

    def broken(points: torch.Tensor, means: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        if wrong == "one proposal":
            return right(points, means[:1], factor[:1])
        if wrong == "old means":
            return right(points, means + 0.4, factor)
        return right(points, means, factor) + math.log(len(means))

    monkeypatch.setattr(Full, "log_mixture", staticmethod(broken))
    assert worst(estimates("pmcnet")) > LIMIT


@pytest.mark.parametrize("dim", [1, 3, 70, 150])
@pytest.mark.parametrize("kind", [Full, Diagonal])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_mixture_is_that_of_torch(kind: Any, dim: int, dtype: torch.dtype) -> None:
    rng = torch.Generator().manual_seed(3)
    means = torch.randn(4, dim, generator=rng, dtype=dtype)
    factor = torch.rand(4, dim, generator=rng, dtype=dtype) + 0.3
    lower = torch.diag_embed(factor)
    if kind is Full:
        lower = factor = lower + torch.tril(0.1 * torch.randn(4, dim, dim, generator=rng, dtype=dtype), -1)
    points = torch.randn(9, dim, generator=rng, dtype=dtype)
    each = torch.distributions.MultivariateNormal(means.double(), scale_tril=lower.double())
    known = torch.logsumexp(each.log_prob(points.double()[:, None]), 1) - math.log(4)
    found = kind.log_mixture(points, means, factor)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, known, rtol=1e-10 if dtype == torch.float64 else 2e-6, atol=1e-4)


def iteration_by_hand(state: Any, sampler: Any, target: Any, eta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return covariances and means after an iteration whose draws and survivors are those of a state (eq. 11 to 13)."""
    draws, means = state.draws.numpy(), state.origin.numpy()
    old = (state.factor @ state.factor.mT).numpy()
    count, each, _ = draws.shape
    covs, ends = [], []
    for m in range(count):
        w = np.zeros(each)
        for k in range(each):
            mixture = np.mean([stats.multivariate_normal(means[i], old[i]).pdf(draws[m, k]) for i in range(count)])
            w[k] = math.exp(-float(target.potential(torch.as_tensor(draws[m, k][None]))[0])) / mixture
        w /= w.sum()
        limit = np.sort(w)[-int(math.sqrt(each))]
        clipped = np.minimum(w, limit)
        clipped /= clipped.sum()
        hats = [np.cov(draws[m].T, aweights=weights, ddof=0) for weights in (w, clipped)]
        cov = 0.5 * old[m] + 0.5 * (1 - eta) * hats[0] + 0.5 * eta * hats[1]
        survivor = draws.reshape(-1, 2)[int(state.chosen[m])]
        potential, gradient = (part.numpy()[0] for part in target.gradient(torch.as_tensor(survivor[None])))
        step, end = 1.0, survivor
        for _ in range(21):
            there = survivor - step * cov @ gradient
            if float(target.potential(torch.as_tensor(there[None]))[0]) < potential:
                end = there
                break
            step /= 2
        covs.append(cov)
        ends.append(end)
    return np.array(covs), np.array(ends)


def test_an_iteration_is_the_one_worked_out_by_hand() -> None:
    target = targets.REGISTRY.get("banana")().to("cpu", torch.float64)
    x0 = torch.randn(3, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    sampler, state = begun("pmcnet", target, x0, draws_each=12, sigma0=0.8)
    for number in (1, 2, 3):
        while int(state.phase) != 3:
            state, _ = sampler.step(sampler.numbers, state)
        covs, ends = iteration_by_hand(state, sampler, target, eta=1 / number)
        state, _ = sampler.step(sampler.numbers, state)
        np.testing.assert_allclose((state.factor @ state.factor.mT).numpy(), covs, rtol=1e-9, atol=1e-12)
        state, _ = sampler.step(sampler.numbers, state)
        np.testing.assert_allclose(state.x.numpy(), ends, rtol=1e-9, atol=1e-12)


def test_light_covariances_are_the_diagonals_of_full_ones() -> None:
    rng = torch.Generator().manual_seed(1)
    draws = torch.randn(3, 20, 4, generator=rng, dtype=torch.float64)
    weights = torch.softmax(torch.randn(3, 20, generator=rng, dtype=torch.float64), 1)
    sd = torch.rand(3, 4, generator=rng, dtype=torch.float64) + 0.2
    full = Full.mixed(Full.squared(torch.diag_embed(sd)), draws, [weights, weights], [0.2, 0.3])
    light = Diagonal.mixed(Diagonal.squared(sd), draws, [weights, weights], [0.2, 0.3])
    torch.testing.assert_close(full.diagonal(dim1=1, dim2=2), light)


def test_survivors_are_taken_in_proportion_to_the_weights() -> None:
    target = targets.Gaussian(np.zeros(1), np.eye(1)).to("cpu", torch.float64)
    proposals, shares = 20_000, np.array([0.1, 0.2, 0.3, 0.4])
    sampler, state = begun("pmcnet", target, torch.zeros(proposals, 1, dtype=torch.float64), draws_each=4)
    logs = torch.as_tensor(np.log(shares)).expand(proposals, 4) + torch.randn(proposals, 1, dtype=torch.float64)
    state, _ = sampler._resample(sampler.numbers, state._replace(logs=logs))
    place = state.chosen.numpy() % 4
    assert (state.chosen.numpy() // 4 == np.arange(proposals)).all()
    assert stats.chisquare(np.bincount(place, minlength=4), shares * proposals).pvalue > 1e-4


def covariances_of_the_code(
    t: int, draws: np.ndarray, logs: np.ndarray, chosen: np.ndarray, running: np.ndarray, used: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Transcribe section 4.1 and the fallback of SL_PMC_Adapt_Cov_new (PMCnet, Model_files/PMCnet_algo.py, 7325446).

    ``running`` is rob_Cov_2 and ``used`` is Past_A of the iteration before; t counts from 0.
    """
    count, each, _ = draws.shape
    eta = [1 / (s + 1) for s in range(t + 1) for _ in range(count)]  # appended once for each proposal, read at [t]
    parents = chosen // each
    mixed, factored = [], []
    for n in range(count):
        w = np.exp(logs[n] - logs[n].max())
        w /= w.sum()
        cropped = np.minimum(w, np.sort(w)[::-1][math.ceil(each * (math.sqrt(each) / each))])
        plain, robust = (np.cov(draws[n].T, aweights=v / v.sum(), ddof=0) for v in (w, cropped))
        if t == 0:
            mixed.append((1 - eta[t]) * plain + eta[t] * robust)
        else:
            mixed.append(0.5 * running[parents[n]] + 0.5 * (1 - eta[t]) * plain + 0.5 * eta[t] * robust)
        try:
            stats.multivariate_normal(np.zeros(len(mixed[n])), mixed[n])
            factored.append(mixed[n])
        except np.linalg.LinAlgError:
            factored.append(used[parents[n]])
    return np.array(mixed), np.array(factored)


def test_the_reference_code_is_that_of_its_authors() -> None:
    """Few draws in four dimensions: the first covariances are singular, and those of before stay in use."""
    target = targets.Gaussian(np.zeros(4), np.diag([1.0, 2.0, 3.0, 4.0])).to("cpu", torch.float64)
    x0 = torch.randn(3, 4, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    settings = {"draws_each": 4, "sigma0": 0.8, "variant": "reference-code", "together_every": 2}
    sampler, state = begun("pmcnet", target, x0, **settings)
    running, used = np.zeros((3, 4, 4)), (state.factor @ state.factor.mT).numpy()
    fallbacks, moved = 0, 0
    for t in range(8):
        while int(state.phase) != 3:
            state, _ = sampler.step(sampler.numbers, state)
        own = state.chosen.numpy() // 4 == np.arange(3)
        assert own.all() or t % 2 == 1
        moved += not own.all()
        parts = (state.draws.numpy(), state.logs.numpy(), state.chosen.numpy())
        running, used = covariances_of_the_code(t, *parts, running, used)
        state, info = sampler.step(sampler.numbers, state)
        fallbacks += info.fallbacks
        np.testing.assert_allclose(state.estimate.numpy(), running, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose((state.factor @ state.factor.mT).numpy(), used, rtol=1e-7, atol=1e-12)
        state, _ = sampler.step(sampler.numbers, state)
    assert fallbacks and moved


def test_gradient_steps_are_halved_until_the_density_rises() -> None:
    target = targets.REGISTRY.get("banana")().to("cpu", torch.float64)
    x0 = 3 * torch.randn(50, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    sampler, state = begun("pmcnet", target, x0, draws_each=2, sigma0=3.0)
    potential, gradient = target.gradient(x0)
    x, halvings, tries = sampler.shortened(x0, -9.0 * gradient, potential, target.potential)
    assert (halvings >= 0).all() and int(halvings.max()) > 2
    assert (target.potential(x) < potential).all()
    torch.testing.assert_close(x, x0 - 9.0 * 0.5 ** halvings[:, None] * gradient)
    before = x0 - 9.0 * 0.5 ** (halvings[:, None] - 1) * gradient
    assert (target.potential(before) >= potential)[halvings > 0].all()
    assert tries == int((halvings + 1).sum())
    limited = samplers.REGISTRY.get("pmcnet")(most_halvings=1)
    limited.prepare(target, None)
    stays = limited.shortened(x0, -9.0 * gradient, potential, target.potential)
    assert (stays[0][stays[1] < 0] == x0[stays[1] < 0]).all() and (stays[1] < 0).any()


def test_batches_have_their_share_of_the_prior() -> None:
    """Steps of an epoch with tiny covariances add up to half a step along the gradient of all rows."""
    target = targets.REGISTRY.get("network")(data="toy_c", hidden="3").to("cpu", torch.float64)
    x0 = 0.3 * torch.randn(2, target.dim, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    sampler, state = begun("pmcnet_light", target, x0, draws_each=2, sigma0=1e-5, batches=7)
    state, _ = sampler._move(sampler.numbers, state)
    expected = -0.5e-10 * target.gradient(x0)[1]
    torch.testing.assert_close(state.x - x0, expected, rtol=1e-4, atol=0.0)


def test_the_largest_weights_are_cut_down() -> None:
    weights = torch.tensor([[0.4, 0.3, 0.2, 0.1]])
    torch.testing.assert_close(clip_largest(weights, 2), torch.tensor([[1 / 3, 1 / 3, 0.2 / 0.9, 0.1 / 0.9]]))
    torch.testing.assert_close(clip_largest(weights, 9), torch.tensor([[0.25] * 4]))


def test_weights_are_tempered_until_they_are_worth_enough() -> None:
    logs = torch.tensor([[0.0, -8.0, -9.0, -10.0], [0.0, -0.1, -0.2, 0.0], [3.0, 1.0, -math.inf, -math.inf]]).double()
    found = temper(logs, 0.5)
    shares = torch.softmax(found, 1)
    ess = 1 / shares.square().sum(1)
    # A half of four, what it is worth by itself, and more than a half of the two that have a weight.
    assert ess[0] == pytest.approx(2.0, abs=1e-6)
    torch.testing.assert_close(shares[1:], torch.softmax(logs, 1)[1:])
    tau = found[0, 1] / logs[0, 1]
    torch.testing.assert_close(found[0], tau * logs[0])
    assert temper(torch.full((1, 3), -math.inf), 0.5).isneginf().all()


def test_covariances_of_the_curvature_are_inverse_hessians_and_the_step_is_newtons() -> None:
    target = targets.Gaussian(MEAN, COV).to("cpu", torch.float64)
    x0 = 3 * torch.randn(4, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    sampler, state = begun("pmcnet", target, x0, draws_each=20, sigma0=0.3, covariance_from="curvature")
    state = weighed(sampler, state, 2)
    np.testing.assert_allclose((state.factor @ state.factor.mT).numpy(), np.broadcast_to(COV, (4, 2, 2)), rtol=1e-10)
    np.testing.assert_allclose(state.origin.numpy(), np.broadcast_to(MEAN, (4, 2)), rtol=1e-10)
    log_z = math.log(2 * math.pi) + 0.5 * np.linalg.slogdet(COV)[1]
    np.testing.assert_allclose(state.logs.numpy(), log_z, rtol=1e-10)


def test_a_covariance_stays_where_the_curvature_is_negative() -> None:
    target = targets.DoubleWell().to("cpu", torch.float64)
    sampler, state = begun(
        "pmcnet", target, torch.zeros(2, 1, dtype=torch.float64), sigma0=0.7, covariance_from="curvature"
    )
    after, info = sampler._adapt(sampler.numbers, state._replace(x=torch.tensor([[0.0], [1.0]]).double()))
    assert info.fallbacks == 1 and info.examples == 4 * target.examples
    assert after.factor[0].item() == pytest.approx(0.7)
    # U'' is 12 t^2 - 4.
    assert after.factor[1].item() == pytest.approx(8**-0.5)


def test_a_mean_that_is_not_finite_stops_its_proposal_alone() -> None:
    target = targets.Gaussian(np.zeros(1), np.eye(1)).to("cpu", torch.float64)
    sampler, state = begun("pmcnet", target, torch.zeros(3, 1, dtype=torch.float64), draws_each=5)
    state = state._replace(x=torch.tensor([[0.0], [math.nan], [1.0]], dtype=torch.float64))
    state, info = sampler._move(sampler.numbers, state)
    assert info.phase == MOVE and info.failed.tolist() == [False, True, False]
    assert torch.isfinite(state.x).all()


@pytest.mark.parametrize("name", ["pmcnet", "pmcnet_light"])
def test_proposals_adapt_by_tempered_weights(name: str) -> None:
    """Covariances are those of weights raised to the power at which half of the draws count."""
    target = targets.REGISTRY.get("banana")().to("cpu", torch.float64)
    x0 = torch.randn(3, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    sampler, state = begun(name, target, x0, draws_each=50, sigma0=0.8, least_ess=0.5)
    while int(state.phase) != 3:
        state, _ = sampler.step(sampler.numbers, state)
    before = state
    state, _ = sampler.step(sampler.numbers, state)
    for m in range(3):
        logs = before.logs[m].numpy() - before.logs[m].numpy().max()

        def excess(tau: float, logs: np.ndarray = logs) -> float:
            w = np.exp(tau * logs)
            return float(w.sum() ** 2 / (w**2).sum()) - 25

        assert excess(1.0) < 0
        w = np.exp(optimize.brentq(excess, 0, 1, xtol=1e-14) * logs)
        clipped = np.minimum(w, np.sort(w)[-7])  # at the first iteration eta is 1
        cov = np.cov(before.draws[m].numpy().T, aweights=clipped, ddof=0)
        cov = 0.5 * 0.64 * np.eye(2) + 0.5 * cov
        found = state.factor[m]
        found = (found @ found.mT).numpy() if name == "pmcnet" else np.diag(found.numpy() ** 2)
        expected = cov if name == "pmcnet" else np.diag(np.diag(cov))
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-10)
