"""Invariants of the dynamics: what a bounce and a flow keep."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from families import PDMPS
from hypothesis import given, settings
from hypothesis import strategies as st

from bnnviz import samplers, targets
from bnnviz.engine.run.run import Run
from bnnviz.samplers.pdmp.base import integrals_of_line
from bnnviz.samplers.pdmp.path_moments import PathSums
from bnnviz.samplers.pdmp.thinning import BOUNCE, REFRESH
from bnnviz.samplers.random import seeded
from bnnviz.specs.run import Spec

seeds = st.integers(0, 10_000)
RNG = seeded(0)


def bound_sampler(name: str, dim: int = 4, **values) -> samplers.Sampler:
    target = targets.Gaussian(size=dim, correlation=0.5, spread=3.0).to("cpu", torch.float64)
    sampler = samplers.REGISTRY.get(name)(**values)
    sampler.prepare(target, torch.linspace(-0.5, 0.5, dim, dtype=torch.float64))
    return sampler


def random_state(seed: int, dim: int = 4) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    x, v, t = (torch.randn(8, dim, generator=rng, dtype=torch.float64) for _ in range(3))
    return x, v, t[:, 0].abs()


@pytest.mark.parametrize("name", PDMPS)
@settings(max_examples=50, deadline=None)
@given(seed=seeds)
def test_flow_can_be_reversed(name, seed):
    sampler = bound_sampler(name)
    x, v, t = random_state(seed)
    x1, v1 = sampler.flow(x, v, t)
    x2, v2 = sampler.flow(x1, -v1, t)
    assert torch.allclose(x2, x, atol=1e-9)
    assert torch.allclose(v2, -v, atol=1e-9)


@pytest.mark.parametrize("name", sorted({*PDMPS} - {"zigzag"}))
@settings(max_examples=50, deadline=None)
@given(seed=seeds)
def test_bounce_flips_the_rate_and_is_its_own_inverse(name, seed):
    sampler = bound_sampler(name)
    x, v, _ = random_state(seed)
    g = sampler.target.gradient(x)[1]
    bounced = sampler.reflect(RNG, x, v, g)
    assert torch.allclose(sampler.rate(x, bounced, g), -sampler.rate(x, v, g), atol=1e-9)
    assert torch.allclose(sampler.reflect(RNG, x, bounced, g), v, atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(seed=seeds)
def test_bps_bounce_keeps_the_speed(seed):
    for name, scale in (("bps", torch.ones(4)), ("sigma_bps", torch.tensor([1.0, 2.0, 0.1, 5.0]))):
        sampler = bound_sampler(name)
        sampler.scale = scale.double()
        x, v, _ = random_state(seed)
        bounced = sampler.reflect(RNG, x, v, sampler.target.gradient(x)[1])
        assert torch.allclose((bounced / sampler.scale).norm(dim=1), (v / sampler.scale).norm(dim=1))


@settings(max_examples=50, deadline=None)
@given(seed=seeds)
def test_the_generalised_bounce_turns_what_climbs_and_nothing_else(seed):
    sampler = bound_sampler("bps", turn="generalised")
    x, v, _ = random_state(seed)
    g = sampler.target.gradient(x)[1]
    bounced = sampler.reflect(RNG, x, v, g)
    assert torch.allclose(sampler.rate(x, bounced, g), -sampler.rate(x, v, g), atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(seed=seeds)
def test_one_climbing_coordinate_of_a_zigzag_turns(seed):
    sampler = bound_sampler("zigzag")
    x = random_state(seed)[0]
    v = sampler.draw_velocity(seeded(seed), x)
    g = sampler.target.gradient(x)[1]
    climbing = ((v * g) > 0).any(1)
    after = sampler.reflect(RNG, x, v, g)
    turned = after != v
    assert (turned[climbing].sum(1) == 1).all()
    assert ((v * g)[climbing][turned[climbing]] > 0).all()
    found = sampler.rate_after(x, after, g, sampler.rate(x, v, g))
    assert torch.allclose(found[climbing], (sampler.rate(x, v, g) - (v * g * turned).sum(1))[climbing])


@settings(max_examples=50, deadline=None)
@given(seed=seeds)
def test_boomerang_keeps_its_energy(seed):
    sampler = bound_sampler("boomerang")
    x, v, t = random_state(seed)

    def energy(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        d = x - sampler.centre
        return (sampler.precision * (d * d + v * v)).sum(1)

    assert torch.allclose(energy(*sampler.flow(x, v, t)), energy(x, v))
    bounced = sampler.reflect(RNG, x, v, sampler.target.gradient(x)[1])
    assert torch.allclose(energy(x, bounced), energy(x, v))


@pytest.mark.parametrize("name", PDMPS)
@settings(max_examples=30, deadline=None)
@given(seed=seeds, share=st.floats(0, 1))
def test_a_flow_goes_on_from_wherever_it_is(name, seed, share):
    sampler = bound_sampler(name)
    x, v, t = random_state(seed)
    whole, halves = sampler.flow(x, v, t), sampler.flow(*sampler.flow(x, v, share * t), (1 - share) * t)
    assert all(torch.allclose(a, b, atol=1e-9) for a, b in zip(whole, halves, strict=True))


def speed(sampler, x, v):
    return v.norm(dim=1, keepdim=True)


def scaled_speed(sampler, x, v):
    return (v / sampler.scale).norm(dim=1, keepdim=True)


def speeds(sampler, x, v):
    return v.abs()


def energy_of_the_reference(sampler, x, v):
    return (sampler.precision * ((x - sampler.centre).square() + v.square())).sum(1, keepdim=True)


KEPT = {"bps": speed, "sigma_bps": scaled_speed, "zigzag": speeds, "boomerang": energy_of_the_reference}


@pytest.mark.demand
@pytest.mark.parametrize("name", PDMPS)
@settings(max_examples=20, deadline=None)
@given(
    seed=seeds,
    dim=st.integers(1, 6),
    correlation=st.floats(-0.9, 0.9),
    spread=st.floats(0.1, 10),
    bound=st.sampled_from(["grid", "interpolated", "exact"]),
)
def test_only_a_refreshment_changes_what_the_dynamics_keep(name, seed, dim, correlation, spread, bound):
    """Along whole paths, whatever bound finds the event times: speed, speeds or energy; and the path has no gaps."""
    target = targets.Gaussian(size=dim, correlation=correlation, spread=spread).to("cpu", torch.float64)
    sampler = samplers.REGISTRY.get(name)(bound=bound, refresh_rate=0.5)
    sampler.prepare(target, torch.linspace(-0.5, 0.5, dim, dtype=torch.float64))
    sampler.scale = torch.linspace(0.5, 2.0, dim, dtype=torch.float64)
    rng = seeded(seed)
    state = sampler.init(torch.as_tensor(target.exact_draws(8, seed)), rng)
    bounces = 0
    for _ in range(60):
        before = state
        state, info = sampler.step(rng, before)
        kept = info.kind != REFRESH
        bounces += int((info.kind == BOUNCE).sum())
        old, new = KEPT[name](sampler, before.x, before.v), KEPT[name](sampler, state.x, state.v)
        assert torch.allclose(old[kept], new[kept], rtol=1e-7)
        event = (info.kind == BOUNCE) | (info.kind == REFRESH)
        there = sampler.flow(before.x, before.v, info.t)[0]
        assert torch.equal(state.x[event], there[event])
        assert torch.equal(state.x[~event], before.x[~event])
    assert bounces


def test_every_sampler_says_what_its_dynamics_keep():
    assert set(KEPT) == set(PDMPS)


@pytest.mark.parametrize("name", PDMPS)
@pytest.mark.parametrize("reference", ["exact", "prior"])
def test_slope_of_the_rate_is_its_derivative(name, reference):
    target = targets.LogisticRegression().to("cpu", torch.float64)
    sampler = samplers.REGISTRY.get(name)(**({"reference": reference} if name == "boomerang" else {}))
    sampler.prepare(target, torch.zeros(3, dtype=torch.float64))
    x, v, t = random_state(3, dim=3)

    def rate(t: torch.Tensor) -> torch.Tensor:
        x1, v1 = sampler.flow(x, v, t)
        return sampler.rate(x1, v1, target.gradient(x1)[1])

    x1, v1 = sampler.flow(x, v, t)
    _, g, curvature = sampler._evaluate(sampler.target, x1, v1)
    h = 1e-5
    numerical = (rate(t + h) - rate(t - h)) / (2 * h)
    assert torch.allclose(sampler.rate_slope(x1, v1, g, curvature), numerical, rtol=1e-5, atol=1e-5)


def test_reference_in_the_place_of_a_missing_prior_is_refused():
    target = targets.Gaussian().to("cpu", torch.float64)
    with pytest.raises(ValueError, match="exact"):
        samplers.Boomerang(reference="prior").prepare(target, torch.zeros(2, dtype=torch.float64))


@pytest.mark.demand
@pytest.mark.parametrize("bound", ["grid", "exact"])
def test_the_boomerang_learns_its_reference(bound: str) -> None:
    """The learnt reference is that of the path: from a centre and a spread far off to those of the target."""
    target = targets.Gaussian(mean=[3.0, -1.0], cov=[[4.0, 0.6], [0.6, 0.25]])
    chosen = {"learn_reference": True, "adapt_events": 2000, "gamma": 0.05, "bound": bound}
    spec = Spec(sampler="boomerang", settings=chosen, chains=32, draws=4, seed=3, device="cpu", dtype="float64")
    run = Run(spec, target=target)
    run.prepare()
    assert run.sampler.rounds_left == 3
    while run.phase == "tuning":
        run.advance(0.1)
    assert run.sampler.rounds_left == 0
    assert run.sampler.centre.numpy() == pytest.approx([3.0, -1.0], abs=0.3)
    assert (1 / run.sampler.precision).numpy() == pytest.approx([4.0, 0.25], rel=0.25)
    (label, text, _), *_ = run.sampler.rows(run.state)
    assert "w*" in label and 0.3 < float(text) < 2


@pytest.mark.demand
def test_without_learning_the_reference_is_that_of_the_mode() -> None:
    run = Run(Spec(target="gaussian", sampler="boomerang", chains=2, draws=4, device="cpu"))
    run.prepare()
    centre, precision = run.sampler.centre, run.sampler.precision
    while not run.finished:
        run.advance(0.1)
    assert run.sampler.centre is centre and run.sampler.precision is precision


def test_sums_along_a_path_are_moments() -> None:
    """Two chains that start far from zero, each a straight line; time counts, not stretches."""
    origin = torch.tensor([[1000.0], [1002.0]], dtype=torch.float64)
    sums = PathSums(origin)

    class Stretch(NamedTuple):
        x: torch.Tensor
        v: torch.Tensor
        s0: torch.Tensor
        s1: torch.Tensor
        kind: torch.Tensor

    for begin, end in ((0.0, 0.5), (0.5, 2.0)):
        times = [torch.full((2,), value, dtype=torch.float64) for value in (begin, end)]
        stretch = Stretch(origin, torch.ones_like(origin), *times, torch.zeros(2))
        sums.add(integrals_of_line, stretch, stretch)
    mean, variance = sums.moments()
    # Uniform on [1000, 1002] and on [1002, 1004]: together on [1000, 1004].
    assert float(mean) == pytest.approx(1002)
    assert float(variance) == pytest.approx(16 / 12)
    assert float(sums.sd_within()) == pytest.approx((4 / 12) ** 0.5)
