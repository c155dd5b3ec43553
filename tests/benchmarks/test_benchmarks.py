"""Benchmarks: a short run of each suite, and comparisons that give neither side an advantage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import nuts, peers, posteriors
from benchmarks.__main__ import SUITES, cases, main
from benchmarks.posteriors.catalogue import POSTERIORS, ReferenceMoments
from benchmarks.posteriors.verdicts import TOLERANCE, judge


@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_has_cases_and_refuses_others(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cases(suite)
    assert main([suite, "--case", "nope", "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "'nope'" in err


# --- comparisons


def test_what_is_compiled_while_the_clock_runs_is_counted() -> None:
    """Each density but the first was once compiled, and every 250 draws were traced, within numpyro's budget."""
    jax = pytest.importorskip("jax")

    def sampler(scale: float, anew: bool) -> Callable[[float], peers.PeerRun]:
        def move(x: Any) -> Any:
            return scale * x

        kept = jax.jit(move)

        def sample(seconds: float) -> peers.PeerRun:
            draws = (jax.jit(lambda x: move(x)) if anew else kept)(np.ones((2, 3), "float32"))
            return peers.PeerRun(np.asarray(draws), 0.0, 0, seconds)

        return sample

    for scale in (1.5, 2.5):
        assert peers.compiled_before(sampler(scale, anew=False), 1.0).compiled == 0
        assert peers.compiled_before(sampler(scale, anew=True), 1.0).compiled > 0


@pytest.mark.slow
def test_draws_of_numpyro_are_those_of_the_density() -> None:
    pytest.importorskip("numpyro")
    for scale in (1.0, 3.0):
        sd = np.array([1.0, scale], "float32")
        found = peers.numpyro(lambda x, sd=sd: 0.5 * ((x / sd) ** 2).sum(), 2, 0.1, 4, "float32")
        assert found.compiled == 0 and found.draws.dtype == np.float32
        size = np.array([nuts.Worth.of(found.draws[..., i : i + 1]).ess for i in range(2)])
        assert (size > 100).all() and found.gradients > found.draws.shape[1]
        assert (np.abs(found.draws.std((0, 1)) / sd - 1) * np.sqrt(2 * size)).max() < 5


@pytest.mark.parametrize("name", nuts.DENSITIES)
def test_peers_have_the_same_density(name: str) -> None:
    pytest.importorskip("jax")
    density = nuts.DENSITIES[name]()
    target, _ = density.ours
    x = 0.3 * torch.randn(2, density.dim, generator=torch.Generator().manual_seed(0))
    ours = density.network.potential(x.double()) if density.network is not None else target(x)
    theirs = [float(density.theirs()(row.numpy())) for row in x]
    assert float(ours[0] - ours[1]) == pytest.approx(theirs[0] - theirs[1], rel=1e-4)


# --- posteriors

TRUTH = ReferenceMoments(np.zeros(3), np.zeros(3), np.ones(3), np.zeros(3), "known")
NAMES = ("a", "b", "c")


def normal_draws(seed: int, count: int = 2000) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((4, count, 3))


def test_exact_draws_are_right() -> None:
    verdicts = [judge(normal_draws(seed, 100), TRUTH, NAMES).verdict for seed in range(40)]
    # One of a thousand is wrong by chance: two of forty would be less than one chance in a thousand.
    assert verdicts.count("wrong") <= 1
    assert set(verdicts) <= {"right", "wrong"}


@pytest.mark.parametrize(
    ("spoil", "of"),
    [
        (lambda x: x * np.array([1.0, 0.7, 1.0]), "sd of b"),
        (lambda x: x * np.array([1.0, 1.0, 1.2]), "sd of c"),
        (lambda x: x + np.array([0.3, 0.0, 0.0]), "mean of a"),
    ],
)
def test_biased_draws_are_wrong(spoil: Any, of: str) -> None:
    found = judge(spoil(normal_draws(0)), TRUTH, NAMES)
    assert (found.verdict, found.of) == ("wrong", of)
    assert abs(found.bias) > found.allowed >= TOLERANCE


def test_a_stuck_chain_is_wrong_and_few_draws_are_too_few() -> None:
    assert judge(np.full((4, 100, 3), 0.5), TRUTH, NAMES).verdict == "wrong"
    slow = np.repeat(normal_draws(0, 10), 100, axis=1)
    assert {judge(draws, TRUTH, NAMES).verdict for draws in (slow, normal_draws(0, 5), np.empty((0, 0, 0)))} == {
        "too few"
    }
    assert judge(normal_draws(0, 40_000) * 1.03, TRUTH, NAMES).verdict == "right", "a small error"


def test_a_sampler_is_judged_on_a_posterior() -> None:
    row = posteriors.measure(POSTERIORS["eight_schools_noncentred"], "hmc", 1.0)
    assert row.more["verdict"] in ("right", "wrong", "too few") and row.more["includes"]
    assert row.more["cpu_seconds"] < 4 and row.more["grads_per_cpu_s"] > 0
    names = {cls.registered for cls in posteriors.chain_samplers()}
    assert {"nuts", "hmc", "bps", "sgld"} <= names and names.isdisjoint({"map", "laplace", "pmcnet", "func_hmc"})
