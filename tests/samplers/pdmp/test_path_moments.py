"""Moments from the integrals along the path: against quadrature, and against known variances (p < 1e-4 over all)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bnnviz.diagnostics import path_moments
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec
from tests.driven import finished

SAMPLERS = ["bps", "sigma_bps", "zigzag", "boomerang"]
#: |z| of a normal estimate that p < 1e-4 over the 6 x 2 estimates allows.
MOST = 4.5


def spec(sampler: str, **settings: object) -> Spec:
    return Spec(
        target="gaussian",
        target_settings={"size": 2, "correlation": 0.6, "mean_list": "[2, -1]"},
        sampler=sampler,
        settings=settings,
        chains=64,
        draws=120,
        warmup=20,
        seed=5,
        device="cpu",
        dtype="float64",
    )


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_integrals_agree_with_quadrature(sampler: str) -> None:
    run = ViewedRun(spec(sampler))
    run.prepare()
    rng = torch.Generator().manual_seed(1)
    x = 5 + torch.randn(40, 2, dtype=torch.float64, generator=rng)
    scaling = run.state.adaptation.scaling
    v = run.sampler.draw_velocity(run.numbers, x, scaling)
    s0 = 3 * torch.rand(40, dtype=torch.float64, generator=rng)
    s1 = s0 + torch.logspace(-7, 0.5, 40, dtype=torch.float64)
    nodes, weights = (torch.as_tensor(part) for part in np.polynomial.legendre.leggauss(30))
    half = (s1 - s0) / 2
    points = torch.stack([run.sampler.flow(x, v, s0 + half * (1 + node), scaling)[0] for node in nodes])
    weights = weights[:, None, None] * half[:, None]
    first, second = run.sampler.integrals(x, v, s0, s1, scaling)
    assert torch.allclose(first, (weights * points).sum(0), rtol=1e-10, atol=0)
    assert torch.allclose(second, (weights * points**2).sum(0), rtol=1e-10, atol=0)


def worst(sampler: str, target: str = "gaussian", **settings: object) -> float:
    """Return the largest |z| of the path's means and variances."""
    requested = spec(sampler, **settings)
    run = ViewedRun(
        requested if target == "gaussian" else requested.replace(target=target, target_settings={"bend": 0.4})
    )
    run.prepare()
    finished(run)
    found = run.path_moments()
    mean, variance = run.target.mean(), np.diag(run.target.cov())
    return float(
        max(abs((found.mean - mean) / found.mean_se).max(), abs((found.variance - variance) / found.variance_se).max())
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "target", "settings"),
    [
        *((sampler, "gaussian", {}) for sampler in SAMPLERS),
        ("bps", "banana", {}),
        ("bps", "gaussian", {"samples": "events", "refresh_rate": 0.2}),
    ],
)
def test_path_moments_are_right(sampler: str, target: str, settings: dict) -> None:
    assert worst(sampler, target, **settings) < MOST


def test_chains_count_by_equal_time() -> None:
    # A slow chain that stands at 3 for long, and a fast one that stands at 0 and was stopped early.
    time = np.stack([np.linspace(0, 100, 51), np.linspace(0, 10, 51)])
    place = np.array([3.0, 0.0])[:, None]
    sums = np.stack([time, place * time, place**2 * time], axis=2)
    found = path_moments(sums)
    assert found.mean == pytest.approx(1.5)
    assert found.time == pytest.approx(10)


@pytest.mark.slow
def test_draws_can_be_taken_at_events_or_along_the_path_while_it_runs() -> None:
    run = ViewedRun(spec("bps", refresh_rate=0.1).replace(draws=None))
    run.prepare()
    found = {}
    for samples in ("path", "events", "path"):
        run.change({"samples": samples})
        until = run.steps + 3000
        while run.steps < until:
            run.advance(0.02)
        found[samples] = float(run.draws[..., 0].var())
    assert run.generation == 3
    assert found["events"] > 1.2 * found["path"]
