"""The table of known answers and the simulated data sets: right samplers pass, and broken ones make their rows red."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from families import PDMPS
from scipy import stats

from bnnviz import samplers, targets
from truth import known_answers
from truth.calibration import KnownAnswers, limit, of_draws, of_path, p_value
from truth.known_answers import SamplerCase, check, far, known_targets, sampler_cases
from truth.simulated import PLACES, SimulatedNetwork, uniformity

FEW = {"draws": 40, "chains": 300}
EVERY = [cls.registered for cls in samplers.REGISTRY if cls.traits.exact]

APPROXIMATE = ("interpolated", "regression")


def half_reflection(self, rng, x, v, g, scaling):
    return v - (g * v).sum(-1, keepdim=True) / (g * g).sum(-1, keepdim=True) * g


# --- the statistics


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "banana", "funnel", "double_well"])
def test_exact_draws_have_standard_errors_of_one(name: str) -> None:
    """Skewed or not, no error of 200 tables of independent draws is larger than chance allows."""
    target = known_targets()[name]
    known = KnownAnswers.of(target)
    z = []
    for seed in range(200):
        draws = target.exact_draws(300 * 10, seed=seed).reshape(300, 10, target.dim)
        z.append([test.z for test in of_draws(draws, known)])
    z = np.array(z)
    assert np.abs(z).max() < limit(1e-3, z.size, 300)
    assert z.std() == pytest.approx(1, abs=0.06)
    assert abs(z.mean()) < 5 / np.sqrt(z.size)


def test_a_chance_and_its_limit_belong_together() -> None:
    assert p_value(limit(1e-4, 40, 300), 40, 300) == pytest.approx(1e-4)
    assert p_value(0.1, 40, 300) == 1


def test_errors_of_draws_and_of_their_path_are_reported() -> None:
    target = targets.Gaussian(size=1)
    known = KnownAnswers.of(target)
    draws = 1.1 * target.exact_draws(64 * 50, seed=1).reshape(64, 50, 1)
    found = {test.label: test for test in of_draws(draws, known)}
    assert found["variance x1"].error == pytest.approx(0.21, abs=4 * found["variance x1"].se)
    assert found["10% of x1"].error == pytest.approx(stats.norm.cdf(-1.2816 / 1.1) - 0.1, abs=0.02)
    # Paths that rest at the draws' places, each for a time of its own.
    rest = np.linspace(1, 2, 64)[:, None]
    path = np.concatenate([rest, rest * draws.mean(1), rest * (draws**2).mean(1)], axis=1)
    along = {test.label: test for test in of_path(path, known)}
    assert along["path variance x1"].error == pytest.approx(found["variance x1"].error)
    assert along["path mean x1"].error == pytest.approx(found["mean x1"].error)


def test_weights_count() -> None:
    known = KnownAnswers.of(targets.Gaussian(size=1))
    draws = targets.Gaussian(size=1).exact_draws(64 * 50, seed=1).reshape(64, 50, 1)
    weights = (draws[..., 0] > 0).astype(float)
    found = {test.label: test for test in of_draws(draws, known, weights)}
    assert found["mean x1"].error == pytest.approx(np.sqrt(2 / np.pi), abs=0.05)


# --- the table


def test_the_table_walks_all_samplers_bounds_and_targets() -> None:
    known = known_targets()
    with_answers = {cls.registered for cls in targets.REGISTRY if cls().mean() is not None}
    assert {target.registered for target in known.values()} == with_answers
    on_gaussian, on_banana = ({case.name for case in sampler_cases(known[name])} for name in ("gaussian", "banana"))
    others = set(EVERY) - set(PDMPS) | {"hmc_low_rank", "nuts_low_rank"}
    assert on_gaussian == others | {f"{s}_{b}" for s in PDMPS for b in (*APPROXIMATE, "grid", "exact", "events")}
    assert on_banana == others | {f"{s}_{b}" for s in PDMPS for b in (*APPROXIMATE, "grid", "events")}
    assert 5 < known_answers.worst_allowed() < 6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "banana", "double_well"])
@pytest.mark.parametrize("sampler", EVERY)
def test_a_sample_of_the_table_is_green(name: str, sampler: str) -> None:
    target = known_targets()[name]
    for case in sampler_cases(target):
        if case.sampler == sampler and case.right:
            found = check(case, target, **FEW)
            assert found.ok, (case.name, found)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", EVERY)
def test_where_a_chain_began_is_forgotten(sampler: str) -> None:
    found = far(SamplerCase(sampler, {}), **FEW)
    assert found.ok, found


# --- broken on purpose


# --- simulated data sets


def smallest(simulation: SimulatedNetwork, sampler: str) -> float:
    ranks = simulation.ranks(samplers.REGISTRY.get(sampler)(), 60.0)
    assert set(ranks) == set(simulation.quantities)
    assert all(len(places) == simulation.replications and places.min() >= 0 for places in ranks.values())
    assert max(places.max() for places in ranks.values()) < PLACES
    return min(uniformity(places)[1] for places in ranks.values())


LEAST = known_answers.LEVEL / (len(PDMPS) * len(SimulatedNetwork.quantities))


@pytest.mark.slow
@pytest.mark.parametrize("sampler", PDMPS)
def test_true_weights_lie_anywhere_among_the_draws(sampler: str) -> None:
    assert smallest(SimulatedNetwork(512, seed=1), sampler) > LEAST


def test_each_chain_has_a_data_set_of_its_own() -> None:
    target = SimulatedNetwork(3).target
    theta = torch.randn(6, target.dim, dtype=torch.float64)
    potential, gradient = target.gradient(theta)
    for chain in range(6):
        alone = SimulatedNetwork(3).target
        alone.y = target.y[chain].expand(1, -1)
        x = theta[chain : chain + 1].clone().requires_grad_(True)
        value = alone.potential(x)
        assert float(value.detach()) == pytest.approx(float(potential[chain]))
        assert torch.allclose(torch.autograd.grad(value.sum(), x)[0][0], gradient[chain])


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["prior", "reflection", "noise"])
def test_a_broken_posterior_or_sampler_is_found_by_simulated_data(monkeypatch, broken: str) -> None:
    simulation = SimulatedNetwork(512, seed=1)
    if broken == "prior":
        simulation.target.prior_precision = 0.5
    elif broken == "noise":
        simulation.target.likelihood = targets.likelihoods.Normal(1.3 * simulation.target.likelihood.scales[0])
    else:
        monkeypatch.setattr(samplers.REGISTRY.get("bps"), "reflect", half_reflection)
    assert smallest(simulation, "bps") < LEAST


@pytest.mark.slow
def test_cells_of_the_grid_miss_no_rate_between_two_modes() -> None:
    target, case = known_targets()["gaussian_mixture"], SamplerCase("sigma_bps", {"bound": "grid"})
    worst = max(abs(test.z) for test in known_answers.measure(case, target, 300.0, 80, 3000))
    assert worst < limit(1e-4, 12, 3000)
