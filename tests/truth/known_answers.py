"""Test every sampler, bound and target with a known answer.

A case is a sampler with one of its bounds or options on a target. Chains start from exact draws if the target has
them: a right kernel keeps their distribution from the first step on, so short runs of many chains are a sharp test and
need no warm-up. The result is the worst of the standardised errors of means, variances and two quantiles and, if the
path is integrated, of means and variances along it. Chosen in advance: the cases that are meant to be right fail
together if the worst of all their errors is one that chance brings about in less than one table of 10,000.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch

from bnnviz import samplers, settings, targets
from bnnviz.engine.run.initialization import Descent
from bnnviz.errors import BnnvizError
from bnnviz.samplers import warmup
from bnnviz.samplers.random import seeded
from truth.calibration import ErrorTest, KnownAnswers, limit, of_draws, of_path, p_value
from truth.chains import ChainDraws, begin, follow, move

LEVEL = 1e-4
CHAINS, DRAWS = 600, 80
#: Settings of targets that say more than the defaults; every other target with known moments is taken as it is.
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "gaussian": {
        "gaussian": {},
        "gaussian-1": {"size": 1},
        "gaussian-5": {"size": 5, "correlation": 0.8, "spread": 3.0},
    },
    # In the tails of one bent by 1 a Boomerang meets rates of thousands, and takes minutes.
    "banana": {"banana": {"bend": 0.5}},
    # A Boomerang centred in one of three modes far apart takes minutes on the way to the others, too.
    "gaussian_mixture": {"gaussian_mixture": {"components": 2, "radius": 1.5}},
    # Nothing can be told of Neal's own in a minute: its neck is too narrow.
    "funnel": {"funnel": {"size": 3, "spread": 1.0}},
}
#: Settings that are tested beside the defaults, of the samplers that have them.
_OPTIONS = (("samples", "events"), ("metric", "low_rank"))
_IN_BATCHES = {"bound": "exact", "batch_size": 1, "control_variates": True}  # on losses of a linear predictor
_FEWER = 8  # times fewer draws there: dozens of proposals are made for an event
_APPROXIMATE = ("interpolated", "regression")  # bounds that rates are above now and then
_MOST_TESTS = 6  # of a coordinate: mean, variance, two quantiles, mean and variance of the path
_MODE_STEPS, _MODE_CHAINS = 300, 16
_OFF_MODE = 0.2  # standard deviations: a process whose centre is a Gaussian's mean would never bounce
_FAR_DIM = 2


@dataclass(frozen=True)
class SamplerCase:
    """A sampler with settings."""

    sampler: str
    settings: dict[str, Any]

    @property
    def name(self) -> str:
        """Sampler and settings."""
        return "_".join([self.sampler, *map(str, self.settings.values())])

    @property
    def right(self) -> bool:
        """Whether the draws are meant to be right."""
        return self.settings.get("bound") not in _APPROXIMATE

    def make(self) -> samplers.Sampler:
        """Return the sampler."""
        return samplers.REGISTRY.get(self.sampler)(**self.settings)


def sampler_cases(target: targets.Target) -> Iterator[SamplerCase]:
    """Walk the samplers, each with every bound and option that it has, where it fits the target."""
    for cls in _exact():
        choices = {s["name"]: s["choices"] or [] for s in settings.describe(cls)}
        variants = [{"bound": bound} for bound in choices.get("bound", [])] or [{}]
        variants += [{name: value} for name, value in _OPTIONS if value in choices.get(name, [])]
        variants += [_IN_BATCHES] if "control_variates" in choices else []
        for variant in variants:
            if _fits(cls(**variant), target):
                yield SamplerCase(cls.registered, variant)


def _exact() -> list[type[samplers.Sampler]]:
    """Return the samplers that have no step size to be wrong by."""
    return [cls for cls in samplers.REGISTRY if cls.traits.exact]


def _fits(sampler: samplers.Sampler, target: targets.Target) -> bool:
    try:
        sampler.check(target)
    except BnnvizError:
        return False
    return True


def measure(
    case: SamplerCase, target: targets.Target, patience: float = 60.0, draws: int = DRAWS, chains: int = CHAINS
) -> list[ErrorTest]:
    """Return the tests of a case on a target that knows its moments; raise if the chains take too many seconds."""
    sampler, truth = case.make(), _truth(target)
    # Where the chains do not start in the law that the draws follow, the first half of the draws is forgotten.
    settled = case.right and truth.quantiles is not None
    mode = _mode(target) if sampler.needs_mode else None
    rng = seeded(0)
    state = warmup.run(sampler, rng, begin(target, sampler, _starts(target, chains, 0), rng, mode))
    state = move(sampler, rng, state, _starts(target, chains, 1))
    course = follow(sampler, rng, state, (2 - settled) * draws, patience)
    if case.settings.get("samples") == "events":
        return of_draws(course.draws, truth, _weights(sampler, course, settled))
    if settled:
        return of_draws(course.draws, truth) + ([] if course.path is None else of_path(course.path[:, -1], truth))
    return of_draws(course.draws[:, draws:], truth)


def _weights(sampler: samplers.Sampler, course: ChainDraws, settled: bool) -> np.ndarray:
    """Return weights (chains, draws) of draws at events: of those within a stretch of path time, the same for all.

    The events of a stretch of a path in equilibrium are spread as their law is. The first hundred are not.
    """
    if course.path is None:
        raise BnnvizError("Draws at events are tested by their path times, and these chains have none; take fewer.")
    at = course.path[..., 0]
    end = at[:, -1].min()
    inside = (at <= end) & (at > (0 if settled else end / 2))
    weights = sampler.event_weights(torch.as_tensor(course.draws).flatten(0, 1), course.draw_collector).numpy()
    return weights.reshape(inside.shape) * inside


@cache
def _truth(target: targets.Target) -> KnownAnswers:
    return KnownAnswers.of(target)


def _starts(target: targets.Target, chains: int, seed: int) -> np.ndarray:
    exact = target.exact_draws(chains, seed=seed)
    if exact is not None:
        return exact
    return np.random.default_rng(seed).multivariate_normal(target.mean(), target.cov(), size=chains)


def _mode(target: targets.Target) -> np.ndarray:
    target.to("cpu", torch.float64)
    descent = Descent(target, torch.as_tensor(_starts(target, _MODE_CHAINS, 2)), _MODE_STEPS)
    descent.advance(_MODE_STEPS)
    return descent.best().numpy() + _OFF_MODE * np.sqrt(np.diag(target.cov()))


@cache
def known_targets() -> dict[str, targets.Target]:
    """Return the targets that know their moments, by the names of their cases."""
    found = {}
    for cls in targets.REGISTRY:
        if cls.mean is targets.Target.mean:
            continue  # none ever knows them, and some read data to be made
        for name, values in VARIANTS.get(cls.registered, {cls.registered: {}}).items():
            target = cls(**values)
            if target.mean() is not None:
                found[name] = target
    return found


@cache
def worst_allowed() -> float:
    """Return the standardised error that the worst of all in the table that are meant to be right may have."""
    tests = sum(
        _MOST_TESTS * target.dim for target in known_targets().values() for case in sampler_cases(target) if case.right
    )
    tests += _MOST_TESTS * _FAR_DIM * len(_exact())
    return limit(LEVEL, tests, CHAINS)


class Checked(NamedTuple):
    """The worst standardised error of a case, and whether it is one that chance allows."""

    worst: ErrorTest
    p: float
    ok: bool


def check(case: SamplerCase, target: targets.Target, draws: int = DRAWS, chains: int = CHAINS) -> Checked:
    """Test a case; samplers that work on batches make fewer draws."""
    draws = max(1, draws // _FEWER) if "batch_size" in case.settings else draws
    return _checked(case, measure(case, target, draws=draws, chains=chains), chains)


def _checked(case: SamplerCase, tests: list[ErrorTest], chains: int) -> Checked:
    worst = max(tests, key=lambda test: abs(test.z))
    return Checked(worst, p_value(worst.z, len(tests), chains), not case.right or abs(worst.z) < worst_allowed())


def far(case: SamplerCase, draws: int = DRAWS, chains: int = CHAINS) -> Checked:
    """Test chains that all begin at one point, two standard deviations off on a round Gaussian."""
    target, sampler = targets.Gaussian(size=_FAR_DIM, correlation=0.0), case.make()
    truth, x0 = _truth(target), np.tile([2.0, 0.0], (chains, 1))
    mode = np.array([_OFF_MODE, 0.0]) if sampler.needs_mode else None
    rng = seeded(0)
    state = warmup.run(sampler, rng, begin(target, sampler, x0, rng, mode))
    course = follow(sampler, rng, move(sampler, rng, state, x0), 2 * draws, 60.0)
    return _checked(case, of_draws(course.draws[:, draws:], truth), chains)
