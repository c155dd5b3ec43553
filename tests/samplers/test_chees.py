"""HMC that learns the length of its trajectories: the criterion, the learned length, and right draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from truth.known_answers import SamplerCase, check

from bnnviz import targets
from bnnviz.engine.run.run import Run
from bnnviz.samplers.mcmc import chees
from bnnviz.samplers.mcmc.chees import TrajectoryLength
from bnnviz.specs.run import Spec

CHEES = {"trajectory_length": "chees"}


def tuned(target: targets.Target, **settings: object) -> Run:
    spec = Spec("gaussian", {}, "hmc", CHEES | settings, chains=64, draws=30, warmup=200, dtype="float64", seed=2)
    run = Run(spec.replace(device="cpu"), target=target)
    run.prepare()
    while run.phase == "tuning":
        run.step_proposal()
    return run


def test_the_derivative_is_that_of_the_criterion() -> None:
    # Exact dynamics on N(0, diag(sd^2)): x(T) = x cos(T / sd) + sd p sin(T / sd).
    rng, sd, chains = np.random.default_rng(0), np.array([0.7, 1.0, 1.6]), 20_000
    x, p = (torch.as_tensor(rng.normal(size=(chains, 3))) for _ in range(2))
    sd = torch.as_tensor(sd)
    x = x * sd

    def end(time: float) -> tuple[torch.Tensor, torch.Tensor]:
        angle = time / sd
        return x * angle.cos() + sd * p * angle.sin(), p * angle.cos() - x / sd * angle.sin()

    def criterion(time: float) -> float:
        change = (end(time)[0] - end(time)[0].mean(0)).square().sum(1) - (x - x.mean(0)).square().sum(1)
        return float(change.square().mean()) / 4

    for time in (0.4, 1.2, 2.5):
        slope = (criterion(time + 1e-4) - criterion(time - 1e-4)) / 2e-4
        found = chees.derivative(x, *end(time), torch.ones(chains, dtype=torch.bool))
        assert found == pytest.approx(slope, rel=0.01, abs=0.01)


def test_the_length_stays_between_one_step_and_the_most() -> None:
    long, short = TrajectoryLength.begun(1.0), TrajectoryLength.begun(1.0)
    for _ in range(500):
        long, short = long.updated(3.0, 0.1), short.updated(-3.0, 0.1)
    assert long.steps(0.1, 1.0) == chees.MOST_STEPS and short.steps(0.1, 1.0) == 1
    assert TrajectoryLength.begun(1.0).updated(math.nan, 0.1) == TrajectoryLength.begun(1.0)


def test_the_length_learned_is_near_the_best_one_and_stays() -> None:
    # With the scales known the coordinates are alike, and half a period is the longest way that helps.
    run = tuned(targets.Gaussian(np.zeros(20), np.diag(np.geomspace(0.01, 100, 20) ** 2)))
    length = math.exp(run.state.adaptation.length.log_length)
    assert 1.2 < length < 4.5
    while not run.finished:
        run.advance(0.2)
    assert math.exp(run.state.adaptation.length.log_length) == length


def test_a_run_is_restored_with_it_in_its_warm_up() -> None:
    spec = Spec("gaussian", {}, "hmc", CHEES, chains=8, draws=10, warmup=60, seed=1, device="cpu")
    run = Run(spec)
    run.prepare()
    while run.steps < 30:
        run.step_proposal()
    again = Run.restore(run.checkpoint())
    for each in (run, again):
        while not each.finished:
            each.advance(0.2)
    np.testing.assert_array_equal(run.draws, again.draws)


@pytest.mark.slow
def test_draws_are_right_with_it() -> None:
    for target in (targets.REGISTRY.get("gaussian")(), targets.REGISTRY.get("double_well")()):
        found = check(SamplerCase("hmc", CHEES), target, draws=40, chains=400)
        assert found.ok, found
