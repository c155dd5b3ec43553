"""Invariants of the dynamics: what a bounce and a flow keep."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from families import PDMPS
from hypothesis import given, settings
from hypothesis import strategies as st

from bnnviz import samplers, targets
from bnnviz.engine.drive import drive
from bnnviz.engine.run.run import Run
from bnnviz.samplers.pdmp.dynamics import Dynamics
from bnnviz.samplers.pdmp.warmup import PathSums
from bnnviz.samplers.random import seeded
from bnnviz.specs.run import Spec
from tests.driven import finished

seeds = st.integers(0, 10_000)
RNG = seeded(0)


def bound_sampler(name: str, dim: int = 4, **values) -> tuple[samplers.Sampler, Any]:
    """Return a sampler, and what its dynamics are relative to."""
    target = targets.Gaussian(size=dim, correlation=0.5, spread=3.0).to("cpu", torch.float64)
    sampler = samplers.REGISTRY.get(name)(**values)
    sampler.prepare(target, torch.linspace(-0.5, 0.5, dim, dtype=torch.float64))
    return sampler, sampler.first_scaling()


def random_state(seed: int, dim: int = 4) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    x, v, t = (torch.randn(8, dim, generator=rng, dtype=torch.float64) for _ in range(3))
    return x, v, t[:, 0].abs()


@pytest.mark.parametrize("name", PDMPS)
@settings(max_examples=50, deadline=None)
@given(seed=seeds)
def test_flow_can_be_reversed(name, seed):
    sampler, scaling = bound_sampler(name)
    x, v, t = random_state(seed)
    x1, v1 = sampler.flow(x, v, t, scaling)
    x2, v2 = sampler.flow(x1, -v1, t, scaling)
    assert torch.allclose(x2, x, atol=1e-9)
    assert torch.allclose(v2, -v, atol=1e-9)


@pytest.mark.parametrize("name", sorted({*PDMPS} - {"zigzag"}))
@settings(max_examples=50, deadline=None)
@given(seed=seeds)
def test_bounce_flips_the_rate_and_is_its_own_inverse(name, seed):
    sampler, scaling = bound_sampler(name)
    x, v, _ = random_state(seed)
    g = sampler.target.gradient(x)[1]
    bounced = sampler.reflect(RNG, x, v, g, scaling)
    assert torch.allclose(sampler.rate(x, bounced, g, scaling), -sampler.rate(x, v, g, scaling), atol=1e-9)
    assert torch.allclose(sampler.reflect(RNG, x, bounced, g, scaling), v, atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(seed=seeds)
def test_bps_bounce_keeps_the_speed(seed):
    for name, scale in (("bps", torch.ones(4)), ("sigma_bps", torch.tensor([1.0, 2.0, 0.1, 5.0]))):
        sampler, scaling = bound_sampler(name)[0], scale.double()
        x, v, _ = random_state(seed)
        bounced = sampler.reflect(RNG, x, v, sampler.target.gradient(x)[1], scaling)
        assert torch.allclose((bounced / scaling).norm(dim=1), (v / scaling).norm(dim=1))


@settings(max_examples=50, deadline=None)
@given(seed=seeds)
def test_one_climbing_coordinate_of_a_zigzag_turns(seed):
    sampler, scaling = bound_sampler("zigzag")
    x = random_state(seed)[0]
    v = sampler.draw_velocity(seeded(seed), x, scaling)
    g = sampler.target.gradient(x)[1]
    climbing = ((v * g) > 0).any(1)
    after = sampler.reflect(RNG, x, v, g, scaling)
    turned = after != v
    assert (turned[climbing].sum(1) == 1).all()
    assert ((v * g)[climbing][turned[climbing]] > 0).all()
    rate = sampler.rate(x, v, g, scaling)
    found = sampler.rate_after(x, after, g, rate, scaling)
    assert torch.allclose(found[climbing], (rate - (v * g * turned).sum(1))[climbing])


@settings(max_examples=50, deadline=None)
@given(seed=seeds)
def test_boomerang_keeps_its_energy(seed):
    sampler, scaling = bound_sampler("boomerang")
    x, v, t = random_state(seed)

    def energy(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        d = x - scaling.centre
        return (scaling.precision * (d * d + v * v)).sum(1)

    assert torch.allclose(energy(*sampler.flow(x, v, t, scaling)), energy(x, v))
    bounced = sampler.reflect(RNG, x, v, sampler.target.gradient(x)[1], scaling)
    assert torch.allclose(energy(x, bounced), energy(x, v))


@pytest.mark.parametrize("name", PDMPS)
@settings(max_examples=30, deadline=None)
@given(seed=seeds, share=st.floats(0, 1))
def test_a_flow_goes_on_from_wherever_it_is(name, seed, share):
    sampler, scaling = bound_sampler(name)
    x, v, t = random_state(seed)
    whole, half = (sampler.flow(x, v, part, scaling) for part in (t, share * t))
    halves = sampler.flow(*half, (1 - share) * t, scaling)
    assert all(torch.allclose(a, b, atol=1e-9) for a, b in zip(whole, halves, strict=True))


@pytest.mark.parametrize("name", PDMPS)
@pytest.mark.parametrize("reference", ["exact", "from_prior", "prior"])
def test_slope_of_the_rate_is_its_derivative(name, reference):
    target = targets.LogisticRegression().to("cpu", torch.float64)
    sampler = samplers.REGISTRY.get(name)(**({"reference": reference} if name == "boomerang" else {}))
    sampler.prepare(target, torch.zeros(3, dtype=torch.float64))
    scaling = sampler.first_scaling()
    x, v, t = random_state(3, dim=3)

    def rate(t: torch.Tensor) -> torch.Tensor:
        x1, v1 = sampler.flow(x, v, t, scaling)
        return sampler.rate(x1, v1, target.gradient(x1)[1], scaling)

    x1, v1 = sampler.flow(x, v, t, scaling)
    _, g, curvature = sampler.derivatives(sampler.target, x1, v1)
    h = 1e-5
    numerical = (rate(t + h) - rate(t - h)) / (2 * h)
    assert torch.allclose(sampler.rate_slope(x1, v1, g, curvature, scaling), numerical, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reference", ["from_prior", "prior"])
def test_a_reference_that_needs_a_missing_prior_is_refused(reference):
    target = targets.Gaussian().to("cpu", torch.float64)
    with pytest.raises(ValueError, match="exact"):
        samplers.Boomerang(reference=reference).prepare(target, torch.zeros(2, dtype=torch.float64))


def test_the_reference_from_the_prior_is_the_prior_and_leaves_the_likelihood():
    target = targets.LogisticRegression().to("cpu", torch.float64)
    sampler = samplers.Boomerang(reference="from_prior", gamma=500.0)
    sampler.prepare(target, torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64))
    scaling = sampler.first_scaling()
    assert not scaling.centre.any() and (scaling.precision == target.prior_precision).all()
    x, v, _ = random_state(3, dim=3)
    g = target.gradient(x)[1]
    of_likelihood = (v * (g - target.prior_precision * x)).sum(-1)
    assert torch.allclose(sampler.rate(x, v, g, scaling), of_likelihood)


@pytest.mark.slow
@pytest.mark.parametrize(("reference", "right"), [("from_prior", True), ("prior", False)])
def test_with_the_prior_for_its_reference_the_posterior_is_sampled(reference: str, right: bool) -> None:
    """A logistic regression whose mean is known by quadrature; the reading of the paper is told apart."""
    mean = targets.LogisticRegression()._moments[0]
    spec = Spec("logistic_regression", {}, "boomerang", {"reference": reference}, 48, 80, 20, 3, dtype="float64")
    run = Run(spec.checked())
    drive(run, 0.5)
    each = run.draws.mean(1)
    off = (each.mean(0) - mean) / (each.std(0, ddof=1) / len(each) ** 0.5)
    assert (abs(off).max() < 4.0) == right, off


@pytest.mark.slow
@pytest.mark.parametrize("bound", ["grid", "exact"])
def test_the_boomerang_learns_its_reference(bound: str) -> None:
    """The learned reference is that of the path: from a centre and a spread far off to those of the target."""
    target = targets.Gaussian(mean=[3.0, -1.0], cov=[[4.0, 0.6], [0.6, 0.25]])
    chosen = {"learn_reference": True, "adapt_events": 2000, "gamma": 0.05, "bound": bound}
    spec = Spec(sampler="boomerang", settings=chosen, chains=32, draws=4, seed=3, device="cpu", dtype="float64")
    run = Run(spec, target=target)
    run.prepare()
    assert run.state.adaptation.rounds_left == 4
    while run.phase == "tuning":
        run.advance(0.1)
    assert run.state.adaptation.rounds_left == 0
    assert run.state.adaptation.scaling.centre.numpy() == pytest.approx([3.0, -1.0], abs=0.3)
    assert (1 / run.state.adaptation.scaling.precision).numpy() == pytest.approx([4.0, 0.25], rel=0.25)
    (label, text, _), *_ = run.sampler.text(run.sampler).rows(run.state)
    assert "w*" in label and 0.3 < float(text) < 2


@pytest.mark.slow
def test_without_learning_the_reference_is_that_of_the_mode() -> None:
    settings = {"learn_reference": False}
    run = Run(Spec(target="gaussian", sampler="boomerang", settings=settings, chains=2, draws=4, device="cpu"))
    run.prepare()
    reference = run.state.adaptation.scaling
    finished(run)
    assert run.state.adaptation.scaling is reference


def test_sums_along_a_path_are_moments() -> None:
    """Two chains that start far from zero, each a straight line; time counts, not stretches."""
    origin = torch.tensor([[1000.0], [1002.0]], dtype=torch.float64)
    sums, none = PathSums.begun(origin), torch.zeros((), dtype=torch.int64)
    for times in ((0.0, 0.5), (0.5, 2.0)):
        begin, end = (torch.full((2,), time, dtype=torch.float64) for time in times)
        sums = sums.added(end - begin, Dynamics().integrals(origin, torch.ones_like(origin), begin, end, ()), none)
    mean, variance = sums.moments()
    # Uniform on [1000, 1002] and on [1002, 1004]: together on [1000, 1004].
    assert float(mean) == pytest.approx(1002)
    assert float(variance) == pytest.approx(16 / 12)
    assert float(sums.sd_within()) == pytest.approx((4 / 12) ** 0.5)
